//! Compiles a QueryFirst from the wire: types, data to return, filter.

use crate::account::{HeapSize, allocation};
use crate::content_filter::compile::compile;
use crate::content_filter::relation::{Names, Operands as Allowed, Relation, link};
use crate::content_filter::{Compiled, Filter, FilterLimits, Resolve};
use crate::limits::Limits;
use crate::space::NodeIx;
use crate::space::data_type::built_in;
use crate::space::nodes::Nodes;
use crate::space::view::attribute;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    AttributeOperand, ContentFilter, ContentFilterElement, ContentFilterElementResult, ContentFilterResult,
    NodeClass, NodeTypeDescription, ParsingResult, QueryDataDescription, RelativePath,
    SimpleAttributeOperand,
};
use taktwerk_types::{BuiltInType, NodeId, NumericRange, QualifiedName, StatusCode};

/// Maximum number of types in all NodeTypeDescriptions of a Query, including subtypes.
const KINDS_MAX: usize = 16_384;

/// A compiled Query.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Nodes outside this View are skipped.
    pub(crate) view: Option<NodeIx>,
    pub(crate) types: Box<[TypePlan]>,
    pub(crate) filter: Filter<NodeIx>,
    /// The resolved operands of the filter.
    pub(crate) operands: Operands,
    pub(crate) data_sets_max: usize,
    pub(crate) references_max: usize,
}

/// A NodeTypeDescription.
#[derive(Debug)]
pub(crate) struct TypePlan {
    /// The type, and its subtypes if requested.
    pub(crate) kinds: Box<[NodeIx]>,
    pub(crate) data: Box<[Data]>,
}

/// The location of data, relative to a node.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) path: Box<[Step]>,
    pub(crate) attribute_id: u32,
    pub(crate) range: Option<NumericRange>,
}

/// A RelativePathElement.
#[derive(Debug)]
pub(crate) struct Step {
    /// `None` for any ReferenceType.
    pub(crate) reference_type: Option<NodeIx>,
    pub(crate) is_inverse: bool,
    pub(crate) include_subtypes: bool,
    /// A BrowseName of the target or of its type; null for any target.
    pub(crate) name: QualifiedName,
}

/// The resolved operands of the filter.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    pub(crate) fields: Vec<Field>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) views: Vec<NodeIx>,
}

/// An AttributeOperand.
#[derive(Debug)]
pub(crate) struct Field {
    /// The type of the node that has the attribute.
    pub(crate) kind: NodeIx,
    /// The alias of the RelatedTo that leads to this node; empty if the type identifies it.
    pub(crate) alias: Box<str>,
    pub(crate) data: Data,
}

/// Why a Query is refused.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) parsing: Vec<ParsingResult>,
    pub(crate) filter: ContentFilterResult,
}

impl From<StatusCode> for Refusal {
    fn from(status: StatusCode) -> Self {
        Self { status, parsing: Vec::new(), filter: ContentFilterResult::default() }
    }
}

/// The contents of a client's request.
pub(crate) struct Wanted<'a> {
    pub(crate) view: Option<NodeIx>,
    pub(crate) types: &'a [NodeTypeDescription],
    pub(crate) filter: &'a ContentFilter,
    pub(crate) data_sets_max: u32,
    pub(crate) references_max: u32,
}

impl Plan {
    /// Checks and compiles a Query.
    pub(crate) fn new(nodes: &Nodes, limits: &Limits, wanted: &Wanted<'_>) -> Result<Self, Refusal> {
        let data: usize = wanted.types.iter().map(|kind| kind.data_to_return.len()).sum();
        if data > limits.select_clauses_max as usize {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS.into());
        }
        let reader = Reader { nodes, limits };
        let mut types = Vec::with_capacity(wanted.types.len());
        let mut parsing = Vec::with_capacity(wanted.types.len());
        let mut left = KINDS_MAX;
        for kind in wanted.types {
            let (plan, result) = reader.node_type(kind, left);
            left = left.saturating_sub(plan.as_ref().map_or(1, |plan| plan.kinds.len()));
            if left == 0 {
                return Err(StatusCode::BAD_QUERY_TOO_COMPLEX.into());
            }
            types.extend(plan);
            parsing.push(result);
        }
        if types.len() < parsing.len() {
            return Err(Refusal { parsing, ..StatusCode::BAD_INVALID_ARGUMENT.into() });
        }
        let mut resolver = Resolver { reader, operands: Operands::default() };
        let filter_limits = FilterLimits { operands_max: limits.where_operands_max as usize };
        let compiled =
            compile(wanted.filter, filter_limits, &mut resolver).map_err(|status| match status {
                StatusCode::BAD_EVENT_FILTER_INVALID => Refusal::from(StatusCode::BAD_CONTENT_FILTER_INVALID),
                status => status.into(),
            })?;
        let Compiled { filter: Some(filter), result } = compiled else {
            let status = StatusCode::BAD_CONTENT_FILTER_INVALID;
            return Err(Refusal { filter: compiled.result, ..status.into() });
        };
        debug_assert!(result.element_results.is_empty(), "a filter without errors");
        let mut operands = resolver.operands;
        link(&mut operands.relations).map_err(|_| StatusCode::BAD_CONTENT_FILTER_INVALID)?;
        let most = |wanted: u32, max: usize| if wanted == 0 { max } else { (wanted as usize).min(max) };
        Ok(Self {
            view: wanted.view,
            types: types.into(),
            filter,
            operands,
            data_sets_max: most(wanted.data_sets_max, limits.references_per_browse_max),
            references_max: most(wanted.references_max, limits.references_per_browse_max),
        })
    }
}

impl Plan {
    /// Finds nothing: replaces the plan of a stored Query.
    pub(crate) fn nothing() -> Self {
        Self {
            view: None,
            types: Box::default(),
            filter: Filter::default(),
            operands: Operands::default(),
            data_sets_max: 0,
            references_max: 0,
        }
    }
}

/// Resolves the names in a client's request.
#[derive(Clone, Copy)]
struct Reader<'a> {
    nodes: &'a Nodes,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn kind(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        self.nodes.kind(id)
    }

    fn reference_type(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        self.nodes.reference_type(id)
    }

    fn node_type(&self, wanted: &NodeTypeDescription, kinds_max: usize) -> (Option<TypePlan>, ParsingResult) {
        let kinds = wanted
            .type_definition_node
            .local()
            .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
            .and_then(|id| self.kind(id))
            .and_then(|kind| self.kinds(kind, wanted.include_sub_types, kinds_max));
        let data: Vec<_> = wanted.data_to_return.iter().map(|data| self.data_to_return(data)).collect();
        let statuses: Vec<StatusCode> =
            data.iter().map(|data| data.as_ref().err().copied().unwrap_or(StatusCode::GOOD)).collect();
        let is_good = statuses.iter().all(|status| status.is_good());
        let status_code = match &kinds {
            Err(status) => *status,
            Ok(_) if !is_good => StatusCode::BAD_INVALID_ARGUMENT,
            Ok(_) => StatusCode::GOOD,
        };
        let result = ParsingResult { status_code, data_status_codes: statuses, ..Default::default() };
        let data: Box<[Data]> = data.into_iter().flatten().collect();
        let plan = kinds.ok().filter(|_| is_good).map(|kinds| TypePlan { kinds: kinds.into(), data });
        (plan, result)
    }

    /// A type with its subtypes, up to `max`.
    fn kinds(&self, kind: NodeIx, include_subtypes: bool, max: usize) -> Result<Vec<NodeIx>, StatusCode> {
        let mut kinds = vec![kind];
        let mut at = 0;
        while let Some(here) = kinds.get(at).copied().filter(|_| include_subtypes) {
            self.nodes.references(here, |reference| {
                if reference.is_forward && reference.reference_type.index == reference_type_ids::HAS_SUBTYPE {
                    kinds.push(reference.target);
                }
                kinds.len() <= max
            });
            if kinds.len() > max {
                return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
            }
            at += 1;
        }
        Ok(kinds)
    }

    fn data_to_return(&self, wanted: &QueryDataDescription) -> Result<Data, StatusCode> {
        let path = self.path(&wanted.relative_path)?;
        // A path that ends at a reference has no attribute.
        let ends_on_reference = path.last().is_some_and(|step| step.name.is_null());
        if !ends_on_reference {
            check_attribute(wanted.attribute_id)?;
        }
        let range = self.limits.index_range(wanted.index_range.as_str())?;
        Ok(Data { path, attribute_id: wanted.attribute_id, range })
    }

    fn path(&self, path: &RelativePath) -> Result<Box<[Step]>, StatusCode> {
        if path.elements.len() > self.limits.browse_path_elements_max {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        let step = |element: &taktwerk_schema::RelativePathElement| {
            let id = &element.reference_type_id;
            Ok(Step {
                reference_type: if id.is_null() { None } else { Some(self.reference_type(id)?) },
                is_inverse: element.is_inverse,
                include_subtypes: element.include_subtypes,
                name: element.target_name.clone(),
            })
        };
        path.elements.iter().map(step).collect()
    }
}

fn check_attribute(id: u32) -> Result<(), StatusCode> {
    let is_one = (attribute::NODE_ID..=attribute::ACCESS_LEVEL_EX).contains(&id);
    if is_one { Ok(()) } else { Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID) }
}

struct Resolver<'a> {
    reader: Reader<'a>,
    operands: Operands,
}

impl Resolver<'_> {
    fn add_field(&mut self, field: Field) -> Result<u32, StatusCode> {
        self.operands.fields.push(field);
        u32::try_from(self.operands.fields.len() - 1).map_err(|_| StatusCode::BAD_QUERY_TOO_COMPLEX)
    }
}

impl Resolve for Resolver<'_> {
    type Type = NodeIx;

    fn field(&mut self, operand: SimpleAttributeOperand) -> Result<u32, StatusCode> {
        check_attribute(operand.attribute_id)?;
        if operand.browse_path.len() > self.reader.limits.browse_path_elements_max {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let step = |name| Step {
            reference_type: Some(hierarchical),
            is_inverse: false,
            include_subtypes: true,
            name,
        };
        let kind = self.reader.kind(&operand.type_definition_id)?;
        let path = operand.browse_path.into_iter().map(step).collect();
        let range = self.reader.limits.index_range(operand.index_range.as_str())?;
        let data = Data { path, attribute_id: operand.attribute_id, range };
        self.add_field(Field { kind, alias: "".into(), data })
    }

    fn attribute(&mut self, operand: AttributeOperand) -> Result<u32, StatusCode> {
        check_attribute(operand.attribute_id)?;
        let kind = self.reader.kind(&operand.node_id)?;
        let path = self.reader.path(&operand.browse_path)?;
        let range = self.reader.limits.index_range(operand.index_range.as_str())?;
        let data = Data { path, attribute_id: operand.attribute_id, range };
        self.add_field(Field { kind, alias: operand.alias.as_str().into(), data })
    }

    fn of_type(&mut self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        self.reader.kind(id)
    }

    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType> {
        let nodes = self.reader.nodes;
        nodes.resolve(data_type.as_ref()).and_then(|ix| built_in(nodes, ix))
    }

    fn related(
        &mut self,
        element: u32,
        from: &ContentFilterElement,
    ) -> Result<u32, ContentFilterElementResult> {
        let relation =
            Relation::read(element, from, Allowed::LiteralsAndAttributes, self.reader.nodes).map_err(
                |refusal| ContentFilterElementResult { status_code: refusal.status(), ..Default::default() },
            )?;
        self.operands.relations.push(relation);
        // At most one per element, and elements are limited.
        Ok(u32::try_from(self.operands.relations.len() - 1).unwrap_or(u32::MAX))
    }

    fn view(&mut self, id: &NodeId) -> Result<u32, StatusCode> {
        let nodes = self.reader.nodes;
        let view = nodes.resolve(id.as_ref()).ok_or(StatusCode::BAD_VIEW_ID_UNKNOWN)?;
        if nodes.view(view).is_none_or(|node| node.class() != NodeClass::VIEW) {
            return Err(StatusCode::BAD_VIEW_ID_UNKNOWN);
        }
        self.operands.views.push(view);
        u32::try_from(self.operands.views.len() - 1).map_err(|_| StatusCode::BAD_QUERY_TOO_COMPLEX)
    }
}

impl HeapSize for Data {
    fn heap_size(&self) -> usize {
        let names = self.path.iter().map(|step| allocation(step.name.name.as_str().len()));
        allocation(size_of_val(&*self.path)) + names.sum::<usize>() + self.range.heap_size()
    }
}

impl HeapSize for Plan {
    fn heap_size(&self) -> usize {
        let Operands { fields, relations, views } = &self.operands;
        let types = self.types.iter().map(|kind| {
            let data = kind.data.iter().map(HeapSize::heap_size);
            allocation(size_of_val(&*kind.kinds)) + allocation(size_of_val(&*kind.data)) + data.sum::<usize>()
        });
        let field = |field: &Field| allocation(field.alias.len()) + field.data.heap_size();
        allocation(size_of_val(&*self.types))
            + types.sum::<usize>()
            + self.filter.heap_size()
            + allocation(fields.capacity() * size_of::<Field>())
            + fields.iter().map(field).sum::<usize>()
            + allocation(relations.capacity() * size_of::<Relation>())
            + relations.iter().map(|relation| allocation(relation.alias.len())).sum::<usize>()
            + allocation(views.capacity() * size_of::<NodeIx>())
    }
}

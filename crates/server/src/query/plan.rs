//! From a QueryFirst on the wire to what is done for each node: types, data to return, filter.

use crate::account::{HeapSize, allocation};
use crate::content_filter::compile::compile;
use crate::content_filter::{Compiled, Filter, FilterLimits, Resolve};
use crate::limits::Limits;
use crate::space::NodeIx;
use crate::space::data_type::built_in;
use crate::space::nodes::Nodes;
use crate::space::view::attribute;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    AttributeOperand, ContentFilter, ContentFilterElement, ContentFilterElementResult, ContentFilterResult,
    ElementOperand, LiteralOperand, NodeClass, NodeTypeDescription, ParsingResult, QueryDataDescription,
    RelativePath, SimpleAttributeOperand,
};
use taktwerk_types::{
    BuiltInType, ExtensionObject, NodeId, NumericRange, QualifiedName, StatusCode, Variant,
};

/// Types that one NodeTypeDescription may stand for, with its subtypes.
const KINDS_MAX: usize = 16_384;
/// Hops of a RelatedTo. More lead through most of an address space.
const HOPS_MAX: u32 = 64;

/// A compiled Query.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Nodes outside of this View are left out.
    pub(crate) view: Option<NodeIx>,
    pub(crate) types: Box<[TypePlan]>,
    pub(crate) filter: Filter<NodeIx>,
    /// What the filter's operands stand for.
    pub(crate) operands: Operands,
    pub(crate) data_sets_max: usize,
    pub(crate) references_max: usize,
}

/// A NodeTypeDescription.
#[derive(Debug)]
pub(crate) struct TypePlan {
    /// The type, and its subtypes if they are wanted.
    pub(crate) kinds: Box<[NodeIx]>,
    pub(crate) data: Box<[Data]>,
}

/// Where something is found, seen from a node.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) path: Box<[Step]>,
    pub(crate) attribute_id: u32,
    pub(crate) range: Option<NumericRange>,
}

/// A RelativePathElement.
#[derive(Debug)]
pub(crate) struct Step {
    /// `None` for every ReferenceType.
    pub(crate) reference_type: Option<NodeIx>,
    pub(crate) is_inverse: bool,
    pub(crate) include_subtypes: bool,
    /// A BrowseName of the target or of its type; null for every target.
    pub(crate) name: QualifiedName,
}

/// What the filter's operands stand for.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    pub(crate) fields: Vec<Field>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) views: Vec<NodeIx>,
}

/// An AttributeOperand.
#[derive(Debug)]
pub(crate) struct Field {
    /// The type of the node that it is an attribute of.
    pub(crate) kind: NodeIx,
    /// Names the RelatedTo that leads to this node; empty if the type does.
    pub(crate) alias: Box<str>,
    pub(crate) data: Data,
}

/// A RelatedTo (Part 4 §7.7.3).
#[derive(Debug)]
pub(crate) struct Relation {
    /// The element of the filter.
    pub(crate) element: u32,
    pub(crate) source: NodeIx,
    pub(crate) target: Target,
    pub(crate) reference_type: NodeIx,
    /// References to follow; 0 follows them to the end.
    pub(crate) hops: u32,
    pub(crate) include_subtypes: bool,
    pub(crate) include_reference_subtypes: bool,
    /// The alias of the target.
    pub(crate) alias: Box<str>,
    /// Whether it is the target of another one.
    pub(crate) is_nested: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// An instance of a type.
    Type(NodeIx),
    /// A node for which the RelatedTo of another element holds.
    Element(u32),
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

/// What a client asks for.
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
        for kind in wanted.types {
            let (plan, result) = reader.node_type(kind);
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
        operands.link()?;
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
    /// Finds nothing: what is left of a Query that is kept for its client.
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

impl Operands {
    /// Finds the relations that are targets of others, and refuses targets that are no RelatedTo.
    fn link(&mut self) -> Result<(), StatusCode> {
        for at in 0..self.relations.len() {
            let Some(Target::Element(element)) = self.relations.get(at).map(|relation| relation.target)
            else {
                continue;
            };
            let nested = self.relations.iter_mut().find(|relation| relation.element == element);
            nested.ok_or(StatusCode::BAD_CONTENT_FILTER_INVALID)?.is_nested = true;
        }
        Ok(())
    }
}

/// Reads what a client names.
#[derive(Clone, Copy)]
struct Reader<'a> {
    nodes: &'a Nodes,
    limits: &'a Limits,
}

impl Reader<'_> {
    /// An ObjectType or VariableType.
    fn kind(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        if id.is_null() {
            return Err(StatusCode::BAD_NODE_ID_INVALID);
        }
        let ix = self.nodes.resolve(id.as_ref()).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        match self.nodes.view(ix).map(|view| view.class()) {
            Some(NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE) => Ok(ix),
            _ => Err(StatusCode::BAD_NOT_TYPE_DEFINITION),
        }
    }

    fn reference_type(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        let invalid = StatusCode::BAD_REFERENCE_TYPE_ID_INVALID;
        let ix = self.nodes.resolve(id.as_ref()).ok_or(invalid)?;
        let is_one = self.nodes.view(ix).is_some_and(|view| view.class() == NodeClass::REFERENCE_TYPE);
        if is_one { Ok(ix) } else { Err(invalid) }
    }

    fn node_type(&self, wanted: &NodeTypeDescription) -> (Option<TypePlan>, ParsingResult) {
        let kinds = wanted
            .type_definition_node
            .local()
            .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
            .and_then(|id| self.kind(id))
            .and_then(|kind| self.kinds(kind, wanted.include_sub_types));
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

    /// A type with its subtypes.
    fn kinds(&self, kind: NodeIx, include_subtypes: bool) -> Result<Vec<NodeIx>, StatusCode> {
        let mut kinds = vec![kind];
        let mut at = 0;
        while let Some(here) = kinds.get(at).copied().filter(|_| include_subtypes) {
            self.nodes.references(here, |reference| {
                if reference.is_forward && reference.reference_type.index == reference_type_ids::HAS_SUBTYPE {
                    kinds.push(reference.target);
                }
                kinds.len() <= KINDS_MAX
            });
            if kinds.len() > KINDS_MAX {
                return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
            }
            at += 1;
        }
        Ok(kinds)
    }

    fn data_to_return(&self, wanted: &QueryDataDescription) -> Result<Data, StatusCode> {
        let path = self.path(&wanted.relative_path)?;
        // A path that ends on a reference has no attribute.
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

    /// An operand that names a node: an AttributeOperand for its NodeId, or a literal. With its alias.
    fn named(&self, operand: Option<&ExtensionObject>) -> Result<(NodeId, Box<str>), StatusCode> {
        let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
        let operand = operand.ok_or(StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH)?;
        if operand.is::<AttributeOperand>() {
            let operand: AttributeOperand = operand.decode().map_err(|_| invalid)?;
            let is_id = operand.attribute_id == attribute::NODE_ID && operand.browse_path.elements.is_empty();
            return if is_id { Ok((operand.node_id, operand.alias.as_str().into())) } else { Err(invalid) };
        }
        match literal(operand)? {
            Variant::NodeId(id) => Ok((*id, "".into())),
            Variant::ExpandedNodeId(id) => Ok((id.local().cloned().ok_or(invalid)?, "".into())),
            _ => Err(invalid),
        }
    }

    fn relation(&self, element: u32, from: &ContentFilterElement) -> Result<Relation, StatusCode> {
        let operands = &from.filter_operands;
        let source = self.reader.kind(&self.named(operands.first())?.0)?;
        let second = operands.get(1).ok_or(StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH)?;
        let (target, alias) = if second.is::<ElementOperand>() {
            let ElementOperand { index } =
                second.decode().map_err(|_| StatusCode::BAD_FILTER_OPERAND_INVALID)?;
            (Target::Element(index), "".into())
        } else {
            let (id, alias) = self.named(Some(second))?;
            (Target::Type(self.reader.kind(&id)?), alias)
        };
        let reference_type = self.reader.reference_type(&self.named(operands.get(2))?.0)?;
        let number = operands.get(3).ok_or(StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH)?;
        let hops = hops(&literal(number)?).ok_or(StatusCode::BAD_FILTER_OPERAND_INVALID)?;
        if hops > HOPS_MAX {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        // Annex B.3 leaves them out and means subtypes too. Part 4 §7.7.3: what is no Boolean counts as false.
        let is_true = |at: usize| match operands.get(at) {
            None => true,
            Some(operand) => literal(operand).ok() == Some(Variant::Boolean(true)),
        };
        Ok(Relation {
            element,
            source,
            target,
            reference_type,
            hops,
            include_subtypes: is_true(4),
            include_reference_subtypes: is_true(5),
            alias,
            is_nested: false,
        })
    }
}

fn literal(operand: &ExtensionObject) -> Result<Variant, StatusCode> {
    let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    if !operand.is::<LiteralOperand>() {
        return Err(invalid);
    }
    operand.decode::<LiteralOperand>().map(|operand| operand.value).map_err(|_| invalid)
}

/// A number of hops. The examples of the specification write it as a text.
fn hops(value: &Variant) -> Option<u32> {
    match value {
        Variant::Byte(value) => Some(u32::from(*value)),
        Variant::UInt16(value) => Some(u32::from(*value)),
        Variant::UInt32(value) => Some(*value),
        Variant::UInt64(value) => u32::try_from(*value).ok(),
        Variant::SByte(value) => u32::try_from(*value).ok(),
        Variant::Int16(value) => u32::try_from(*value).ok(),
        Variant::Int32(value) => u32::try_from(*value).ok(),
        Variant::Int64(value) => u32::try_from(*value).ok(),
        Variant::String(text) => text.as_str().trim().parse().ok(),
        _ => None,
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
        let relation = self
            .relation(element, from)
            .map_err(|status_code| ContentFilterElementResult { status_code, ..Default::default() })?;
        self.operands.relations.push(relation);
        // As many as there are elements, which are limited.
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

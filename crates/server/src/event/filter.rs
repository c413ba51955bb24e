//! EventFilters (Part 4 §7.22.3): which events an item reports, and with which fields.

use super::field::{FieldName, hash};
use super::model::Event;
use crate::account::{HeapSize, allocation};
use crate::content_filter::compile::compile as compile_where;
use crate::content_filter::relation::{Names, Operands, Refusal, Relation, link};
use crate::content_filter::{Compiled, Evaluate, Filter, FilterLimits, Resolve};
use crate::limits::EventFilterLimits;
use crate::node_ix::NodeIx;
use core::sync::atomic::{AtomicU64, Ordering};
use std::borrow::Cow;
use taktwerk_schema::{
    ContentFilter, ContentFilterElement, ContentFilterElementResult, ContentFilterResult, EventFilterResult,
    SimpleAttributeOperand,
};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{BuiltInType, Encode, NodeId, NumericRange, QualifiedName, StatusCode, Variant};

/// Information about types.
pub(crate) trait Types: Names {
    /// BaseEventType or one of its subtypes.
    fn event_type(&self, id: &NodeId) -> Option<NodeIx>;
    /// Whether a type or one of its supertypes has this InstanceDeclaration.
    fn has_field(&self, kind: NodeIx, path: &[QualifiedName]) -> bool;
    /// Whether a type is BaseEventType itself.
    fn is_base(&self, kind: NodeIx) -> bool;
    /// Whether a type derives from ConditionType.
    fn is_condition(&self, kind: NodeIx) -> bool;
    /// The built-in type that values of a data type are encoded as.
    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType>;
}

/// The nodes around an event, for InView and RelatedTo. Part 4 §7.7.3 refers to a "target Node". An event is not a
/// node, so its SourceNode is used.
pub(crate) trait Around {
    /// Whether one of the relations holds for a node; `None` if unknown.
    fn is_related(&self, relations: &[Relation], number: usize, source: &NodeId) -> Option<bool>;

    /// Whether a View contains a node; `None` if unknown. A node that is not a View contains none (Part 4 §7.7.3).
    fn is_in_view(&self, view: &NodeId, source: &NodeId) -> Option<bool>;

    /// The filter looks at the next event.
    fn begin(&self);

    /// Counts compared characters. `false`: too many for one event.
    fn spend(&self, steps: usize) -> bool;

    /// How many may still be compared for this event.
    fn left(&self) -> usize;
}

/// A checked filter.
#[derive(Debug)]
pub(crate) struct EventFilter {
    /// Unique among the filters of this process.
    number: u64,
    /// A hash of what the client sent: equal filters have equal fingerprints.
    fingerprint: u64,
    select: Box<[Clause]>,
    /// The fields used by the where clause.
    fields: Box<[Clause]>,
    relations: Box<[Relation]>,
    views: Box<[NodeId]>,
    filter: Filter<NodeIx>,
}

/// Filters are equal if they select the same fields and pass the same events.
impl PartialEq for EventFilter {
    fn eq(&self, other: &Self) -> bool {
        let Self { number: _, fingerprint, select, fields, relations, views, filter } = self;
        *fingerprint == other.fingerprint
            && *select == other.select
            && *fields == other.fields
            && *relations == other.relations
            && *views == other.views
            && *filter == other.filter
    }
}

/// The next filter number.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// A SimpleAttributeOperand.
#[derive(Debug, PartialEq)]
struct Clause {
    what: What,
    /// Only events of this type have the field.
    kind: Option<NodeIx>,
    range: Option<NumericRange>,
}

#[derive(Debug, PartialEq)]
enum What {
    /// A field, by the hash of its name.
    Field(u64),
    /// The NodeId of the condition (Part 9 §5.5.2.1).
    ConditionId,
    /// The clause is invalid: null.
    Nothing,
}

/// The NodeId attribute and the Value attribute.
const NODE_ID: u32 = 1;
const VALUE: u32 = 13;

impl EventFilter {
    /// Checks and compiles a filter. Invalid select clauses select null, and the result reports them. `range` parses an
    /// IndexRange.
    ///
    /// # Errors
    /// The status of the item, with a result if there are details: no select clause is valid, the where clause is
    /// invalid, or a limit is exceeded.
    pub(crate) fn compile(
        filter: &taktwerk_schema::EventFilter,
        types: &dyn Types,
        limits: EventFilterLimits,
        range: &dyn Fn(&str) -> Result<Option<NumericRange>, StatusCode>,
    ) -> Result<(Self, Option<EventFilterResult>), (StatusCode, Option<EventFilterResult>)> {
        let invalid = StatusCode::BAD_EVENT_FILTER_INVALID;
        if filter.select_clauses.len() > limits.select_clauses_max {
            return Err((StatusCode::BAD_TOO_MANY_OPERATIONS, None));
        }
        let reader = Reader { types, limits, range };
        let mut statuses = Vec::with_capacity(filter.select_clauses.len());
        let select: Box<[Clause]> = filter
            .select_clauses
            .iter()
            .map(|operand| {
                let clause = reader.clause(operand);
                statuses.push(clause.as_ref().err().copied().unwrap_or(StatusCode::GOOD));
                clause.unwrap_or(Clause { what: What::Nothing, kind: None, range: None })
            })
            .collect();
        let result = |where_clause_result: ContentFilterResult| {
            let is_needed = statuses.iter().any(|status| status.is_bad())
                || !where_clause_result.element_results.is_empty();
            is_needed.then(|| EventFilterResult {
                select_clause_results: statuses.clone(),
                select_clause_diagnostic_infos: Vec::new(),
                where_clause_result,
            })
        };
        if statuses.iter().all(|status| status.is_bad()) {
            return Err((invalid, result(ContentFilterResult::default())));
        }
        let mut fields = Fields::new(&reader);
        let compiled = compile_filter(&filter.where_clause, limits, &mut fields);
        let Compiled { filter: compiled, result: where_result } =
            compiled.map_err(|status| (status, result(ContentFilterResult::default())))?;
        let Some(compiled) = compiled else { return Err((invalid, result(where_result))) };
        let Fields { clauses, mut relations, views, .. } = fields;
        if let Err(element) = link(&mut relations) {
            return Err((invalid, result(no_relation(&filter.where_clause, element))));
        }
        let (fields, relations, views) = (clauses.into(), relations.into(), views.into());
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let fingerprint = fingerprint(filter);
        let compiled = Self { number, fingerprint, select, fields, relations, views, filter: compiled };
        Ok((compiled, result(where_result)))
    }

    /// A number that is unique among the filters of this process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A hash that equal filters share; different filters may share it as well.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether the outcome depends on the client and the time, that is, on the client's view of the address space.
    pub(crate) fn is_personal(&self) -> bool {
        !self.relations.is_empty() || !self.views.is_empty()
    }

    /// Whether it can reject events.
    pub(crate) fn can_reject(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Whether the item reports an event.
    pub(crate) fn passes(&self, event: &Event, around: &dyn Around) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        around.begin();
        self.filter.passes(&Subject { filter: self, event, around })
    }

    /// Appends the selected fields in the format of an EventFieldList.
    pub(crate) fn encode_fields(&self, event: &Event, out: &mut Vec<u8>) {
        encode_len(self.select.len(), out);
        for clause in &*self.select {
            clause.value(event).encode(out);
        }
    }
}

/// FNV-1a over what the client sent.
fn fingerprint(filter: &taktwerk_schema::EventFilter) -> u64 {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn compile_filter(
    filter: &ContentFilter,
    limits: EventFilterLimits,
    fields: &mut Fields<'_>,
) -> Result<Compiled<NodeIx>, StatusCode> {
    compile_where(filter, FilterLimits { operands_max: limits.where_operands_max }, fields)
}

/// The result for a RelatedTo whose target is an element with another operator.
fn no_relation(filter: &ContentFilter, number: u32) -> ContentFilterResult {
    let results = (0u32..).zip(&filter.elements).map(|(at, element)| {
        if at == number {
            refused(element, 1, StatusCode::BAD_FILTER_ELEMENT_INVALID)
        } else {
            ContentFilterElementResult::default()
        }
    });
    ContentFilterResult { element_results: results.collect(), ..Default::default() }
}

/// The result for an element with an invalid operand (Part 4 §7.7.2).
fn refused(element: &ContentFilterElement, operand: usize, status: StatusCode) -> ContentFilterElementResult {
    let statuses =
        (0..element.filter_operands.len()).map(|at| if at == operand { status } else { StatusCode::GOOD });
    ContentFilterElementResult {
        status_code: StatusCode::BAD_FILTER_OPERAND_INVALID,
        operand_status_codes: statuses.collect(),
        ..Default::default()
    }
}

impl Clause {
    fn value<'a>(&self, event: &'a Event) -> Cow<'a, Variant> {
        static NULL: Variant = Variant::Empty;
        if self.kind.is_some_and(|kind| !event.is_of_type(kind)) {
            return Cow::Borrowed(&NULL);
        }
        let value = match self.what {
            What::Field(hash) => event.by_hash(hash).unwrap_or(&NULL),
            What::ConditionId => {
                return match event.condition_id() {
                    Some(id) => Cow::Owned(id.clone().into()),
                    None => Cow::Borrowed(&NULL),
                };
            }
            What::Nothing => &NULL,
        };
        match &self.range {
            // Part 4 §7.22.3: a null value if the range does not fit the value.
            Some(range) => Cow::Owned(range.read(value).unwrap_or_default()),
            None => Cow::Borrowed(value),
        }
    }
}

struct Subject<'a> {
    filter: &'a EventFilter,
    event: &'a Event,
    around: &'a dyn Around,
}

impl Subject<'_> {
    fn source(&self) -> Option<&NodeId> {
        match self.event.get(&FieldName::source_node())? {
            Variant::NodeId(id) => Some(id),
            _ => None,
        }
    }
}

impl Evaluate<NodeIx> for Subject<'_> {
    fn field(&self, number: u32) -> Cow<'_, Variant> {
        match self.filter.fields.get(number as usize) {
            Some(clause) => clause.value(self.event),
            None => Cow::Owned(Variant::Empty),
        }
    }

    fn is_of_type(&self, kind: &NodeIx) -> bool {
        self.event.is_of_type(*kind)
    }

    fn is_related(&self, number: u32) -> Option<bool> {
        self.around.is_related(&self.filter.relations, number as usize, self.source()?)
    }

    fn is_in_view(&self, number: u32) -> Option<bool> {
        self.around.is_in_view(self.filter.views.get(number as usize)?, self.source()?)
    }

    fn spend(&self, steps: usize) -> bool {
        self.around.spend(steps)
    }

    fn left(&self) -> usize {
        self.around.left()
    }
}

struct Reader<'a> {
    types: &'a dyn Types,
    limits: EventFilterLimits,
    range: &'a dyn Fn(&str) -> Result<Option<NumericRange>, StatusCode>,
}

impl Reader<'_> {
    fn clause(&self, operand: &SimpleAttributeOperand) -> Result<Clause, StatusCode> {
        let path = operand.browse_path.as_slice();
        if path.len() > self.limits.path_len_max {
            return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
        }
        // Some clients send a null type for BaseEventType.
        let kind = if operand.type_definition_id.is_null() {
            None
        } else {
            Some(self.types.event_type(&operand.type_definition_id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?)
        };
        // Part 4 §7.22.3: with BaseEventType only the path counts, not the type.
        let kind = kind.filter(|kind| !self.types.is_base(*kind));
        let range = (self.range)(operand.index_range.as_str())?;
        let what = match (operand.attribute_id, path.is_empty()) {
            (NODE_ID, true) if kind.is_none_or(|kind| self.types.is_condition(kind)) => What::ConditionId,
            (VALUE, false) => {
                if kind.is_some_and(|kind| !self.types.has_field(kind, path)) {
                    return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
                }
                What::Field(hash(path))
            }
            (VALUE, true) => return Err(StatusCode::BAD_BROWSE_NAME_INVALID),
            _ => return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
        };
        Ok(Clause { what, kind, range })
    }
}

/// The fields of a where clause, in the order of their first use.
struct Fields<'a> {
    reader: &'a Reader<'a>,
    clauses: Vec<Clause>,
    relations: Vec<Relation>,
    views: Vec<NodeId>,
}

impl<'a> Fields<'a> {
    fn new(reader: &'a Reader<'a>) -> Self {
        Self { reader, clauses: Vec::new(), relations: Vec::new(), views: Vec::new() }
    }
}

impl Resolve for Fields<'_> {
    type Type = NodeIx;

    fn field(&mut self, operand: SimpleAttributeOperand) -> Result<u32, StatusCode> {
        let clause = self.reader.clause(&operand)?;
        let at = self.clauses.iter().position(|known| *known == clause).unwrap_or_else(|| {
            self.clauses.push(clause);
            self.clauses.len() - 1
        });
        u32::try_from(at).map_err(|_| StatusCode::BAD_QUERY_TOO_COMPLEX)
    }

    fn of_type(&mut self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        self.reader.types.event_type(id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
    }

    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType> {
        self.reader.types.built_in_type(data_type)
    }

    fn related(
        &mut self,
        index: u32,
        element: &ContentFilterElement,
    ) -> Result<u32, ContentFilterElementResult> {
        let read = Relation::read(index, element, Operands::Literals, self.reader.types);
        let relation = read.map_err(|refusal| match refusal {
            Refusal::Count => {
                ContentFilterElementResult { status_code: refusal.status(), ..Default::default() }
            }
            Refusal::Operand(at, status) => refused(element, at, status),
        })?;
        self.relations.push(relation);
        // At most one per element, and elements are limited.
        Ok(u32::try_from(self.relations.len() - 1).unwrap_or(u32::MAX))
    }

    fn view(&mut self, id: &NodeId) -> Result<u32, StatusCode> {
        self.views.push(id.clone());
        u32::try_from(self.views.len() - 1).map_err(|_| StatusCode::BAD_QUERY_TOO_COMPLEX)
    }
}

impl HeapSize for Clause {
    fn heap_size(&self) -> usize {
        self.range.heap_size()
    }
}

impl HeapSize for EventFilter {
    fn heap_size(&self) -> usize {
        let clauses = |clauses: &[Clause]| allocation(size_of_val(clauses)) + clauses.heap_size();
        let relations = self.relations.iter().map(|relation| allocation(relation.alias.len()));
        clauses(&self.select)
            + clauses(&self.fields)
            + allocation(size_of_val(&*self.relations))
            + relations.sum::<usize>()
            + allocation(size_of_val(&*self.views))
            + self.views.iter().map(HeapSize::heap_size).sum::<usize>()
            + self.filter.heap_size()
    }
}

//! Event filters as text: the fields to select, and a condition such as `severity >= 500 and message like '%pump%'`.
//!
//! # Conditions
//! Comparisons with `=`, `!=`, `<`, `<=`, `>`, `>=`; `like 'pattern'`; `between 1 and 10`; `in (1, 2, 3)`; `is null`,
//! `is not null`; `oftype i=2915`; `inview ns=2;i=5`; `relatedto (i=2004, i=2041, i=47, 1)`; `and`, `or`, `not` and
//! parentheses. A field is a path of BrowseNames: `Severity`, `EnabledState/Id`, `2:Pressure`. The names of standard
//! fields may be in lower case. Values are numbers, strings in single quotes, `true`, `false`, and NodeIds. Write a
//! NodeId that contains a space in single quotes after `oftype`, `inview` and in `relatedto`. A type of namespace 0 can
//! be given by name: `oftype AlarmConditionType`.
//!
//! `relatedto (source, target, reference, hops)` takes the source type, the target type or another `relatedto` for the
//! target, the ReferenceType, and the number of references to follow, 0 for any number. Up to two `true` or `false` may
//! follow: whether to include subtypes of the types, and subtypes of the ReferenceType (Part 4 §7.7.3). Without them
//! the server decides.

use core::fmt;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{
    ContentFilter, ContentFilterElement, ElementOperand, EventFilter, FilterOperator as Op, LiteralOperand,
    NodeClass, SimpleAttributeOperand,
};
use taktwerk_types::{ExtensionObject, NodeId, QualifiedName, Variant};

/// Attribute ids of NodeId and Value.
const NODE_ID: u32 = 1;
const VALUE: u32 = 13;
/// Maximum nesting of parentheses and `not`.
const DEPTH_MAX: usize = 50;
/// Source, target, ReferenceType, hops, and whether to include subtypes of the types and of the ReferenceType.
const RELATED_TO_OPERANDS_MAX: usize = 6;

/// The standard fields whose names may be in lower case.
const STANDARD: [&str; 20] = [
    "EventId",
    "EventType",
    "SourceNode",
    "SourceName",
    "Time",
    "ReceiveTime",
    "LocalTime",
    "Message",
    "Severity",
    "ConditionName",
    "ConditionClassName",
    "BranchId",
    "Retain",
    "Quality",
    "Comment",
    "ClientUserId",
    "EnabledState",
    "AckedState",
    "ConfirmedState",
    "ActiveState",
];

/// A syntax error in a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the condition at character {at}: {what}")]
pub struct EventQueryError {
    /// Position of the character, counted from 1.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

/// Selected fields and a condition.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventQuery {
    names: Vec<String>,
    filter: EventFilter,
}

impl EventQuery {
    /// Selects no fields and passes all events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects a field by its path of BrowseNames, of any event type. `ConditionId` is the NodeId of the condition.
    #[must_use]
    pub fn select(mut self, name: &str) -> Self {
        self.filter.select_clauses.push(operand(name));
        self.names.push(name.to_owned());
        self
    }

    /// Selects a field of an event type by its path.
    #[must_use]
    pub fn select_of(mut self, event_type: &NodeId, path: Vec<QualifiedName>) -> Self {
        self.names.push(path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/"));
        self.filter.select_clauses.push(SimpleAttributeOperand {
            type_definition_id: event_type.clone(),
            browse_path: path,
            attribute_id: VALUE,
            ..SimpleAttributeOperand::default()
        });
        self
    }

    /// Passes only events of a type and its subtypes for which a condition is true. An empty condition is always true.
    ///
    /// # Errors
    /// The text is not a valid condition.
    pub fn of_type(mut self, event_type: NodeId, condition: &str) -> Result<Self, EventQueryError> {
        let of_type = Node::Operator(Op::OF_TYPE, vec![Node::Literal(event_type.into())]);
        let both = match condition_of(condition, &|name| Ok(operand(name)))? {
            Some(other) => Node::Operator(Op::AND, vec![of_type, other]),
            None => of_type,
        };
        self.filter.where_clause = both.into_filter();
        Ok(self)
    }

    /// Passes only events for which a condition is true.
    ///
    /// # Errors
    /// The text is not a valid condition.
    pub fn filter(mut self, text: &str) -> Result<Self, EventQueryError> {
        self.filter.where_clause = parse(text)?;
        Ok(self)
    }

    /// The names of the selected fields, in the order of their values.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The EventFilter for a server.
    #[must_use]
    pub fn event_filter(&self) -> &EventFilter {
        &self.filter
    }
}

/// A type of namespace 0 by its BrowseName.
fn standard_type(name: &str) -> Option<NodeId> {
    let is_type = |class| {
        matches!(class, NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE | NodeClass::REFERENCE_TYPE)
    };
    let node = Ns0::get().nodes().find(|node| is_type(node.class()) && node.browse_name() == name)?;
    Some(NodeId::numeric(0, node.id()))
}

/// A standard field by its case-insensitive name.
#[must_use]
pub fn standard_field(name: &str) -> Option<&'static str> {
    STANDARD.into_iter().find(|standard| standard.eq_ignore_ascii_case(name))
}

/// The operand for a field name.
fn operand(name: &str) -> SimpleAttributeOperand {
    let base = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
    if name.eq_ignore_ascii_case("ConditionId") {
        return SimpleAttributeOperand {
            type_definition_id: NodeId::numeric(0, object_type_ids::CONDITION_TYPE),
            attribute_id: NODE_ID,
            ..SimpleAttributeOperand::default()
        };
    }
    let path = name.split('/').map(|part| QualifiedName::parse(standard_field(part).unwrap_or(part)));
    SimpleAttributeOperand {
        type_definition_id: base,
        browse_path: path.collect(),
        attribute_id: VALUE,
        ..SimpleAttributeOperand::default()
    }
}

/// Parses a condition on events.
///
/// # Errors
/// The text is not a valid condition.
pub fn parse(text: &str) -> Result<ContentFilter, EventQueryError> {
    parse_with(text, &|name| Ok(operand(name)))
}

/// Parses a condition. `field` maps field names to operands or returns an error message.
///
/// # Errors
/// The text is not a valid condition.
pub fn parse_with(
    text: &str,
    field: &dyn Fn(&str) -> Result<SimpleAttributeOperand, String>,
) -> Result<ContentFilter, EventQueryError> {
    Ok(condition_of(text, field)?.map(Node::into_filter).unwrap_or_default())
}

/// Parses a condition; `None` for an empty text.
fn condition_of(
    text: &str,
    field: &dyn Fn(&str) -> Result<SimpleAttributeOperand, String>,
) -> Result<Option<Node>, EventQueryError> {
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens: tokens(text)?, at: 0, end, depth: 0, field };
    if parser.tokens.is_empty() {
        return Ok(None);
    }
    let condition = parser.any()?;
    if let Some((at, token)) = parser.tokens.get(parser.at) {
        return Err(EventQueryError {
            at: *at,
            what: format!("expected `and`, `or` or the end, found '{token}'"),
        });
    }
    Ok(Some(condition))
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Sign(sign) => f.write_str(sign),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, EventQueryError> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(char) = chars.get(at).copied() {
        let start = at + 1;
        let next = chars.get(at + 1).copied();
        at += 1;
        let token = match (char, next) {
            (char, _) if char.is_whitespace() => continue,
            ('<' | '>' | '!' | '=', Some('=')) => {
                at += 1;
                Token::Sign(match char {
                    '<' => "<=",
                    '>' => ">=",
                    '!' => "!=",
                    _ => "=",
                })
            }
            ('<', Some('>')) => {
                at += 1;
                Token::Sign("!=")
            }
            ('=', _) => Token::Sign("="),
            ('<', _) => Token::Sign("<"),
            ('>', _) => Token::Sign(">"),
            ('(', _) => Token::Sign("("),
            (')', _) => Token::Sign(")"),
            (',', _) => Token::Sign(","),
            ('\'', _) => {
                let mut text = String::new();
                loop {
                    match (chars.get(at), chars.get(at + 1)) {
                        // A quote inside a string is doubled.
                        (Some('\''), Some('\'')) => {
                            text.push('\'');
                            at += 2;
                        }
                        (Some('\''), _) => break at += 1,
                        (Some(char), _) => {
                            text.push(*char);
                            at += 1;
                        }
                        (None, _) => {
                            let what = "the string has no closing quote".to_owned();
                            return Err(EventQueryError { at: start, what });
                        }
                    }
                }
                Token::Text(text)
            }
            _ => {
                let is_node_id = |word: &str| {
                    let kind = word.rsplit(';').next().unwrap_or_default();
                    matches!(kind, "i" | "s" | "g" | "b" | "ns" | "nsu")
                };
                let mut word = String::from(char);
                while let Some(char) = chars.get(at).copied() {
                    let ends = char.is_whitespace()
                        || matches!(char, '<' | '>' | '!' | '(' | ')' | ',' | '\'')
                        || (char == '=' && !is_node_id(&word));
                    if ends {
                        break;
                    }
                    word.push(char);
                    at += 1;
                }
                Token::Word(word)
            }
        };
        found.push((start, token));
    }
    Ok(found)
}

/// A node of the syntax tree: a condition or a value.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Operator(Op, Vec<Node>),
    Field(SimpleAttributeOperand),
    Literal(Variant),
}

/// Fields of namespace 0 that are UInt16 in all events (OPC 10000-5 §6.4.2, OPC 10000-9 §5.5.2).
const UINT16_FIELDS: [&str; 2] = ["Severity", "LastSeverity"];

impl Node {
    /// Gives numbers the type of the field that they are compared with, if it is known. Part 4 §7.7.3 converts numbers
    /// of different types, but some servers do not.
    fn with_types_of_fields(self) -> Self {
        let Self::Operator(operator, mut operands) = self else { return self };
        let is_uint16 = matches!(operands.first(), Some(Self::Field(field)) if matches!(
            field.browse_path.as_slice(),
            [name] if name.namespace_index == 0 && UINT16_FIELDS.contains(&name.name.as_str())
        ));
        operands = operands.into_iter().map(Self::with_types_of_fields).collect();
        for operand in operands.iter_mut().filter(|_| is_uint16) {
            if let Self::Literal(Variant::Int64(number)) = operand
                && let Ok(number) = u16::try_from(*number)
            {
                *operand = Self::Literal(number.into());
            }
        }
        Self::Operator(operator, operands)
    }

    fn into_filter(self) -> ContentFilter {
        let mut elements = Vec::new();
        self.write(&mut elements);
        ContentFilter { elements }
    }

    /// Appends the element of an operator and the elements of its operands. Returns its index.
    fn write(&self, elements: &mut Vec<ContentFilterElement>) -> u32 {
        let Self::Operator(operator, operands) = self else { return 0 };
        let index = elements.len();
        elements.push(ContentFilterElement { filter_operator: *operator, filter_operands: Vec::new() });
        let operands = operands
            .iter()
            .map(|operand| match operand {
                Self::Operator(..) => {
                    let index = operand.write(elements);
                    ExtensionObject::new(&ElementOperand { index })
                }
                Self::Field(field) => ExtensionObject::new(field),
                Self::Literal(value) => ExtensionObject::new(&LiteralOperand { value: value.clone() }),
            })
            .collect();
        if let Some(element) = elements.get_mut(index) {
            element.filter_operands = operands;
        }
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    at: usize,
    end: usize,
    depth: usize,
    field: &'a dyn Fn(&str) -> Result<SimpleAttributeOperand, String>,
}

impl Parser<'_> {
    fn error<T>(&self, what: impl Into<String>) -> Result<T, EventQueryError> {
        let at = self.tokens.get(self.at).map_or(self.end, |(at, _)| *at);
        Err(EventQueryError { at, what: what.into() })
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).map(|(_, token)| token.clone());
        self.at += usize::from(token.is_some());
        token
    }

    /// Consumes a word, case-insensitive.
    fn word(&mut self, wanted: &str) -> bool {
        let is_there = matches!(self.tokens.get(self.at), Some((_, Token::Word(word))) if word.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn sign(&mut self, wanted: &str) -> bool {
        let is_there = matches!(self.tokens.get(self.at), Some((_, Token::Sign(sign))) if *sign == wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, wanted: &'static str) -> Result<(), EventQueryError> {
        if self.sign(wanted) || self.word(wanted) {
            Ok(())
        } else {
            self.error(format!("'{wanted}' is missing"))
        }
    }

    fn any(&mut self) -> Result<Node, EventQueryError> {
        let mut left = self.all()?;
        while self.word("or") {
            left = Node::Operator(Op::OR, vec![left, self.all()?]);
        }
        Ok(left)
    }

    fn all(&mut self) -> Result<Node, EventQueryError> {
        let mut left = self.negation()?;
        while self.word("and") {
            left = Node::Operator(Op::AND, vec![left, self.negation()?]);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Node, EventQueryError> {
        if self.depth >= DEPTH_MAX {
            return self.error("the condition nests too deep");
        }
        self.depth += 1;
        let result = if self.word("not") {
            self.negation().map(|node| Node::Operator(Op::NOT, vec![node]))
        } else if self.sign("(") {
            self.any().and_then(|node| self.expect(")").map(|()| node))
        } else if self.word("oftype") {
            self.with_node(Op::OF_TYPE)
        } else if self.word("inview") {
            self.with_node(Op::IN_VIEW)
        } else if self.word("relatedto") {
            self.related_to()
        } else {
            self.comparison().map(Node::with_types_of_fields)
        };
        self.depth -= 1;
        result
    }

    /// An operator whose only operand is a NodeId.
    fn with_node(&mut self, operator: Op) -> Result<Node, EventQueryError> {
        Ok(Node::Operator(operator, vec![self.node_id()?]))
    }

    fn related_to(&mut self) -> Result<Node, EventQueryError> {
        self.expect("(")?;
        let mut operands = vec![self.node_id()?];
        self.expect(",")?;
        operands.push(self.related_target()?);
        self.expect(",")?;
        operands.push(self.node_id()?);
        self.expect(",")?;
        operands.push(self.hops()?);
        while operands.len() < RELATED_TO_OPERANDS_MAX && self.sign(",") {
            operands.push(self.flag()?);
        }
        self.expect(")")?;
        Ok(Node::Operator(Op::RELATED_TO, operands))
    }

    /// The target of a relation: a type, or another relation.
    fn related_target(&mut self) -> Result<Node, EventQueryError> {
        if !self.word("relatedto") {
            return self.node_id();
        }
        if self.depth >= DEPTH_MAX {
            return self.error("the condition nests too deep");
        }
        self.depth += 1;
        let nested = self.related_to();
        self.depth -= 1;
        nested
    }

    fn node_id(&mut self) -> Result<Node, EventQueryError> {
        let id = match self.tokens.get(self.at) {
            Some((_, Token::Word(text) | Token::Text(text))) => {
                text.parse::<NodeId>().ok().or_else(|| standard_type(text))
            }
            _ => None,
        };
        let Some(id) = id else {
            return self.error("a NodeId such as i=2915, or the name of a standard type such as AlarmConditionType, is missing");
        };
        self.at += 1;
        Ok(Node::Literal(id.into()))
    }

    fn hops(&mut self) -> Result<Node, EventQueryError> {
        let hops = match self.tokens.get(self.at) {
            Some((_, Token::Word(word))) => word.parse::<u32>().ok(),
            _ => None,
        };
        let Some(hops) = hops else {
            return self
                .error("the number of references to follow is missing, such as 1, or 0 for any number");
        };
        self.at += 1;
        Ok(Node::Literal(hops.into()))
    }

    fn flag(&mut self) -> Result<Node, EventQueryError> {
        for (word, value) in [("true", true), ("false", false)] {
            if self.word(word) {
                return Ok(Node::Literal(value.into()));
            }
        }
        self.error("expected true or false (whether to include subtypes)")
    }

    fn comparison(&mut self) -> Result<Node, EventQueryError> {
        let left = self.value()?;
        let pair = |operator, left, right| Node::Operator(operator, vec![left, right]);
        let negated = |node| Node::Operator(Op::NOT, vec![node]);
        let simple = [
            ("=", Op::EQUALS),
            ("<", Op::LESS_THAN),
            ("<=", Op::LESS_THAN_OR_EQUAL),
            (">", Op::GREATER_THAN),
            (">=", Op::GREATER_THAN_OR_EQUAL),
        ];
        for (sign, operator) in simple {
            if self.sign(sign) {
                return Ok(pair(operator, left, self.value()?));
            }
        }
        if self.sign("!=") {
            return Ok(negated(pair(Op::EQUALS, left, self.value()?)));
        }
        if self.word("is") {
            let is_negated = self.word("not");
            self.expect("null")?;
            let node = Node::Operator(Op::IS_NULL, vec![left]);
            return Ok(if is_negated { negated(node) } else { node });
        }
        let is_negated = self.word("not");
        let node = if self.word("like") {
            pair(Op::LIKE, left, self.value()?)
        } else if self.word("between") {
            let low = self.value()?;
            self.expect("and")?;
            Node::Operator(Op::BETWEEN, vec![left, low, self.value()?])
        } else if self.word("in") {
            self.expect("(")?;
            let mut operands = vec![left, self.value()?];
            while self.sign(",") {
                operands.push(self.value()?);
            }
            self.expect(")")?;
            Node::Operator(Op::IN_LIST, operands)
        } else if !is_negated && matches!(left, Node::Field(_)) {
            // A boolean field is a condition by itself.
            pair(Op::EQUALS, left, Node::Literal(true.into()))
        } else {
            return self.error("a comparison is missing: =, !=, <, <=, >, >=, like, between, in, or is null");
        };
        Ok(if is_negated { negated(node) } else { node })
    }

    fn value(&mut self) -> Result<Node, EventQueryError> {
        match self.next() {
            Some(Token::Text(text)) => Ok(Node::Literal(text.into())),
            Some(Token::Word(word)) => match literal(&word) {
                Some(value) => Ok(Node::Literal(value)),
                None => match (self.field)(&word) {
                    Ok(field) => Ok(Node::Field(field)),
                    Err(what) => {
                        self.at -= 1;
                        self.error(what)
                    }
                },
            },
            other => {
                self.at -= usize::from(other.is_some());
                self.error("a field or a value is missing")
            }
        }
    }
}

/// The value of a word; `None` if it is a field name.
fn literal(word: &str) -> Option<Variant> {
    if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
        return Some(word.eq_ignore_ascii_case("true").into());
    }
    if let Ok(number) = word.parse::<i64>() {
        return Some(number.into());
    }
    if word.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '-' | '+' | '.'))
        && let Ok(number) = word.parse::<f64>()
    {
        return Some(number.into());
    }
    word.parse::<NodeId>().ok().filter(|_| word.contains('=')).map(Variant::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A filter as text, for comparison.
    fn shown(filter: &ContentFilter, index: usize) -> String {
        let element = &filter.elements[index];
        let operands: Vec<String> = element
            .filter_operands
            .iter()
            .map(|operand| {
                if let Ok(literal) = operand.decode::<LiteralOperand>() {
                    literal.value.to_string()
                } else if let Ok(field) = operand.decode::<SimpleAttributeOperand>() {
                    field.browse_path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
                } else {
                    shown(filter, operand.decode::<ElementOperand>().unwrap().index as usize)
                }
            })
            .collect();
        format!("{}({})", element.filter_operator.0, operands.join(", "))
    }

    fn read(text: &str) -> String {
        shown(&parse(text).unwrap(), 0)
    }

    #[test]
    fn conditions_become_elements() {
        assert_eq!(
            read("severity >= 500 and message like '%pump%'"),
            "10(4(Severity, 500), 6(Message, %pump%))"
        );
        assert_eq!(read("not (a = 1 or b = 2) and c"), "10(7(11(0(a, 1), 0(b, 2))), 0(c, true))");
        assert_eq!(read("Severity between 1 and 2.5"), "8(Severity, 1, 2.5)");
        assert_eq!(read("2:Pressure in (1, -2)"), "9(2:Pressure, 1, -2)");
        assert_eq!(read("EnabledState/Id != false"), "7(0(EnabledState/Id, false))");
        assert_eq!(read("BranchId is not null"), "7(1(BranchId))");
        assert_eq!(read("oftype i=2915"), "14(i=2915)");
        assert_eq!(read("oftype 'ns=2;s=Pump stopped'"), "14(ns=2;s=Pump stopped)");
        assert_eq!(read("severity > 1 and not InView ns=2;i=5"), "10(2(Severity, 1), 7(13(ns=2;i=5)))");
        assert_eq!(read("relatedto (i=2004, ns=2;i=7, i=47, 1)"), "15(i=2004, ns=2;i=7, i=47, 1)");
        assert_eq!(
            read("RelatedTo(i=58, relatedto(i=61, i=62, i=35, 0), i=47, 2, true, false) or a"),
            "11(15(i=58, 15(i=61, i=62, i=35, 0), i=47, 2, true, false), 0(a, true))"
        );
        assert_eq!(read("SourceNode = ns=2;s=Pump"), "0(SourceNode, ns=2;s=Pump)");
        assert_eq!(read("Message not like 'it''s%'"), "7(6(Message, it's%))");
        assert!(parse("  ").unwrap().elements.is_empty());
    }

    #[test]
    fn errors_have_a_position() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("severity >=").at, 12);
        assert_eq!(error("a = 'x").at, 5);
        assert_eq!(error("a = 1 b").at, 7);
        assert_eq!(error("(a = 1").at, 7);
        assert!(error("a like").what.contains("missing"));
        assert!(error("oftype pump").what.contains("NodeId"));
        assert!(error("inview").what.contains("NodeId"));
        assert_eq!(error("relatedto i=1").at, 11);
        assert_eq!(error("relatedto (i=1, i=2, i=3)").at, 25);
        assert!(error("relatedto (i=1, i=2, i=3, -1)").what.contains("references to follow"));
        assert!(error("relatedto (i=1, i=2, i=3, 1, 2)").what.contains("true or false"));
        assert!(error("relatedto (i=1, i=2, i=3, 1, true, true, true)").what.contains("')'"));
        let nested = "relatedto (i=1, ".repeat(100) + "i=2" + &", i=3, 1)".repeat(100);
        assert!(error(&nested).what.contains("deep"));
        assert!(error(&"not ".repeat(100)).what.contains("deep"));
    }

    #[test]
    fn the_caller_maps_field_names() {
        let field = |name: &str| match name {
            "bad" => Err("there is no field bad".to_owned()),
            name => {
                Ok(SimpleAttributeOperand { browse_path: vec![QualifiedName::new(7, name)], ..operand(name) })
            }
        };
        assert_eq!(shown(&parse_with("a > 1", &field).unwrap(), 0), "2(7:a, 1)");
        let error = parse_with("a = 1 or bad = 2", &field).unwrap_err();
        assert_eq!((error.at, error.what.as_str()), (10, "there is no field bad"));
    }

    #[test]
    fn numbers_have_the_type_of_their_field_if_it_is_known() {
        let literals = |text: &str| -> Vec<Variant> {
            let filter = parse(text).unwrap();
            let operands = filter.elements.iter().flat_map(|element| &element.filter_operands);
            operands.filter_map(|it| it.decode::<LiteralOperand>().ok()).map(|it| it.value).collect()
        };
        let small = |numbers: &[u16]| numbers.iter().map(|number| Variant::from(*number)).collect::<Vec<_>>();
        assert_eq!(literals("severity >= 500 and LastSeverity != 3"), small(&[500, 3]));
        assert_eq!(literals("not (Severity between 1 and 2 or Severity in (3, 4))"), small(&[1, 2, 3, 4]));
        // A number that the type does not have, a field of another type, and one of another namespace.
        let large = [70_000_i64, -1, 5, 6].map(Variant::from);
        assert_eq!(literals("Severity < 70000 or Severity > -1 or Count = 5 or 2:Severity = 6"), large);
    }

    #[test]
    fn type_and_condition_are_combined() {
        let of_type = |condition: &str| {
            let query = EventQuery::new().of_type(NodeId::numeric(2, 5), condition).unwrap();
            shown(&query.event_filter().where_clause, 0)
        };
        assert_eq!(of_type(""), "14(ns=2;i=5)");
        assert_eq!(of_type("a = 1 or b"), "10(14(ns=2;i=5), 11(0(a, 1), 0(b, true)))");
        let path = vec![QualifiedName::new(2, "A"), QualifiedName::new(0, "Id")];
        let query = EventQuery::new().select_of(&NodeId::numeric(2, 5), path.clone());
        assert_eq!(query.names(), ["2:A/Id"]);
        assert_eq!(query.event_filter().select_clauses[0].browse_path, path);
    }

    #[test]
    fn a_query_knows_its_names() {
        let query =
            EventQuery::new().select("severity").select("ConditionId").filter("severity > 1").unwrap();
        assert_eq!(query.names(), ["severity", "ConditionId"]);
        let clauses = &query.event_filter().select_clauses;
        assert_eq!(clauses[0].browse_path[0].name.as_str(), "Severity");
        assert_eq!((clauses[1].attribute_id, clauses[1].browse_path.len()), (1, 0));
    }

    /// Random conditions as text, with the expected elements.
    fn condition() -> impl Strategy<Value = (String, String)> {
        let id = || (0..9u32).prop_map(|id| format!("i={id}"));
        let comparison = (0..3usize, 0..100i64).prop_map(|(kind, value)| match kind {
            0 => (format!("Severity >= {value}"), format!("4(Severity, {value})")),
            1 => (format!("a/2:b in ({value}, 'x')"), format!("9(a/2:b, {value}, x)")),
            _ => (format!("c between {value} and 200"), format!("8(c, {value}, 200)")),
        });
        let of_node = (id(), any::<bool>()).prop_map(|(id, view)| match view {
            true => (format!("inview {id}"), format!("13({id})")),
            false => (format!("oftype {id}"), format!("14({id})")),
        });
        let target = id().prop_map(|id| (id.clone(), id));
        let relation = target.prop_recursive(4, 4, 1, move |inner| {
            let flags = prop_oneof![Just(""), Just(", true"), Just(", false, true")];
            (id(), inner, id(), 0..9u32, flags).prop_map(|(source, (text, shown), reference, hops, flags)| {
                let behind = format!("{reference}, {hops}{flags}");
                (
                    format!("relatedto ({source}, {text}, {behind})"),
                    format!("15({source}, {shown}, {behind})"),
                )
            })
        });
        let relation = relation.prop_filter("a relation", |(text, _)| text.starts_with("relatedto"));
        prop_oneof![comparison, of_node, relation].prop_recursive(4, 20, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|(text, shown)| (format!("not ({text})"), format!("7({shown})"))),
                (inner.clone(), inner.clone())
                    .prop_map(|(a, b)| (format!("({}) and ({})", a.0, b.0), format!("10({}, {})", a.1, b.1))),
                (inner.clone(), inner)
                    .prop_map(|(a, b)| (format!("({}) or ({})", a.0, b.0), format!("11({}, {})", a.1, b.1))),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_condition_has_the_expected_elements((text, expected) in condition()) {
            prop_assert_eq!(read(&text), expected);
        }

        /// Arbitrary sequences of tokens are parsed, or the position of the error is within the text.
        #[test]
        fn arbitrary_text_does_not_break_the_parser(
            words in proptest::collection::vec(
                prop_oneof![
                    Just("relatedto"), Just("inview"), Just("oftype"), Just("("), Just(")"), Just(","), Just("not"),
                    Just("and"), Just("in"), Just("between"), Just("is"), Just("null"), Just("i=47"), Just("1"),
                    Just("true"), Just("a/b"), Just("'text'"), Just("="), Just("like"), Just("'"),
                ],
                0..25,
            ),
        ) {
            let text = words.join(" ");
            if let Err(error) = parse(&text) {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.at), "{error}: {text}");
            }
        }
    }
}

//! `taktwerk query`: finds nodes of a type, filtered by their fields (Part 4 Annex B.2).

use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::node::NodeSpec;
use crate::output::{self, Output};
use crate::session::{Session, failure};
use crate::{resolve, suggestion};
use clap::Args;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use taktwerk_client::event_query;
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{
    ContentFilter, NodeClass, NodeTypeDescription, QueryDataDescription, QueryDataSet, QueryFirstRequest,
    QueryFirstResponse, QueryNextRequest, RelativePath, RelativePathElement, SimpleAttributeOperand,
    ViewDescription,
};
use taktwerk_types::{ExpandedNodeId, NodeId, QualifiedName, UaString, Variant};

/// Arguments of `taktwerk query`.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// The ObjectType or VariableType: a name of the specification such as AnalogItemType, a NodeId, or a browse path.
    #[arg(value_name = "TYPE")]
    kind: String,

    /// Show only nodes for which this is true. Fields are paths of BrowseNames from the node, such as 2:Pump/2:Speed.
    /// Append #Attribute for an attribute other than Value. #Value is the value of the node itself, and Value a child
    /// with that name. Operators are =, !=, <, <=, >, >=, like, between, in, is null, oftype, inview, relatedto, and,
    /// or, not.
    #[arg(short, long = "where", value_name = "CONDITION")]
    condition: Option<String>,

    /// Also show these fields, such as EURange or 2:Speed#DataType.
    #[arg(long, value_name = "FIELD", num_args = 1.., value_delimiter = ',')]
    select: Vec<Field>,

    /// Leave out subtypes.
    #[arg(long)]
    exact: bool,

    /// Look only at the nodes of a View.
    #[arg(long, value_name = "NODE")]
    view: Option<NodeSpec>,

    /// Stop after this many nodes.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u32>,
}

/// A field of a node: an attribute of the target of a path.
#[derive(Debug, Clone)]
struct Field {
    text: String,
    path: Vec<QualifiedName>,
    attribute: Attribute,
}

impl std::str::FromStr for Field {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (path, attribute) = match text.rsplit_once('#') {
            Some((path, name)) => (path, name.parse::<Attribute>().map_err(|error| error.to_string())?),
            None => (text, Attribute::VALUE),
        };
        let names: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
        if names.iter().any(|name| name.is_empty()) {
            return Err(format!("the path {path:?} has an empty name: write 2:Pump/2:Speed"));
        }
        let path = names.into_iter().map(QualifiedName::parse).collect();
        Ok(Self { text: text.to_owned(), path, attribute })
    }
}

impl Field {
    /// A hint if the field names a child but an attribute was probably intended.
    fn attribute_hint(&self) -> Option<String> {
        let [name] = self.path.as_slice() else { return None };
        let of_name = |attribute: &Attribute| attribute.name().eq_ignore_ascii_case(name.name.as_str());
        let meant = Attribute::all().find(of_name).filter(|_| name.namespace_index == 0)?;
        (self.attribute == Attribute::VALUE && !self.text.contains('#')).then(|| {
            format!(
                "{0} means a child with this BrowseName; for the attribute {1} of the node itself write #{1}",
                self.text,
                meant.name()
            )
        })
    }

    /// The field as an operand of the filter.
    fn operand(self, kind: &NodeId) -> SimpleAttributeOperand {
        SimpleAttributeOperand {
            type_definition_id: kind.clone(),
            browse_path: self.path,
            attribute_id: self.attribute.id(),
            ..SimpleAttributeOperand::default()
        }
    }

    /// The field as a column of the result.
    fn description(&self) -> QueryDataDescription {
        let step = |target_name: &QualifiedName| RelativePathElement {
            reference_type_id: NodeId::numeric(0, reference_type_ids::HIERARCHICAL_REFERENCES),
            is_inverse: false,
            include_subtypes: true,
            target_name: target_name.clone(),
        };
        QueryDataDescription {
            relative_path: RelativePath { elements: self.path.iter().map(step).collect() },
            attribute_id: self.attribute.id(),
            index_range: UaString::NULL,
        }
    }
}

/// Queries and prints.
pub(crate) fn run(arguments: &QueryArgs, output: Output) -> Result<(), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let kind = kind(&mut session, &arguments.kind)?;
    let (filter, fields) = match &arguments.condition {
        Some(text) => condition(text, &kind)?,
        None => Default::default(),
    };
    let name = Field { text: String::new(), path: Vec::new(), attribute: Attribute::BROWSE_NAME };
    let node_type = NodeTypeDescription {
        type_definition_node: ExpandedNodeId::from(kind),
        include_sub_types: !arguments.exact,
        data_to_return: core::iter::once(&name).chain(&arguments.select).map(Field::description).collect(),
    };
    let view = match &arguments.view {
        Some(spec) => {
            ViewDescription { view_id: resolve::one(&mut session, spec)?, ..ViewDescription::default() }
        }
        None => ViewDescription::default(),
    };
    let request = QueryFirstRequest {
        node_types: vec![node_type],
        filter,
        view,
        max_data_sets_to_return: arguments.count.unwrap_or(0),
        ..QueryFirstRequest::default()
    };
    let found = all(&mut session, request, arguments.count)?;
    for value in found.iter().flat_map(|one| &one.values) {
        session.learn_types(Some(value))?;
    }
    let result = print(&session, &arguments.select, &found, output);
    let selected = arguments.select.iter().enumerate();
    let without =
        |at: usize| found.iter().all(|one| matches!(one.values.get(at + 1), None | Some(Variant::Empty)));
    let empty = selected.filter(|(at, _)| without(*at)).map(|(_, field)| field);
    let of_condition = fields.iter().filter(|_| found.is_empty());
    for note in of_condition.chain(empty).filter_map(Field::attribute_hint) {
        tell!("note: {note}");
    }
    session.close();
    result
}

/// The type with this name or NodeId.
fn kind(session: &mut Session, text: &str) -> Result<NodeId, Failure> {
    let is_type = |class| matches!(class, NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE);
    let types = || Ns0::get().nodes().filter(|node| is_type(node.class()));
    if let Some(node) = types().find(|node| node.browse_name() == text) {
        return Ok(NodeId::numeric(0, node.id()));
    }
    match text.parse::<NodeSpec>() {
        Ok(spec) => Ok(resolve::one(session, &spec)?),
        Err(_) => {
            let meant = suggestion::question(text, types().map(|node| node.browse_name()));
            Err(Failure::Usage(format!(
                "{text} is not a type of the specification{meant}{} Name other types by their NodeId or by a path such as \
                 /Types/ObjectTypes/BaseObjectType/2:PumpType",
                if meant.is_empty() { "." } else { "" }
            )))
        }
    }
}

/// Parses --where. Returns the filter, and the fields in it.
fn condition(text: &str, kind: &NodeId) -> Result<(ContentFilter, Vec<Field>), Failure> {
    let fields = RefCell::new(Vec::new());
    let field = |name: &str| {
        let field = name.parse::<Field>()?;
        fields.borrow_mut().push(field.clone());
        Ok(field.operand(kind))
    };
    let filter = event_query::parse_with(text, &field);
    let filter = filter.map_err(|error| Failure::Usage(format!("--where: {error}")))?;
    Ok((filter, fields.into_inner()))
}

/// Reads all data sets up to a limit, with QueryNext.
fn all(
    session: &mut Session,
    mut request: QueryFirstRequest,
    max: Option<u32>,
) -> Result<Vec<QueryDataSet>, Failure> {
    let max = max.map_or(usize::MAX, |max| max as usize);
    let first = session.client().call(&mut request).map_err(|error| failure(&error))?;
    refused(&first)?;
    let mut found = first.query_data_sets;
    let mut point = first.continuation_point;
    while !point.as_bytes().is_empty() {
        // Release the continuation point if the rest is not needed.
        let release_continuation_point = found.len() >= max;
        let mut next = QueryNextRequest {
            continuation_point: point,
            release_continuation_point,
            ..QueryNextRequest::default()
        };
        let next = session.client().call(&mut next).map_err(|error| failure(&error))?;
        found.extend(next.query_data_sets);
        point = next.revised_continuation_point;
    }
    found.truncate(max);
    Ok(found)
}

/// The parts of a query that the server does not support.
fn refused(response: &QueryFirstResponse) -> Result<(), Failure> {
    let parsing = response.parsing_results.iter();
    let mut types = parsing.flat_map(|result| {
        core::iter::once(&result.status_code)
            .chain(&result.data_status_codes)
            .filter(|status| status.is_bad())
    });
    if let Some(status) = types.next() {
        return Err(Failure::BadStatus(format!("the server cannot query this type or field: {status}")));
    }
    let elements = response.filter_result.element_results.iter();
    let mut bad = elements.flat_map(|element| {
        element
            .operand_status_codes
            .iter()
            .filter(|status| status.is_bad())
            .chain(core::iter::once(&element.status_code).filter(|status| status.is_bad()))
    });
    match bad.next() {
        Some(status) => Err(Failure::BadStatus(format!("the server cannot use --where: {status}"))),
        None => Ok(()),
    }
}

fn print(session: &Session, fields: &[Field], found: &[QueryDataSet], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let documents = found.iter().map(|one| {
            let mut document = Map::new();
            document.insert("NodeId".into(), json!(one.node_id.to_string()));
            document.insert("TypeDefinition".into(), json!(one.type_definition_node.to_string()));
            let names = core::iter::once("BrowseName").chain(fields.iter().map(|field| field.text.as_str()));
            for (name, value) in names.zip(&one.values) {
                let value = session.structure_document(value).unwrap_or_else(|| output::variant(value));
                document.insert(name.to_owned(), value);
            }
            Value::Object(document)
        });
        return output.document(&Value::Array(documents.collect()));
    }
    let names: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
    let mut columns = vec![("node", Align::Tail), ("name", Align::Left), ("type", Align::Left)];
    columns.extend(names.iter().map(|name| (*name, Align::Left)));
    let mut table = Table::new(&columns);
    for one in found {
        let mut values = one.values.iter().map(|value| match value {
            Variant::Empty => "–".to_owned(),
            value => session.show(value),
        });
        let name = values.next().unwrap_or_default();
        let row = [one.node_id.to_string(), name, type_name(&one.type_definition_node)];
        table.row(row.into_iter().chain(values));
    }
    output.text(&table.to_string())
}

/// The name of a type of the specification, or its id.
fn type_name(id: &ExpandedNodeId) -> String {
    let known = id.local().and_then(NodeId::ns0).and_then(|number| Ns0::get().node(number));
    known.map_or_else(|| id.to_string(), |node| node.browse_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_paths_and_attributes() {
        let field: Field = "2:Pump/Speed#datatype".parse().unwrap();
        assert_eq!(field.path, [QualifiedName::new(2, "Pump"), QualifiedName::new(0, "Speed")]);
        assert_eq!(field.attribute.name(), "DataType");
        let own: Field = "#Value".parse().unwrap();
        assert!(own.path.is_empty() && own.attribute == Attribute::VALUE);
        assert!("2:Pump//Speed".parse::<Field>().unwrap_err().contains("empty name"));
        assert!("Speed#Valeu".parse::<Field>().unwrap_err().contains("did you mean Value?"));
    }

    #[test]
    fn attributes_written_as_children_get_a_hint() {
        let notes = |text: &str| -> Vec<String> {
            let (_, fields) = condition(text, &NodeId::numeric(0, 61)).unwrap();
            fields.iter().filter_map(Field::attribute_hint).collect()
        };
        assert_eq!(
            notes("value > 200"),
            [
                "value means a child with this BrowseName; for the attribute Value of the node itself write #Value"
            ]
        );
        assert_eq!(notes("#Value > 200 and EURange is not null and 2:Value = 1 and A/Value = 2"), [""; 0]);
    }

    #[test]
    fn invalid_conditions_are_reported_with_their_position() {
        let kind = NodeId::numeric(0, 61);
        assert_eq!(condition("2:Speed > 1 and #BrowseName != '2:x'", &kind).unwrap().0.elements.len(), 4);
        let error = condition("2:Speed > 1 and a#b = 1", &kind).unwrap_err().to_string();
        assert!(error.contains("--where: cannot read the condition at character 17"), "{error}");
    }
}

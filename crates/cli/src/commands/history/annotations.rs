//! Annotations of a variable's history (Part 11 §5.1.2): `--annotations` and `--annotate`.

use super::{HistoryArgs, now, quoted, range, unreadable};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::session::{self, Session};
use serde_json::{Value, json};
use taktwerk_client::history::{HistoryPage, HistoryQuery, HistoryReader, annotation_value};
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{
    Annotation, BrowsePath, HistoryUpdateRequest, PerformUpdateType, RelativePath, RelativePathElement,
    TranslateBrowsePathsToNodeIdsRequest, UpdateStructureDataDetails,
};
use taktwerk_types::{ExtensionObject, NodeId, QualifiedName, StatusCode, UtcTime};

/// The Annotations Property of a variable.
fn property(session: &mut Session, node: &NodeId) -> Result<NodeId, Failure> {
    let element = RelativePathElement {
        reference_type_id: NodeId::numeric(0, reference_type_ids::HAS_PROPERTY),
        is_inverse: false,
        include_subtypes: true,
        target_name: QualifiedName::new(0, "Annotations"),
    };
    let path =
        BrowsePath { starting_node: node.clone(), relative_path: RelativePath { elements: vec![element] } };
    let request = TranslateBrowsePathsToNodeIdsRequest { browse_paths: vec![path], ..Default::default() };
    let result = session.request(request)?.results.into_iter().next().unwrap_or_default();
    let found = result.targets.first().and_then(|target| target.target_id.local().cloned());
    found.ok_or_else(|| {
        let message = if result.status_code == StatusCode::BAD_NO_MATCH {
            "it has no Property Annotations. Servers offer it for histories that clients may annotate"
                .to_owned()
        } else {
            format!("{}{}", result.status_code, session::advice(node, result.status_code))
        };
        Failure::BadStatus(format!("cannot annotate the history of {node}: {message}"))
    })
}

/// Reads and prints annotations.
pub(super) fn list(
    arguments: &HistoryArgs,
    mut session: Session,
    node: &NodeId,
    output: Output,
) -> Result<(), Failure> {
    let property = property(&mut session, node)?;
    let mut reader = HistoryReader::new(property, &HistoryQuery::raw(range(arguments)));
    let mut page = HistoryPage::default();
    while let Some(mut request) = reader.request() {
        let response = session.client().call(&mut request).map_err(|error| session::failure(&error))?;
        page.append(reader.accept(response).map_err(|error| unreadable(node, error, false))?);
    }
    session.close();
    let found = page
        .annotations()
        .map_err(|error| Failure::BadStatus(format!("cannot read the annotations of {node}: {error}")))?;
    if output.is_json() {
        return output.document(&Value::Array(found.iter().map(document).collect()));
    }
    if arguments.csv {
        return output.data(&csv(&found));
    }
    if found.is_empty() {
        return output.text("no annotations in this range");
    }
    let mut table = Table::new(&[
        ("source time", Align::Left),
        ("annotated at", Align::Left),
        ("by", Align::Left),
        ("message", Align::Left),
    ]);
    for (time, annotation) in &found {
        table.row([
            time.to_string(),
            annotation.annotation_time.to_string(),
            output::in_line(annotation.user_name.as_str()).into_owned(),
            output::in_line(annotation.message.as_str()).into_owned(),
        ]);
    }
    output.text(&table.to_string())
}

fn document((time, annotation): &(UtcTime, Annotation)) -> Value {
    json!({
        "SourceTimestamp": time.to_string(),
        "AnnotationTime": annotation.annotation_time.to_string(),
        "UserName": annotation.user_name.as_str(),
        "Message": annotation.message.as_str(),
    })
}

fn csv(found: &[(UtcTime, Annotation)]) -> String {
    let mut text = String::from("source_time,annotated_at,user,message\n");
    for (time, annotation) in found {
        let fields = [
            time.to_string(),
            annotation.annotation_time.to_string(),
            annotation.user_name.as_str().to_owned(),
            annotation.message.as_str().to_owned(),
        ];
        text.push_str(&fields.map(|field| quoted(&field)).join(","));
        text.push('\n');
    }
    text
}

/// Adds an annotation with this message at each time of `--at`. The server knows the user.
pub(super) fn add(
    arguments: &HistoryArgs,
    message: &str,
    mut session: Session,
    node: &NodeId,
    output: Output,
) -> Result<(), Failure> {
    let annotation = Annotation { message: message.into(), annotation_time: now(), ..Annotation::default() };
    let details = UpdateStructureDataDetails {
        node_id: property(&mut session, node)?,
        perform_insert_replace: PerformUpdateType::INSERT,
        update_values: arguments.at.iter().map(|time| annotation_value(*time, &annotation)).collect(),
    };
    let history_update_details = vec![ExtensionObject::new(&details)];
    let mut request = HistoryUpdateRequest { history_update_details, ..Default::default() };
    let response = session.client().call(&mut request).map_err(|error| session::failure(&error))?;
    session.close();
    let result = response.results.into_iter().next().unwrap_or_default();
    let all = core::iter::once(&result.status_code).chain(&result.operation_results);
    if let Some(status) = all.copied().find(|status| status.is_bad()) {
        let why = status.description().unwrap_or_default();
        let advice = match status {
            StatusCode::BAD_USER_ACCESS_DENIED => {
                " Either clients may not change this history (Taktwerk needs `writable = true` in its [[history.record]]), \
                 or this user has no permission"
                    .to_owned()
            }
            status => session::advice(node, status),
        };
        return Err(Failure::BadStatus(format!(
            "cannot annotate the history of {node}: {status}: {why}{advice}"
        )));
    }
    output.text(&format!("{} added", output::counted(arguments.at.len(), "annotation")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_one_line_each() {
        let time = UtcTime::parse("2026-03-04T12:00:00Z").unwrap();
        let annotation = Annotation {
            message: "stuck, \"again\"".into(),
            user_name: "ann".into(),
            annotation_time: UtcTime::parse("2026-03-04T12:30:00Z").unwrap(),
        };
        let text = csv(&[(time, annotation.clone())]);
        let line = "2026-03-04T12:00:00Z,2026-03-04T12:30:00Z,ann,\"stuck, \"\"again\"\"\"";
        assert_eq!(text.lines().nth(1), Some(line));
        assert_eq!(document(&(time, annotation))["UserName"], "ann");
    }
}

//! Annotations of values.

use super::events::storable;
use super::portion;
use postgres::types::ToSql;
use postgres::{Client, Row, Transaction};
use taktwerk_schema::Annotation;
use taktwerk_server::history::{AnnotationKey, NodeKey, Order, Perform, ReadLimit, Span};
use taktwerk_types::{StatusCode, UtcTime};

/// The annotations of a span, after `after` in reading order, until there are no more or `limit` is reached.
pub(super) fn read(
    client: &mut Client,
    node: &NodeKey,
    span: Span,
    order: Order,
    after: Option<&AnnotationKey>,
    limit: ReadLimit,
) -> Result<Vec<(UtcTime, Annotation)>, postgres::Error> {
    let (sign, direction) = if order == Order::Forward { (">", "ASC") } else { ("<", "DESC") };
    let query = format!(
        "SELECT ticks, user_name, annotated_at, message FROM taktwerk_annotation \
         WHERE node = (SELECT id FROM taktwerk_node WHERE key = $1) AND ticks BETWEEN $2 AND $3 \
         AND ($4 OR (ticks, user_name, annotated_at) {sign} ($5, $6, $7)) \
         ORDER BY ticks {direction}, user_name {direction}, annotated_at {direction}"
    );
    let key: &str = node;
    let user = after.map_or_else(String::new, |after| storable(&after.user));
    let parameters: [&(dyn ToSql + Sync); 7] = [
        &key,
        &span.first.ticks(),
        &span.last.ticks(),
        &after.is_none(),
        &after.map_or(0, |after| after.time.ticks()),
        &user,
        &after.map_or(0, |after| after.annotation_time.ticks()),
    ];
    portion::read(client, &query, &parameters, limit, one)
}

fn one(row: &Row) -> Result<Option<(UtcTime, Annotation)>, postgres::Error> {
    let annotation = Annotation {
        user_name: row.try_get::<_, &str>(1)?.into(),
        annotation_time: UtcTime::from_ticks(row.try_get(2)?),
        message: row.try_get::<_, &str>(3)?.into(),
    };
    Ok(Some((UtcTime::from_ticks(row.try_get(0)?), annotation)))
}

pub(super) fn change(
    transaction: &mut Transaction<'_>,
    node: i32,
    perform: Perform,
    time: UtcTime,
    annotation: &Annotation,
) -> Result<StatusCode, postgres::Error> {
    let (user, message) = (storable(annotation.user_name.as_str()), storable(annotation.message.as_str()));
    let (ticks, at) = (time.ticks(), annotation.annotation_time.ticks());
    let key: [&(dyn ToSql + Sync); 4] = [&node, &ticks, &user, &at];
    let of = "node = $1 AND ticks = $2 AND user_name = $3 AND annotated_at = $4";
    let exists =
        transaction.query_opt(&format!("SELECT 1 FROM taktwerk_annotation WHERE {of}"), &key)?.is_some();
    Ok(match (perform, exists) {
        (Perform::Insert, true) => StatusCode::BAD_ENTRY_EXISTS,
        (Perform::Replace | Perform::Remove, false) => StatusCode::BAD_NO_ENTRY_EXISTS,
        (Perform::Remove, true) => {
            transaction.execute(&format!("DELETE FROM taktwerk_annotation WHERE {of}"), &key)?;
            StatusCode::GOOD
        }
        (Perform::Insert | Perform::Replace | Perform::Update, _) => {
            transaction.execute(
                "INSERT INTO taktwerk_annotation VALUES ($1, $2, $3, $4, $5) ON CONFLICT (node, ticks, user_name, \
                 annotated_at) DO UPDATE SET message = excluded.message",
                &[&node, &ticks, &user, &at, &message],
            )?;
            if exists { StatusCode::GOOD_ENTRY_REPLACED } else { StatusCode::GOOD_ENTRY_INSERTED }
        }
    })
}

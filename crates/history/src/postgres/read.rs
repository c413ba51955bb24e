//! Reads values.

use super::portion;
use super::row::{self, VALUE};
use postgres::types::ToSql;
use postgres::{Client, Row};
use taktwerk_schema::HistoryUpdateType;
use taktwerk_server::history::{HistoryValue, Modification, ModifiedValue, NodeKey, Order, ReadLimit, Span};
use taktwerk_types::UtcTime;

const fn direction(order: Order) -> &'static str {
    match order {
        Order::Forward => "ASC",
        Order::Backward => "DESC",
    }
}

/// The values of a span.
pub(super) fn values(
    client: &mut Client,
    node: &NodeKey,
    span: Span,
    order: Order,
    limit: ReadLimit,
) -> Result<Vec<HistoryValue>, postgres::Error> {
    let direction = direction(order);
    let query = format!(
        "SELECT {VALUE} FROM taktwerk_value WHERE node = (SELECT id FROM taktwerk_node WHERE key = $1) \
         AND time >= $2 AND time <= $3 AND ticks BETWEEN $4 AND $5 ORDER BY time {direction}, ticks {direction}"
    );
    let (first, last) = (row::time(span.first), row::time(span.last));
    let key: &str = node;
    let parameters: [&(dyn ToSql + Sync); 5] = [&key, &first, &last, &span.first.ticks(), &span.last.ticks()];
    portion::read(client, &query, &parameters, limit, |row| row::value(row, 0).map(Some))
}

/// The modified values of a span without the first `skip`.
pub(super) fn modified(
    client: &mut Client,
    node: &NodeKey,
    span: Span,
    order: Order,
    skip: usize,
    limit: ReadLimit,
) -> Result<Vec<ModifiedValue>, postgres::Error> {
    let direction = direction(order);
    let query = format!(
        "SELECT {VALUE}, changed_at, change, changed_by FROM taktwerk_modified WHERE node = (SELECT id FROM \
         taktwerk_node WHERE key = $1) AND ticks BETWEEN $2 AND $3 ORDER BY ticks {direction}, id {direction} \
         OFFSET $4"
    );
    let key: &str = node;
    let skip = i64::try_from(skip).unwrap_or(i64::MAX);
    let parameters: [&(dyn ToSql + Sync); 4] = [&key, &span.first.ticks(), &span.last.ticks(), &skip];
    let one = |row: &Row| {
        let by = Modification {
            time: UtcTime::from_ticks(row.try_get(6)?),
            kind: HistoryUpdateType(row.try_get(7)?),
            user: row.try_get::<_, &str>(8)?.into(),
        };
        Ok(Some(ModifiedValue { value: row::value(row, 0)?, by }))
    };
    portion::read(client, &query, &parameters, limit, one)
}

//! Reads rows in portions, because the size of a row is known only after it arrives.

use postgres::types::ToSql;
use postgres::{Client, Row};
use taktwerk_server::account::HeapSize;
use taktwerk_server::history::ReadLimit;

/// Rows of the first portion, and of the largest one.
const FIRST: usize = 64;
const LARGEST: usize = 16_384;

/// Reads rows until there are no more or the limit is reached. `one` converts a row; `None` skips a damaged one.
///
/// Each portion is sized by the average row of the one before, and is at most twice as long. So a byte limit is exceeded by at
/// most one portion.
pub(super) fn read<T: HeapSize>(
    client: &mut Client,
    query: &str,
    parameters: &[&(dyn ToSql + Sync)],
    mut limit: ReadLimit,
    mut one: impl FnMut(&Row) -> Result<Option<T>, postgres::Error>,
) -> Result<Vec<T>, postgres::Error> {
    let mut out = Vec::new();
    let mut transaction = client.build_transaction().read_only(true).start()?;
    let portal = transaction.bind(query, parameters)?;
    let mut wanted = FIRST;
    while !limit.is_reached() {
        let asked = wanted.min(limit.count);
        let rows = transaction.query_portal(&portal, i32::try_from(asked).unwrap_or(i32::MAX))?;
        let before = limit.bytes;
        for row in &rows {
            if let Some(read) = one(row)? {
                if limit.is_reached() {
                    return Ok(out);
                }
                limit.give(&read);
                out.push(read);
            }
        }
        if rows.len() < asked {
            break;
        }
        let each = (before - limit.bytes) / asked;
        let fit = limit.bytes.checked_div(each).unwrap_or(usize::MAX);
        wanted = (2 * wanted).min(LARGEST).min(fit).max(1);
    }
    drop(portal);
    transaction.commit()?;
    Ok(out)
}

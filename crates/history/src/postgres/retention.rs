//! Deletes what is too old.

use postgres::Client;

/// Ticks of a day.
const DAY: i64 = 24 * 3_600 * 10_000_000;

/// Deletes what `owner` recorded before `oldest`, in ticks.
///
/// If old values are compressed, whole days are deleted: for each piece of a compressed batch, the database has to decompress it.
/// Variables are given by number, because it decompresses the batches of all Variables if a query selects them.
pub(super) fn expire(
    client: &mut Client,
    owner: &str,
    oldest: i64,
    is_compressing: bool,
) -> Result<(), postgres::Error> {
    let oldest = if is_compressing { oldest - oldest.rem_euclid(DAY) } else { oldest };
    let time = super::row::time(taktwerk_types::UtcTime::from_ticks(oldest));
    let rows = client.query("SELECT id FROM taktwerk_node WHERE owner = $1 ORDER BY id", &[&owner])?;
    let nodes = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i32>, _>>()?;
    // If one fails, the others should be done all the same.
    let results = [
        client.execute("DELETE FROM taktwerk_value WHERE node = ANY($1) AND time < $2", &[&nodes, &time]),
        client
            .execute("DELETE FROM taktwerk_modified WHERE node = ANY($1) AND ticks < $2", &[&nodes, &oldest]),
        client.execute(
            "DELETE FROM taktwerk_annotation WHERE node = ANY($1) AND ticks < $2",
            &[&nodes, &oldest],
        ),
        client.execute("DELETE FROM taktwerk_event WHERE server = $1 AND ticks < $2", &[&owner, &oldest]),
    ];
    results.into_iter().try_for_each(|result| result.map(drop))
}

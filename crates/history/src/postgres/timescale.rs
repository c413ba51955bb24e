//! The extension TimescaleDB, where a database has it: values are in chunks of time, and old chunks are compressed.

use postgres::Client;
use postgres::error::SqlState;

/// Makes the table of values a hypertable with chunks of seven days, which are compressed when they are seven days old. Returns
/// whether they are.
pub(super) fn prepare(client: &mut Client) -> Result<bool, postgres::Error> {
    let version =
        client.query_opt("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'", &[])?;
    let Some(version) = version else { return Ok(false) };
    let can_change_compressed = can_change_compressed(version.try_get(0)?);
    client.batch_execute(
        "SELECT create_hypertable('taktwerk_value', 'time', chunk_time_interval => interval '7 days', \
         if_not_exists => true, migrate_data => true)",
    )?;
    if !can_change_compressed {
        tracing::info!("history: TimescaleDB compresses old values from version 2.11 on");
        return Ok(false);
    }
    let compressed = client.query_opt(
        "SELECT 1 FROM timescaledb_information.hypertables WHERE hypertable_name = 'taktwerk_value' AND \
         hypertable_schema = current_schema() AND compression_enabled",
        &[],
    )?;
    if compressed.is_none() {
        let enabled = client.batch_execute(
            "ALTER TABLE taktwerk_value SET (timescaledb.compress, timescaledb.compress_segmentby = 'node', \
             timescaledb.compress_orderby = 'time, ticks'); \
             SELECT add_compression_policy('taktwerk_value', interval '7 days', if_not_exists => true)",
        );
        match enabled {
            // Editions under the Apache license have hypertables only.
            Err(error) if error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED) => {
                tracing::info!("history: this edition of TimescaleDB cannot compress old values");
                return Ok(false);
            }
            enabled => enabled?,
        }
    }
    lift_limit(client);
    Ok(true)
}

/// Versions before 2.11 cannot delete compressed values, so nothing would expire.
fn can_change_compressed(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (2, 11)
}

/// Lets changes of old values decompress as many as they need. The extension's limit of 100 000 rows would make the removal of
/// expired values fail.
pub(super) fn lift_limit(client: &mut Client) {
    let set = "SET timescaledb.max_tuples_decompressed_per_dml_transaction = 0";
    if let Err(error) = client.batch_execute(set) {
        // Versions before 2.14 have no limit.
        tracing::debug!(%error, "history: no limit of decompressed rows");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn old_versions_do_not_compress() {
        let of = super::can_change_compressed;
        assert!(of("2.11.0") && of("2.17.2") && of("2.20.0-dev") && of("3.0"));
        assert!(!of("2.10.3") && !of("1.7.5") && !of("2") && !of(""));
    }
}

//! Failures of the database.

use postgres::error::SqlState;
use taktwerk_server::history::StoreError;

/// A failure as an error of the store.
pub(super) fn failed(error: &postgres::Error) -> StoreError {
    let message = format!("PostgreSQL: {}", explained(error));
    match error.code() {
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN => {
            StoreError::mistake(format!(
                "{message}. A table of the history was dropped, renamed or changed: rename it back, or restore it from a backup"
            ))
        }
        // Wrong user or password; no such database; no permission.
        Some(code) if ["28", "3D", "42"].iter().any(|class| code.code().starts_with(class)) => {
            StoreError::mistake(message)
        }
        _ => StoreError::unavailable(message),
    }
}

/// The text of an error: the database's message with its hint, or the underlying cause.
#[must_use]
pub fn explained(error: &postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return match error.hint() {
            Some(hint) => format!("{}; {hint}", error.message()),
            None => error.message().to_owned(),
        };
    }
    match core::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

//! Errors for the page: an HTTP status and a sentence.

use crate::visitor::Refusal;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use taktwerk::client::Error;
use taktwerk_types::StatusCode as UaStatus;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// The request is invalid.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The visitor has no permission.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }
}

impl core::fmt::Display for Problem {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Status { status, .. } if is_denial(*status) => StatusCode::FORBIDDEN,
            Error::Status { .. } | Error::WrongType { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.to_string())
    }
}

fn is_denial(status: UaStatus) -> bool {
    status == UaStatus::BAD_USER_ACCESS_DENIED || status == UaStatus::BAD_SECURITY_MODE_INSUFFICIENT
}

impl Problem {
    /// A refused login. The page asks for name and password, so a refused user gets a readable message.
    pub(crate) fn of_log_on(refusal: Refusal) -> Self {
        let is_of_user = match &refusal {
            Refusal::Server(error) => matches!(
                error.status(),
                UaStatus::BAD_USER_ACCESS_DENIED
                    | UaStatus::BAD_IDENTITY_TOKEN_REJECTED
                    | UaStatus::BAD_IDENTITY_TOKEN_INVALID
            ),
            _ => false,
        };
        let problem = Self::from(refusal);
        if !is_of_user {
            return problem;
        }
        let message = "the server refuses this user: check the user name and the password";
        Self::new(problem.status, message)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::MustChangePassword => StatusCode::FORBIDDEN,
            Refusal::Server(_) => StatusCode::UNAUTHORIZED,
            Refusal::Entropy => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, refusal.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.message }))).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_password_has_a_readable_message() {
        let status = |status| Refusal::Server(Error::Status { what: "ActivateSession".to_owned(), status });
        let denied = Problem::of_log_on(status(UaStatus::BAD_USER_ACCESS_DENIED));
        assert_eq!(denied.status, StatusCode::UNAUTHORIZED);
        assert!(denied.message.contains("check the user name and the password"), "{}", denied.message);
        let busy = Problem::of_log_on(status(UaStatus::BAD_TOO_MANY_SESSIONS));
        assert!(busy.message.contains("BadTooManySessions"), "{}", busy.message);
    }
}

//! Errors as the page gets them: a status and one sentence.

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

    /// The request itself is wrong.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The visitor may not.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
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

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Full => StatusCode::SERVICE_UNAVAILABLE,
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

//! Rejected certificates, and trusting them.
//!
//! A certificate proves nothing until somebody has compared its fingerprint with the one that the device shows. So the
//! page requires the first characters of the fingerprint instead of a click.

use super::{Problem, Who};
use crate::state::App;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use taktwerk_pki::Group;

/// Number of characters of the fingerprint that must be typed.
const TYPED_LEN: usize = 8;

/// Lists rejected application certificates.
pub(crate) async fn list(State(app): State<Arc<App>>, Who(visitor): Who) -> Result<Json<Value>, Problem> {
    if !visitor.is_administrator().await {
        return Err(Problem::forbidden(
            "this page requires a user with the role SecurityAdmin or ConfigureAdmin",
        ));
    }
    let Some(pki) = &app.subject.server_pki else {
        return Ok(Json(json!({ "rejected": [], "hasCertificates": false })));
    };
    let store = pki.store();
    let addresses = store.rejected_addresses(Group::Applications);
    let rejected: Vec<Value> = store
        .rejected(Group::Applications, &mut Vec::new())
        .iter()
        .map(|entry| {
            let certificate = &entry.certificate;
            let thumbprint = entry.thumbprint();
            json!({
                "subject": certificate.subject_text(),
                "issuer": certificate.issuer_text(),
                "applicationUri": certificate.application_uri(),
                "notBefore": certificate.not_before().to_string(),
                "notAfter": certificate.not_after().to_string(),
                "address": addresses.get(&thumbprint).map(ToString::to_string),
                "thumbprint": thumbprint,
            })
        })
        .collect();
    let may_trust = visitor.may_trust().await;
    Ok(Json(json!({ "rejected": rejected, "hasCertificates": true, "mayTrust": may_trust })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trust {
    thumbprint: String,
    /// The typed characters of the fingerprint.
    typed: String,
}

/// Trusts a rejected certificate.
pub(crate) async fn trust(
    State(app): State<Arc<App>>,
    Who(visitor): Who,
    Json(trust): Json<Trust>,
) -> Result<Json<Value>, Problem> {
    if !visitor.may_trust().await {
        return Err(Problem::forbidden("trusting a certificate requires a user with the role SecurityAdmin"));
    }
    let Some(pki) = &app.subject.server_pki else {
        return Err(Problem::bad_request("this server has no certificates"));
    };
    let typed = trust.typed.trim().to_ascii_uppercase().replace([' ', ':'], "");
    if typed.len() < TYPED_LEN || !trust.thumbprint.to_ascii_uppercase().starts_with(&typed) {
        return Err(Problem::bad_request(format!(
            "type the first {TYPED_LEN} characters of the fingerprint as the application or device shows it"
        )));
    }
    let rejected = pki.store().rejected(Group::Applications, &mut Vec::new());
    let entry = rejected.iter().find(|entry| entry.thumbprint().eq_ignore_ascii_case(&trust.thumbprint));
    let Some(entry) = entry else {
        return Err(Problem::bad_request("this certificate is no longer among the rejected ones"));
    };
    pki.store()
        .trust(Group::Applications, &entry.certificate)
        .map_err(|error| Problem::bad_request(format!("cannot write the certificate: {error}")))?;
    pki.validator().refresh();
    let user = visitor.user.as_deref().unwrap_or_default();
    tracing::warn!(
        user,
        thumbprint = entry.thumbprint(),
        "a user of the dashboard has trusted a certificate"
    );
    Ok(Json(json!({ "trusted": entry.thumbprint() })))
}

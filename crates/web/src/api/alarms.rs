//! The list of alarms, and operations on alarms.
//!
//! The list comes from the server in this process, without alarms that the visitor may not see. Operations are calls in
//! the visitor's own session, so the server's permissions and audit apply.

use super::nodes::parse;
use super::values::millis;
use super::{Problem, Who};
use crate::state::App;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use taktwerk::alarms::{ConditionView, Conditions, Shelving};
use taktwerk_client::condition::calls;
use taktwerk_schema::PermissionType;
use taktwerk_schema::ns0::Ns0;
use taktwerk_types::ByteString;
use taktwerk_types::hexadecimal;

/// Maximum number of alarms on the page.
const SHOWN_MAX: usize = 500;
/// Maximum length of a comment, in characters.
const COMMENT_LEN_MAX: usize = 1_000;
/// Maximum time of shelving, in minutes.
const MINUTES_MAX: f64 = 7.0 * 24.0 * 60.0;

/// Lists alarms, the most urgent first.
pub(crate) async fn list(State(app): State<Arc<App>>, Who(visitor): Who) -> Result<Json<Value>, Problem> {
    let Some(rights) = visitor.rights().await else {
        return Err(Problem::forbidden("cannot determine your permissions: log on again"));
    };
    let space = app.subject.shared.space();
    let rights = space.rights(&rights.roles, visitor.mode);
    let may_see = |view: &ConditionView| {
        let receive = PermissionType::RECEIVE_EVENTS;
        [&view.source, &view.type_id].iter().all(|id| space.check_rights(&rights, id, receive).is_ok())
    };
    let mut all = Conditions::of(space).retained();
    all.retain(may_see);
    let count = all.len();
    let shown: Vec<Value> = all.iter().take(SHOWN_MAX).map(shown).collect();
    Ok(Json(json!({ "alarms": shown, "count": count })))
}

fn shown(view: &ConditionView) -> Value {
    let state = &view.state;
    let kind = view.type_id.ns0().and_then(|id| Ns0::get().node(id)).map(|node| node.browse_name());
    let shelving = match state.shelving {
        Shelving::Unshelved => None,
        Shelving::OneShotShelved { .. } => Some("until it is normal"),
        Shelving::TimedShelved { .. } => Some("for a time"),
    };
    let dialog = state.dialog.as_ref().map(|dialog| {
        let responses: Vec<&str> = dialog.responses.iter().map(|response| response.text.as_str()).collect();
        json!({ "prompt": dialog.prompt.text.as_str(), "responses": responses })
    });
    json!({
        "id": view.id.to_string(),
        "branch": view.branch,
        "event": hexadecimal::text(view.event_id.as_bytes()),
        "name": &*view.name,
        "type": kind,
        "source": view.source.to_string(),
        "sourceName": &*view.source_name,
        "message": &*state.message,
        "severity": state.severity,
        "since": millis(state.since()),
        "active": state.active,
        "acked": state.acked,
        "confirmed": state.confirmed || !view.confirms,
        "latched": state.latched,
        "suppressed": state.suppressed || state.out_of_service,
        "shelving": shelving,
        "comment": state.comment.text.as_str(),
        "user": &*state.user,
        "dialog": dialog,
    })
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Action {
    Acknowledge,
    Confirm,
    Comment,
    Shelve,
    Unshelve,
    Respond,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    action: Action,
    id: String,
    /// The EventId from the list, in hexadecimal.
    #[serde(default)]
    event: String,
    #[serde(default)]
    comment: String,
    /// How long to shelve. Default: until the alarm is normal.
    minutes: Option<f64>,
    /// The response to a dialog: an index into its responses.
    response: Option<i32>,
}

/// Performs an operation on an alarm.
pub(crate) async fn operate(Who(visitor): Who, Json(wanted): Json<Wanted>) -> Result<Json<Value>, Problem> {
    let id = parse(&visitor.client.namespaces(), &wanted.id)?;
    let comment: String = wanted.comment.chars().take(COMMENT_LEN_MAX).collect();
    let event = || {
        let bytes = hexadecimal::bytes(&wanted.event);
        let bytes =
            bytes.ok_or_else(|| Problem::bad_request("event must be an id from the list of alarms"))?;
        Ok::<_, Problem>(ByteString::from(bytes))
    };
    let (what, call) = match wanted.action {
        Action::Acknowledge => ("acknowledge", calls::acknowledge(&id, &event()?, &comment)),
        Action::Confirm => ("confirm", calls::confirm(&id, &event()?, &comment)),
        Action::Comment => ("comment", calls::add_comment(&id, &event()?, &comment)),
        Action::Unshelve => ("unshelve", calls::unshelve(&id)),
        Action::Respond => {
            let response = wanted.response;
            let missing = || Problem::bad_request("response must be the number of a response, from 0");
            ("respond", calls::respond(&id, response.ok_or_else(missing)?))
        }
        Action::Shelve => (
            "shelve",
            match wanted.minutes {
                None => calls::one_shot_shelve(&id),
                Some(minutes) if minutes > 0.0 && minutes <= MINUTES_MAX => {
                    calls::timed_shelve(&id, minutes * 60_000.0)
                }
                Some(_) => return Err(Problem::bad_request("minutes must be a number from 1 to 10080")),
            },
        ),
    };
    visitor.client.conditions().call(what, call).await?;
    Ok(Json(json!({})))
}

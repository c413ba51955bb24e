//! FindServers and GetEndpoints (Part 4 §5.5), which need no session.

use super::Outcome;
use super::context::Context;
use super::reply::Reply;
use super::request::Request;
use crate::discovery::TRANSPORT_PROFILE;
use crate::error::Fault;
use taktwerk_schema::{FindServersRequest, FindServersResponse, GetEndpointsRequest, GetEndpointsResponse};
use taktwerk_types::StatusCode;
use taktwerk_types::codec::encode_len;

/// Longest filter list evaluated in a discovery request, because these requests are unauthenticated.
const FILTER_LEN_MAX: usize = 100;

pub(crate) fn find_servers(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    may_ask(cx)?;
    let wanted: FindServersRequest = request.decode()?;
    let config = cx.shared.config();
    let is_wanted = wanted.server_uris.is_empty()
        || wanted.server_uris.iter().take(FILTER_LEN_MAX).any(|uri| *uri == config.application_uri.as_str());
    let out = reply.begin::<FindServersResponse>();
    if is_wanted {
        out.extend_from_slice(
            &cx.shared.discovery().get(config, wanted.endpoint_url.as_str(), cx.now.instant).servers,
        );
    } else {
        encode_len(0, out);
    }
    Ok(Outcome::Answered)
}

pub(crate) fn get_endpoints(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    may_ask(cx)?;
    let wanted: GetEndpointsRequest = request.decode()?;
    let config = cx.shared.config();
    let is_wanted = wanted.profile_uris.is_empty()
        || wanted.profile_uris.iter().take(FILTER_LEN_MAX).any(|uri| *uri == TRANSPORT_PROFILE);
    let out = reply.begin::<GetEndpointsResponse>();
    if is_wanted {
        let known = cx.shared.discovery().get(config, wanted.endpoint_url.as_str(), cx.now.instant);
        out.extend_from_slice(&known.endpoints);
    } else {
        encode_len(0, out);
    }
    Ok(Outcome::Answered)
}

/// Discovery is unauthenticated, so its rate is limited per address.
fn may_ask(cx: &Context<'_>) -> Result<(), Fault> {
    let connection = cx.outbox.connections.get(cx.peer.connection.0);
    match connection.and_then(|connection| connection.address) {
        Some(address) if !cx.shared.admission().may_discover(address, cx.now.instant) => {
            Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "discovery_rate_per_address"))
        }
        _ => Ok(()),
    }
}

//! `bench read`, `write` and `browse`: repeated requests of one kind.
//!
//! Without a rate, each client sends its next request when the previous one was answered ([`closed`]; with one client
//! on the blocking driver, [`back_to_back`]). With `--rate`, the send times are fixed in advance ([`open`]).

mod answers;
mod back_to_back;
mod closed;
mod open;
mod operation;
mod view;

use crate::client::Session;
use crate::common::{Generator, check_rate};
use crate::context::Context;
use crate::error::GeneratorError;
use crate::nodes;
use crate::report::{Finished, Report};
use operation::Operation;
use taktwerk_load::latency::Latency;
use taktwerk_load::node::NodeSpec;
use taktwerk_load::result::{self as document, Unit};
use taktwerk_load::specification::Request as Requests;
use taktwerk_load::validity::{self, Invalid};
use taktwerk_model::figures;
use taktwerk_schema::service::Request;

/// Checks the answer to a Write.
pub(crate) fn check_write(reply: &taktwerk_client::Reply<'_>) -> view::Checked {
    view::write(reply)
}

/// Checks the answer to a Read.
pub(crate) fn check_read(reply: &taktwerk_client::Reply<'_>) -> view::Checked {
    view::read(reply)
}

/// Results.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) latency: Latency,
    /// Requests sent within the window.
    pub(crate) sent: u64,
    /// Requests scheduled within the window; equal to `sent` without a schedule.
    pub(crate) due: u64,
    /// Requests answered, of those sent in the window.
    pub(crate) answered: u64,
    /// Number of operations with a Bad status, and the first status.
    pub(crate) bad: u64,
    pub(crate) first_bad: Option<String>,
    /// Requests that failed as a whole.
    pub(crate) failed: u64,
    /// Connections that were lost.
    pub(crate) lost: usize,
    /// Number of key renewals over all clients, if counted.
    pub(crate) renewals: Option<u64>,
    /// Length of the window in nanoseconds.
    pub(crate) span: u64,
    pub(crate) account: Option<crate::account::Account>,
}

/// Runs `bench read`.
pub(crate) fn read(request: &Requests, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    let nodes = found(request, context)?;
    run("read", request, context, nodes.len(), operation::read(&nodes, request.batch))
}

/// Runs `bench write`.
pub(crate) fn write(request: &Requests, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    request.common.begin()?;
    let mut session = Session::connect(&request.common.connection, context)?;
    let nodes = nodes::find(&mut session, &request.nodes, None)?;
    let is_chosen = !request.nodes.is_empty() || nodes.first().is_some_and(nodes::is_signal);
    if !is_chosen {
        return Err(GeneratorError::Usage(
            "this server has no test signals (ns=1;i=100000…): name the nodes that may be overwritten with --nodes"
                .to_owned(),
        ));
    }
    let operation = operation::write(&mut session, &nodes, request.batch)?;
    session.close();
    run("write", request, context, nodes.len(), operation)
}

/// Runs `bench browse`.
pub(crate) fn browse(request: &Requests, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    request.common.begin()?;
    let mut session = Session::connect(&request.common.connection, context)?;
    let objects: NodeSpec = NodeSpec::Path(Vec::new());
    let named = if request.nodes.is_empty() { vec![objects] } else { request.nodes.clone() };
    let nodes = crate::client::resolve::all(&mut session, &named)?;
    session.close();
    run("browse", request, context, nodes.len(), operation::browse(&nodes, request.batch))
}

fn found(request: &Requests, context: &Context<'_>) -> Result<Vec<taktwerk_types::NodeId>, GeneratorError> {
    request.common.begin()?;
    let mut session = Session::connect(&request.common.connection, context)?;
    // Each client starts at a different node, so more nodes than one request needs spread the load more evenly.
    let wanted = u64::from(request.batch) * u64::from(request.common.clients);
    let nodes = nodes::find(&mut session, &request.nodes, Some(u32::try_from(wanted).unwrap_or(u32::MAX)))?;
    session.close();
    Ok(nodes)
}

fn run<R: Request<Response: 'static>>(
    command: &str,
    arguments: &Requests,
    context: &Context<'_>,
    nodes: usize,
    mut operation: Operation<R>,
) -> Result<Finished, GeneratorError> {
    let common = &arguments.common;
    let server = common.begin()?;
    check_rate(arguments.rate, "requests")?;
    let outcome = match arguments.rate {
        Some(rate) => open::run(arguments, rate, server, &mut operation, context)?,
        None if common.clients == 1 => back_to_back::run(arguments, server, &mut operation, context)?,
        None => closed::run(arguments, server, &mut operation, context)?,
    };
    let is_bad = |_: &&String| outcome.bad > 0 || outcome.failed > 0;
    let failed = outcome.first_bad.as_ref().filter(is_bad).map(|first| {
        GeneratorError::BadStatus(format!(
            "{} operations and {} requests failed; the first with {first}",
            outcome.bad, outcome.failed
        ))
    });
    Ok(report(command, arguments, nodes, &outcome).finish(context, failed))
}

fn report(command: &str, arguments: &Requests, nodes: usize, outcome: &Outcome) -> Report {
    let common = &arguments.common;
    let mut report = common.report(command);
    // The window of the schedule, not of the account, which starts late if the generator is late.
    let per_second = outcome.answered as f64 / (outcome.span as f64 / 1e9).max(1e-9);
    report.part(&document::Requests {
        requested: document::RequestsRequested {
            clients: common.clients,
            rate: arguments.rate,
            count: arguments.count,
            duration_s: common.duration.as_secs_f64(),
            warmup_s: common.warmup.as_secs_f64(),
            batch: arguments.batch,
            closed: arguments.rate.is_none(),
        },
        nodes,
        sent: outcome.sent,
        due: outcome.due,
        requests: outcome.answered,
        failed: outcome.failed,
        bad: outcome.bad,
        connections_lost: outcome.lost,
        token_renewals: outcome.renewals,
        per_second: outcome.account.is_some().then_some(per_second),
    });
    report.latency(&outcome.latency, arguments.rate.is_some());
    report.unanswered(&outcome.latency, outcome.due, "requests", open::WAITED);
    if let Some(account) = &outcome.account {
        let batch = f64::from(arguments.batch);
        report.fact(
            "throughput",
            format!(
                "{} requests/s, {} nodes/s ({} clients)",
                figures::number(per_second),
                figures::number(per_second * batch),
                common.clients
            ),
        );
        report.account(account, Unit::Request, outcome.answered);
    }
    if outcome.failed > 0 || outcome.bad > 0 {
        report.fact("failures", format!("{} requests, {} operations", outcome.failed, outcome.bad));
    }
    if let Some(rate) = arguments.rate {
        let interval = f64::from(common.clients) / rate * 1e9;
        report.invalid(validity::check_lateness(&outcome.latency.lateness, interval as u64));
        // 1 % of the requests may still be in flight when the window closes.
        if outcome.sent * 100 < outcome.due * 99 {
            report.invalid([Invalid::NotSent { due: outcome.due, sent: outcome.sent }]);
        }
    }
    if outcome.lost > 0 {
        report.invalid([Invalid::ConnectionsLost { lost: outcome.lost }]);
    }
    if outcome.answered == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report
}

//! The names of all figures in documents, to validate names given by users before measuring.

use super::*;
use crate::latency::Summary;
use std::collections::BTreeSet;
use taktwerk_explain::nearest;

/// Members with free names, or with requested parameters.
const OPEN: [&str; 7] = [
    "requested.",
    "revised.",
    "link.",
    "energy_j.",
    "server.threads_percent.",
    "server.conditions.",
    "profile.processes.",
];

/// What is wrong with the name of a figure and how to correct it; `None` if documents can have it.
#[must_use]
pub fn unknown_figure(name: &str) -> Option<String> {
    if OPEN.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let mut known: BTreeSet<String> = whole().figures().into_keys().collect();
    known.extend(Figure::all().map(|figure| figure.name().to_owned()));
    if known.contains(name) {
        return None;
    }
    let likely = Figure::all().map(Figure::name);
    let meant = nearest(name, likely).or_else(|| nearest(name, known.iter().map(String::as_str)));
    let hint = match meant {
        Some(near) => format!("did you mean {near:?}?"),
        None => "`taktwerk bench … --json` shows all; often used are server.cpu_percent, per_second, \
                 latency.corrected.p99_us and delivery.p99_us"
            .to_owned(),
    };
    Some(format!("there is no figure {name:?}; {hint}"))
}

/// A document with all members of the parts that scenarios can produce.
pub(super) fn whole() -> Document {
    let summary = Summary { count: 1, ..Summary::default() };
    let times = Latencies { corrected: Some(summary), uncorrected: summary, lateness: Some(summary) };
    let trips = Trips { mean_ms: Some(0.0), std_ms: Some(0.0), p50_ms: Some(0.0) };
    let per = Per::of_all(1.0);
    let server = Server { per, cycles: Some(1), ..Server::default() };
    let mut document = Document::default();
    // Must be added before the accounts, which have some of its members in another form.
    document.add(&Stations::default());
    document.add(&Accounts {
        started_unix_ms: Some(1),
        energy_j: BTreeMap::from([("package".to_owned(), 1.0)]),
        wire: Some(crate::wire::Wire::default()),
        generator: Generator { polling_s: Some(0.0), machine_percent: Some(1.0), ..Generator::default() },
        server: Some(server),
        ..Accounts::default()
    });
    document.add(&Requests { per_second: Some(1.0), token_renewals: Some(0), ..Requests::default() });
    document.add(&Answered { latency: times, unanswered: 0 });
    document.add(&Subscribed {
        requested: SubscribedRequested::default(),
        revised: Revised::default(),
        nodes: 1,
        notifications: 1,
        per_second: 1.0,
        messages: 1,
        lost_messages: 0,
        steady: Some(true),
        waiting_at_end: 0,
        delivery: summary,
        age: Some(summary),
        publish_requests_refused: Some(0),
        source_timestamps_made_when_sampled: false,
        delay: Some(summary),
        write_to_source_timestamp: Some(summary),
        values_without_time: Some(0),
        message_interval: summary,
        unstamped_messages: 0,
        transfer: Some(summary),
        progress: crate::progress::ProgressSummary::default(),
        connections_lost: 0,
    });
    document.add(&RoundTrips { roundtrip: summary });
    document.add(&Transactions { transaction: summary });
    document.add(&Updates::default());
    document.add(&Sessions::default());
    document.add(&Probed::default());
    document.add(&Stalled::default());
    document.add(&FanOut::default());
    document.add(&Brokered { per_second: Some(1.0), ..Brokered::default() });
    let ratio = Some(1.0);
    document.add(&Published { lateness_p50_ratio: ratio, lateness_p99_ratio: ratio, ..Published::default() });
    let received = Received { of_other_writers: Some(0), ..Received::default() };
    document.add(&Delivered { received, subscriber_cpu_percent: Some(1.0), ..Delivered::default() });
    document.add(&Drift::default());
    document.add(&Igmp::default());
    let link = Link { expected: trips.clone(), round_trips: trips, ..Link::default() };
    let line = Some(LineRates::default());
    document.add(&Laid { link: Some(link), line, ..Laid::default() });
    let network_percent = Some(1.0);
    document.add(&Profiled { profile: Some(Profile { network_percent, ..Profile::default() }) });
    document
}

//! Figures of certificate authorities, and of sessions that depend on them.

use super::super::study::Study;
use super::{Figures, Summary, cell};
use crate::outcome::Grid;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_sim::scenario::{Clients, Login, Outcome, Scenario};

const NAMES: [&str; 6] =
    ["requests", "unanswered", "answer_mean_ms", "answer_p99_ms", "answer_max_ms", "connections_max"];
const CPU: &str = "authority_cpu_percent";

/// Adds the figures of a run.
pub(super) fn figures(scenario: &Scenario, outcome: &Outcome, all: &mut Figures) {
    for (authority, one) in scenario.authorities.iter().zip(&outcome.authorities) {
        let it = &one.figures;
        let mut put = |name: &str, value: f64| all.insert(format!("{}.{name}", authority.name), value);
        put("requests", it.requests as f64);
        put("unanswered", it.unanswered as f64);
        put("connections_max", it.connections_max as f64);
        if it.times.count() > 0 {
            put("answer_mean_ms", it.times.mean() / 1e6);
            put("answer_p99_ms", it.times.quantile(0.99) as f64 / 1e6);
            put("answer_max_ms", it.times.max() as f64 / 1e6);
        }
        if let Some(cpu) = one.cpu {
            put(CPU, cpu * 100.0);
        }
    }
}

/// Adds the names of all figures that runs can have.
pub(super) fn names(scenario: &Scenario, all: &mut BTreeSet<String>) {
    for authority in &scenario.authorities {
        all.extend(NAMES.map(|name| format!("{}.{name}", authority.name)));
        if authority.host.is_some() {
            all.insert(format!("{}.{CPU}", authority.name));
        }
    }
}

/// Everything that has a processor: kind, name, and figure.
pub(super) fn processors(scenario: &Scenario) -> impl Iterator<Item = (&'static str, &str, String)> {
    let of = |name: &str| format!("{name}.{CPU}");
    scenario.authorities.iter().map(move |one| ("authority", one.name.as_str(), of(&one.name)))
}

/// The tables: what authorities answered, and how long clients took to get a session, if that depends on authorities or
/// passwords.
pub(super) fn grids(study: &Study, all: &[BTreeMap<String, Summary>]) -> Vec<Grid> {
    let columns = ["authority", "requests", "unanswered", "mean ms", "max ms", "connections at once"];
    let figures = ["requests", "unanswered", "answer_mean_ms", "answer_max_ms", "connections_max"];
    let mut grid = Grid::new("Certificate authorities, in the whole simulation", 1, &columns);
    let columns = ["clients", "until session ms", "failed attempts", "reconnects", "longest outage ms"];
    let of_clients = ["session_up_ms", "failed_attempts", "reconnects", "outage_ms"];
    let mut sessions = Grid::new("Sessions of clients, in the whole simulation", 1, &columns);
    for (case, values) in study.cases.iter().zip(all) {
        let label = |name: &str| {
            if study.cases.len() > 1 { format!("{}, {name}", case.label) } else { name.to_owned() }
        };
        let get = |name: &str, figure: &str| cell(values.get(&format!("{name}.{figure}")));
        for authority in &case.scenario.authorities {
            let cells = figures.map(|figure| get(&authority.name, figure));
            grid.row(std::iter::once(label(&authority.name)).chain(cells));
        }
        let has_authorities = !case.scenario.authorities.is_empty();
        let is_shown = |clients: &&Clients| has_authorities || clients.login != Login::Anonymous;
        for clients in case.scenario.clients.iter().filter(is_shown) {
            let cells = of_clients.map(|figure| get(&clients.name, figure));
            sessions.row(std::iter::once(label(&clients.name)).chain(cells));
        }
    }
    [grid, sessions].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

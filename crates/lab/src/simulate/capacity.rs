//! Finds links that cannot carry their load, without simulating.
//!
//! All figures are lower bounds, so that a link that is refused certainly has too little capacity.

mod clients;
mod pubsub;

use taktwerk_netem::profile::rate_text;
use taktwerk_sim::scenario::{Link, Scenario};

/// Bits per second in each direction, as seen by clients and publishers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Needs {
    up: f64,
    down: f64,
}

impl std::ops::Add for Needs {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { up: self.up + other.up, down: self.down + other.down }
    }
}

/// A direction of a link, or both.
#[derive(Debug, Clone, Copy)]
enum Direction {
    Up,
    Down,
    Both,
}

/// The key of the first contradiction, and what to do about it.
pub(super) fn problem(scenario: &Scenario) -> Option<(String, String)> {
    scenario.links.iter().enumerate().find_map(|(at, link)| {
        let rates = [link.profile.up.usable_rate(), link.profile.down.usable_rate()];
        let of_clients = clients::needs(scenario, at, link);
        let of_pubsub = pubsub::needs(scenario, at, link);
        let (direction, needs, rate) = overloaded(link, of_clients + of_pubsub)?;
        let [needs, rate] = [needs, rate].map(|bits| rate_text(Some(bits)));
        let name = &link.name;
        let problem = if of_pubsub == Needs::default() {
            clients::told(scenario, direction, name, &needs, &rate)
        } else {
            pubsub::told(direction, name, &needs, &rate)
        };
        let key = match direction {
            Direction::Up if rates[0] != rates[1] => "up-rate",
            Direction::Down if rates[0] != rates[1] => "down-rate",
            _ => "rate",
        };
        Some((format!("link.{at}.{key}"), problem))
    })
}

/// The direction that is overloaded most, with the bits per second that it needs and has.
fn overloaded(link: &Link, needs: Needs) -> Option<(Direction, f64, f64)> {
    let (up, down) = (link.profile.up.usable_rate(), link.profile.down.usable_rate());
    let loads = if link.is_half_duplex {
        vec![(Direction::Both, needs.up + needs.down, up)]
    } else {
        vec![(Direction::Down, needs.down, down), (Direction::Up, needs.up, up)]
    };
    let known = loads.into_iter().filter_map(|(direction, needs, rate)| Some((direction, needs, rate?)));
    let over = known.filter(|(_, needs, rate)| needs > rate);
    over.max_by(|(_, needs, rate), (_, other, of)| (needs / rate).total_cmp(&(other / of)))
}

//! The emulated networks of an experiment: the requested properties and the results of the probe before the
//! measurements.

use crate::figures;
use crate::measurement::Measurement;
use crate::outcome::{Grid, maybe};
use taktwerk_load::result::{Laid, Trips};

/// One row per link, from the probe in its first result; `None` without links.
pub(super) fn grid(measurements: &[Measurement]) -> Option<Grid> {
    let mut grid = Grid::new(
        "Networks: requested properties and probe results",
        2,
        &[
            "network",
            "made by",
            "round trip ms",
            "seen",
            "median",
            "seen",
            "Mbit/s up",
            "seen",
            "lost % up",
            "seen",
        ],
    );
    let mut names: Vec<&str> = Vec::new();
    for measurement in measurements {
        let Some(name) = measurement.condition.link.as_deref() else { continue };
        let link = measurement.part::<Laid>().and_then(|laid| laid.link).filter(|_| !names.contains(&name));
        let Some(link) = link else { continue };
        names.push(name);
        let trip = |of: &Trips| {
            let std = figures::number(of.std_ms.unwrap_or(0.0));
            Some(format!("{} ± {std}", figures::number(of.mean_ms?)))
        };
        let megabits = |rate: Option<f64>| maybe(rate.map(|rate| rate / 1e6));
        let sent = link.up.sent.filter(|sent| *sent > 0.0);
        let lost = sent.zip(link.up.lost).map(|(sent, lost)| lost / sent * 100.0);
        // For losses that are independent of each other.
        let asked = link.asked.up.loss.probability.filter(|share| *share > 0.0);
        grid.row([
            name.to_owned(),
            link.method.unwrap_or_else(|| "–".to_owned()),
            trip(&link.expected).unwrap_or_else(|| "–".to_owned()),
            trip(&link.round_trips).unwrap_or_else(|| "–".to_owned()),
            maybe(link.expected.p50_ms),
            maybe(link.round_trips.p50_ms),
            megabits(link.asked.up.rate),
            megabits(link.up.rate),
            maybe(asked.map(|share| share * 100.0)),
            maybe(lost),
        ]);
    }
    (!names.is_empty()).then_some(grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Kind, LoadSpec, Scenario};
    use serde_json::{Value, json};

    #[test]
    fn each_network_has_one_row_with_its_probe_results() {
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        let near = scenario.conditions().remove(0);
        scenario.link = Some("rate=10mbit,loss=1%".to_owned());
        let far = scenario.conditions().remove(0);
        let document = json!({"link": {
            "method": "tun",
            "asked": {"up": {"rate": 1e7, "loss": {"model": "independent", "probability": 0.01}}},
            "expected": {"mean_ms": 40.0, "std_ms": 2.0, "p50_ms": 39.0},
            "round_trips": {"mean_ms": 41.0, "std_ms": 3.0, "p50_ms": 40.0},
            "up": {"rate": 9.9e6, "sent": 1000, "lost": 12},
        }});
        let of = |condition: &crate::scenario::Condition, document: &Value| {
            Measurement::from_document("x", condition.clone(), 0, document.clone())
        };
        assert!(grid(&[of(&near, &json!({}))]).is_none());
        let grid = grid(&[of(&near, &json!({})), of(&far, &document), of(&far, &document)]).unwrap();
        let expected = [
            "rate=10mbit,loss=1%",
            "tun",
            "40.0 ± 2.00",
            "41.0 ± 3.00",
            "39.0",
            "40.0",
            "10.0",
            "9.90",
            "1.00",
            "1.20",
        ];
        assert_eq!(grid.rows, [expected.map(str::to_owned).to_vec()]);
    }

    #[test]
    fn stored_probes_are_read() {
        // The names are those in the probe's own JSON document.
        let link =
            crate::links::Link::by(crate::links::Method::Proxy, &"delay=1ms,rate=50mbit".parse().unwrap(), 1);
        let probed = crate::links::probe(&link.unwrap(), &crate::links::Effort::BRIEF).unwrap();
        let mut scenario = Scenario::new("x", LoadSpec::new(Kind::Read));
        scenario.link = Some("delay=1ms,rate=50mbit".to_owned());
        let condition = scenario.conditions().remove(0);
        let one = Measurement::from_document("x", condition, 0, json!({"link": probed}));
        let row = grid(&[one]).unwrap().rows.remove(0);
        assert_eq!((row[1].as_str(), row[6].as_str()), ("proxy", "50.0"));
        assert!(row[2..6].iter().chain([&row[7]]).all(|cell| cell != "–"), "{row:?}");
    }
}

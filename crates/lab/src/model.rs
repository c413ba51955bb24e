//! Converts measurements to the data of the cost model.

use crate::measurement::{Measurement, group};
use crate::scenario::{CpuCondition, Kind};
use taktwerk_load::result::Figure;

pub use taktwerk_model::cpu::*;

/// Share of its values that the worst item must receive for the load to count as sustained.
const KEPT_UP: f64 = 0.9;

/// The observation of a valid measurement of a subscription that the server sustained; `None` for others. An overloaded
/// server uses all of its CPU regardless of the load. The CPU of a server that shares its processor includes costs of
/// another program.
#[must_use]
pub fn observation(measurement: &Measurement) -> Option<Observation> {
    let condition = &measurement.condition;
    if measurement.get(Figure::PROGRESS_WORST_ITEM_RATIO).is_some_and(|ratio| ratio < KEPT_UP) {
        return None;
    }
    if condition.cpu.condition != CpuCondition::Isolated {
        return None;
    }
    let interval = condition.publishing_ms.filter(|interval| *interval > 0.0)?;
    let cpu_percent = measurement.get(Figure::SERVER_CPU_PERCENT).filter(|cpu| *cpu > 0.0)?;
    (measurement.is_valid() && condition.kind == Kind::Subscribe).then_some(Observation {
        clients: f64::from(condition.clients),
        signals_per_s: measurement.get(Figure::PER_SECOND)?,
        messages_per_s: f64::from(condition.clients) * 1e3 / interval,
        encrypted: !condition.security.is_none(),
        cpu_percent,
        wakes_per_s: measurement
            .get(Figure::SERVER_VOLUNTARY_SWITCHES)
            .zip(measurement.get(Figure::SERVER_SECONDS).filter(|seconds| *seconds > 0.0))
            .map(|(switches, seconds)| switches / seconds),
    })
}

/// Fits CPU, and memory and bandwidth if they were measured, to the measurements of a stack. `None` if there is too
/// little data.
#[must_use]
pub fn fit(stack: &str, measurements: &[Measurement]) -> Option<Model> {
    let own: Vec<&Measurement> =
        measurements.iter().filter(|one| one.condition.stack == stack && one.is_valid()).collect();
    let data: Vec<Observation> = own.iter().filter_map(|one| observation(one)).collect();
    let model = Model::new(stack, &data)?;
    let (mut memory, mut wire) = (Vec::new(), Vec::new());
    for (load, repetitions) in group(own).iter().enumerate() {
        for one in &repetitions.valid {
            let clients = f64::from(one.condition.clients);
            if let (Some(items), Some(bytes)) = (one.condition.items, one.get(Figure::SERVER_RSS_BYTES)) {
                memory.push(MemorySample { load, items: f64::from(items), clients, bytes });
            }
            let total = one
                .get(Figure::WIRE_TOTAL_BYTES)
                .zip(one.get(Figure::WINDOW_S))
                .filter(|(_, window)| *window > 0.0);
            if let (Some(of), Some((total, window))) = (observation(one), total) {
                wire.push(WireSample {
                    load,
                    signals_per_s: of.signals_per_s,
                    messages_per_s: of.messages_per_s,
                    bytes_per_s: total / window,
                });
            }
        }
    }
    Some(model.with_resources(&memory, &wire))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sustained_loads_become_observations() {
        use crate::scenario::{LoadSpec, Scenario};
        use serde_json::json;
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.publishing_ms = Some(100.0.into());
        let mut condition = Scenario::new("x", load).conditions().remove(0);
        let of = |ratio: f64| {
            let document = json!({
                "per_second": 1_000.0, "server": {"cpu_percent": 99.0}, "progress": {"worst_item_ratio": ratio},
            });
            observation(&Measurement::from_document("", condition.clone(), 0, document))
        };
        assert_eq!(of(1.0).unwrap().messages_per_s, 10.0);
        assert_eq!(of(0.75), None);
        condition.cpu.condition = CpuCondition::Shared;
        let document = json!({"per_second": 1_000.0, "server": {"cpu_percent": 99.0}});
        assert_eq!(observation(&Measurement::from_document("", condition, 0, document)), None);
    }
}

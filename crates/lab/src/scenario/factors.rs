//! Labels of loads: the stack first, then the factors that differ between the rows of a table, without the factors that
//! all rows share.

use super::{Condition, CpuCondition};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_load::signals::SignalSet;

/// Factors that describe how something was measured, not what. Runs are compared even if these differ.
const HOW: [&str; 5] = ["server_cpu", "load_cpu", "warmup_s", "window_s", "steady"];

/// Display name of a stack.
#[must_use]
pub fn stack_name(stack: &str) -> &str {
    if stack == "own" { "taktwerk" } else { stack }
}

fn joined(sets: &[SignalSet]) -> String {
    sets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl Condition {
    /// All factors except the number of repetitions, in reading order.
    fn parts(&self) -> Vec<(&'static str, Option<String>)> {
        // No `..` here, so that the compiler demands a name for each new field.
        let Self {
            scenario,
            stack,
            link,
            server,
            kind,
            clients,
            items,
            batch,
            rate,
            publishing_ms,
            sampling_ms,
            queue,
            payload,
            pause_ms,
            count,
            threads,
            asleep,
            each_value,
            publish_every,
            publish_requests,
            notifications_max,
            keep_alive_count,
            security,
            cpu,
            time,
        } = self;
        let yes = |is_so: bool| is_so.then(|| "yes".to_owned());
        let whole = |value: &Option<u32>| value.map(|value| value.to_string());
        let number = |value: &Option<f64>| value.map(|value| value.to_string());
        let positive = |value: f64| (value > 0.0).then(|| value.to_string());
        // Sets and adapters have intervals of their own.
        let has_interval = server.sets.is_empty() && (server.adapters.is_none() || server.signals > 0);
        vec![
            ("stack", Some(stack.clone())),
            ("scenario", Some(scenario.clone())),
            ("kind", Some(kind.name().to_owned())),
            ("link", link.clone()),
            ("clients", Some(clients.to_string())),
            ("items", whole(items)),
            ("batch", whole(batch)),
            ("rate", number(rate)),
            ("publishing_ms", number(publishing_ms)),
            ("sampling_ms", number(sampling_ms)),
            ("queue", whole(queue)),
            ("payload", whole(payload)),
            ("pause_ms", number(pause_ms)),
            ("count", count.map(|count| count.to_string())),
            ("threads", whole(threads)),
            ("asleep", yes(*asleep)),
            ("each_value", yes(*each_value)),
            ("publish_every", number(publish_every)),
            ("publish_requests", whole(publish_requests)),
            ("notifications_max", whole(notifications_max)),
            ("keep_alive_count", whole(keep_alive_count)),
            ("signals", (server.signals > 0).then(|| server.signals.to_string())),
            ("sets", (!server.sets.is_empty()).then(|| joined(&server.sets))),
            ("adapters", server.adapters.map(|adapters| adapters.to_string())),
            ("update_ms", positive(server.update_ms).filter(|_| has_interval)),
            ("busy_poll_us", (server.busy_poll_us > 0).then(|| server.busy_poll_us.to_string())),
            ("server_threads", Some(server.threads.to_string())),
            ("interop", yes(server.interop)),
            ("profile", yes(server.profile)),
            ("random", yes(server.random)),
            ("security", (!security.is_none()).then(|| security.policy.clone())),
            ("mode", (!security.is_none()).then(|| security.mode.clone())),
            ("cpu", Some(cpu.condition.name().to_owned())),
            ("isolate", yes(cpu.isolate)),
            ("class", cpu.class.clone()),
            ("governor", cpu.governor.clone()),
            ("server_cpu", cpu.server.clone()),
            ("load_cpu", cpu.load.clone()),
            ("warmup_s", positive(time.warmup_s)),
            ("window_s", Some(time.duration_s.to_string())),
            ("steady", yes(time.steady)),
        ]
    }

    /// The factors by name: for files, and to find the same load in another run.
    #[must_use]
    pub fn factors(&self) -> BTreeMap<String, String> {
        let is_factor = |name: &str| !HOW.contains(&name) && !matches!(name, "scenario" | "kind");
        let parts = self.parts().into_iter().filter(|(name, _)| is_factor(name));
        parts.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Label for use outside of tables.
    #[must_use]
    pub fn label(&self) -> String {
        const LEFT_OUT: [&str; 5] = ["stack", "scenario", "kind", "update_ms", "server_threads"];
        let mut words = vec![stack_name(&self.stack).to_owned()];
        for (name, value) in self.parts() {
            let is_usual = LEFT_OUT.contains(&name)
                || HOW.contains(&name)
                || (name == "cpu" && self.cpu.condition == CpuCondition::Isolated);
            if let Some(value) = value.filter(|_| !is_usual) {
                words.push(format!("{name}={value}"));
            }
        }
        format!("{}: {}", self.scenario, words.join(", "))
    }

    /// Order of rows: our own stack first, then by stack, and small loads before large ones.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let ours = |one: &Self| one.stack != "own";
        let pairs = self.parts().into_iter().zip(other.parts());
        let by_value = |((_, one), (_, two)): ((_, Option<String>), (_, Option<String>))| {
            let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
            match (number(&one), number(&two)) {
                (Some(one), Some(two)) => one.total_cmp(&two),
                _ => one.cmp(&two),
            }
        };
        let all = pairs.map(by_value);
        ours(self).cmp(&ours(other)).then_with(|| all.fold(Ordering::Equal, Ordering::then))
    }
}

/// Labels for the rows of one table.
#[derive(Debug, Clone)]
pub struct Labels {
    names: Vec<String>,
    shared: Vec<String>,
}

impl Labels {
    /// Labels for these rows, in their order.
    #[must_use]
    pub fn of<'a>(conditions: impl IntoIterator<Item = &'a Condition>) -> Self {
        Self::without(conditions, &[])
    }

    /// Like [`Self::of`], but ignores some factors.
    #[must_use]
    pub fn without<'a>(conditions: impl IntoIterator<Item = &'a Condition>, left_out: &[&str]) -> Self {
        let mut rows: Vec<Vec<(&'static str, Option<String>)>> =
            conditions.into_iter().map(Condition::parts).collect();
        rows.iter_mut().for_each(|row| row.retain(|(name, _)| !left_out.contains(name)));
        let first = rows.first().cloned().unwrap_or_default();
        let differs = |(at, part): (usize, &(&'static str, Option<String>))| {
            rows.iter().any(|row| row.get(at) != Some(part)).then_some(part.0)
        };
        let differing: BTreeSet<&str> = first.iter().enumerate().filter_map(differs).collect();
        let word = |(name, value): &(&'static str, Option<String>)| match (*name, value) {
            ("stack", Some(stack)) => stack_name(stack).to_owned(),
            (name, Some(value)) => format!("{name}={value}"),
            (name, None) => format!("{name}=none"),
        };
        let name = |row: &Vec<(&'static str, Option<String>)>| {
            let those = row.iter().filter(|(name, _)| differing.contains(name));
            let words: Vec<String> = those.map(word).collect();
            // A single row is labelled with its stack.
            let words = if words.is_empty() { row.iter().take(1).map(word).collect() } else { words };
            words.join(", ")
        };
        let names: Vec<String> = rows.iter().map(name).collect();
        let is_shared = |(name, value): &&(&'static str, Option<String>)| {
            let is_name = names.len() == 1 && *name == "stack";
            value.is_some() && !differing.contains(name) && !is_name && *name != "scenario"
        };
        let shared = first.iter().filter(is_shared).map(word).collect();
        Self { names, shared }
    }

    /// The label of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> &str {
        self.names.get(row).map_or("", String::as_str)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The factors that all rows share; they are not part of the labels.
    #[must_use]
    pub fn shared(&self) -> String {
        self.shared.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Kind, LoadSpec, Scenario, SecuritySpec, Sweep};

    fn condition() -> Condition {
        Scenario::new("a name that is rather long", LoadSpec::new(Kind::Read)).conditions().remove(0)
    }

    /// Variants of [`condition`], each with one factor changed.
    fn others() -> Vec<Condition> {
        let changes: Vec<fn(&mut Condition)> = vec![
            |one| one.scenario = "x".into(),
            |one| one.stack = "open62541".into(),
            |one| one.link = Some("lan".into()),
            |one| one.server.signals = 7,
            |one| one.server.update_ms = 7.0,
            |one| one.server.threads = 2,
            |one| one.server.interop = true,
            |one| one.server.profile = true,
            |one| one.server.random = true,
            |one| one.server.adapters = "2:15:10".parse().ok(),
            |one| one.kind = Kind::Write,
            |one| one.clients = 2,
            |one| one.items = Some(7),
            |one| one.batch = Some(7),
            |one| one.rate = Some(0.5),
            |one| one.publishing_ms = Some(7.0),
            |one| one.sampling_ms = Some(7.0),
            |one| one.queue = Some(7),
            |one| one.payload = Some(7),
            |one| one.pause_ms = Some(7.0),
            |one| one.count = Some(7),
            |one| one.threads = Some(7),
            |one| one.asleep = true,
            |one| one.publish_requests = Some(7),
            |one| one.notifications_max = Some(7),
            |one| one.keep_alive_count = Some(7),
            |one| one.security = SecuritySpec::encrypted(),
            |one| (one.security.policy, one.security.mode) = ("Basic256Sha256".into(), "Sign".into()),
            |one| one.cpu.server = Some("0".into()),
            |one| one.cpu.load = Some("0".into()),
            |one| one.cpu.condition = CpuCondition::Same,
            |one| one.cpu.isolate = true,
            |one| one.cpu.class = Some("fifo:1".into()),
            |one| one.cpu.governor = Some("performance".into()),
            |one| one.time.warmup_s = 7.0,
            |one| one.time.duration_s = 7.0,
            |one| one.time.steady = false,
        ];
        let change = |change: fn(&mut Condition)| {
            let mut one = condition();
            change(&mut one);
            one
        };
        changes.into_iter().map(change).collect()
    }

    #[test]
    fn every_difference_between_loads_is_in_their_labels() {
        let base = condition();
        let others = others();
        for other in &others {
            assert_ne!(base, *other);
            let labels = Labels::of([&base, other]);
            assert_ne!(labels.get(0), labels.get(1), "{other:?}");
            assert!(labels.get(0).len() < 40, "{}", labels.get(0));
            assert_ne!(base.order(other), Ordering::Equal, "{other:?}");
        }
        let all = Labels::of(&others);
        let names: BTreeSet<&str> = all.iter().collect();
        assert_eq!(names.len(), others.len());
    }

    #[test]
    fn every_field_of_a_condition_is_a_factor() {
        let base = serde_json::to_value(condition()).unwrap();
        let leaves = |value: &serde_json::Value| {
            let mut leaves = BTreeSet::new();
            for (name, value) in value.as_object().unwrap() {
                match value.as_object() {
                    Some(inner) => leaves.extend(inner.keys().map(|key| format!("{name}.{key}"))),
                    None => drop(leaves.insert(name.clone())),
                }
            }
            leaves
        };
        let mut changed = BTreeSet::new();
        let mut known = leaves(&base);
        for other in others() {
            let other = serde_json::to_value(other).unwrap();
            known.extend(leaves(&other));
            for leaf in known.clone() {
                let at = format!("/{}", leaf.replace('.', "/"));
                if base.pointer(&at) != other.pointer(&at) {
                    changed.insert(leaf);
                }
            }
        }
        known.remove("time.repetitions");
        assert_eq!(changed, known);
    }

    #[test]
    fn stack_comes_first_and_shared_factors_are_separate() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![1, 10]));
        load.clients = Some(3.into());
        let mut scenario = Scenario::new("x", load);
        scenario.stacks = vec!["own".into(), "async-opcua".into()];
        scenario.cpu.condition = CpuCondition::Same;
        let mut conditions = scenario.conditions();
        conditions.sort_by(Condition::order);
        let labels = Labels::of(&conditions);
        let names: Vec<&str> = labels.iter().collect();
        assert_eq!(
            names,
            ["taktwerk, batch=1", "taktwerk, batch=10", "async-opcua, batch=1", "async-opcua, batch=10"]
        );
        let shared = labels.shared();
        assert!(shared.starts_with("kind=read, clients=3") && shared.contains("cpu=same"), "{shared}");
        assert!(!shared.contains("batch") && !shared.contains("none"), "{shared}");
        // A single stack is not a difference; a single row has no other label.
        assert_eq!(Labels::of(&conditions[..2]).get(1), "batch=10");
        assert!(Labels::of(&conditions[..2]).shared().starts_with("taktwerk, "));
        assert_eq!(Labels::of(&conditions[3..]).get(0), "async-opcua");
        assert_eq!(Labels::without(&conditions[1..3], &["stack"]).get(1), "batch=1");
        assert_eq!(conditions[3].label(), "x: async-opcua, clients=3, batch=10, cpu=same");
    }

    #[test]
    fn numbers_sort_numerically() {
        let mut load = LoadSpec::new(Kind::Read);
        load.batch = Some(Sweep::Many(vec![100, 9, 10]));
        let mut conditions = Scenario::new("x", load).conditions();
        conditions.sort_by(Condition::order);
        assert_eq!(conditions.iter().filter_map(|one| one.batch).collect::<Vec<_>>(), [9, 10, 100]);
    }
}

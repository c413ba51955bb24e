//! Validates scenarios before anything is measured.

use super::{BROKERLESS, Kind, Scenario, ScenarioError, Sweep, broker};

const DAY_S: f64 = 86_400.0;
const DAY_MS: f64 = DAY_S * 1e3;
/// Rates above this, in requests per second, are mistakes.
const FASTEST: f64 = 1e8;
/// Maximum number of measurements per scenario.
const MOST: u64 = 100_000;

impl Scenario {
    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |problem: &str| {
            Err(ScenarioError::Nonsense { scenario: self.name.clone(), problem: problem.to_owned() })
        };
        let time = &self.time;
        if self.name.trim().is_empty() {
            return wrong("the name is missing: add name = \"…\"");
        }
        if self.stacks.is_empty() {
            return wrong("stacks is empty: write stacks = [\"own\"]");
        }
        if time.repetitions == 0 {
            return wrong("time.repetitions is 0: write at least 1, better 5");
        }
        if !(time.duration_s > 0.0 && time.duration_s <= DAY_S && (0.0..=DAY_S).contains(&time.warmup_s)) {
            return wrong("time.duration_s and time.warmup_s must lie between 0 and 86 400");
        }
        if self.load.kind == Kind::Fan && self.load.clients.is_none() {
            return wrong("a fan needs load.clients of at least 2");
        }
        if let Some(problem) = self.cpu.problem() {
            return wrong(&problem);
        }
        let is_ours = |stack: &String| !stack.contains("://");
        let starts_server = !matches!(self.load.kind, Kind::Update | Kind::PubSub);
        if self.cpu.is_special() && !(starts_server && self.stacks.iter().all(is_ours)) {
            return wrong(
                "cpu.isolate, cpu.class and cpu.governor need a server that the laboratory starts: remove them for \
                 URLs, update and pubsub",
            );
        }
        if let Some(problem) = self.of_own_server() {
            return wrong(problem);
        }
        if self.thresholds.iter().any(|threshold| threshold.below.is_none() && threshold.above.is_none()) {
            return wrong("a threshold needs below or above");
        }
        let mut others = self.thresholds.iter().filter_map(|threshold| threshold.of.as_ref());
        if let Some(other) = others.find(|other| !self.stacks.contains(other)) {
            return wrong(&format!("threshold.of = {other:?} is not measured: add it to stacks"));
        }
        let has_messages = self.stacks.iter().any(|stack| broker(stack).is_some() || stack == BROKERLESS);
        if has_messages && !matches!(self.load.kind, Kind::Roundtrip | Kind::Fan) {
            return wrong("MQTT brokers and uadp-udp support only load.kind roundtrip and fan");
        }
        if self.link.is_some() && self.stacks.iter().any(|stack| stack == BROKERLESS) {
            return wrong("uadp-udp has no server, so it cannot use a link: remove link");
        }
        if self.load.clients.as_ref().is_some_and(|sweep| sweep.values().contains(&0)) {
            return wrong("load.clients must not be 0");
        }
        if self.load.rate.is_some() && self.load.pause_ms.is_some() {
            return wrong(
                "load.rate says when requests are sent, load.pause_ms how long clients rest between them: leave one out",
            );
        }
        if let Some(problem) = self.numbers() {
            return wrong(&problem);
        }
        if let Some(problem) = self.unused(has_messages) {
            return wrong(&problem);
        }
        let (policy, mode) = (self.security.policy.eq_ignore_ascii_case("none"), self.security.is_none());
        if policy != mode {
            return wrong("security.policy and security.mode must both be None, or neither");
        }
        Ok(())
    }

    /// Keys that only our own server supports.
    fn of_own_server(&self) -> Option<&'static str> {
        let server = &self.server;
        let is_own = self.stacks.iter().all(|stack| stack == "own");
        if !server.sets.is_empty() && server.signals > 0 {
            return Some("server.signals and server.sets both name the signals: leave one out");
        }
        let takes_sets = is_own && matches!(self.load.kind, Kind::Subscribe | Kind::Read);
        if !(server.sets.is_empty() || takes_sets) {
            return Some("server.sets needs stacks = [\"own\"] and a load that subscribes or reads");
        }
        let takes_adapters =
            matches!(self.load.kind, Kind::Read | Kind::Write | Kind::Browse | Kind::Subscribe | Kind::Probe);
        if server.adapters.is_some() && !(is_own && takes_adapters) {
            return Some(
                "server.adapters needs stacks = [\"own\"] and a load that reads, writes, browses, subscribes or probes",
            );
        }
        if server.adapters.is_some() && !server.sets.is_empty() {
            return Some(
                "server.adapters and server.sets both name the variables of the load: leave one out",
            );
        }
        (server.busy_poll_us > 0 && !is_own).then_some("server.busy_poll_us needs stacks = [\"own\"]")
    }

    /// The first key that has no effect for this kind of load. Otherwise results would differ in name only.
    fn unused(&self, has_messages: bool) -> Option<String> {
        let load = &self.load;
        let mut takes: Vec<&str> = match load.kind {
            Kind::Subscribe => vec![
                "clients",
                "items",
                "publishing_ms",
                "sampling_ms",
                "queue",
                "each_value",
                "publish_every",
                "publish_requests",
                "notifications_max",
                "keep_alive_count",
            ],
            Kind::Roundtrip => vec!["clients", "payload", "publishing_ms", "count"],
            Kind::Fan => vec!["clients", "publishing_ms", "count"],
            Kind::Read | Kind::Write | Kind::Browse => vec!["clients", "batch", "rate", "pause_ms", "count"],
            Kind::Probe => vec!["clients", "batch", "rate", "count"],
            Kind::Connect => vec!["clients", "rate", "count"],
            Kind::Update => vec!["items", "threads", "publishing_ms", "count"],
            Kind::PubSub => vec!["items", "publishing_ms"],
            Kind::Igmp => vec!["publishing_ms"],
        };
        if has_messages {
            // A fan of messages has a payload; a fan of variables does not.
            takes.push("payload");
        }
        let given = [
            ("clients", load.clients.is_some()),
            ("items", load.items.is_some()),
            ("batch", load.batch.is_some()),
            ("rate", load.rate.is_some()),
            ("publishing_ms", load.publishing_ms.is_some()),
            ("payload", load.payload.is_some()),
            ("threads", load.threads.is_some()),
            ("sampling_ms", load.sampling_ms.is_some()),
            ("queue", load.queue.is_some()),
            ("pause_ms", load.pause_ms.is_some()),
            ("count", load.count.is_some()),
            ("each_value", load.each_value),
            ("publish_every", load.publish_every.is_some()),
            ("publish_requests", load.publish_requests.is_some()),
            ("notifications_max", load.notifications_max.is_some()),
            ("keep_alive_count", load.keep_alive_count.is_some()),
        ];
        let (key, _) = given.into_iter().find(|(key, is_given)| *is_given && !takes.contains(key))?;
        Some(format!(
            "load.{key} has no effect for kind {:?}, which takes {}: remove it",
            load.kind.name(),
            takes.join(", ")
        ))
    }

    /// The first number that is out of range.
    fn numbers(&self) -> Option<String> {
        let (load, server) = (&self.load, &self.server);
        let lists = [
            ("clients", length(load.clients.as_ref())),
            ("items", length(load.items.as_ref())),
            ("batch", length(load.batch.as_ref())),
            ("rate", length(load.rate.as_ref())),
            ("publishing_ms", length(load.publishing_ms.as_ref())),
            ("payload", length(load.payload.as_ref())),
            ("threads", length(load.threads.as_ref())),
        ];
        if let Some((key, _)) = lists.iter().find(|(_, length)| *length == 0) {
            return Some(format!("load.{key} is an empty list: write a value, or remove it"));
        }
        let sweep = |of: Option<&Sweep<f64>>| of.map(Sweep::values).unwrap_or_default();
        let one = |of: Option<f64>| of.into_iter().collect::<Vec<f64>>();
        let ranges = [
            ("load.rate", sweep(load.rate.as_ref()), 1e-3, FASTEST),
            ("load.publishing_ms", sweep(load.publishing_ms.as_ref()), 0.0, DAY_MS),
            ("load.sampling_ms", one(load.sampling_ms), 0.0, DAY_MS),
            ("load.pause_ms", one(load.pause_ms), 0.0, DAY_MS),
            ("load.publish_every", one(load.publish_every), 0.01, 1.0),
            ("server.update_ms", vec![server.update_ms], 0.0, DAY_MS),
        ];
        for (key, values, least, most) in ranges {
            if let Some(value) = values.iter().find(|value| !(least..=most).contains(*value)) {
                return Some(format!("{key} = {value} must lie between {least} and {most}"));
            }
        }
        let counts = [
            ("count", load.count == Some(0)),
            ("publish_requests", load.publish_requests == Some(0)),
            ("notifications_max", load.notifications_max == Some(0)),
            ("keep_alive_count", load.keep_alive_count == Some(0)),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, is_zero)| *is_zero) {
            return Some(format!("load.{key} is 0: write at least 1, or leave it out"));
        }
        if load.publish_every.is_some() && load.publish_requests.is_some() {
            let problem = "load.publish_every sends Publish requests by a clock, load.publish_requests keeps a number \
                           of them pending: leave one out";
            return Some(problem.to_owned());
        }
        let figures = self.thresholds.iter().flat_map(|threshold| [threshold.below, threshold.above]);
        if let Some(value) = figures.flatten().find(|value| !value.is_finite()) {
            return Some(format!("a threshold of {value} has no effect: write a number"));
        }
        let loads = lists.iter().map(|(_, length)| *length as u64).fold(1, u64::saturating_mul);
        let all =
            loads.saturating_mul(self.stacks.len() as u64).saturating_mul(u64::from(self.time.repetitions));
        (all > MOST).then(|| {
            format!("{all} measurements exceed the limit of {MOST}: use fewer values or repetitions")
        })
    }
}

/// Number of values measured one by one; one if there is none.
fn length<T: Clone>(sweep: Option<&Sweep<T>>) -> usize {
    sweep.map_or(1, |sweep| sweep.values().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_are_refused_by_name() {
        let check = |text: &str| {
            let table = format!("name = \"x\"\nstacks = [\"own\"]\n[load]\nkind = \"read\"\n{text}");
            Scenario::parse(&table, "x.toml").map_err(|error| error.to_string())
        };
        assert!(check("rate = 10\ncount = 5\n[server]\nupdate_ms = 0").is_ok());
        assert!(check("batch = 30\n[server]\nadapters = \"2:15:10\"").is_ok());
        let of_peer = Scenario::parse(
            "name = \"x\"\nstacks = [\"milo\"]\nserver = { adapters = \"2:15:10\" }\nload = { kind = \"read\" }",
            "x.toml",
        );
        assert!(of_peer.unwrap_err().to_string().contains("server.adapters needs stacks = [\"own\"]"));
        for (text, key) in [
            ("rate = 0", "load.rate"),
            ("rate = [1, inf]", "load.rate"),
            ("rate = nan", "load.rate"),
            ("publishing_ms = -5000", "load.publishing_ms"),
            ("sampling_ms = inf", "load.sampling_ms"),
            ("pause_ms = -1", "load.pause_ms"),
            ("publish_every = 0.8", "load.publish_every has no effect"),
            ("each_value = true", "load.each_value has no effect"),
            ("[server]\nsignals = 5\nsets = [\"5:10:4\"]", "leave one out"),
            ("[server]\nsets = [\"5:10\"]", "COUNT:MS:BYTES"),
            ("[server]\nadapters = \"2:15\"", "COUNT:TAGS:MS"),
            ("[server]\nadapters = \"2:15:10\"\nsets = [\"5:10:4\"]", "leave one out"),
            ("rate = 10\npause_ms = 5", "leave one out"),
            ("count = 0", "load.count"),
            ("items = 100", "load.items has no effect for kind \"read\", which takes clients, batch, rate"),
            ("payload = 100", "load.payload"),
            ("clients = []", "load.clients"),
            ("batch = []", "load.batch"),
            ("[server]\nupdate_ms = inf", "server.update_ms"),
            ("[time]\nwarmup_s = inf", "time.warmup_s"),
            ("[time]\nduration_s = nan", "time.duration_s"),
            ("[time]\nrepetitions = 4294967295", "4294967295 measurements"),
            ("[[threshold]]\nmetric = \"m\"\nbelow = nan", "threshold"),
            ("[[threshold]]\nmetric = \"m\"\nbelow = 0.5\nof = \"open62541\"", "add it to stacks"),
        ] {
            let refused = check(text).map(drop).unwrap_err();
            assert!(refused.contains(key), "{text}: {refused}");
        }
    }
}

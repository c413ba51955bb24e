//! Validates scenarios before anything is measured.

use super::{BROKERLESS, Kind, Scenario, Sweep, broker, wrong_threshold};

const DAY_S: f64 = 86_400.0;
const DAY_MS: f64 = DAY_S * 1e3;
/// Rates above this, in requests per second, are mistakes.
const FASTEST: f64 = 1e8;
/// Maximum number of measurements per scenario.
const MOST: u64 = 100_000;

/// A mistake, and the key that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) key: String,
    /// With its correction.
    pub(super) problem: String,
}

fn wrong(key: &str, problem: impl Into<String>) -> Result<(), Wrong> {
    Err(Wrong { key: key.to_owned(), problem: problem.into() })
}

impl Scenario {
    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first mistake.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let time = &self.time;
        if self.name.trim().is_empty() {
            return wrong("name", "it is empty: write name = \"…\"");
        }
        if self.stacks.is_empty() {
            return wrong("stacks", "it is empty: write stacks = [\"own\"]");
        }
        if time.repetitions == 0 {
            return wrong("time.repetitions", "it is 0: write at least 1, better 5");
        }
        for (key, seconds, least) in
            [("duration_s", time.duration_s, f64::MIN_POSITIVE), ("warmup_s", time.warmup_s, 0.0)]
        {
            if !(least..=DAY_S).contains(&seconds) {
                return wrong(&format!("time.{key}"), format!("{seconds} must lie between 0 and 86 400"));
            }
        }
        if self.load.kind == Kind::Fan && self.load.clients.is_none() {
            return wrong("load.kind", "a fan needs load.clients of at least 2");
        }
        if let Some((key, problem)) = self.cpu.problem() {
            return wrong(&format!("cpu.{key}"), problem);
        }
        let is_ours = |stack: &String| !stack.contains("://");
        let starts_server = !matches!(self.load.kind, Kind::Update | Kind::PubSub);
        if let Some(key) = self.cpu.special()
            && !(starts_server && self.stacks.iter().all(is_ours))
        {
            return wrong(
                &format!("cpu.{key}"),
                "it needs a server that the laboratory starts: remove it for URLs, update and pubsub",
            );
        }
        self.of_own_server()?;
        self.limits()?;
        let has_messages = self.stacks.iter().any(|stack| broker(stack).is_some() || stack == BROKERLESS);
        if has_messages && !matches!(self.load.kind, Kind::Roundtrip | Kind::Fan) {
            return wrong("stacks", "MQTT brokers and uadp-udp support only load.kind roundtrip and fan");
        }
        if self.link.is_some() && self.stacks.iter().any(|stack| stack == BROKERLESS) {
            return wrong("link", "uadp-udp has no server, so it cannot use a link: remove link");
        }
        if self.load.clients.as_ref().is_some_and(|sweep| sweep.values().contains(&0)) {
            return wrong("load.clients", "it must not be 0");
        }
        if self.load.rate.is_some() && self.load.pause_ms.is_some() {
            return wrong(
                "load.pause_ms",
                "load.rate says when requests are sent, load.pause_ms how long clients rest between them: leave one out",
            );
        }
        self.numbers()?;
        self.unused(has_messages)?;
        let (policy, mode) = (self.security.policy.eq_ignore_ascii_case("none"), self.security.is_none());
        if policy != mode {
            return wrong("security", "security.policy and security.mode must both be None, or neither");
        }
        Ok(())
    }

    /// Thresholds that nothing can meet or break.
    fn limits(&self) -> Result<(), Wrong> {
        if let Some((key, problem)) = wrong_threshold(&self.thresholds) {
            return wrong(&key, problem);
        }
        let others = self.thresholds.iter().enumerate();
        let mut others = others.filter_map(|(at, threshold)| Some((at, threshold.of.as_ref()?)));
        match others.find(|(_, other)| !self.stacks.contains(other)) {
            Some((at, other)) => {
                wrong(&format!("threshold.{at}.of"), format!("{other:?} is not measured: add it to stacks"))
            }
            None => Ok(()),
        }
    }

    /// Keys that only our own server supports.
    fn of_own_server(&self) -> Result<(), Wrong> {
        let server = &self.server;
        let is_own = self.stacks.iter().all(|stack| stack == "own");
        if !server.sets.is_empty() && server.signals > 0 {
            return wrong(
                "server.sets",
                "server.signals and server.sets both name the signals: leave one out",
            );
        }
        let takes_sets = is_own && matches!(self.load.kind, Kind::Subscribe | Kind::Read);
        if !(server.sets.is_empty() || takes_sets) {
            return wrong("server.sets", "it needs stacks = [\"own\"] and a load that subscribes or reads");
        }
        let takes_adapters =
            matches!(self.load.kind, Kind::Read | Kind::Write | Kind::Browse | Kind::Subscribe | Kind::Probe);
        if server.adapters.is_some() && !(is_own && takes_adapters) {
            return wrong(
                "server.adapters",
                "it needs stacks = [\"own\"] and a load that reads, writes, browses, subscribes or probes",
            );
        }
        if server.adapters.is_some() && !server.sets.is_empty() {
            return wrong(
                "server.adapters",
                "server.adapters and server.sets both name the variables of the load: leave one out",
            );
        }
        if server.busy_poll_us > 0 && !is_own {
            return wrong("server.busy_poll_us", "it needs stacks = [\"own\"]");
        }
        Ok(())
    }

    /// The first key that has no effect for this kind of load. Otherwise results would differ in name only.
    fn unused(&self, has_messages: bool) -> Result<(), Wrong> {
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
        let Some((key, _)) = given.into_iter().find(|(key, is_given)| *is_given && !takes.contains(key))
        else {
            return Ok(());
        };
        let problem = format!(
            "it has no effect for kind {:?}, which takes {}: remove it",
            load.kind.name(),
            takes.join(", ")
        );
        wrong(&format!("load.{key}"), problem)
    }

    /// The first number that is out of range.
    fn numbers(&self) -> Result<(), Wrong> {
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
            return wrong(&format!("load.{key}"), "the list is empty: write a value, or remove it");
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
                return wrong(key, format!("{value} must lie between {least} and {most}"));
            }
        }
        let counts = [
            ("count", load.count == Some(0)),
            ("publish_requests", load.publish_requests == Some(0)),
            ("notifications_max", load.notifications_max == Some(0)),
            ("keep_alive_count", load.keep_alive_count == Some(0)),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, is_zero)| *is_zero) {
            return wrong(&format!("load.{key}"), "it is 0: write at least 1, or leave it out");
        }
        if load.publish_every.is_some() && load.publish_requests.is_some() {
            let problem = "load.publish_every sends Publish requests by a clock, load.publish_requests keeps a number \
                           of them pending: leave one out";
            return wrong("load.publish_requests", problem);
        }
        let loads = lists.iter().map(|(_, length)| *length as u64).fold(1, u64::saturating_mul);
        let all =
            loads.saturating_mul(self.stacks.len() as u64).saturating_mul(u64::from(self.time.repetitions));
        if all > MOST {
            let problem =
                format!("{all} measurements exceed the limit of {MOST}: use fewer values or repetitions");
            return wrong("load", problem);
        }
        Ok(())
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
        assert!(of_peer.unwrap_err().to_string().contains("server.adapters: it needs stacks = [\"own\"]"));
        for (text, key) in [
            ("rate = 0", "load.rate"),
            ("rate = [1, inf]", "load.rate"),
            ("rate = nan", "load.rate"),
            ("publishing_ms = -5000", "load.publishing_ms"),
            ("sampling_ms = inf", "load.sampling_ms"),
            ("pause_ms = -1", "load.pause_ms"),
            ("publish_every = 0.8", "load.publish_every: it has no effect"),
            ("each_value = true", "load.each_value: it has no effect"),
            ("[server]\nsignals = 5\nsets = [\"5:10:4\"]", "leave one out"),
            ("[server]\nsets = [\"5:10\"]", "COUNT:MS:BYTES"),
            ("[server]\nadapters = \"2:15\"", "COUNT:TAGS:MS"),
            ("[server]\nadapters = \"2:15:10\"\nsets = [\"5:10:4\"]", "leave one out"),
            ("rate = 10\npause_ms = 5", "leave one out"),
            ("count = 0", "load.count"),
            (
                "items = 100",
                "load.items: it has no effect for kind \"read\", which takes clients, batch, rate",
            ),
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
            assert!(refused.starts_with("x.toml:"), "without file and line: {refused}");
        }
    }

    #[test]
    fn limits_that_no_figure_meets_are_refused() {
        let check = |text: &str| {
            let metric = "metric = \"server.cpu_percent\"";
            let text = text.replace("T\n", &format!("[[threshold]]\n{metric}\n"));
            let table =
                format!("name = \"x\"\nstacks = [\"own\", \"open62541\"]\n[load]\nkind = \"read\"\n{text}");
            Scenario::parse(&table, "x.toml").map(drop).map_err(|error| error.to_string())
        };
        let expected = "no server.cpu_percent is below 5 and above 7: change or remove one of both";
        assert_eq!(
            check("T\nbelow = 5\nabove = 7\n"),
            Err(format!("x.toml:6: threshold.0.metric: {expected}"))
        );
        for other in ["T\nbelow = 5\nT\nabove = 7\n", "T\nabove = 7\nT\nbelow = 5\n"] {
            assert_eq!(check(other), Err(format!("x.toml:9: threshold.1.metric: {expected}")));
        }
        assert!(check("T\nbelow = 7\nabove = 7\n").is_err(), "the limits themselves do not count");
        assert_eq!(check("T\nbelow = 7\nabove = 5\nT\nbelow = 6\n"), Ok(()));
        // A limit relative to another stack says nothing about the figure itself.
        assert_eq!(check("T\nbelow = 0.5\nof = \"open62541\"\nT\nabove = 7\n"), Ok(()));
    }
}

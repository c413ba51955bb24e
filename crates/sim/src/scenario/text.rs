//! Writes a scenario in the file format (docs/simulator.md).

use super::fault::{Fault, Role};
use super::{Clients, Lines, Load, Login, Operation, Pace, Scenario, Server};
use super::{authority, pubsub};
use core::fmt::Write as _;
use core::time::Duration;
use taktwerk_model::HostProfile;

/// The whole scenario. A link is named as in the command that requested it; a host with costs is named by its profile,
/// because the profile is a file of its own.
#[must_use]
pub fn to_toml(scenario: &Scenario, name: &str) -> String {
    let mut out = Text(String::new());
    out.string("name", name);
    out.section("[time]");
    out.number("warmup_s", scenario.warmup.as_secs_f64());
    out.number("duration_s", scenario.measured.as_secs_f64());
    out.number("settle_s", scenario.settle.as_secs_f64());
    for host in &scenario.hosts {
        out.section("[[host]]");
        out.string("name", &host.name);
        let cores = host.profile.machine.cores;
        let is_free = host.profile == HostProfile::free(cores);
        out.string("profile", if is_free { "free" } else { &host.profile.name });
        out.number("cores", cores);
        for load in &host.competitors {
            out.section("[[host.load]]");
            out.number("share", load.share);
            out.ms("burst_ms", load.burst);
        }
    }
    for link in &scenario.links {
        out.section("[[link]]");
        out.string("name", &link.name);
        out.string("profile", &link.profile.name);
        if link.is_half_duplex {
            out.line("shared = true");
        }
        match link.lines {
            Lines::One => {}
            Lines::PerServer => out.string("lines", "per-server"),
            Lines::PerClient => out.string("lines", "per-client"),
        }
    }
    authority::write(&mut out, scenario);
    for server in &scenario.servers {
        out.server(server, scenario);
    }
    for clients in &scenario.clients {
        out.clients(clients, scenario);
    }
    pubsub::write(&mut out, scenario);
    out.faults(scenario);
    out.0
}

/// Only the faults.
#[must_use]
pub fn faults_to_toml(scenario: &Scenario) -> String {
    let mut out = Text(String::new());
    out.faults(scenario);
    out.0.trim_start().to_owned()
}

/// The text of a file while it is being written.
pub(super) struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    pub(super) fn section(&mut self, name: &str) {
        self.line("");
        self.line(name);
    }

    pub(super) fn number(&mut self, key: &str, value: impl core::fmt::Display) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.0, "{key} = {value}");
    }

    /// Names have no line breaks; other characters that a basic string cannot contain are escaped.
    pub(super) fn string(&mut self, key: &str, value: &str) {
        let _ = write!(self.0, "{key} = ");
        self.quoted(value);
        self.line("");
    }

    pub(super) fn strings<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        let _ = write!(self.0, "{key} = [");
        for (at, value) in values.enumerate() {
            self.0.push_str(if at > 0 { ", " } else { "" });
            self.quoted(value);
        }
        self.line("]");
    }

    fn quoted(&mut self, value: &str) {
        self.0.push('"');
        for character in value.chars() {
            match character {
                '"' | '\\' => {
                    self.0.push('\\');
                    self.0.push(character);
                }
                character if character.is_control() => {
                    let _ = write!(self.0, "\\u{:04x}", character as u32);
                }
                character => self.0.push(character),
            }
        }
        self.0.push('"');
    }

    pub(super) fn ms(&mut self, key: &str, span: Duration) {
        self.number(key, span.as_secs_f64() * 1e3);
    }

    pub(super) fn name_of<T>(&mut self, key: &str, all: &[T], at: Option<usize>, name: impl Fn(&T) -> &str) {
        if let Some(one) = at.and_then(|at| all.get(at)) {
            self.string(key, name(one));
        }
    }

    fn server(&mut self, server: &Server, scenario: &Scenario) {
        self.section("[[server]]");
        self.string("name", &server.name);
        self.number("count", server.count);
        self.name_of("host", &scenario.hosts, server.host, |host| &host.name);
        self.number("threads", server.shards);
        if !server.event_period.is_zero() {
            self.ms("event_period_ms", server.event_period);
        }
        if server.history > 0 {
            self.number("history", server.history);
        }
        self.authorities(&server.authorities, scenario);
        for signals in &server.signals {
            self.section("[[server.signals]]");
            self.number("count", signals.count);
            self.ms("period_ms", signals.period);
            self.number("bytes", signals.value_len);
        }
    }

    fn clients(&mut self, clients: &Clients, scenario: &Scenario) {
        self.section("[[client]]");
        self.string("name", &clients.name);
        self.number("count", clients.count);
        self.name_of("server", &scenario.servers, Some(clients.server), |server| &server.name);
        self.name_of("link", &scenario.links, clients.link, |link| &link.name);
        self.name_of("host", &scenario.hosts, clients.host, |host| &host.name);
        self.number("threads", clients.threads);
        if let Some(items) = clients.items {
            // A file that says more than there are is refused.
            let variables = scenario.servers.get(clients.server).map_or(0, Server::variables);
            self.number("items", variables.min(items.into()));
        }
        match &clients.load {
            Load::Subscribe(it) => {
                self.ms("publishing_ms", it.publishing_interval);
                self.ms("sampling_ms", it.sampling_interval);
                if let Some(queue) = it.queue_size {
                    self.number("queue", queue);
                }
                self.number("notifications_max", it.notifications_max);
                self.number("keep_alive_count", it.keep_alive_count);
                if let Some(count) = it.lifetime_count {
                    self.number("lifetime_count", count);
                }
                if let Some(count) = it.publish_requests {
                    self.number("publish_requests", count);
                }
                if let Some(percent) = it.publish_every {
                    self.number("publish_every", f64::from(percent) / 100.0);
                }
                if let Some(size) = it.event_queue {
                    self.number("event_queue", size);
                }
                if it.is_durable {
                    self.line("durable = true");
                }
            }
            Load::Request(it) => {
                let kind = match it.operation {
                    Operation::Read => "read",
                    Operation::Write => "write",
                    Operation::ReadHistory(_) => "history",
                };
                self.string("kind", kind);
                if let Operation::ReadHistory(values) = it.operation {
                    self.number("values", values);
                }
                self.number("batch", it.batch);
                match it.pace {
                    Pace::Every(period) => self.ms("every_ms", period),
                    Pace::Pause(pause) => self.ms("pause_ms", pause),
                }
            }
        }
        self.string("policy", clients.security.0.name());
        self.string("mode", &format!("{:?}", clients.security.1));
        if clients.login == Login::Password {
            self.string("login", "password");
        }
        self.number("session_timeout_s", clients.session_timeout.as_secs_f64());
        self.authorities(&clients.authorities, scenario);
    }

    fn authorities(&mut self, chain: &[usize], scenario: &Scenario) {
        if !chain.is_empty() {
            let names = chain.iter().filter_map(|at| scenario.authorities.get(*at));
            self.strings("authorities", names.map(|authority| authority.name.as_str()));
        }
    }

    fn faults(&mut self, scenario: &Scenario) {
        for Fault { at, lasts, kind } in &scenario.faults {
            self.section("[[fault]]");
            self.string("at", &span(*at));
            self.string("kind", kind.name());
            let which = kind.which();
            let parts = &scenario.pubsub;
            if let Some(role) = kind.role() {
                let (key, group) = (role.name(), Some(which.group));
                match role {
                    Role::Broker => self.name_of(key, &parts.brokers, group, |one| &one.name),
                    Role::Publisher => self.name_of(key, &parts.publishers, group, |one| &one.name),
                    Role::Subscriber => self.name_of(key, &parts.subscribers, group, |one| &one.name),
                    Role::Authority => self.name_of(key, &scenario.authorities, group, |one| &one.name),
                }
            } else if kind.is_of_server() {
                self.name_of("server", &scenario.servers, Some(which.group), |server| &server.name);
            } else {
                self.name_of("client", &scenario.clients, Some(which.group), |clients| &clients.name);
            }
            if let Some(number) = which.number {
                self.number("number", u64::from(number) + 1);
            }
            if kind.lasts() {
                self.string("for", &span(*lasts));
            }
            if let Some(nanos) = kind.offset() {
                self.string("offset", &format!("{}s", nanos as f64 / 1e9));
            }
            if let Some(slowdown) = kind.slowdown() {
                self.string("by", &span(slowdown));
            }
        }
    }
}

fn span(span: Duration) -> String {
    format!("{}ms", span.as_secs_f64() * 1e3)
}

//! Writes configurations with the settings: for a server, OPC Publisher, Telegraf, and other clients.

use super::problem::Problem;
use super::search::Tuned;
use super::settings::{Security, Settings};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its content.
    pub text: String,
}

/// A monitored item.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// NodeId, such as `ns=2;s=Boiler`.
    pub node: String,
    /// Sampling interval in milliseconds; 0 reports every change.
    pub sampling_ms: f64,
    /// Queue size that loses no values.
    pub queue_size: u32,
}

/// The queue size of an item by its period: its share of the largest queue.
fn queue(settings: &Settings, largest: u32, shortest_ms: f64, period_ms: f64) -> u32 {
    if settings.queue_size > 0 {
        return settings.queue_size;
    }
    let share = shortest_ms / period_ms.max(settings.sampling_ms).max(shortest_ms);
    ((f64::from(largest) * share).ceil() as u32).max(2)
}

/// The items of the plant with the recommended settings.
#[must_use]
pub fn items(problem: &Problem, tuned: &Tuned) -> Vec<Item> {
    let settings = &tuned.recommended.settings;
    let spacing = |period_ms: f64| period_ms.max(settings.sampling_ms);
    let shortest = problem.signals.iter().map(|one| spacing(one.period_ms)).fold(f64::MAX, f64::min);
    let mut all = Vec::new();
    for (group, (signals, nodes)) in problem.signals.iter().zip(&problem.nodes).enumerate() {
        let queue_size = queue(settings, tuned.queue_size.max(1), shortest, signals.period_ms);
        for number in 0..signals.count as usize {
            let node = nodes.get(number).cloned();
            let node = node.unwrap_or_else(|| format!("ns=2;s=Set{}.Signal{}", group + 1, number + 1));
            all.push(Item { node, sampling_ms: settings.sampling_ms, queue_size });
        }
    }
    all
}

/// All files. `endpoint` is the server's URL.
#[must_use]
pub fn files(problem: &Problem, tuned: &Tuned, endpoint: &str) -> Vec<File> {
    let items = items(problem, tuned);
    let settings = &tuned.recommended.settings;
    vec![
        File { name: "server.toml", text: server(problem, settings) },
        File { name: "client.toml", text: client(settings, &items, endpoint) },
        File { name: "publishednodes.json", text: publisher(settings, &items, endpoint) },
        File { name: "telegraf.conf", text: telegraf(settings, &items, endpoint) },
    ]
}

/// The sections of a `taktwerk serve` configuration that these settings determine.
fn server(problem: &Problem, settings: &Settings) -> String {
    let mut text =
        String::from("# The sections of a server configuration that `taktwerk tune` determines.\n");
    let busy = if settings.busy_poll_us > 0 {
        format!(" --busy-poll {}us", settings.busy_poll_us)
    } else {
        String::new()
    };
    text.push_str("# Add a user: taktwerk user add NAME --role Operator\n");
    let _ = writeln!(text, "# Start: taktwerk serve --config server.toml{busy}\n");
    let _ = writeln!(text, "[server]\nthreads = {}\n", settings.threads);
    let (mode, policy) = settings.security.names();
    if settings.security == Security::None {
        let _ = writeln!(text, "[security]\nnone = true\n");
    } else {
        let _ = writeln!(text, "[security]\npolicies = [\"{policy}\"]\nmodes = [\"{mode}\"]\n");
    }
    // Tuning does not determine access. The generated file must not allow anonymous access by default.
    text.push_str("[identities]\nusers_file = \"users.toml\"\n");
    if settings.security == Security::None {
        text.push_str("# Passwords are encrypted only with a SecurityPolicy. To let clients in without a user:\n# anonymous = true\n");
    }
    text.push('\n');
    let least = settings.publishing_ms.min(10.0);
    let _ = writeln!(text, "[limits]\nsessions = {}", problem.clients.saturating_mul(2).max(10));
    let _ = writeln!(text, "publishing_interval_min = {least:?}");
    text
}

/// The settings for any client, as plain keys.
fn client(settings: &Settings, items: &[Item], endpoint: &str) -> String {
    let (mode, policy) = settings.security.names();
    let mut text = format!(
        "# Client settings, with the names of OPC 10000-4. With this client: taktwerk watch {endpoint} NODE -I {}\n\n",
        settings.publishing_ms
    );
    let _ = writeln!(text, "[connection]\nendpoint = {}", quoted(endpoint));
    let _ = writeln!(text, "security_policy = \"{policy}\"\nsecurity_mode = \"{mode}\"\n");
    let _ = writeln!(text, "[subscription]\nrequested_publishing_interval_ms = {:?}", settings.publishing_ms);
    let _ = writeln!(text, "requested_max_keep_alive_count = {}", settings.keep_alive_count);
    let _ = writeln!(text, "requested_lifetime_count = {}", settings.keep_alive_count.saturating_mul(10));
    let _ = writeln!(text, "max_notifications_per_publish = {}", settings.notifications_max);
    if settings.publish_requests > 0 {
        let _ = writeln!(text, "publish_requests = {}", settings.publish_requests);
    }
    for item in items {
        let _ = writeln!(text, "\n[[item]]\nnode_id = {}", quoted(&item.node));
        let _ =
            writeln!(text, "sampling_interval_ms = {:?}\nqueue_size = {}", item.sampling_ms, item.queue_size);
    }
    text
}

/// A JSON string, which is also valid in TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// `publishednodes.json` of OPC Publisher, which supports only whole milliseconds.
fn publisher(settings: &Settings, items: &[Item], endpoint: &str) -> String {
    let (mode, policy) = settings.security.names();
    let interval = settings.publishing_ms.round().max(1.0) as u64;
    let mut text = format!("[\n  {{\n    \"EndpointUrl\": {},\n", quoted(endpoint));
    let _ = writeln!(text, "    \"UseSecurity\": {},", settings.security.is_secured());
    if settings.security.is_secured() {
        let _ = writeln!(text, "    \"EndpointSecurityMode\": \"{mode}\",");
        let _ = writeln!(text, "    \"EndpointSecurityPolicy\": \"{policy}\",");
    }
    text.push_str("    \"OpcNodes\": [\n");
    for (at, item) in items.iter().enumerate() {
        let comma = if at + 1 < items.len() { "," } else { "" };
        let _ = writeln!(
            text,
            "      {{ \"Id\": {}, \"OpcPublishingInterval\": {interval}, \"OpcSamplingInterval\": {}, \"QueueSize\": {}, \
             \"DiscardNew\": false }}{comma}",
            quoted(&item.node),
            item.sampling_ms.round() as u64,
            item.queue_size
        );
    }
    text.push_str("    ]\n  }\n]\n");
    text
}

/// The parts of a NodeId for Telegraf: key and value of the namespace, type, identifier.
fn parts(node: &str) -> (&'static str, String, &str, &str) {
    let part = |prefix: &str| node.strip_prefix(prefix).and_then(|rest| rest.split_once(';'));
    let (key, namespace, rest) = match (part("nsu="), part("ns=")) {
        // Part 6 §5.1.12 escapes these two characters.
        (Some((uri, rest)), _) => ("namespace_uri", uri.replace("%3B", ";").replace("%25", "%"), rest),
        (None, Some((index, rest))) => ("namespace", index.to_owned(), rest),
        (None, None) => ("namespace", "0".to_owned(), node),
    };
    let (kind, identifier) = rest.split_once('=').unwrap_or(("s", rest));
    (key, namespace, kind, identifier)
}

/// `inputs.opcua_listener` of Telegraf, which subscribes. `inputs.opcua` polls at a fixed interval and has no queues.
fn telegraf(settings: &Settings, items: &[Item], endpoint: &str) -> String {
    let (mode, policy) = settings.security.names();
    let duration = |ms: f64| format!("{}us", (ms * 1e3).round() as u64);
    let mut text =
        format!("[[inputs.opcua_listener]]\n  name = \"opcua\"\n  endpoint = {}\n", quoted(endpoint));
    let _ = writeln!(text, "  security_policy = \"{policy}\"\n  security_mode = \"{mode}\"");
    if settings.security == Security::None {
        text.push_str("  certificate = \"\"\n  private_key = \"\"\n");
    }
    text.push_str("  auth_method = \"Anonymous\"\n  timestamp = \"source\"\n");
    let _ = writeln!(text, "  subscription_interval = \"{}\"", duration(settings.publishing_ms));
    // Telegraf refuses two nodes with the same name.
    let mut names = BTreeSet::new();
    for item in items {
        let (key, namespace, kind, identifier) = parts(&item.node);
        let name = if names.insert(identifier) { identifier } else { item.node.as_str() };
        let _ = writeln!(text, "\n  [[inputs.opcua_listener.nodes]]\n    name = {}", quoted(name));
        let _ = writeln!(text, "    {key} = {}\n    identifier_type = \"{kind}\"", quoted(&namespace));
        let _ = writeln!(text, "    identifier = {}", quoted(identifier));
        let _ = writeln!(text, "    [inputs.opcua_listener.nodes.monitoring_params]");
        let _ = writeln!(text, "      sampling_interval = \"{}\"", duration(item.sampling_ms));
        let _ = writeln!(text, "      queue_size = {}\n      discard_oldest = true", item.queue_size);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::analytic::Analytic;
    use super::super::problem::tests::problem;
    use super::super::search::tune;
    use super::*;

    fn all(sets: &[&str]) -> (Tuned, Vec<File>) {
        let problem = problem(sets);
        let formulas = Analytic::new(&problem, None);
        let tuned = tune(&problem, &formulas, &formulas, &mut |_| true).unwrap();
        let files = files(&problem, &tuned, "opc.tcp://plc7:4840");
        (tuned, files)
    }

    fn file<'a>(files: &'a [File], name: &str) -> &'a str {
        &files.iter().find(|file| file.name == name).unwrap().text
    }

    #[test]
    fn files_are_read_back_and_have_the_settings() {
        let (tuned, files) = all(&[]);
        let ms = tuned.recommended.settings.publishing_ms;
        for name in ["server.toml", "client.toml", "telegraf.conf"] {
            assert!(toml::from_str::<toml::Table>(file(&files, name)).is_ok(), "{}", file(&files, name));
        }
        let client: toml::Table = toml::from_str(file(&files, "client.toml")).unwrap();
        assert_eq!(client["subscription"]["requested_publishing_interval_ms"].as_float(), Some(ms));
        let items = client["item"].as_array().unwrap();
        assert_eq!(items.len(), 15);
        // Values that change a third as often need a third of the queue.
        let queue = |at: usize| items[at]["queue_size"].as_integer().unwrap();
        assert_eq!(
            (queue(0), queue(14)),
            (i64::from(tuned.queue_size), (i64::from(tuned.queue_size) + 2) / 3)
        );
        let telegraf: toml::Table = toml::from_str(file(&files, "telegraf.conf")).unwrap();
        let listener = &telegraf["inputs"]["opcua_listener"][0];
        assert_eq!(listener["subscription_interval"].as_str(), Some(&*format!("{}us", (ms * 1e3).round())));
        assert_eq!(listener["nodes"][0]["identifier"].as_str(), Some("Set1.Signal1"));
        // YAML accepts JSON, TOML nearly so: at least braces and quotes must match.
        let json = file(&files, "publishednodes.json");
        assert_eq!(json.matches('{').count(), 16);
        assert!(json.contains("\"UseSecurity\": false") && json.contains("\"Id\": \"ns=2;s=Set3.Signal5\""));
    }

    #[test]
    fn security_threads_and_nodes_are_written() {
        let (_, files) = all(&[
            "tune.search.security=\"sign-and-encrypt\"",
            "tune.search.threads=2",
            "tune.search.busy_poll_us=50",
            "signals.0.nodes=[\"ns=3;i=7\", \"nsu=urn:x;s=a\\\"b\", \"ns=4;i=7\"]",
        ]);
        let server = file(&files, "server.toml");
        assert!(server.contains("threads = 2") && server.contains("--busy-poll 50us"), "{server}");
        assert!(server.contains("modes = [\"SignAndEncrypt\"]") && !server.contains("none"), "{server}");
        let telegraf = file(&files, "telegraf.conf");
        assert!(telegraf.contains("namespace = \"3\"\n    identifier_type = \"i\""), "{telegraf}");
        assert!(telegraf.contains("name = \"7\"") && telegraf.contains("name = \"ns=4;i=7\""), "{telegraf}");
        // Telegraf takes one of both, and no prefix.
        assert!(telegraf.contains("namespace_uri = \"urn:x\"\n    identifier_type = \"s\""), "{telegraf}");
        assert!(!telegraf.contains("nsu"), "{telegraf}");
        assert!(file(&files, "publishednodes.json").contains("\"EndpointSecurityMode\": \"SignAndEncrypt\""));
        assert!(file(&files, "client.toml").contains("nsu=urn:x;s=a\\\"b"));
    }
}

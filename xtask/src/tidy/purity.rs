//! Forbidden APIs of the core: time, randomness, bytes and settings must be passed in.

use super::Finding;
use super::source::{Code, line_of};

/// A path, and why the core must not use it.
const FORBIDDEN: [(&str, &str); 13] = [
    ("std::time::Instant", "the core is given the time (taktwerk_types::Instant)"),
    ("std::time::SystemTime", "the core is given the time (taktwerk_types::UtcTime)"),
    ("std::env", "the core is configured by its caller"),
    ("std::thread", "the core has no threads"),
    ("std::net", "the core does no input or output"),
    ("std::fs", "the core does no input or output"),
    ("std::process", "the core does no input or output"),
    ("std::io::stdin", "the core does no input or output"),
    ("std::io::stdout", "the core does no input or output"),
    ("std::os", "the core runs on every target"),
    (
        "std::collections::HashMap",
        "its order differs from run to run; use a BTreeMap or hashbrown without iteration",
    ),
    (
        "std::collections::HashSet",
        "its order differs from run to run; use a BTreeSet or hashbrown without iteration",
    ),
    ("std::hash::RandomState", "randomness is given to the core"),
];

/// Methods of a hash map that iterate in hash order.
const UNORDERED: [&str; 8] =
    ["iter", "iter_mut", "keys", "values", "values_mut", "drain", "into_iter", "into_values"];

/// The comment that allows an iteration; the reason follows it.
const ORDER_ALLOWED: &str = "tidy: any order";

/// Checks a file of the core.
pub(super) fn check(path: &str, code: &Code) -> Vec<Finding> {
    let text = &code.program;
    let mut findings = Vec::new();
    let mut uses: Vec<(usize, String)> = imports(text);
    uses.extend(inline_paths(text));
    for (offset, used) in uses {
        for (forbidden, reason) in FORBIDDEN {
            if used == forbidden || used.strip_prefix(forbidden).is_some_and(|rest| rest.starts_with("::")) {
                findings.push(Finding::new(path, line_of(text, offset), format!("{used}: {reason}")));
            }
        }
    }
    findings.extend(unordered_visits(path, code));
    findings.sort();
    findings.dedup();
    findings
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// All paths that a `use` imports, with groups expanded: `use std::{env, fs::File}` imports two.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for (at, _) in text.match_indices("use ") {
        if text.get(..at).is_some_and(|before| before.ends_with(is_word)) {
            continue;
        }
        let rest = text.get(at + 4..).unwrap_or("");
        let tree = rest.split(';').next().unwrap_or("");
        expand("", tree, at, &mut paths);
    }
    paths
}

fn expand(prefix: &str, tree: &str, at: usize, paths: &mut Vec<(usize, String)>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
        let prefix = format!("{prefix}{}", compact(head));
        split_group(group).into_iter().for_each(|part| expand(&prefix, part, at, paths));
    } else if !tree.is_empty() {
        let name = tree.split(" as ").next().unwrap_or(tree);
        let path = format!("{prefix}{}", compact(name));
        let path = path.strip_suffix("::self").unwrap_or(&path).trim_start_matches("::");
        paths.push((at, path.to_owned()));
    }
}

fn compact(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

fn split_group(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(group.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(group.get(start..));
    parts
}

/// Paths that start with `std::` anywhere.
fn inline_paths(text: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for (at, _) in text.match_indices("std::") {
        if text.get(..at).is_some_and(|before| before.ends_with(is_word)) {
            continue;
        }
        let path = text.get(at..).unwrap_or("");
        let end = path.find(|character: char| !is_word(character) && character != ':').unwrap_or(path.len());
        paths.push((at, path.get(..end).unwrap_or(path).trim_end_matches(':').to_owned()));
    }
    paths
}

/// Iterations over hash maps: variables and fields declared as one, and a call that iterates.
fn unordered_visits(path: &str, code: &Code) -> Vec<Finding> {
    let text = &code.program;
    let mut findings = Vec::new();
    for name in hashed_names(text) {
        for (at, _) in text.match_indices(&name) {
            let before = text.get(..at).unwrap_or("");
            let after = text.get(at + name.len()..).unwrap_or("");
            if before.ends_with(is_word) || after.starts_with(is_word) {
                continue;
            }
            let call = after.trim_start().strip_prefix('.').map(str::trim_start).unwrap_or("");
            let called = UNORDERED.iter().any(|call_name| {
                call.strip_prefix(call_name)
                    .is_some_and(|rest| rest.starts_with("()") || rest.starts_with("(.."))
            });
            let owner = before.trim_end_matches(|character: char| is_word(character) || character == '.');
            let owner = owner.trim_end_matches("mut ").trim_end_matches('&').trim_end();
            let looped = owner.ends_with(" in") && after.trim_start().starts_with('{');
            let line = line_of(text, at);
            if (called || looped) && !code.is_marked(line, ORDER_ALLOWED) {
                let message = format!(
                    "`{name}` is visited in the order of its hashes, which differs from run to run; collect and sort, \
                     or say `// {ORDER_ALLOWED}, because …`"
                );
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// The names declared as `name: HashMap<…>` or `let name = HashMap::new()`, in any crate's spelling.
fn hashed_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for kind in ["HashMap", "HashSet"] {
        for (at, _) in text.match_indices(kind) {
            let before = text
                .get(..at)
                .unwrap_or("")
                .trim_end_matches(|character: char| is_word(character) || character == ':');
            // `trim_end_matches` removes the declaration's colon with the path if there is no space between them.
            let declared = text.get(before.len()..at).unwrap_or("");
            let before = before.trim_end();
            let head = before
                .strip_suffix(':')
                .or_else(|| before.strip_suffix('='))
                .or_else(|| before.strip_suffix(": &mut").or_else(|| before.strip_suffix(": &")));
            let head = head.or_else(|| declared.starts_with(':').then_some(before));
            let name: String = head
                .map(|head| head.trim_end())
                .map(|head| {
                    head.rsplit(|character: char| !is_word(character)).next().unwrap_or("").to_owned()
                })
                .unwrap_or_default();
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check("a.rs", &Code::new(text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn clocks_sockets_threads_files_and_environment_are_found() {
        for bad in [
            "use std::time::Instant;",
            "use std::time::{Duration, SystemTime};",
            "use std::{env, fmt};",
            "fn f() { std::thread::spawn(g); }",
            "use std::net::TcpStream;",
            "let x = std::fs::read(p);",
            "use std::{\n    collections::{BTreeMap,\n    HashMap as Map},\n};",
            "use std::process::{self, Command};",
            "use ::std::os::fd::AsFd;",
        ] {
            assert!(!lines(bad).is_empty(), "{bad}");
        }
        assert_eq!(lines("\n\nlet x = std::env::var(k);"), [3]);
    }

    #[test]
    fn pure_code_is_accepted() {
        for good in [
            "use std::time::Duration;",
            "use taktwerk_types::Instant;",
            "use std::collections::BTreeMap;",
            "// std::fs\nconst A: &str = \"std::env\";",
            "#[cfg(test)]\nmod tests { use std::fs; }",
            "use mystd::fs;",
            "use std::io::Write;",
        ] {
            assert_eq!(lines(good), Vec::<usize>::new(), "{good}");
        }
    }

    #[test]
    fn visits_of_hash_maps_are_found() {
        let declared = "struct S { map: hashbrown::HashMap<u32, u32> }\n";
        for bad in [
            "for x in self.map.iter() {}",
            "let a = s.map.keys().max();",
            "for (k, v) in &self.map {}",
            "s.map.drain();",
        ] {
            assert_eq!(lines(&format!("{declared}{bad}")), [2], "{bad}");
        }
        assert_eq!(lines("let mut seen = HashSet::new();\nseen.iter().next();"), [2]);
        for good in [
            "self.map.get(&1);",
            "self.map.retain(|_, _| true);",
            "self.other_map.iter();",
            "// tidy: any order, because it is a sum\nself.map.values().sum()",
        ] {
            assert_eq!(lines(&format!("{declared}{good}")), Vec::<usize>::new(), "{good}");
        }
    }
}

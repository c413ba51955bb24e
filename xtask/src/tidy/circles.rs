//! Detects circular dependencies between the modules of a crate.
//!
//! A module here is a file or directory directly in `src`. `a` uses `b` if the code of `a`, except tests, names
//! `crate::b`. Modules in a circle cannot be understood, tested or moved separately.

use super::{Finding, read, relative, source::Code};
use crate::Failure;
use crate::codegen::files_below;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The modules that each module uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks one crate.
pub(super) fn check(root: &Path, directory: &Path) -> Result<Vec<Finding>, Failure> {
    let path = format!("{}/src", relative(root, directory));
    let finding = |circle: Vec<String>| {
        let list = circle.join(" ↔ ");
        let what = format!("modules use each other in a circle: {list}; move what they share a layer down");
        Finding::new(&path, 0, what)
    };
    Ok(tied(&graph(directory)?).into_iter().map(finding).collect())
}

fn graph(directory: &Path) -> Result<Graph, Failure> {
    let source = directory.join("src");
    let mut texts: Vec<(String, String)> = Vec::new();
    for file in files_below(&source)? {
        let path = relative(&source, &file);
        if !path.ends_with(".rs") || path.ends_with("tests.rs") || path.contains("tests/") {
            continue;
        }
        let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        texts.push((module, read(&file)?));
    }
    let modules: BTreeSet<String> = texts.iter().map(|(module, _)| module.clone()).collect();
    let mut graph = Graph::new();
    for (module, text) in &texts {
        if module == "lib" || module == "main" {
            continue;
        }
        let uses = graph.entry(module.clone()).or_default();
        let code = Code::new(text);
        uses.extend(used(&code.program).into_iter().filter(|used| used != module && modules.contains(used)));
    }
    Ok(graph)
}

/// The names after `crate::`, also in braces.
fn used(code: &str) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        // `taktwerk_lab_crate::` is not a reference to this crate.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + found.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut is_start = true;
        for (at, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_start = true,
                c if c.is_whitespace() => {}
                _ if is_start && depth == 0 => {
                    names.insert(word(&list[at..]));
                    is_start = false;
                }
                _ => {}
            }
        }
    }
    names
}

/// The sets of modules in a circle, each sorted.
fn tied(graph: &Graph) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = vec![from];
        while let Some(next) = open.pop() {
            for to in graph.get(next).into_iter().flatten() {
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|name| (name.as_str(), reach(name))).collect();
    let mut sets: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, all) in &reached {
        if all.contains(name) {
            let both = all.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(name)));
            sets.insert(both.map(|other| (*other).to_owned()).collect());
        }
    }
    sets.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&str, &[&str])]) -> Graph {
        arrows
            .iter()
            .map(|(from, to)| ((*from).to_owned(), to.iter().map(|to| (*to).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn circles_are_found_and_trees_are_not() {
        assert!(tied(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
        let two = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &["e"]), ("e", &["d"])]);
        assert_eq!(tied(&two), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }

    #[test]
    fn names_behind_crate_are_found() {
        let code = "use crate::alpha::Beta; use crate::{gamma::{self, Delta}, epsilon}; fn f() { crate::zeta::g() } my_crate::eta";
        let expected: BTreeSet<String> = ["alpha", "epsilon", "gamma", "zeta"].map(str::to_owned).into();
        assert_eq!(used(code), expected);
    }
}

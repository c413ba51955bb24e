//! Detects calculated tags that depend on each other in a cycle. Such tags would never have a value: each is bad as long as its
//! input is bad.

use super::{GatewayConfig, TagConfig};
use crate::fields::Mistake;
use std::collections::HashMap;

/// Most cycles that are reported: highly connected tags can have more cycles than there are tags.
const CIRCLES_MAX: usize = 10;
/// Most tags named per cycle.
const NAMES_MAX: usize = 5;

/// A calculated tag and its inputs.
struct Node<'a> {
    tag: &'a TagConfig,
    name: String,
    /// The indexes of its inputs that are calculated tags.
    needs: Vec<usize>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// At this position of the current path.
    OnPath(usize),
    Done,
}

/// The cycles, each with the line of one of its tags.
#[must_use]
pub(super) fn mistakes(config: &GatewayConfig) -> Vec<Mistake> {
    let mut nodes = nodes(config);
    let mut mistakes = Vec::new();
    // An explicit stack instead of recursion: a chain of tags can be longer than the call stack allows. Each entry is a tag and
    // the number of its inputs that have been followed.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for first in 0..nodes.len() {
        enter(first, &mut nodes, &mut path);
        while let Some((at, followed)) = path.last_mut() {
            let at = *at;
            let next = nodes.get(at).and_then(|node| node.needs.get(*followed)).copied();
            *followed += 1;
            let Some(next) = next else {
                path.pop();
                if let Some(node) = nodes.get_mut(at) {
                    node.state = State::Done;
                }
                continue;
            };
            match nodes.get(next).map(|node| node.state) {
                Some(State::New) => enter(next, &mut nodes, &mut path),
                Some(State::OnPath(place)) => {
                    let circle = path.get(place..).unwrap_or_default();
                    mistakes.extend(mistake(circle, &nodes));
                    if mistakes.len() == CIRCLES_MAX {
                        return mistakes;
                    }
                }
                _ => {}
            }
        }
    }
    mistakes
}

fn enter(at: usize, nodes: &mut [Node<'_>], path: &mut Vec<(usize, usize)>) {
    if let Some(node) = nodes.get_mut(at).filter(|node| node.state == State::New) {
        node.state = State::OnPath(path.len());
        path.push((at, 0));
    }
}

/// The calculated tags.
fn nodes(config: &GatewayConfig) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    let mut inputs = Vec::new();
    for source in &config.sources {
        for (position, tag) in source.tags.iter().enumerate() {
            let needed = source.adapter.inputs(position);
            if !needed.is_empty() {
                nodes.push(Node { tag, name: tag.tag.full_name(), needs: Vec::new(), state: State::New });
                inputs.push(needed);
            }
        }
    }
    let places: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
    let needs: Vec<Vec<usize>> = inputs
        .into_iter()
        .map(|needed| needed.iter().filter_map(|name| places.get(name.as_str()).copied()).collect())
        .collect();
    for (node, needs) in nodes.iter_mut().zip(needs) {
        node.needs = needs;
    }
    nodes
}

fn mistake(circle: &[(usize, usize)], nodes: &[Node<'_>]) -> Option<Mistake> {
    let tags = || circle.iter().filter_map(|(at, _)| nodes.get(*at));
    let first = tags().next()?;
    let mut names: Vec<&str> = tags().take(NAMES_MAX).map(|node| node.name.as_str()).collect();
    names.push(if circle.len() > NAMES_MAX { "…" } else { &first.name });
    let (problem, hint) = match circle.len() {
        1 => (format!("the tag depends on itself: {{{}}}", first.name), "use only other tags"),
        count => (
            format!("{count} tags depend on each other in a cycle: {}", names.join(" → ")),
            "remove one of these references",
        ),
    };
    let (path, line) = (first.tag.path.clone(), first.tag.line);
    Some(Mistake { path, line, key: "expression".to_owned(), problem, hint: hint.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn told(tags: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
        let mut text =
            "[[source]]\nname = \"s\"\ntype = \"simulation\"\n[[tag]]\nsource = \"s\"\nname = \"x\"\n\
                        [[source]]\nname = \"c\"\ntype = \"calculation\"\n"
                .to_owned();
        for (name, expression) in tags {
            text += &format!("[[tag]]\nsource = \"c\"\nname = \"{name}\"\nexpression = \"{expression}\"\n");
        }
        let (_, mistakes) = GatewayConfig::examine(Path::new("g.toml"), &text);
        mistakes.iter().map(ToString::to_string).collect()
    }

    fn few(tags: &[(&str, &str)]) -> Vec<String> {
        told(tags.iter().map(|(name, expression)| ((*name).to_owned(), (*expression).to_owned())))
    }

    #[test]
    fn tags_that_depend_on_each_other_are_rejected() {
        assert_eq!(
            few(&[("a", "{c/b} + 1"), ("b", "{c/a} + {s/x}"), ("me", "{c/me} + 1"), ("d", "{c/a}")]),
            [
                "g.toml:10: expression: 2 tags depend on each other in a cycle: c/a → c/b → c/a; \
                 remove one of these references",
                "g.toml:18: expression: the tag depends on itself: {c/me}; use only other tags",
            ]
        );
        // Two paths to the same tag are not a cycle, in any order.
        let diamond = [("a", "{c/b} + {c/d}"), ("b", "{c/e}"), ("d", "{c/e}"), ("e", "{s/x}")];
        assert_eq!(few(&diamond), Vec::<String>::new());
    }

    #[test]
    fn a_long_ring_is_found_without_overflowing_the_stack() {
        let count = 20_000;
        let ring = (0..count).map(|at| (format!("t{at}"), format!("{{c/t{}}}", (at + 1) % count)));
        assert_eq!(
            told(ring),
            [
                "g.toml:10: expression: 20000 tags depend on each other in a cycle: c/t0 → c/t1 → c/t2 → c/t3 → c/t4 → …; \
              remove one of these references"
            ]
        );
    }

    #[test]
    fn many_cycles_are_reported_up_to_a_limit() {
        let all = (0..40).map(|at| format!("{{c/t{at}}}")).collect::<Vec<_>>().join("+");
        let found = told((0..40).map(|at| (format!("t{at}"), all.clone())));
        assert_eq!(found.len(), CIRCLES_MAX);
    }
}

//! Tags calculated from other tags: `{Line 1/Oven/Temperature} * 1.8 + 32`.

use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::fmt::Write;
use core::time::Duration;
use exmex::{Express, FlatExVal, Val};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::Arc;
use taktwerk_types::{BuiltInType, DataValue, StatusCode, Variant};
use tokio::time::{MissedTickBehavior, interval};

/// Longest expression in bytes.
const LEN_MAX: usize = 4000;
/// Deepest nesting. The library recurses on the stack.
const DEPTH_MAX: usize = 50;

/// Most expressions that differ in more than their tags; each takes about 25 kB.
const EXPRESSIONS_MAX: usize = 10_000;

/// Expressions by their text with numbered tags: tags of a template differ only in their paths.
type Known = HashMap<String, Arc<FlatExVal<i32, f64>>>;

/// A source of calculated tags.
#[derive(Debug, Default)]
pub struct Calculation {
    formulas: Vec<Formula>,
    known: Known,
}

/// An expression whose variables are tags.
#[derive(Debug)]
pub struct Formula {
    expression: Arc<FlatExVal<i32, f64>>,
    /// The paths of the tags, in the order of the expression's variables.
    inputs: Vec<String>,
}

/// The text with `{0000}`, `{0001}` … in place of the paths in braces, and the paths.
fn numbered(text: &str) -> (String, Vec<&str>) {
    let (mut result, mut paths, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
    while let Some((before, path, after)) = rest
        .split_once('{')
        .and_then(|(before, behind)| behind.split_once('}').map(|(path, after)| (before, path, after)))
    {
        let number = paths.iter().position(|known| *known == path).unwrap_or_else(|| {
            paths.push(path);
            paths.len() - 1
        });
        result.push_str(before);
        // Writing to a String cannot fail. The library sorts variables by name, so the numbers need a fixed width.
        let _ = write!(result, "{{{number:04}}}");
        rest = after;
    }
    result.push_str(rest);
    (result, paths)
}

impl Formula {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_known(text, &mut Known::new())
    }

    fn parse_known(text: &str, known: &mut Known) -> Result<Self, String> {
        let depth = text.chars().scan(0usize, |depth, char| {
            match char {
                '(' | '[' => *depth += 1,
                ')' | ']' => *depth = depth.saturating_sub(1),
                _ => {}
            }
            Some(*depth)
        });
        if text.len() > LEN_MAX || depth.max().unwrap_or(0) > DEPTH_MAX {
            return Err("it is too long or too deep".to_owned());
        }
        // The library accepts a name in braces without closing brace.
        if text.matches('{').count() != text.matches('}').count() {
            return Err("a brace has no other end".to_owned());
        }
        let (text, paths) = numbered(text);
        let expression = match known.get(&text) {
            Some(expression) => Arc::clone(expression),
            None if known.len() >= EXPRESSIONS_MAX => {
                return Err(format!("there are {EXPRESSIONS_MAX} different ones already"));
            }
            None => {
                let expression = FlatExVal::<i32, f64>::parse(&text).map_err(|error| error.to_string())?;
                let expression = Arc::new(expression);
                known.insert(text, Arc::clone(&expression));
                expression
            }
        };
        let path = |name: &String| {
            // Variable names are numbers in braces, because the library would read a bare number as a literal.
            let name = name.trim_matches(['{', '}']);
            let number = name.parse::<usize>().ok();
            number.and_then(|number| paths.get(number).copied()).unwrap_or(name).to_owned()
        };
        let inputs = expression.var_names().iter().map(path).collect();
        Ok(Self { expression, inputs })
    }

    /// Evaluates the expression. The status is that of the worst input.
    pub fn evaluate(&self, input: impl Fn(&str) -> Option<DataValue>) -> Reading {
        let mut values = Vec::with_capacity(self.inputs.len());
        let mut worst = StatusCode::GOOD;
        for name in &self.inputs {
            let Some(data) = input(name) else { return Reading::bad(StatusCode::BAD_CONFIGURATION_ERROR) };
            let status = data.status();
            if status.is_bad() {
                return Reading::bad(status);
            }
            if status.is_uncertain() {
                worst = StatusCode::UNCERTAIN_SUB_NORMAL;
            }
            match &data.value {
                Some(Variant::Boolean(flag)) => values.push(Val::Bool(*flag)),
                Some(value) => match value.as_f64() {
                    Some(number) => values.push(Val::Float(number)),
                    None => return Reading::bad(StatusCode::BAD_TYPE_MISMATCH),
                },
                None => return Reading::bad(StatusCode::BAD_NO_DATA),
            }
        }
        let number = match self.expression.eval(&values) {
            Ok(Val::Bool(flag)) => Some(f64::from(u8::from(flag))),
            Ok(value) => value.to_float().ok(),
            Err(_) => None,
        };
        match number.filter(|number| number.is_finite()) {
            Some(number) => Reading { status: worst, ..Reading::good(number) },
            // Division by zero, or logarithm of zero.
            None => Reading::bad(StatusCode::BAD_OUT_OF_RANGE),
        }
    }
}

impl Calculation {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// None of its own.
    pub fn take(_: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        Ok(Self::default())
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let mut ticks = interval(feed.settings().interval.unwrap_or(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        feed.connected();
        loop {
            tokio::select! {
                // Tags of this source cannot be written.
                _ = writes.next() => feed.statistics().add(Count::WriteErrors, 1),
                _ = ticks.tick() => {
                    feed.statistics().add(Count::Requests, 1);
                    let readings = self.formulas.iter().map(|formula| formula.evaluate(|path| feed.plant().value(path)));
                    feed.deliver(readings.enumerate());
                }
            }
        }
    }
}

impl Adapter for Calculation {
    fn describe(&self) -> String {
        "calculated tags".to_owned()
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        let (line, text) = fields.required("expression", "\"{Line 1/Oven/Temperature} * 1.8 + 32\"")?;
        let formula = Formula::parse_known(&text, &mut self.known).map_err(|reason| {
            let hint = "write tags as {path/name}, and + - * / ^ ( ) < > == && ||, `a if x > 0 else b`, sqrt, abs, sin …";
            fields.mistake_in(line, "expression", format!("this is no expression: {reason}"), hint)
        })?;
        if tag.access == Access::ReadWrite {
            return Err(fields.mistake("a calculated tag cannot be written", "use access = \"read\""));
        }
        self.formulas.push(formula);
        let element = tag.kind.filter(|_| tag.scaling.is_identity()).unwrap_or(BuiltInType::Double);
        Ok(Placement::Variable(Kind::scalar(element)))
    }

    fn inputs(&self, position: usize) -> &[String] {
        self.formulas.get(position).map_or(&[], |formula| &formula.inputs)
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(text: &str, a: DataValue) -> Reading {
        Formula::parse(text).unwrap().evaluate(|name| (name == "L 1/a").then(|| a.clone()))
    }

    #[test]
    fn expressions_follow_their_inputs_in_value_and_quality() {
        let good = || DataValue::new(20.0);
        assert_eq!(evaluate("{L 1/a} * 1.8 + 32", good()), Reading::good(68.0));
        assert_eq!(evaluate("1.0 if {L 1/a} > 10 else 2.0", good()), Reading::good(1.0));
        assert_eq!(evaluate("{L 1/a} > 30", good()), Reading::good(0.0));
        assert_eq!(evaluate("sqrt(-{L 1/a})", good()), Reading::bad(StatusCode::BAD_OUT_OF_RANGE));
        assert_eq!(evaluate("1 / ({L 1/a} - 20)", good()), Reading::bad(StatusCode::BAD_OUT_OF_RANGE));
        assert_eq!(evaluate("{other} + 1", good()), Reading::bad(StatusCode::BAD_CONFIGURATION_ERROR));
        let bad = DataValue::from_status(StatusCode::BAD_NO_COMMUNICATION);
        assert_eq!(evaluate("{L 1/a}", bad), Reading::bad(StatusCode::BAD_NO_COMMUNICATION));
        let stale = DataValue { status: Some(StatusCode::UNCERTAIN_LAST_USABLE_VALUE), ..good() };
        assert_eq!(evaluate("{L 1/a} * 2", stale).status, StatusCode::UNCERTAIN_SUB_NORMAL);
        assert_eq!(evaluate("{L 1/a}", DataValue::new("text")), Reading::bad(StatusCode::BAD_TYPE_MISMATCH));
    }

    /// Fifteen variables, so that indexes have one and two digits.
    #[test]
    fn variables_keep_their_values_whatever_their_order() {
        let terms: Vec<String> =
            (0..15).rev().map(|at| format!("{{Line {at}/a}} * {}", 1u64 << at)).collect();
        let formula = Formula::parse(&terms.join(" + ")).unwrap();
        assert_eq!(formula.inputs.len(), 15);
        let of = |name: &str| name.strip_prefix("Line ")?.strip_suffix("/a")?.parse::<f64>().ok();
        let wanted: f64 = (0..15u32).map(|at| f64::from(at) * f64::from(1u32 << at)).sum();
        assert_eq!(formula.evaluate(|name| of(name).map(DataValue::new)), Reading::good(wanted));
        let twice = Formula::parse("{a} - {b} + {a}").unwrap();
        assert_eq!(twice.inputs, ["a", "b"]);
    }

    #[test]
    fn expressions_that_differ_only_in_their_tags_are_shared() {
        let mut known = Known::new();
        for at in 0..1_000 {
            let formula = Formula::parse_known(&format!("{{Line {at}/a}} * 1.8 + 32"), &mut known).unwrap();
            assert_eq!(formula.inputs, [format!("Line {at}/a")]);
        }
        assert_eq!(known.len(), 1);
        for at in 1..EXPRESSIONS_MAX {
            let expression = known.values().next().map(Arc::clone).unwrap();
            known.insert(at.to_string(), expression);
        }
        assert!(Formula::parse_known("{a} * 1.8 + 32", &mut known).is_ok());
        let error = Formula::parse_known("{a} * 1.8 + 33", &mut known).unwrap_err();
        assert!(error.contains("10000 different ones"), "{error}");
    }

    #[test]
    fn invalid_expressions_are_rejected_without_stack_overflow() {
        for wrong in ["", "1 +", "(1", "{a", "a b"] {
            assert!(Formula::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Formula::parse(&"(".repeat(100_000)).is_err());
        assert!(Formula::parse(&format!("{}1{}", "(".repeat(2000), ")".repeat(1990))).is_err());
        assert!(
            Formula::parse(&format!("{}1", "-".repeat(3999))).is_ok_and(|formula| formula.inputs.is_empty())
        );
    }
}

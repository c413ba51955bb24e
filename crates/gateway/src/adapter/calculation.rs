//! Tags that are calculated from others: `{Line 1/Oven/Temperature} * 1.8 + 32`.

use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::time::Duration;
use exmex::{Express, FlatExVal, Val};
use futures_util::future::BoxFuture;
use taktwerk_types::{BuiltInType, DataValue, StatusCode, Variant};
use tokio::time::{MissedTickBehavior, interval};

/// Longest expression.
const LEN_MAX: usize = 4000;
/// Deepest nesting, which the library follows on the stack.
const DEPTH_MAX: usize = 50;

/// A source of calculated tags.
#[derive(Debug, Default)]
pub struct Calculation {
    formulas: Vec<Formula>,
}

/// An expression with tags as its variables.
#[derive(Debug)]
pub struct Formula {
    expression: FlatExVal<i32, f64>,
    /// The paths of the tags, in the order of the expression's variables.
    inputs: Vec<String>,
}

impl Formula {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
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
        // The library takes a name in braces without an end for a name.
        if text.matches('{').count() != text.matches('}').count() {
            return Err("a brace has no other end".to_owned());
        }
        let expression = FlatExVal::<i32, f64>::parse(text).map_err(|error| error.to_string())?;
        let inputs: Vec<String> =
            expression.var_names().iter().map(|name| name.trim_matches(['{', '}']).to_owned()).collect();
        Ok(Self { expression, inputs })
    }

    /// The value of the expression, as uncertain as the worst of its inputs.
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
            // Division by zero, a logarithm of nothing.
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
                // No tag of this source can be written.
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
        let formula = Formula::parse(&text).map_err(|reason| {
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

    #[test]
    fn what_is_no_expression_is_refused_without_overflowing_the_stack() {
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

//! Metrics in Prometheus' text format.
//!
//! Names begin with `taktwerk_` and end with their unit; counters end with `_total`. Labels have few values that are
//! known in advance. Clients, nodes and users do not create series.

use prometheus_client::collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

/// A provider of metrics. It is called for each scrape.
pub trait Collector: fmt::Debug + Send + Sync {
    /// Adds the metrics.
    ///
    /// # Errors
    /// Those of writing the text.
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result;
}

/// A writer of metrics.
#[derive(Debug)]
pub struct Exposition<'a>(Out<'a>);

#[derive(Debug)]
enum Out<'a> {
    Text(DescriptorEncoder<'a>),
    Families(&'a mut Vec<Family>),
}

/// A label and its value.
pub type Label = (&'static str, String);

/// A metric with its series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    /// Without `_total`.
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) is_counter: bool,
    pub(crate) points: Vec<(Option<Label>, f64)>,
}

impl Exposition<'_> {
    /// Adds a gauge. The name must end with the unit.
    ///
    /// # Errors
    /// Those of writing the text.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.series(name, help, [(None, value)], false, ConstGauge::new)
    }

    /// Adds a counter. `_total` is appended to the name.
    ///
    /// # Errors
    /// Those of writing the text.
    pub fn counter(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.series(name, help, [(None, value)], true, ConstCounter::new)
    }

    /// Adds a gauge for each value of a label.
    ///
    /// # Errors
    /// Those of writing the text.
    pub fn gauges(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Label, f64)>,
    ) -> fmt::Result {
        let values = values.into_iter().map(|(label, value)| (Some(label), value));
        self.series(name, help, values, false, ConstGauge::new)
    }

    /// Adds a counter for each value of a label.
    ///
    /// # Errors
    /// Those of writing the text.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Label, f64)>,
    ) -> fmt::Result {
        let values = values.into_iter().map(|(label, value)| (Some(label), value));
        self.series(name, help, values, true, ConstCounter::new)
    }

    fn series<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Option<Label>, f64)>,
        is_counter: bool,
        metric: impl Fn(f64) -> M,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        let Some((_, first)) = values.peek() else { return Ok(()) };
        let out = match &mut self.0 {
            Out::Text(out) => out,
            Out::Families(families) => {
                let (name, help) = (name.to_owned(), help.to_owned());
                families.push(Family { name, help, is_counter, points: values.collect() });
                return Ok(());
            }
        };
        let mut encoder = out.encode_descriptor(name, help, None, metric(*first).metric_type())?;
        for (label, value) in values {
            let metric = metric(value);
            match label {
                Some((name, value)) => metric.encode(encoder.encode_family(&[(name, escaped(&value))])?)?,
                None => return metric.encode(encoder),
            }
        }
        Ok(())
    }
}

/// Escapes the value of a label, because the library does not.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Adapts a collector to the registry.
#[derive(Debug)]
struct Adapter(Arc<dyn Collector>);

impl collector::Collector for Adapter {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.collect(&mut Exposition(Out::Text(encoder)))
    }
}

/// All metrics as text.
pub(crate) fn exposition(
    collectors: impl IntoIterator<Item = Arc<dyn Collector>>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    for collector in collectors {
        registry.register_collector(Box::new(Adapter(collector)));
    }
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// All metrics in a neutral form, for other formats.
pub(crate) fn families(
    collectors: impl IntoIterator<Item = Arc<dyn Collector>>,
) -> Result<Vec<Family>, fmt::Error> {
    let mut families = Vec::new();
    for collector in collectors {
        collector.collect(&mut Exposition(Out::Families(&mut families)))?;
    }
    Ok(families)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Example;

    impl Collector for Example {
        fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
            out.gauge("taktwerk_example_bytes", "An example", 1.5)?;
            let values = ["a", "\"b\"\n"].map(|value| (("kind", value.to_owned()), 2.0));
            out.counters("taktwerk_examples", "Examples", values)?;
            out.gauges("taktwerk_none", "No series, so nothing is written", [])
        }
    }

    #[test]
    fn metrics_are_written_in_the_format_of_prometheus() {
        let text = exposition([Arc::new(Example) as Arc<dyn Collector>]).unwrap();
        assert_eq!(
            text,
            "# HELP taktwerk_example_bytes An example\n# TYPE taktwerk_example_bytes gauge\n\
             taktwerk_example_bytes 1.5\n# HELP taktwerk_examples Examples\n# TYPE taktwerk_examples counter\n\
             taktwerk_examples_total{kind=\"a\"} 2.0\n\
             taktwerk_examples_total{kind=\"\\\"b\\\"\\n\"} 2.0\n# EOF\n"
        );
    }
}

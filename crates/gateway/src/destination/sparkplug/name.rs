//! Maps tags to metrics of devices: the first levels of a path are the device, the rest is the name of the metric.

use std::collections::HashSet;
use std::sync::Arc;

/// The device and name of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricName {
    /// The device; `None` if it is a metric of the node itself.
    pub device: Option<Arc<str>>,
    /// Its name there.
    pub metric: String,
}

/// The names in use.
#[derive(Debug)]
pub struct Names {
    /// Number of path levels that form a device.
    levels: usize,
    taken: HashSet<(Option<Arc<str>>, String)>,
}

impl Names {
    /// No names in use.
    #[must_use]
    pub fn new(levels: usize) -> Self {
        Self { levels, taken: HashSet::new() }
    }

    /// The name of a tag.
    ///
    /// # Errors
    /// Another tag has the name, or Sparkplug reserves it.
    pub fn take(&mut self, tag: &str) -> Result<MetricName, String> {
        let parts: Vec<&str> = tag.split('/').collect();
        // The last part always belongs to the name.
        let (device, metric) = parts.split_at(self.levels.min(parts.len() - 1));
        let device = (!device.is_empty()).then(|| Arc::from(device.join(":").replace(['+', '#', '\0'], "_")));
        let metric = metric.join("/");
        let is_reserved =
            metric == "bdSeq" || metric.starts_with("Node Control/") || metric.starts_with("Device Control/");
        if is_reserved {
            return Err(format!("{tag}: Sparkplug reserves the metric {metric:?}"));
        }
        if !self.taken.insert((device.clone(), metric.clone())) {
            return Err(format!("{tag}: another tag is the metric {metric:?} of this device"));
        }
        Ok(MetricName { device, metric })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(levels: usize, tag: &str) -> (Option<String>, String) {
        let MetricName { device, metric } = Names::new(levels).take(tag).unwrap();
        (device.map(|device| device.to_string()), metric)
    }

    #[test]
    fn levels_are_devices_and_the_rest_are_metrics() {
        let of = |device: &str, metric: &str| (Some(device.to_owned()), metric.to_owned());
        assert_eq!(take(1, "Line 1/Oven/T"), of("Line 1", "Oven/T"));
        assert_eq!(take(2, "Line #1/Oven/T"), of("Line _1:Oven", "T"));
        assert_eq!(take(9, "Line 1/Oven/T"), of("Line 1:Oven", "T"));
        assert_eq!(take(0, "Line 1/T"), (None, "Line 1/T".to_owned()));
        assert_eq!(take(1, "T"), (None, "T".to_owned()));
        let mut names = Names::new(1);
        names.take("L+/T").unwrap();
        assert!(names.take("L#/T").unwrap_err().starts_with("L#/T: another tag is the metric \"T\""));
        assert!(names.take("L/Device Control/x").is_err() && names.take("bdSeq").is_err());
    }
}

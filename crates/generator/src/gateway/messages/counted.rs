//! Reads the number of values that the gateway has stored from its metrics.

use crate::error::GeneratorError;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The metric.
const SERIES: &str = "taktwerk_source_values_total{";
/// Timeout for the gateway's answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The address of the metrics.
#[derive(Debug)]
pub(super) struct Counted(SocketAddr);

impl Counted {
    /// Metrics at an address.
    pub(super) fn new(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Values stored in tags since the gateway started.
    pub(super) fn values(&self) -> Result<u64, GeneratorError> {
        let text = self.ask().map_err(|error| {
            GeneratorError::Environment(format!("the gateway's metrics at {}: {error}", self.0))
        })?;
        values_of(&text)
            .ok_or_else(|| GeneratorError::Environment(format!("the gateway's metrics have no {SERIES}…}}")))
    }

    fn ask(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.0, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /metrics HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n\r\n", self.0)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The counter in the text of the metrics.
fn values_of(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(SERIES))?;
    let number: f64 = line.rsplit(' ').next()?.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a counter
    Some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::values_of;

    #[test]
    fn the_counter_is_found_among_all_metrics() {
        let text = "# TYPE taktwerk_source_values counter\ntaktwerk_source_requests_total{source=\"b\"} 7\n\
                    taktwerk_source_values_total{source=\"b\"} 1200300\n";
        assert_eq!(values_of(text), Some(1_200_300));
        assert_eq!(values_of("taktwerk_source_requests_total{source=\"b\"} 7\n"), None);
    }
}

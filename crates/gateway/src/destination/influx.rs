//! InfluxDB line protocol over HTTP. Other time series databases support it, too.
//!
//! A point is identified by tag and time, so a value that is sent again replaces itself.

use super::block::Record;
use super::settings::DestinationSettings;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::http::{Endpoint, Sender};
use crate::value::to_json;
use core::fmt::Write;
use core::time::Duration;
use futures_util::future::BoxFuture;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};
use taktwerk_types::{BuiltInType, Variant};

/// Bytes of an answer that are read.
const ANSWER_MAX: usize = 64 << 10;

/// A database that receives lines.
pub struct InfluxSink {
    endpoint: Endpoint,
    measurement: String,
    deadline: Duration,
    sender: Option<Sender>,
}

/// Why lines were not stored.
enum Failed {
    /// The database rejects a line.
    Data(String),
    Other(Fault),
}

impl InfluxSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let mut endpoint = Endpoint::take(fields, "\"http://influx:8086\"", "Token")?;
        let (org, bucket, database) = (fields.text("org")?, fields.text("bucket")?, fields.text("database")?);
        let path = match (&bucket, &database) {
            (Some(bucket), None) => {
                let org = org.as_ref().map_or_else(String::new, |org| format!("org={}&", percent(org)));
                format!("/api/v2/write?{org}bucket={}&precision=ns", percent(bucket))
            }
            (None, Some(database)) if org.is_none() => {
                format!("/write?db={}&precision=ns", percent(database))
            }
            (None, None) if org.is_none() && endpoint.path() != "/" => endpoint.path().to_owned(),
            _ => {
                let hint = "set org and bucket for InfluxDB 2 and 3, database for InfluxDB 1, or a url with the whole path";
                return Err(fields.mistake("it is not clear where values go", hint));
            }
        };
        if (bucket.is_some() || database.is_some()) && endpoint.path() != "/" {
            let hint = "leave out the path, or bucket and database";
            return Err(fields.mistake("the url has a path, and there is a bucket or database", hint));
        }
        endpoint.set_path(path);
        let measurement = fields.text("measurement")?.unwrap_or_else(|| "tag_values".to_owned());
        Ok(Self {
            endpoint,
            measurement: escaped(&measurement, &[',', ' ']),
            deadline: settings.deadline,
            sender: None,
        })
    }

    async fn post(&self, sender: &mut Sender, lines: String) -> Result<(), Failed> {
        let kind = (CONTENT_TYPE, "text/plain; charset=utf-8");
        let asked = self.endpoint.ask(sender, Method::POST, kind, Bytes::from(lines), ANSWER_MAX).await;
        let (status, body) = asked.map_err(Failed::Other)?;
        if status.is_success() {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&body);
        let json: Option<serde_json::Value> = serde_json::from_str(&body).ok();
        let text = |key: &str| json.as_ref().and_then(|json| json.get(key)).and_then(|text| text.as_str());
        let said = text("message").or_else(|| text("error")).unwrap_or(&body);
        let said: String = said.chars().filter(|char| !char.is_control()).take(200).collect();
        let told = format!("the server answers {status}: {said}");
        Err(match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Failed::Data(told)
            }
            _ => Failed::Other(self.endpoint.failed(&told)),
        })
    }

    async fn send_all(&mut self, batch: &Batch) -> Result<Taken, Fault> {
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.endpoint.open(self.deadline).await?,
        };
        let mut taken = Taken::default();
        // If a line is rejected, the part is halved until only that line is omitted.
        let mut parts: Vec<&[Record]> = vec![&batch.records];
        while let Some(part) = parts.pop() {
            let lines = part.iter().map(|record| line(&self.measurement, record)).collect();
            match self.post(&mut sender, lines).await {
                Ok(()) => {}
                Err(Failed::Data(_)) if part.len() > 1 => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right, left]);
                }
                Err(Failed::Data(reason)) => {
                    taken.refused += part.len();
                    taken.reason = Some(reason);
                }
                Err(Failed::Other(fault)) => return Err(fault),
            }
        }
        self.sender = Some(sender);
        Ok(taken)
    }
}

fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Escapes some characters of a name with a backslash. Line breaks and a trailing backslash are not allowed in names.
fn escaped(text: &str, special: &[char]) -> String {
    let mut out = String::new();
    for char in text.chars() {
        if special.contains(&char) {
            out.push('\\');
        }
        out.push(if char.is_control() { '_' } else { char });
    }
    if text.ends_with('\\') {
        out.pop();
        out.push('_');
    }
    if out.is_empty() { "_".to_owned() } else { out }
}

/// The line of a record: numbers and Booleans in the field `value`, everything else in `text`.
fn line(measurement: &str, record: &Record) -> String {
    let mut line =
        format!("{measurement},tag={} status={}i", escaped(&record.tag, &[',', '=', ' ']), record.status.0);
    let value = &record.value;
    let is_number = |kind: BuiltInType| (BuiltInType::SByte..=BuiltInType::Double).contains(&kind);
    let number = match value {
        Variant::Boolean(flag) => Some(f64::from(u8::from(*flag))),
        other if other.as_array().is_none() && other.built_in_type().is_some_and(is_number) => other.as_f64(),
        _ => None,
    };
    let text = match (value, number) {
        // The format supports neither infinity nor NaN.
        (_, Some(number)) if number.is_finite() => None,
        (_, Some(number)) => Some(number.to_string()),
        (Variant::Empty, None) => None,
        (Variant::String(text), None) => Some(text.as_str().to_owned()),
        (other, None) => Some(to_json(other).to_string()),
    };
    // Writing to a string cannot fail.
    let _ = match (text, number) {
        (Some(text), _) => {
            write!(line, ",text=\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        (None, Some(number)) => write!(line, ",value={number}"),
        (None, None) => Ok(()),
    };
    let _ = writeln!(line, " {}", record.time.unix_nanos());
    line
}

impl Sink for InfluxSink {
    fn describe(&self) -> String {
        format!("InfluxDB line protocol to {}", self.endpoint.describe())
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk_types::UtcTime;

    fn sink(text: &str) -> Result<InfluxSink, String> {
        let text = format!("[[destination]]\n{text}\n");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        let settings = DestinationSettings::take(&mut fields, "d".to_owned()).unwrap();
        InfluxSink::take(&mut fields, &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_depend_on_the_version() {
        let path = |text: &str| sink(text).unwrap().endpoint.path().to_owned();
        let v2 = "url = \"http://h:8086\"\norg = \"my org\"\nbucket = \"b&c\"";
        assert_eq!(path(v2), "/api/v2/write?org=my%20org&bucket=b%26c&precision=ns");
        assert_eq!(path("url = \"http://h/\"\ndatabase = \"d\""), "/write?db=d&precision=ns");
        assert_eq!(path("url = \"http://h/influx/write?x=y\""), "/influx/write?x=y");
        for text in ["url = \"http://h\"", "url = \"http://h\"\nbucket = \"b\"\ndatabase = \"d\""] {
            assert!(sink(text).err().unwrap().contains("it is not clear where values go"));
        }
        let error = sink("url = \"http://h/write\"\nbucket = \"b\"").err().unwrap();
        assert!(error.contains("leave out the path"), "{error}");
    }

    #[test]
    fn lines_are_escaped() {
        let time = UtcTime::parse("2026-01-02T03:04:05.5Z").unwrap();
        let line = |tag: &str, value: Variant| {
            let status = taktwerk_types::StatusCode::GOOD;
            line("m", &Record { number: 1, tag: tag.into(), value, status, time, received: time })
        };
        assert_eq!(
            line("L 1/a,b=c", 1.5.into()),
            "m,tag=L\\ 1/a\\,b\\=c status=0i,value=1.5 1767323045500000000\n"
        );
        assert_eq!(line("a\\", true.into()), "m,tag=a_ status=0i,value=1 1767323045500000000\n");
        assert_eq!(
            line("a\nb", "x\"\\".into()),
            "m,tag=a_b status=0i,text=\"x\\\"\\\\\" 1767323045500000000\n"
        );
        assert_eq!(line("a", f64::NAN.into()), "m,tag=a status=0i,text=\"NaN\" 1767323045500000000\n");
        assert_eq!(line("a", vec![1, 2].into()), "m,tag=a status=0i,text=\"[1,2]\" 1767323045500000000\n");
        assert_eq!(line("a", Variant::Empty), "m,tag=a status=0i 1767323045500000000\n");
    }
}

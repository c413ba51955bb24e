//! Simulated signals for tests, demonstrations, and trying clients without devices.

use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake};
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::Kind;
use core::f64::consts::TAU;
use core::time::Duration;
use futures_util::future::BoxFuture;
use taktwerk_types::{BuiltInType, StatusCode};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The waveform of a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Sine,
    Ramp,
    Square,
    Walk,
    Noise,
    Step,
    Constant,
}

const FORMS: [(&str, Form); 7] = [
    ("sine", Form::Sine),
    ("ramp", Form::Ramp),
    ("square", Form::Square),
    ("walk", Form::Walk),
    ("noise", Form::Noise),
    ("step", Form::Step),
    ("constant", Form::Constant),
];

/// A signal, with its simulated faults.
#[derive(Debug, Clone)]
struct Signal {
    form: Form,
    low: f64,
    high: f64,
    period: Duration,
    noise: f64,
    /// Fraction of values that are missing.
    lose: f64,
    /// Fraction of values that are Bad_SensorFailure.
    fail: f64,
    /// The position of a walk, or the written value of a constant.
    state: f64,
    random: Random,
}

/// A small random generator (xorshift64*): the same seed gives the same values.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn of(text: &str) -> Self {
        // FNV-1a, so that every tag has its own sequence.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash | 1)
    }

    /// A number from 0 up to, but not including, 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Signal {
    fn take(tag: &Tag, fields: &mut Fields) -> Result<Self, Mistake> {
        let form = fields.word("signal", &FORMS)?.unwrap_or(Form::Sine);
        let (low, high) = fields.pair("between")?.or(tag.range).unwrap_or((0.0, 100.0));
        let share = |fields: &mut Fields, key: &'static str| -> Result<f64, Mistake> {
            match fields.number_at(key)? {
                Some((line, share)) if !(0.0..=1.0).contains(&share) => {
                    Err(fields.mistake_in(line, key, "is no share", "write a number from 0 to 1"))
                }
                found => Ok(found.map_or(0.0, |(_, share)| share)),
            }
        };
        let value = fields.number("value")?;
        Ok(Self {
            form,
            low,
            high,
            period: fields.span("period")?.unwrap_or(Duration::from_secs(60)),
            noise: fields.number("noise")?.unwrap_or(0.0),
            lose: share(fields, "lose")?,
            fail: share(fields, "fail")?,
            state: value.unwrap_or(if form == Form::Constant { low } else { (low + high) / 2.0 }),
            random: Random::of(&format!("{}/{}", tag.path.join("/"), tag.name)),
        })
    }

    /// The value at a time; `None` if it is missing.
    fn at(&mut self, time: Duration) -> Option<Reading> {
        if self.random.next() < self.lose {
            return None;
        }
        if self.random.next() < self.fail {
            return Some(Reading::bad(StatusCode::BAD_SENSOR_FAILURE));
        }
        let turns = time.as_secs_f64() / self.period.as_secs_f64();
        let (span, phase) = (self.high - self.low, turns.fract());
        let value = match self.form {
            Form::Sine => self.low + span * (0.5 + 0.5 * (phase * TAU).sin()),
            Form::Ramp => self.low + span * phase,
            Form::Square if phase < 0.5 => self.low,
            Form::Square => self.high,
            // Ten levels per period.
            Form::Step => self.low + span * (phase * 10.0).floor() / 9.0,
            Form::Noise => self.low + span * self.random.next(),
            Form::Walk => {
                let step = span / 50.0 * (self.random.next() * 2.0 - 1.0);
                self.state = (self.state + step).clamp(self.low, self.high);
                self.state
            }
            Form::Constant => self.state,
        };
        Some(Reading::good(value + self.noise * (self.random.next() * 2.0 - 1.0)))
    }
}

/// A source of simulated signals.
#[derive(Debug, Default)]
pub struct Simulation {
    signals: Vec<Signal>,
    /// The whole source does not answer during this first part of each minute.
    outage: Duration,
}

/// Interval between outages.
const OUTAGE_PERIOD: Duration = Duration::from_secs(60);

impl Simulation {
    /// Takes the settings of a source.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, _: &SourceSettings) -> Result<Self, Mistake> {
        let outage = fields.span("outage")?.unwrap_or_default();
        Ok(Self { signals: Vec::new(), outage: outage.min(OUTAGE_PERIOD) })
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let begin = Instant::now();
        let mut ticks = interval(feed.settings().interval.unwrap_or(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        feed.connected();
        loop {
            tokio::select! {
                biased;
                write = writes.next() => {
                    let signal = self.signals.get_mut(write.position);
                    match (signal, write.value.as_f64()) {
                        (Some(signal), Some(value)) => {
                            signal.state = value;
                            feed.statistics().add(Count::Writes, 1);
                        }
                        _ => feed.statistics().add(Count::WriteErrors, 1),
                    }
                }
                _ = ticks.tick() => {}
            }
            let time = begin.elapsed();
            feed.statistics().add(Count::Requests, 1);
            let into_period = time.as_nanos() % OUTAGE_PERIOD.as_nanos();
            if time >= OUTAGE_PERIOD && into_period < self.outage.as_nanos() {
                continue;
            }
            let readings =
                self.signals.iter_mut().enumerate().filter_map(|(at, signal)| Some((at, signal.at(time)?)));
            feed.deliver(readings.collect::<Vec<_>>());
        }
    }
}

impl Adapter for Simulation {
    fn describe(&self) -> String {
        "simulated signals".to_owned()
    }

    fn add_tag(&mut self, tag: &Tag, fields: &mut Fields, _: usize) -> Result<Placement, Mistake> {
        let signal = Signal::take(tag, fields)?;
        if tag.access == Access::ReadWrite && !matches!(signal.form, Form::Constant | Form::Walk) {
            let hint = "use signal = \"constant\" or \"walk\", or access = \"read\"";
            return Err(fields.mistake("a value written to this signal would be lost immediately", hint));
        }
        self.signals.push(signal);
        let kind =
            if tag.kind == Some(BuiltInType::Boolean) { BuiltInType::Boolean } else { BuiltInType::Double };
        Ok(Placement::Variable(Kind::scalar(kind)))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.session(feed, writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    fn signal(text: &str) -> Result<Signal, Mistake> {
        let text = format!("[[tag]]\nsource = \"s\"\nname = \"t\"\n{text}");
        let mut fields = Sections::parse(Path::new("g"), &text).unwrap().tags.remove(0);
        let tag = Tag::take(&mut fields)?;
        Signal::take(&tag, &mut fields)
    }

    #[test]
    fn signals_have_their_form_and_stay_within_their_bounds() {
        let value = |form: &str, seconds: u64| {
            let text = format!("signal = \"{form}\"\nbetween = [-1.0, 1.0]\nperiod = \"40 s\"\n");
            let reading = signal(&text).unwrap().at(Duration::from_secs(seconds)).unwrap();
            reading.value.as_f64().unwrap()
        };
        assert!((value("sine", 10) - 1.0).abs() < 1e-9 && (value("sine", 30) + 1.0).abs() < 1e-9);
        assert!((value("ramp", 10) + 0.5).abs() < 1e-9);
        assert_eq!((value("square", 10), value("square", 30)), (-1.0, 1.0));
        assert_eq!((value("step", 0), value("step", 39)), (-1.0, 1.0));
        for form in ["sine", "ramp", "square", "walk", "noise", "step"] {
            let mut signal = signal(&format!("signal = \"{form}\"\nbetween = [2.0, 3.0]\n")).unwrap();
            for second in 0..1000 {
                let reading = signal.at(Duration::from_secs(second)).unwrap();
                assert!((2.0..=3.0).contains(&reading.value.as_f64().unwrap()), "{form}");
            }
        }
    }

    #[test]
    fn faults_have_the_configured_rate_and_are_reproducible() {
        let text = "lose = 0.25\nfail = 0.5\n";
        let run = || {
            let mut signal = signal(text).unwrap();
            (0..4000).map(|second| signal.at(Duration::from_secs(second))).collect::<Vec<_>>()
        };
        let readings = run();
        let lost = readings.iter().filter(|reading| reading.is_none()).count();
        let failed = readings.iter().flatten().filter(|reading| reading.status.is_bad()).count();
        assert!((850..1150).contains(&lost), "{lost}");
        assert!((1350..1650).contains(&failed), "{failed}");
        assert_eq!(readings, run());
        assert!(signal("lose = 1.5\n").unwrap_err().to_string().contains("from 0 to 1"));
    }
}

//! A tag with its variable: scaling, deadband, and quality.

use super::Reading;
use crate::destination::tap::{Tap, Tapped};
use crate::tag::Scaling;
use crate::value::Kind;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{BuiltInType, StatusCode, UtcTime, Variant};
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quality {
    /// No value has arrived yet.
    Waiting,
    Fresh,
    /// Uncertain_LastUsableValue.
    Stale,
    /// Bad_NoCommunication.
    Lost,
}

/// A tag with its variable.
pub(super) struct Held {
    /// `None` if another node has its name.
    pub(super) variable: Option<VariableHandle>,
    pub(super) kind: Kind,
    pub(super) is_writable: bool,
    pub(super) scaling: Option<Scaling>,
    pub(super) deadband: f64,
    pub(super) last_number: Option<f64>,
    /// When its value becomes uncertain. `None`: when the connection is lost.
    pub(super) stale_after: Option<Duration>,
    /// When its value becomes bad.
    pub(super) lost_after: Duration,
    pub(super) answered: Instant,
    pub(super) quality: Quality,
    pub(super) name: Arc<str>,
    /// The destinations of its values.
    pub(super) taps: Vec<Tapped>,
    /// The last value sent to them.
    pub(super) last_tapped: Option<(Variant, StatusCode)>,
    /// Whether another gateway polls the source and supplies the destinations.
    pub(super) is_standby: bool,
    /// Whether the destinations have received nothing since another gateway supplied them.
    pub(super) is_untold: bool,
    /// The newest reading, if it is queued by the rate limit.
    pub(super) waits: Option<Box<Reading>>,
    /// Whether its position is in the queue of [`Budget`].
    pub(super) is_queued: bool,
    /// Whether it has been removed and its position is free.
    pub(super) is_released: bool,
    /// Whether the source does not ask for it now, because its device did not answer. Its writes are refused.
    pub(super) is_silent: bool,
    /// Distinguishes it from earlier and later variables of its position.
    pub(super) generation: u64,
}

impl Held {
    /// Stores a reading; false if it does not fit the type.
    pub(super) fn store(&mut self, reading: Reading, now: Instant, utc: UtcTime) -> bool {
        let Reading { value, status, time } = reading;
        self.answered = now;
        let was_fresh = core::mem::replace(&mut self.quality, Quality::Fresh) == Quality::Fresh;
        let time = time.unwrap_or(utc);
        if status.is_bad() {
            self.last_number = None;
            self.set(Variant::Empty, status, time, utc);
            // Some sources convert values themselves.
            return status != StatusCode::BAD_TYPE_MISMATCH;
        }
        let converted = match self.scaling {
            Some(scaling) => scaling.apply(&value, self.kind.element),
            None => self.kind.coerce(value).map(|value| (value, StatusCode::GOOD)),
        };
        let Some((value, limited)) = converted else {
            self.last_number = None;
            self.set(Variant::Empty, StatusCode::BAD_TYPE_MISMATCH, time, utc);
            return false;
        };
        let status = if status == StatusCode::GOOD { limited } else { status };
        if self.deadband > 0.0 {
            let number = value.as_f64();
            let is_near = |last: f64| number.is_some_and(|number| (number - last).abs() < self.deadband);
            if was_fresh && status == StatusCode::GOOD && self.last_number.is_some_and(is_near) {
                return true;
            }
            self.last_number = number.filter(|_| status == StatusCode::GOOD);
        }
        self.set(value, status, time, utc);
        true
    }

    /// Sets the value of the variable and sends it to the destinations.
    fn set(&mut self, value: Variant, status: StatusCode, time: UtcTime, utc: UtcTime) {
        if !self.taps.is_empty() && !self.is_standby {
            self.is_untold = false;
            let last = self.last_tapped.as_ref();
            let is_change = last.is_none_or(|(last, before)| *before != status || !last.same_as(&value));
            for tap in &self.taps {
                tap.push(&self.name, &value, status, (time, utc), is_change);
            }
            if is_change {
                self.last_tapped = Some((value.clone(), status));
            }
        }
        if let Some(variable) = &self.variable {
            variable.set_with(value, status, time, utc);
        }
    }

    /// Whether it is the variable of this generation, and is not removed.
    pub(super) fn is_of(&self, generation: u64) -> bool {
        self.generation == generation && !self.is_released
    }

    /// Forgets its variable.
    pub(super) fn release(&mut self) {
        self.variable = None;
        self.taps.clear();
        self.waits = None;
        self.is_released = true;
    }

    /// Sends values to these destinations from now on. Returns those that are new.
    pub(super) fn tap_into(&mut self, taps: &[Arc<Tap>]) -> Vec<Tapped> {
        // Destinations cannot use the binary encoding of a structure.
        if self.is_released || self.kind.element == BuiltInType::ExtensionObject {
            return Vec::new();
        }
        let before = core::mem::take(&mut self.taps);
        let mut added = Vec::new();
        for tap in taps {
            if let Some(tapped) = before.iter().find(|tapped| tapped.is_of(tap)) {
                self.taps.push(tapped.clone());
            } else if let Some(tapped) = Tap::of(tap, &self.name) {
                self.taps.push(tapped.clone());
                added.push(tapped);
            }
        }
        added
    }

    /// Sends the current value, if there is one, to a new destination.
    pub(super) fn tell(&mut self, tapped: &Tapped, utc: UtcTime) {
        if self.quality == Quality::Waiting || self.is_standby || self.is_untold {
            return;
        }
        let Some(variable) = &self.variable else {
            // The next reading counts as a change.
            self.last_tapped = None;
            return;
        };
        let now = variable.get();
        let (value, status) = (now.value.clone().unwrap_or_default(), now.status());
        let time = now.source_timestamp.filter(|time| !time.is_null()).unwrap_or(utc);
        tapped.push(&self.name, &value, status, (time, utc), true);
        self.last_tapped = Some((value, status));
    }

    /// Lowers the quality because no value has arrived. The time of the mark is that of the detection: at the time of the last
    /// value, which may be long ago, that value was good.
    pub(super) fn decline(&mut self, quality: Quality, utc: UtcTime) {
        self.quality = quality;
        self.last_number = None;
        let last = self.variable.as_ref().map(VariableHandle::get).unwrap_or_default();
        match last.value {
            Some(value) if quality == Quality::Stale && !last.status.unwrap_or_default().is_bad() => {
                self.set(value, StatusCode::UNCERTAIN_LAST_USABLE_VALUE, utc, utc);
            }
            _ => self.set(Variant::Empty, StatusCode::BAD_NO_COMMUNICATION, utc, utc),
        }
    }
}

//! The application of a subscriber: counts values and checks what the plant promises.

use super::figures::{BrokerFigures, PublisherFigures, SubscriberFigures};
use crate::signals::Rhythm;
use core::cell::RefCell;
use std::rc::Rc;
use taktwerk_pubsub::uadp::DataSetMessageKind;
use taktwerk_pubsub::uadp::fields::ReceivedField;
use taktwerk_types::Instant;

/// From this value length in bytes on, the value's number can be determined exactly, however late the value is.
const LONG_ENOUGH: usize = 4;

/// The first broken promise in a plant.
pub(crate) type Complaints = Rc<RefCell<Option<String>>>;

/// What the application knows about a DataSetReader.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) rhythm: Rhythm,
    /// By field: the number of the last value since the process was started; negative before the first value.
    last: Vec<i64>,
    /// The same over all runs of the process.
    best: Vec<i64>,
    /// Number of missing DataSetMessages.
    lost: u64,
}

impl Known {
    pub(crate) fn new(rhythm: Rhythm, fields: usize) -> Self {
        Self { rhythm, last: vec![-1; fields], best: vec![-1; fields], lost: 0 }
    }
}

/// What can explain missing DataSetMessages of a publisher although quality of service 1 is used.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// The subscriber's client name at the broker.
    pub(crate) name: String,
    pub(crate) broker: Rc<RefCell<BrokerFigures>>,
    pub(crate) publisher: Rc<RefCell<PublisherFigures>>,
}

/// What was received from one publisher.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) readers: Vec<Known>,
    /// Every loss must be counted.
    pub(crate) delivery: Option<Delivery>,
}

/// The application of a subscriber. It outlives the process, which knows nothing when it starts.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) name: String,
    /// By ReaderGroup; each group is one publisher.
    pub(crate) sources: Vec<Source>,
    pub(crate) window: (Instant, Instant),
    pub(crate) figures: SubscriberFigures,
    pub(crate) complaints: Complaints,
}

impl Application {
    /// The process starts.
    pub(crate) fn begin(&mut self) {
        self.figures.lives += 1;
        for reader in self.sources.iter_mut().flat_map(|source| &mut source.readers) {
            reader.last.fill(-1);
        }
    }

    fn fail(&self, problem: &str) {
        let text = format!("{}: {problem}", self.name);
        self.complaints.borrow_mut().get_or_insert(text);
    }

    /// A reader was notified that its publisher is silent: sequence numbers may restart.
    pub(crate) fn timed_out(&mut self, group: usize, reader: usize) {
        self.figures.timeouts += 1;
        let source = self.sources.get_mut(group);
        if let Some(known) = source.and_then(|source| source.readers.get_mut(reader)) {
            known.last.fill(-1);
        }
    }

    /// Handles a DataSetMessage.
    pub(crate) fn message(
        &mut self,
        (group, reader): (usize, usize),
        kind: DataSetMessageKind,
        missing: u32,
        fields: &[ReceivedField],
        now: Instant,
    ) {
        self.figures.messages += 1;
        self.figures.lost += u64::from(missing);
        if missing > 0 {
            self.missing(group, reader, missing);
        }
        if kind == DataSetMessageKind::KeepAlive {
            return;
        }
        let mut problem = None;
        let (window, figures) = (self.window, &mut self.figures);
        let source = self.sources.get_mut(group);
        let Some(known) = source.and_then(|source| source.readers.get_mut(reader)) else { return };
        for field in fields {
            let at = usize::from(field.index);
            let number = field.value.value.as_ref().and_then(|value| known.rhythm.number(value, now));
            let (Some(number), Some(last), Some(best)) =
                (number, known.last.get_mut(at), known.best.get_mut(at))
            else {
                problem = Some(format!("field {at} of reader {reader} has no value: {:?}", field.value));
                continue;
            };
            // Short values repeat, so a late value cannot be distinguished from a newer one.
            if number < *last && known.rhythm.value_len >= LONG_ENOUGH {
                problem = Some(format!("field {at} of reader {reader} has value {number} after {last}"));
            }
            *last = number;
            if number <= *best {
                continue;
            }
            *best = number;
            let Some(written) = known.rhythm.written_at(number) else { continue };
            if written >= window.0 && written < window.1 {
                figures.arrived += 1;
                let late = now.since(written).as_nanos();
                figures.times.record(u64::try_from(late).unwrap_or(u64::MAX));
            }
        }
        if let Some(problem) = problem {
            self.fail(&problem);
        }
    }

    /// With quality of service 1, a message may be missing only if its loss was counted or a process died.
    fn missing(&mut self, group: usize, reader: usize, missing: u32) {
        let lives = self.figures.lives;
        let Some(source) = self.sources.get_mut(group) else { return };
        let Some(known) = source.readers.get_mut(reader) else { return };
        known.lost += u64::from(missing);
        let Some(delivery) = &source.delivery else { return };
        let (broker, publisher) = (delivery.broker.borrow(), delivery.publisher.borrow());
        let has_died = lives > 1 || broker.lives > 1 || publisher.lives > 1;
        let dropped = broker.dropped_of.get(&delivery.name).copied().unwrap_or_default();
        // The key of a message may have expired before it arrived.
        let unreadable = self.figures.security_errors;
        let counted = dropped + publisher.dropped + publisher.forgotten + unreadable;
        if has_died || known.lost <= counted {
            return;
        }
        let lost = known.lost;
        drop((broker, publisher));
        self.fail(&format!(
            "{lost} messages of publisher {group} are missing with quality of service 1, but only {counted} were dropped \
             or could not be read"
        ));
    }

    /// Whether every field has a value.
    pub(crate) fn has_begun(&self) -> bool {
        self.readers().all(|reader| reader.best.iter().all(|best| *best >= 0))
    }

    /// Describes values written before `until` that have not arrived.
    pub(crate) fn is_stuck(&self, until: Instant) -> Option<String> {
        let late = |reader: &Known| {
            let newest = reader.rhythm.newest(until);
            reader.best.iter().filter(|best| **best < newest).count()
        };
        let count: usize = self.readers().map(late).sum();
        let all: usize = self.readers().map(|reader| reader.best.len()).sum();
        let name = &self.name;
        (count > 0).then(|| format!("{name} has not got the last value of {count} of {all} fields"))
    }

    fn readers(&self) -> impl Iterator<Item = &Known> {
        self.sources.iter().flat_map(|source| &source.readers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::value;
    use core::time::Duration;
    use taktwerk_types::DataValue;

    fn application(delivery: Option<Delivery>) -> Application {
        let (start, period) = (Instant::from_nanos(0), Duration::from_nanos(10));
        let rhythm = Rhythm { start, period, spread: Duration::ZERO, value_len: 8 };
        let source = Source { readers: vec![Known::new(rhythm, 2)], delivery };
        let mut application = Application {
            name: "s".to_owned(),
            sources: vec![source],
            window: (Instant::from_nanos(20), Instant::from_nanos(40)),
            figures: SubscriberFigures::default(),
            complaints: Complaints::default(),
        };
        application.begin();
        application
    }

    fn take(application: &mut Application, missing: u32, values: &[(u16, i64)], nanos: u64) {
        let field = |(index, number): &(u16, i64)| ReceivedField {
            index: *index,
            value: DataValue::new(value(8, *number)),
        };
        let fields: Vec<ReceivedField> = values.iter().map(field).collect();
        let now = Instant::from_nanos(nanos);
        application.message((0, 0), DataSetMessageKind::DeltaFrame, missing, &fields, now);
    }

    fn complaint(application: &Application) -> Option<String> {
        application.complaints.borrow().clone()
    }

    #[test]
    fn values_count_once_and_in_the_window() {
        let mut it = application(None);
        take(&mut it, 0, &[(0, 1), (1, 1)], 15);
        assert!(it.has_begun() && it.is_stuck(Instant::from_nanos(19)).is_none());
        take(&mut it, 0, &[(0, 2)], 25);
        take(&mut it, 0, &[(0, 2), (1, 2)], 28);
        take(&mut it, 0, &[(0, 4), (1, 4)], 49);
        assert_eq!((it.figures.arrived, it.figures.times.max()), (2, 8));
        assert_eq!(
            it.is_stuck(Instant::from_nanos(50)).unwrap(),
            "s has not got the last value of 2 of 2 fields"
        );
        // A restarted process may receive known values again; they are not counted again.
        it.begin();
        take(&mut it, 0, &[(0, 2)], 50);
        assert_eq!((it.figures.arrived, complaint(&it)), (2, None));
        take(&mut it, 0, &[(0, 1)], 50);
        assert_eq!(complaint(&it).unwrap(), "s: field 0 of reader 0 has value 1 after 2");
    }

    #[test]
    fn missing_messages_must_have_been_counted() {
        let delivery = || Delivery {
            name: "s".to_owned(),
            broker: Rc::new(RefCell::new(BrokerFigures { lives: 1, ..BrokerFigures::default() })),
            publisher: Rc::new(RefCell::new(PublisherFigures { lives: 1, ..PublisherFigures::default() })),
        };
        let mut it = application(None);
        take(&mut it, 7, &[], 20);
        assert_eq!((complaint(&it), it.figures.lost), (None, 7));
        let counted = delivery();
        counted.broker.borrow_mut().dropped_of.insert("s".to_owned(), 2);
        let mut it = application(Some(counted));
        take(&mut it, 2, &[], 20);
        assert_eq!(complaint(&it), None);
        take(&mut it, 1, &[], 20);
        assert!(complaint(&it).unwrap().contains("3 messages of publisher 0 are missing"));
        let died = delivery();
        died.broker.borrow_mut().lives = 2;
        let mut it = application(Some(died));
        take(&mut it, 9, &[], 20);
        assert_eq!(complaint(&it), None);
    }
}

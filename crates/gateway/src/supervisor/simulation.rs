//! Sources that hang, lie, flood, fail and panic, in virtual time. Supervisor, feed and watch are those of the gateway; only the
//! adapter is simulated.

use super::{supervise, watch};
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Writes};
use crate::fields::{Fields, Mistake, Sections};
use crate::plant::Plant;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::tag::Tag;
use crate::value::Kind;
use core::fmt::Write as _;
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use taktwerk::Server;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{BuiltInType, NodeId, StatusCode, UtcTime, Variant};
use tokio::time::{Instant, sleep, sleep_until};

const MS: Duration = Duration::from_millis(1);
const SOURCES: usize = 5;
const TAGS: usize = 4;
/// Values that a source may store per second.
const VALUES_MAX: u64 = 200;
const RETRY_MAX: Duration = Duration::from_secs(1);
const LOST_AFTER: Duration = Duration::from_secs(2);
/// How often the observer looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// What a source does for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    /// All tags at each interval.
    Steady,
    /// The connection stays open, nothing comes.
    Hang,
    /// 20 values of one tag each millisecond, and the others as usual.
    Flood,
    /// Values of other types, tags that do not exist, times of another century.
    Lie,
    /// Bad status codes instead of values.
    Bad,
    /// Connections fail.
    Refuse,
    /// Connections are closed after one answer.
    Close,
    Panic,
}

const BEHAVIOURS: [Behaviour; 8] = [
    Behaviour::Steady,
    Behaviour::Hang,
    Behaviour::Flood,
    Behaviour::Lie,
    Behaviour::Bad,
    Behaviour::Refuse,
    Behaviour::Close,
    Behaviour::Panic,
];

/// What a source has delivered for a tag.
#[derive(Debug, Clone, Copy, Default)]
struct Delivered {
    /// The last number; numbers of a tag grow.
    number: u64,
    /// When the last reading came, of any kind.
    at: Option<Instant>,
    /// What the last reading was.
    kind: Given,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Given {
    #[default]
    Number,
    Lie,
    Bad,
}

#[derive(Debug, Default)]
struct Log {
    tags: [Delivered; TAGS],
    /// Readings of tags that exist.
    readings: u64,
    /// Connections that have ended. What waits is stored then, one value per tag at most.
    ends: u64,
    /// Writes that were carried out.
    writes: u64,
}

struct Simulated {
    interval: Duration,
    /// Behaviours with the times at which they end. The last one does not end.
    phases: Vec<(Behaviour, Instant)>,
    log: Arc<Mutex<Log>>,
    random: Random,
    start: Instant,
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap()
}

impl Simulated {
    fn behaviour(&self) -> (Behaviour, Option<Instant>) {
        let now = Instant::now();
        let phase = self.phases.iter().find(|(_, end)| *end > now);
        phase.map_or((Behaviour::Steady, None), |(behaviour, end)| (*behaviour, Some(*end)))
    }

    fn deliver(&mut self, feed: &Feed, position: usize, given: Given) {
        let mut log = lock(&self.log);
        log.readings += 1;
        let tag = &mut log.tags[position];
        (tag.at, tag.kind) = (Some(Instant::now()), given);
        let reading = match given {
            Given::Number => {
                tag.number += 1;
                Reading::good(tag.number as f64)
            }
            Given::Bad => Reading::bad(StatusCode::BAD_DEVICE_FAILURE),
            Given::Lie => Reading::good(["no number", "", "9e999x"][self.random.below(3) as usize]),
        };
        let year = |year: i64| UtcTime::from_ticks(year * 365 * 864_000_000_000);
        let time = match self.random.below(3) {
            0 if given != Given::Number => Some(year(1)),
            1 if given != Given::Number => Some(year(8000)),
            _ => None,
        };
        drop(log);
        feed.deliver([(position, reading.at(time))]);
        if given == Given::Lie {
            feed.deliver([(TAGS + self.random.below(1000) as usize, Reading::good(1.0))]);
        }
    }

    async fn session(&mut self, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
        let began = Instant::now();
        loop {
            let (behaviour, end) = self.behaviour();
            match behaviour {
                Behaviour::Refuse => return Err(Fault::other("device".to_owned(), "refused")),
                Behaviour::Panic => panic!("the simulated adapter panics"),
                Behaviour::Hang => {
                    feed.connected();
                    sleep_until(end.unwrap()).await;
                    continue;
                }
                Behaviour::Steady | Behaviour::Flood | Behaviour::Lie | Behaviour::Bad | Behaviour::Close => {
                    feed.connected();
                }
            }
            let next = Instant::now() + self.interval;
            for position in 0..TAGS {
                let given = match behaviour {
                    Behaviour::Lie if self.random.below(2) == 0 => Given::Lie,
                    Behaviour::Bad if self.random.below(2) == 0 => Given::Bad,
                    _ => Given::Number,
                };
                self.deliver(feed, position, given);
            }
            while let Some(write) = writes.try_next() {
                // What was written before the connection was made is not carried out.
                let written = self.start + Duration::from_secs_f64(write.value.as_f64().unwrap());
                assert!(written >= began, "{:?} before the connection", began - written);
                lock(&self.log).writes += 1;
            }
            if behaviour == Behaviour::Close {
                return Ok(());
            }
            while behaviour == Behaviour::Flood && Instant::now() < next {
                (0..20).for_each(|_| self.deliver(feed, 0, Given::Number));
                sleep(MS).await;
            }
            sleep_until(next).await;
        }
    }
}

impl Adapter for Simulated {
    fn describe(&self) -> String {
        "simulated".to_owned()
    }

    fn add_tag(&mut self, _tag: &Tag, _fields: &mut Fields, _position: usize) -> Result<Placement, Mistake> {
        Ok(Placement::Variable(Kind::scalar(BuiltInType::Double)))
    }

    fn run<'a>(&'a mut self, feed: &'a Feed, writes: &'a mut Writes) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move {
            struct Ends(Arc<Mutex<Log>>);
            impl Drop for Ends {
                fn drop(&mut self) {
                    lock(&self.0).ends += 1;
                }
            }
            let _ends = Ends(Arc::clone(&self.log));
            self.session(feed, writes).await
        })
    }
}

/// A source that runs, as the observer sees it.
struct Source {
    feed: Feed,
    interval: Duration,
    log: Arc<Mutex<Log>>,
    variables: Vec<VariableHandle>,
    /// The last number seen of each tag.
    seen: [f64; TAGS],
    is_steady: bool,
    accepted: u64,
}

impl Source {
    fn start(server: &Server, at: usize, random: &mut Random, phases: Vec<(Behaviour, Instant)>) -> Self {
        let interval = MS * [100, 250, 500][random.below(3) as usize];
        let mut text = format!(
            "[[source]]\nvalues_per_second_max = {VALUES_MAX}\nretry = \"100 ms\"\nretry_max = \"{} ms\"\nlost_after = \"{} ms\"\n",
            RETRY_MAX.as_millis(),
            LOST_AFTER.as_millis()
        );
        for tag in 0..TAGS {
            write!(text, "[[tag]]\nsource = \"s{at}\"\nname = \"t{tag}\"\naccess = \"read-write\"\n")
                .unwrap();
        }
        let mut sections = Sections::parse(Path::new("g.toml"), &text).unwrap();
        let settings =
            SourceSettings::take(&mut sections.sources[0], format!("s{at}"), Some(interval)).unwrap();
        let plant = Arc::new(Plant::new(server.namespace("urn:test")));
        let (feed, writes) = Feed::new(settings, plant, Vec::new());
        let mut variables = Vec::new();
        for (position, fields) in sections.tags.iter_mut().enumerate() {
            feed.add(&Tag::take(fields).unwrap(), Kind::scalar(BuiltInType::Double)).unwrap();
            let id = NodeId::string(2, format!("s{at}/t{position}"));
            variables.push(server.space().variable(&id).unwrap());
        }
        let log = Arc::new(Mutex::new(Log::default()));
        let is_steady = phases.iter().all(|(behaviour, _)| *behaviour == Behaviour::Steady);
        let random = Random(random.below(u64::MAX) | 1);
        let start = Instant::now();
        let adapter = Simulated { interval, phases, log: Arc::clone(&log), random, start };
        tokio::spawn(supervise(Box::new(adapter), feed.clone(), writes, None));
        tokio::spawn(watch(feed.clone()));
        Self { feed, interval, log, variables, seen: [0.0; TAGS], is_steady, accepted: 0 }
    }

    /// Compares what the variables say with what the source has delivered.
    fn check(&mut self, start: Instant) {
        let now = Instant::now();
        let log = lock(&self.log);
        // Timers have milliseconds.
        let tolerance = self.feed.watch_interval() + LOOK_EVERY * 2;
        let stale_after = self.interval * 2;
        for (position, variable) in self.variables.iter().enumerate() {
            let (value, tag) = (variable.get(), log.tags[position]);
            let status = value.status();
            let silence = now - tag.at.unwrap_or(start);
            let told = format!("tag {position}, {value:?}, {tag:?}, silent for {silence:?}");
            if let Some(number) = value.value.as_ref().and_then(Variant::as_f64) {
                assert!(number <= tag.number as f64, "a value that nobody sent: {told}");
                assert!(number >= self.seen[position], "values go back: {told}");
                self.seen[position] = number;
            }
            match status {
                StatusCode::GOOD => assert!(silence <= stale_after + tolerance, "not fresh: {told}"),
                StatusCode::UNCERTAIN_LAST_USABLE_VALUE => {
                    assert!(value.value.is_some(), "{told}");
                    assert!(silence <= stale_after.max(LOST_AFTER) + tolerance, "lost: {told}");
                }
                StatusCode::BAD_NO_COMMUNICATION => assert!(silence >= stale_after, "there: {told}"),
                StatusCode::BAD_WAITING_FOR_INITIAL_DATA => assert!(tag.at.is_none(), "{told}"),
                StatusCode::BAD_DEVICE_FAILURE | StatusCode::BAD_TYPE_MISMATCH => {
                    assert!(silence <= stale_after + tolerance, "not fresh: {told}");
                }
                _ => panic!("unexpected: {told}"),
            }
            if silence > stale_after.max(LOST_AFTER) + tolerance {
                assert_eq!(status, StatusCode::BAD_NO_COMMUNICATION, "{told}");
            }
            // The others' faults cost a source that works nothing.
            if self.is_steady && now > start {
                assert_eq!(status, StatusCode::GOOD, "{told}");
                assert_eq!(self.seen[position], tag.number as f64, "{told}");
            }
        }
        let counted = self.feed.statistics().snapshot();
        let seconds = (now - start).as_secs_f64();
        let most = VALUES_MAX as f64 * (1.0 + seconds) + (log.ends * TAGS as u64) as f64;
        assert!(counted.values as f64 <= most, "{} values in {seconds} s", counted.values);
        assert!(counted.values + counted.replaced <= log.readings);
        assert!(log.readings - counted.values - counted.replaced <= TAGS as u64, "{counted:?}, {log:?}");
    }

    fn write(&mut self, position: usize, start: Instant) {
        let was_connected = self.feed.statistics().is_connected();
        let status = self.feed.accept(position, (Instant::now() - start).as_secs_f64().into());
        let expected: &[StatusCode] = match was_connected {
            true => &[StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY, StatusCode::BAD_RESOURCE_UNAVAILABLE],
            false => &[StatusCode::BAD_NO_COMMUNICATION],
        };
        assert!(expected.contains(&status), "{status}");
        self.accepted += u64::from(status == StatusCode::GOOD_COMPLETES_ASYNCHRONOUSLY);
    }
}

async fn world(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    crate::pause::seed(seed);
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let start = Instant::now();
    let mut latest = start;
    let mut sources: Vec<Source> = (0..SOURCES)
        .map(|at| {
            let (mut end, mut phases) = (start, Vec::new());
            // The first source works all the time.
            for _ in 0..if at == 0 { 0 } else { 1 + random.below(5) } {
                end += MS * (50 + random.below(4000) as u32);
                phases.push((BEHAVIOURS[random.below(BEHAVIOURS.len() as u64) as usize], end));
            }
            latest = latest.max(end);
            Source::start(&server, at, &mut random, phases)
        })
        .collect();
    // The last behaviours end, the longest pause between two attempts passes, and everything works again.
    let end = latest + RETRY_MAX * 2 + Duration::from_secs(3);
    while Instant::now() < end {
        sleep(LOOK_EVERY).await;
        for source in &mut sources {
            source.check(start);
            if random.below(4) == 0 {
                source.write(random.below(TAGS as u64) as usize, start);
            }
        }
    }
    for source in &sources {
        let log = lock(&source.log);
        for (position, variable) in source.variables.iter().enumerate() {
            let value = variable.get();
            assert_eq!(
                (value.status(), source.seen[position]),
                (StatusCode::GOOD, log.tags[position].number as f64)
            );
        }
        let counted = source.feed.statistics().snapshot();
        assert_eq!(
            counted.values + counted.replaced,
            log.readings,
            "a reading is stored or replaced by a newer one"
        );
        assert!(log.writes > 0 && log.writes <= source.accepted);
    }
}

/// As many worlds as the environment asks for.
#[test]
fn a_source_that_misbehaves_costs_only_itself_and_its_tags_tell_the_truth() {
    let count = std::env::var("TAKTWERK_SOURCE_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 1..=count.unwrap_or(25) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        let outcome =
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| runtime.block_on(world(seed))));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

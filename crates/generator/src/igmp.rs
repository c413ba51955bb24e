//! `bench igmp`: whether a switch filters multicast, or floods hosts that did not join (Burger et al. 2019, §2).
//!
//! A publisher, a host that has joined, and a host that has not, connected to a kernel bridge.

use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use taktwerk::pubsub::config::build::field;
use taktwerk::pubsub::{DataSet, PubSubStartError, Publisher, Subscriber};
use taktwerk_lab::links::switch::{INTERFACE, Switch};
use taktwerk_load::result::{self, Multicast};
use taktwerk_load::specification::Igmp;
use taktwerk_load::validity::Invalid;
use taktwerk_types::{BuiltInType, DataValue};

/// The hosts.
const PUBLISHER: usize = 0;
const JOINED: usize = 1;
const UNJOINED: usize = 2;
/// Time for a switch with new snooping to query the memberships of all hosts.
const LEARNING: Duration = Duration::from_secs(4);

/// Counters of a window.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// Messages sent.
    sent: u64,
    /// Messages received by the subscriber.
    heard: u64,
    /// Packets of any kind at the interfaces.
    joined: u64,
    unjoined: u64,
}

impl Counted {
    fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            heard: self.heard - earlier.heard,
            joined: self.joined - earlier.joined,
            unjoined: self.unjoined - earlier.unjoined,
        }
    }

    fn document(self) -> Multicast {
        Multicast {
            messages_sent: self.sent,
            messages_heard: self.heard,
            packets_at_joined: self.joined,
            packets_at_unjoined: self.unjoined,
            unjoined_percent: self.unjoined as f64 / self.sent.max(1) as f64 * 100.0,
        }
    }
}

fn environment(error: io::Error) -> GeneratorError {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; network namespaces need root (CAP_SYS_ADMIN)",
        _ => "",
    };
    GeneratorError::Environment(format!("cannot create a switch: {error}{advice}"))
}

struct Stand {
    switch: Switch,
    publisher: Publisher,
    _subscriber: Subscriber,
    heard: Arc<AtomicU64>,
}

impl Stand {
    fn new(arguments: &Igmp) -> Result<Self, GeneratorError> {
        let switch = Switch::new(3).map_err(environment)?;
        let heard = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&heard);
        let subscriber = inside(&switch, JOINED, || {
            Subscriber::builder(&arguments.url)
                .interface(INTERFACE)
                .on_message(move |_| {
                    theirs.fetch_add(1, Ordering::Relaxed);
                })
                .start()
        })?;
        let publisher = inside(&switch, PUBLISHER, || {
            let fields = (1..=10).map(|number| field(&format!("s{number}"), BuiltInType::Float));
            let mut value = 0.0f32;
            let set = DataSet::from_fn("signals", fields, move |fields| {
                value += 1.0;
                fields.iter_mut().for_each(|field| *field = DataValue::new(value));
            });
            Publisher::builder(&arguments.url)
                .interface(INTERFACE)
                .interval(arguments.interval)
                .discovery(false)
                .data_set(set)
                .start()
        })?;
        Ok(Self { switch, publisher, _subscriber: subscriber, heard })
    }

    fn count(&self) -> Result<Counted, GeneratorError> {
        Ok(Counted {
            sent: self.publisher.sent().messages,
            heard: self.heard.load(Ordering::Relaxed),
            joined: self.switch.received(JOINED).map_err(environment)?,
            unjoined: self.switch.received(UNJOINED).map_err(environment)?,
        })
    }

    fn window(&self, span: Duration, context: &Context<'_>) -> Result<Counted, GeneratorError> {
        let before = self.count()?;
        context.sleep(span);
        Ok(self.count()?.since(before))
    }
}

/// Starts something in the network namespace of a host.
fn inside<T: Send>(
    switch: &Switch,
    host: usize,
    start: impl FnOnce() -> Result<T, PubSubStartError> + Send,
) -> Result<T, GeneratorError> {
    let host = switch
        .host(host)
        .ok_or_else(|| GeneratorError::Environment("the switch has no such host".to_owned()))?;
    host.inside(start).map_err(environment)?.map_err(GeneratorError::environment)
}

/// Counts and reports.
pub(crate) fn run(arguments: &Igmp, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    if arguments.interval.is_zero() {
        return Err(GeneratorError::Usage("--interval 0: cycles need time".to_owned()));
    }
    let stand = Stand::new(arguments)?;
    context.sleep(LEARNING);
    let snooping = stand.window(arguments.duration, context)?;
    stand.switch.set_snooping(false).map_err(environment)?;
    context.sleep(Duration::from_millis(200));
    let flooding = stand.window(arguments.duration, context)?;
    let mut report = Report::new("igmp", &arguments.url);
    report.part(&result::Igmp {
        requested: result::IgmpRequested {
            interval_ms: arguments.interval.as_secs_f64() * 1e3,
            duration_s: arguments.duration.as_secs_f64(),
        },
        snooping: snooping.document(),
        flooding: flooding.document(),
    });
    for (what, counted) in [("with IGMP snooping", snooping), ("without snooping", flooding)] {
        report.fact(
            what,
            format!(
                "{} messages sent, {} received; packets at the joined host {}, at the unjoined host {}",
                counted.sent, counted.heard, counted.joined, counted.unjoined
            ),
        );
    }
    if snooping.sent == 0 || flooding.sent == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    Ok(report.finish(context, None))
}

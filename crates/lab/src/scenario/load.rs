//! Converts a condition to a load specification, without addresses, processes and CPUs, which the place adds.

use super::{BROKERLESS, Condition, Kind, broker, is_uadp};
use std::time::Duration;
use taktwerk_load::Specification;
use taktwerk_load::connection::{ConnectionArgs, SecurityArgs};
use taktwerk_load::mqtt::Qos;
use taktwerk_load::specification::{
    Common, Connect, Content, Fan, Igmp, Mqtt, MqttPattern, Probe, PubSub, PubSubPattern, Request, Roundtrip,
    Subscribe, Update,
};

/// Seconds were validated with the scenario.
fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn millis(ms: f64) -> Duration {
    span(ms / 1e3)
}

impl Condition {
    /// The specification for `taktwerk bench`.
    #[must_use]
    pub fn load(&self) -> Specification {
        if broker(&self.stack).is_some() || self.stack == BROKERLESS {
            return self.messages();
        }
        match self.kind {
            Kind::Read => Specification::Read(self.request()),
            Kind::Write => Specification::Write(self.request()),
            Kind::Browse => Specification::Browse(self.request()),
            Kind::Subscribe => Specification::Subscribe(self.subscribe()),
            Kind::Connect => Specification::Connect(Connect {
                common: self.common(),
                count: self.count,
                rate: self.rate,
                ..Connect::default()
            }),
            Kind::Roundtrip => {
                let load = Roundtrip::default();
                Specification::Roundtrip(Roundtrip {
                    common: self.common(),
                    count: self.count,
                    payload: self.payload.unwrap_or(load.payload),
                    interval: self.publishing_ms.map_or(load.interval, millis),
                    ..load
                })
            }
            Kind::Fan => Specification::Fan(Fan {
                common: self.common(),
                count: self.count,
                interval: self.publishing_ms.map_or(Fan::default().interval, millis),
            }),
            Kind::Probe => {
                let load = Probe::default();
                Specification::Probe(Probe {
                    common: self.common(),
                    count: self.count,
                    batch: self.batch.unwrap_or(load.batch),
                    rate: self.rate.unwrap_or(load.rate),
                    ..load
                })
            }
            Kind::Update => {
                let load = Update::default();
                Specification::Update(Update {
                    signals: self.signals(),
                    threads: self.threads.unwrap_or(load.threads),
                    interval: self.publishing_ms.map_or(load.interval, millis),
                    count: self.count.unwrap_or(load.count),
                    ..load
                })
            }
            Kind::PubSub => Specification::PubSub(self.publisher()),
            Kind::Igmp => {
                let load = Igmp::default();
                Specification::Igmp(Igmp {
                    interval: self.publishing_ms.map_or(load.interval, millis),
                    duration: span(self.time.duration_s),
                    ..load
                })
            }
        }
    }

    fn common(&self) -> Common {
        let mut security = SecurityArgs::default();
        if !self.security.is_none() {
            security.policy = Some(self.security.policy.clone());
            security.mode = Some(self.security.mode.clone());
        }
        Common {
            connection: ConnectionArgs { security, ..ConnectionArgs::default() },
            clients: self.clients,
            duration: span(self.time.duration_s),
            warmup: span(self.time.warmup_s),
            ..Common::default()
        }
    }

    fn request(&self) -> Request {
        let load = Request::default();
        Request {
            common: self.common(),
            count: self.count,
            rate: self.rate,
            pause: self.pause_ms.map(millis),
            batch: self.batch.unwrap_or(load.batch),
            ..load
        }
    }

    fn subscribe(&self) -> Subscribe {
        let update = match self.server.adapters {
            Some(adapters) if self.server.signals == 0 => adapters.period_ms,
            _ if self.server.sets.is_empty() => self.server.update_ms,
            // Sets of signals have several intervals.
            _ => 0.0,
        };
        let load = Subscribe::default();
        Subscribe {
            common: self.common(),
            items: self.items,
            interval: self.publishing_ms.map_or(load.interval, millis),
            sampling: self.sampling_ms.map(millis),
            queue: self.queue.unwrap_or(load.queue),
            update: (update > 0.0).then(|| millis(update)),
            each_value: self.each_value,
            publish_every: self.publish_every,
            publish_requests: self.publish_requests,
            notifications_max: self.notifications_max,
            keep_alive_count: self.keep_alive_count,
            steady: self.time.steady,
            ..load
        }
    }

    /// Our own publisher and subscriber, or only our subscriber for a peer's publisher.
    fn publisher(&self) -> PubSub {
        let (load, update) = (PubSub::default(), self.server.update_ms);
        let load = PubSub {
            interval: self.publishing_ms.map_or(load.interval, millis),
            duration: span(self.time.duration_s),
            only_sleep: self.asleep,
            ..load
        };
        if self.stack != "own" {
            return PubSub { pattern: PubSubPattern::Listen, ..load };
        }
        PubSub {
            signals: self.signals(),
            rounds: 1,
            update: (update > 0.0).then(|| millis(update)),
            no_bare: true,
            ..load
        }
    }

    /// The same load with messages: through an MQTT broker, or PubSub without one. Messages of a fan have 16 bytes,
    /// like a Double with its timestamp.
    fn messages(&self) -> Specification {
        let is_fan = self.kind == Kind::Fan;
        let payload = self.payload.unwrap_or(16);
        let (duration, warmup) = (span(self.time.duration_s), span(self.time.warmup_s));
        let Some((_, level)) = broker(&self.stack) else {
            return Specification::PubSub(PubSub {
                pattern: if is_fan { PubSubPattern::Fan } else { PubSubPattern::RoundTrip },
                payload,
                clients: self.clients,
                count: self.count,
                duration,
                warmup,
                ..PubSub::default()
            });
        };
        Specification::Mqtt(Mqtt {
            pattern: if is_fan { MqttPattern::Fan } else { MqttPattern::RoundTrip },
            qos: match level {
                0 => Qos::AtMostOnce,
                1 => Qos::AtLeastOnce,
                _ => Qos::ExactlyOnce,
            },
            message: if is_uadp(&self.stack) { Content::Uadp } else { Content::Bytes },
            payload,
            clients: self.clients,
            count: self.count,
            duration,
            warmup,
            ..Mqtt::default()
        })
    }
}

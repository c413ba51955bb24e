//! A key-value bucket of NATS JetStream for leases.
//!
//! Each gateway subscribes to its own subject. If it was killed or lost its connection, the server reports immediately that there
//! is no subscriber. Its leases then end early: the gateway stops soon after it has lost the connection, and others take the
//! leases a little later.

use super::bucket::{Bucket, Change, Connect, Keys};
use super::registry::Write;
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::nats::NatsServer;
use async_nats::jetstream::kv::{self, Store, UpdateErrorKind, Watch};
use async_nats::jetstream::stream::StorageType;
use async_nats::{Client, ConnectOptions, Event, StatusCode, Subscriber, jetstream};
use core::time::Duration;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_crypto::Entropy;
use taktwerk_net::entropy::OsEntropy;
use tokio::sync::watch;

const BUCKET: &str = "taktwerk-leases";
/// Timeout of connections and answers. Rounds end earlier.
const DEADLINE: Duration = Duration::from_secs(3);
/// Keys of gateways that were removed this long ago are deleted.
const OLD: Duration = Duration::from_secs(24 * 3600);

/// Address of the bucket.
pub(super) struct Nats {
    server: NatsServer,
    bucket: String,
    replicas: usize,
}

/// Takes the settings of leases in NATS.
pub(super) fn take(fields: &mut Fields, line: usize, url: &str, group: &str) -> Result<Keys<Nats>, Mistake> {
    let server = NatsServer::take(fields, (line, url))?;
    let bucket = match fields.text_at("bucket")? {
        None => BUCKET.to_owned(),
        Some((_, name)) if is_bucket(&name) => name,
        Some((line, name)) => {
            let hint = "names of buckets have letters, digits, - and _";
            return Err(fields.mistake_in(line, "bucket", format!("{name:?} is no name"), hint));
        }
    };
    let replicas = fields.integer("replicas", 1, 5)?.unwrap_or(1) as usize;
    Ok(Keys::new(Nats { server, bucket, replicas }, group))
}

fn is_bucket(name: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    !name.is_empty() && name.len() <= 100 && name.chars().all(is_plain)
}

/// The subject of a gateway.
fn presence(group: &str, id: &str) -> String {
    format!("taktwerk.lease.{group}.{id}")
}

impl Nats {
    async fn link(&self, group: &str, id: &str) -> Result<Link, Fault> {
        let (state, broken) = watch::channel(false);
        let set = |options: ConnectOptions| {
            // The library must not reconnect: a round opens a new connection and reads all keys again.
            options.name("taktwerk-gateway leases").max_reconnects(1).event_callback(move |event| {
                if matches!(event, Event::Disconnected | Event::Closed) {
                    state.send_replace(true);
                }
                core::future::ready(())
            })
        };
        let client = self.server.connect(DEADLINE, set).await?;
        let failed = |error: &dyn core::fmt::Display| self.server.failed(error);
        let mut context = jetstream::new(client.clone());
        context.set_timeout(DEADLINE);
        let store = match context.get_key_value(&self.bucket).await {
            Ok(store) => store,
            Err(_) => {
                let config = kv::Config {
                    bucket: self.bucket.clone(),
                    description: "which gateway polls which source".to_owned(),
                    history: 1,
                    storage: StorageType::File,
                    num_replicas: self.replicas,
                    ..kv::Config::default()
                };
                let made = context.create_key_value(config).await;
                made.map_err(|error| failed(&told(&error)))?
            }
        };
        let own = client.subscribe(presence(group, id)).await.map_err(|error| failed(&error))?;
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*")).await.map_err(|error| failed(&error))?;
        let watch = store.watch_with_history(format!("{group}.>")).await;
        let watch = watch.map_err(|error| failed(&told(&error)))?;
        let target = self.server.target().to_owned();
        let group = group.to_owned();
        let wire = Arc::new(Wire { target, group, client, store, inbox, broken });
        Ok(Link { wire, watch, own, answers })
    }
}

/// The text of an error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The shared connection to the bucket.
struct Wire {
    target: String,
    group: String,
    client: Client,
    store: Store,
    /// The subject for answers to probes.
    inbox: String,
    /// Whether the connection is lost.
    broken: watch::Receiver<bool>,
}

impl Wire {
    fn failed(&self, error: &dyn core::fmt::Display) -> Fault {
        Fault::other(self.target.as_str(), error)
    }

    fn closed(&self) -> Fault {
        Fault::Closed { target: self.target.clone() }
    }

    /// Waits for an operation, or for the end of the connection.
    async fn or_closed<T>(&self, wait: impl Future<Output = T>) -> Result<T, Fault> {
        let mut broken = self.broken.clone();
        tokio::select! {
            done = wait => Ok(done),
            _ = broken.wait_for(|broken| *broken) => Err(self.closed()),
        }
    }

    fn change(&self, entry: &kv::Entry) -> Change {
        // Deleting a key by hand revokes the lease.
        let value = match entry.operation {
            kv::Operation::Put => String::from_utf8_lossy(&entry.value).into_owned(),
            kv::Operation::Delete | kv::Operation::Purge => String::new(),
        };
        let age = entry.created - self.store.stream.cached_info().created;
        let age = Duration::try_from(age).unwrap_or_default();
        Change { key: entry.key.clone(), value, revision: entry.revision, age }
    }

    /// Deletes the key of a gateway that was removed long ago, without waiting.
    fn tidy(&self, entry: &kv::Entry) {
        let is_gone = entry.value.is_empty() && entry.key.starts_with(&format!("{}.gateway.", self.group));
        let now = taktwerk_net::clock::wall().unix_nanos() / 1_000_000_000;
        if is_gone && now - i128::from(entry.created.unix_timestamp()) > OLD.as_secs().into() {
            let (stream, subject) =
                (self.store.stream.clone(), format!("{}{}", self.store.prefix, entry.key));
            tokio::spawn(async move { drop(stream.purge().filter(subject).await) });
        }
    }
}

/// A connection to the bucket.
pub(super) struct Link {
    wire: Arc<Wire>,
    watch: Watch,
    /// The subscription by which other gateways detect this one.
    own: Subscriber,
    answers: Subscriber,
}

impl Bucket for Link {
    fn put<'a>(&self, write: &'a Write) -> BoxFuture<'a, Result<Option<u64>, Fault>> {
        let wire = Arc::clone(&self.wire);
        Box::pin(async move {
            let value = write.value.clone().into();
            match wire.or_closed(wire.store.update(&write.key, value, write.revision)).await? {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(wire.failed(&told(&error))),
            }
        })
    }

    fn read<'a>(&self, key: &'a str) -> BoxFuture<'a, Result<Option<Change>, Fault>> {
        let wire = Arc::clone(&self.wire);
        Box::pin(async move {
            let entry = wire.or_closed(wire.store.entry(key)).await?;
            let entry = entry.map_err(|error| wire.failed(&told(&error)))?;
            Ok(entry.map(|entry| wire.change(&entry)))
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Change, Fault>> {
        let wire = Arc::clone(&self.wire);
        let next = self.watch.next();
        Box::pin(async move {
            match wire.or_closed(next).await? {
                None => Err(wire.closed()),
                Some(Err(error)) => Err(wire.failed(&told(&error))),
                Some(Ok(entry)) => {
                    wire.tidy(&entry);
                    Ok(wire.change(&entry))
                }
            }
        })
    }

    fn probe<'a>(&self, ids: &'a [String]) -> BoxFuture<'a, Result<(), Fault>> {
        let wire = Arc::clone(&self.wire);
        Box::pin(async move {
            for id in ids {
                let (subject, reply) = (presence(&wire.group, id), format!("{}.{id}", wire.inbox));
                let sent = wire.client.publish_with_reply(subject, reply, "".into()).await;
                sent.map_err(|error| wire.failed(&told(&error)))?;
            }
            Ok(())
        })
    }

    fn unconnected(&mut self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        // Receiving a probe answers it.
        while let Some(Some(_)) = self.own.next().now_or_never() {}
        // The server answers in order: results of probes arrive before the answer to a later write.
        while let Some(Some(message)) = self.answers.next().now_or_never() {
            if message.status == Some(StatusCode::NO_RESPONDERS)
                && let Some(id) = message.subject.rsplit('.').next()
            {
                ids.insert(id.to_owned());
            }
        }
        ids
    }

    fn broken(&mut self) -> BoxFuture<'_, ()> {
        let mut broken = self.wire.broken.clone();
        Box::pin(async move {
            let _ = broken.wait_for(|broken| *broken).await;
        })
    }
}

impl Connect for Nats {
    type Bucket = Link;

    fn describe(&self) -> String {
        format!("NATS {}, bucket {}", self.server.target(), self.bucket)
    }

    fn connect<'a>(&'a self, group: &'a str, id: &'a str) -> BoxFuture<'a, Result<Link, Fault>> {
        Box::pin(self.link(group, id))
    }

    fn name(&self) -> String {
        let mut random = [0; 8];
        OsEntropy.fill(&mut random);
        format!("{:016x}", u64::from_be_bytes(random))
    }
}

#[cfg(test)]
mod tests {
    use crate::fields::{Mistake, Sections};
    use crate::lease::LeaseConfig;
    use std::path::Path;

    fn take(more: &str) -> Result<LeaseConfig, Mistake> {
        let text = format!("[lease]\ngroup = \"plant\"\n{more}");
        LeaseConfig::take(&mut Sections::parse(Path::new("g"), &text).unwrap().lease.unwrap())
    }

    #[test]
    fn a_section_names_the_server_and_the_bucket() {
        let taken = take("url = \"nats://broker\"\n").unwrap();
        assert_eq!(taken.cluster.describe(), "NATS broker:4222, bucket taktwerk-leases");
        assert!(taken.cluster.keeps_leases());
        let taken = take("url = \"tls://broker:4443\"\nbucket = \"a-b\"\nreplicas = 3\n").unwrap();
        assert_eq!(taken.cluster.describe(), "NATS broker:4443, bucket a-b");
        for (text, key, said) in [
            ("url = \"nats://user:secret@broker\"\n", "url", "this is no URL of a NATS server"),
            ("url = \"nats://broker\"\nbucket = \"a.b\"\n", "bucket", "\"a.b\" is no name"),
            ("url = \"nats://broker\"\nreplicas = 6\n", "replicas", "the number does not fit"),
            (
                "url = \"nats://broker\"\nuser = \"a\"\npassword_file = \"p\"\n",
                "",
                "cross the network unencrypted",
            ),
            ("url = \"nats://broker\"\nbuckte = \"a\"\n", "buckte", "there is no such setting"),
        ] {
            let mistake = take(text).unwrap_err();
            assert_eq!(mistake.key, key, "{mistake}");
            assert!(mistake.to_string().contains(said), "{mistake}");
        }
    }
}

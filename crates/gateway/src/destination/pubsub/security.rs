//! Message security of a destination: the keys of its security group, and signed and encrypted messages (Part 14 §7.2.4.4.3).

use super::super::settings::DestinationSettings;
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::opcua::{Remote, check_url};
use core::time::Duration;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk::pubsub::{KeyRequest, KeySource, KeyStoreOptions, SecurityKeys, SecurityMode, StaticKeys};
use taktwerk::pubsub_model::get_security_keys;
use taktwerk_config::pubsub_keys::KeyFile;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::OsEntropy;
use taktwerk_net::clock::monotonic;
use taktwerk_pubsub::security::{KeyStore, SecurityError, seal};
use taktwerk_pubsub::uadp::SecurityHeader;
use taktwerk_types::StatusCode;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Why there are no keys: a status for the key store, and a text for users.
type NoKeys = (StatusCode, String);

/// A source of keys.
trait Source: Send + Sync {
    fn fetch(&self, request: KeyRequest, deadline: Duration) -> BoxFuture<'_, Result<SecurityKeys, NoKeys>>;
}

/// A file with the keys of a group.
struct File(Arc<Mutex<StaticKeys>>);

impl Source for File {
    fn fetch(&self, request: KeyRequest, _: Duration) -> BoxFuture<'_, Result<SecurityKeys, NoKeys>> {
        let keys = Arc::clone(&self.0);
        Box::pin(async move {
            // Writes a file, so it may block.
            let fetch = move || keys.lock().unwrap_or_else(PoisonError::into_inner).fetch(&request);
            let fetched = tokio::task::spawn_blocking(fetch).await;
            let fetched = fetched.unwrap_or(Err(StatusCode::BAD_INTERNAL_ERROR));
            fetched.map_err(|status| (status, status.to_string()))
        })
    }
}

/// A key service.
struct Service(Remote);

impl Source for Service {
    fn fetch(&self, request: KeyRequest, deadline: Duration) -> BoxFuture<'_, Result<SecurityKeys, NoKeys>> {
        Box::pin(async move {
            let Self(remote) = self;
            let asked = async {
                let connected = remote.connect("gateway keys", deadline).await;
                let client =
                    connected.map_err(|fault| (StatusCode::BAD_NO_COMMUNICATION, fault.to_string()))?;
                let keys = get_security_keys(&client, &request).await;
                keys.map_err(|status| (status, format!("{} gives no keys: {status}", remote.target())))
            };
            let late = || format!("{} gives no keys within {deadline:?}", remote.target());
            timeout(deadline, asked).await.unwrap_or_else(|_| Err((StatusCode::BAD_TIMEOUT, late())))
        })
    }
}

/// The keys of a security group, and the securing of messages.
pub(super) struct Security {
    group: String,
    mode: SecurityMode,
    store: KeyStore,
    source: Arc<dyn Source>,
    /// Timeout of the source. Shorter than that of a batch, so that the batch fails with the actual reason.
    deadline: Duration,
    /// The pending request to the source. It is not awaited while there are keys, and cancelling a batch does not cancel it.
    asking: Option<JoinHandle<Result<SecurityKeys, NoKeys>>>,
    /// Why the last request returned no keys.
    reason: String,
}

impl Drop for Security {
    fn drop(&mut self) {
        if let Some(asking) = &self.asking {
            asking.abort();
        }
    }
}

impl Security {
    /// Takes the settings, if messages are secured.
    pub(super) fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Option<Self>, Mistake> {
        let modes = [
            ("none", SecurityMode::None),
            ("sign", SecurityMode::Sign),
            ("sign-and-encrypt", SecurityMode::SignAndEncrypt),
        ];
        let mode = fields.word("message_security", &modes)?;
        let group = fields.text_at("security_group")?;
        let file = fields.text_at("keys")?;
        let service = fields.text_at("key_service")?;
        let pki = fields.text("key_service_pki")?;
        let user = (fields.text("key_service_user")?, fields.text("key_service_password_file")?);
        let (group, source): (String, Arc<dyn Source>) = match (file, service) {
            (None, None) => {
                let hint = "set keys = \"FILE\" (taktwerk pubsub keys GROUP > FILE) or key_service = \"opc.tcp://HOST\"";
                return match mode.unwrap_or_default() {
                    SecurityMode::None => Ok(None),
                    _ => Err(fields.mistake("message_security needs the keys of a security group", hint)),
                };
            }
            (Some(_), Some(_)) => {
                return Err(fields.mistake("keys and key_service exclude each other", "remove one of them"));
            }
            (Some((line, file)), None) => {
                let folder = fields.path().parent().unwrap_or(std::path::Path::new(""));
                let hint = "make one with: taktwerk pubsub keys GROUP > FILE; chmod 600 FILE";
                let read =
                    KeyFile::read(&folder.join(file)).and_then(|file| file.check_nonces().map(|()| file));
                let file = read.map_err(|error| fields.mistake_in(line, "keys", error.to_string(), hint))?;
                if let Some((line, group)) = group.filter(|(_, group)| *group != file.group) {
                    let problem = format!("the file has keys of {:?}, not of {group:?}", file.group);
                    return Err(fields.mistake_in(line, "security_group", problem, "leave it out"));
                }
                (file.group.clone(), Arc::new(File(Arc::new(Mutex::new(file.add_to(StaticKeys::new()))))))
            }
            (None, Some((line, url))) => {
                check_url(fields, line, "key_service", &url)?;
                let Some((_, group)) = group else {
                    let hint = "set security_group = \"NAME\", as the key service calls it";
                    return Err(fields.mistake("key_service requires a security group", hint));
                };
                let user = match user {
                    (Some(user), Some(file)) => Some((user, file)),
                    (None, None) => None,
                    _ => {
                        let hint = "set key_service_user and key_service_password_file";
                        return Err(fields.mistake("a user needs a name and a password", hint));
                    }
                };
                (group, Arc::new(Service(Remote::secured(fields, url, pki, user))))
            }
        };
        let mode = mode.unwrap_or(SecurityMode::SignAndEncrypt);
        if mode == SecurityMode::None {
            let hint = "leave them out, or set message_security = \"sign-and-encrypt\"";
            return Err(fields.mistake("there are keys, but nothing is secured", hint));
        }
        Ok(Some(Self::new(group, mode, source, settings.deadline / 2)))
    }

    fn new(group: String, mode: SecurityMode, source: Arc<dyn Source>, deadline: Duration) -> Self {
        let mut store = KeyStore::new(Arc::new(AwsPubSubProvider), KeyStoreOptions::default());
        store.add_group(&group, &[]);
        Self { group, mode, store, source, deadline, asking: None, reason: String::new() }
    }

    /// A short description.
    pub(super) fn describe(&self) -> String {
        let how = if self.mode == SecurityMode::Sign { "signed" } else { "encrypted" };
        format!("{how} with keys of {}", self.group)
    }

    /// Requests keys if they are due. Waits for them if nothing can be sent without.
    ///
    /// # Errors
    /// There are no keys.
    pub(super) async fn prepare(&mut self) -> Result<(), Fault> {
        if self.asking.is_none()
            && let Some(request) = self.store.poll_request(monotonic())
        {
            let (source, deadline) = (Arc::clone(&self.source), self.deadline);
            self.asking = Some(tokio::spawn(async move { source.fetch(request, deadline).await }));
        }
        let has_keys = self.token().is_some();
        if let Some(asking) = self.asking.as_mut().filter(|asking| !has_keys || asking.is_finished()) {
            let panicked = || (StatusCode::BAD_INTERNAL_ERROR, "asking for keys panicked".to_owned());
            let outcome = asking.await.unwrap_or_else(|_| Err(panicked()));
            self.asking = None;
            if let Err((_, reason)) = &outcome {
                tracing::warn!(group = self.group, reason, "there are no new keys for the security group");
                self.reason.clone_from(reason);
            }
            let outcome = outcome.as_ref().map_err(|(status, _)| *status);
            self.store.answer(&self.group, outcome, monotonic()).map_err(|error| self.fault(&error))?;
        }
        match self.store.ring(&self.group) {
            Some(_) => Ok(()),
            None => Err(Fault::other(format!("security group {:?}", self.group), &self.reason)),
        }
    }

    /// The id of the key for the next message; `None` if there is no valid one.
    pub(super) fn token(&mut self) -> Option<u32> {
        let ring = self.store.ring_mut(&self.group)?;
        let is_usable = ring.advance(monotonic()).is_ok() && ring.check_nonces().is_ok();
        is_usable.then(|| ring.current_token_id())
    }

    fn fault(&self, error: &SecurityError) -> Fault {
        Fault::other(format!("security group {:?}", self.group), error)
    }

    /// Creates a message with the next nonce. `write` appends it and returns the start of its payload.
    ///
    /// # Errors
    /// There is no key or no nonce.
    pub(super) fn secure(
        &mut self,
        write: impl FnOnce(SecurityHeader<'_>, &mut Vec<u8>) -> usize,
    ) -> Result<Vec<u8>, Fault> {
        let sealed = self.sealed(write);
        sealed.map_err(|error| self.fault(&error))
    }

    fn sealed(
        &mut self,
        write: impl FnOnce(SecurityHeader<'_>, &mut Vec<u8>) -> usize,
    ) -> Result<Vec<u8>, SecurityError> {
        let (now, mode) = (monotonic(), self.mode);
        let ring = self.store.ring_mut(&self.group).ok_or(SecurityError::NoKeys)?;
        let force_key_reset = ring.forces_key_reset(now);
        let (token_id, keys, nonce) = ring.next_nonce(&mut OsEntropy, now)?;
        let header =
            SecurityHeader { mode, force_key_reset, token_id, nonce: &nonce, ..SecurityHeader::default() };
        let mut message = Vec::new();
        let payload = write(header, &mut message);
        message.resize(message.len() + keys.signature_len(), 0);
        seal(keys, mode, &nonce, &mut message, payload)?;
        Ok(message)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::VecDeque;
    use taktwerk_crypto::PubSubSecurityPolicy;

    /// A source that returns some answers, and then none.
    struct Given(Mutex<VecDeque<Result<SecurityKeys, NoKeys>>>);

    impl Source for Given {
        fn fetch(&self, _: KeyRequest, _: Duration) -> BoxFuture<'_, Result<SecurityKeys, NoKeys>> {
            let next = self.0.lock().unwrap().pop_front();
            Box::pin(async move {
                match next {
                    Some(answer) => answer,
                    None => core::future::pending().await,
                }
            })
        }
    }

    /// Security whose source returns two keys with this lifetime, and then hangs.
    pub(in super::super) fn two_keys(lifetime: Duration) -> Security {
        let policy = PubSubSecurityPolicy::Aes256Ctr;
        let millis = lifetime.as_secs_f64() * 1e3;
        let keys = SecurityKeys {
            security_policy_uri: policy.uri().to_owned(),
            first_token_id: 7,
            keys: vec![vec![1; policy.key_data_len()], vec![2; policy.key_data_len()]],
            time_to_next_key: millis,
            key_lifetime: millis,
            current_token_id: None,
            nonces: None,
        };
        let source = Arc::new(Given(Mutex::new(VecDeque::from([Ok(keys)]))));
        Security::new("g".to_owned(), SecurityMode::SignAndEncrypt, source, Duration::from_secs(1))
    }

    #[tokio::test]
    async fn a_hanging_key_service_does_not_delay_messages_while_there_are_keys() {
        let mut security = two_keys(Duration::from_secs(2));
        let short = Duration::from_millis(500);
        timeout(short, security.prepare()).await.unwrap().unwrap();
        assert_eq!((security.token(), security.asking.is_some()), (Some(7), false));
        // After half of a key's lifetime new keys are requested, but do not arrive.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        for _ in 0..3 {
            timeout(short, security.prepare()).await.unwrap().unwrap();
        }
        assert!(security.asking.is_some() && security.token().is_some());
        // When all keys have expired, the same request is awaited.
        tokio::time::sleep(Duration::from_millis(3000)).await;
        assert_eq!(security.token(), None);
        assert!(timeout(short, security.prepare()).await.is_err());
        assert!(security.asking.is_some(), "giving up a batch does not end it");
    }
}

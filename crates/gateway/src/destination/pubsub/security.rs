//! Message security of a destination: the keys of its security group, and signed and encrypted messages (Part 14 §7.2.4.4.3).

use super::super::settings::DestinationSettings;
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::opcua::{Remote, check_url};
use core::time::Duration;
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

/// Where keys come from.
enum Source {
    File(Arc<Mutex<StaticKeys>>),
    Service(Box<Remote>),
}

impl Source {
    async fn fetch(
        &self,
        request: &KeyRequest,
        deadline: Duration,
    ) -> Result<SecurityKeys, (StatusCode, String)> {
        match self {
            Self::File(keys) => {
                let (keys, request) = (Arc::clone(keys), request.clone());
                // It writes a file.
                let fetch = move || keys.lock().unwrap_or_else(PoisonError::into_inner).fetch(&request);
                let fetched = tokio::task::spawn_blocking(fetch).await;
                let fetched = fetched.unwrap_or(Err(StatusCode::BAD_INTERNAL_ERROR));
                fetched.map_err(|status| (status, status.to_string()))
            }
            Self::Service(remote) => {
                let connected = remote.connect("gateway keys", deadline).await;
                let client =
                    connected.map_err(|fault| (StatusCode::BAD_NO_COMMUNICATION, fault.to_string()))?;
                let keys = get_security_keys(&client, request).await;
                keys.map_err(|status| (status, format!("{} gives no keys: {status}", remote.target())))
            }
        }
    }
}

/// The keys of a security group, and what is done with them.
pub(super) struct Security {
    group: String,
    mode: SecurityMode,
    store: KeyStore,
    source: Source,
    deadline: Duration,
    /// A request that was not answered yet: a batch that was given up does not take it along.
    request: Option<KeyRequest>,
    /// Why the last request was not answered with keys.
    reason: String,
}

impl Security {
    /// Takes the settings, if messages are to be secured.
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
        let (group, source) = match (file, service) {
            (None, None) => {
                let hint = "set keys = \"FILE\" (taktwerk pubsub keys GROUP > FILE) or key_service = \"opc.tcp://HOST\"";
                return match mode.unwrap_or_default() {
                    SecurityMode::None => Ok(None),
                    _ => Err(fields.mistake("message_security needs the keys of a security group", hint)),
                };
            }
            (Some(_), Some(_)) => {
                return Err(
                    fields.mistake("keys and key_service exclude each other", "leave out one of them")
                );
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
                (file.group.clone(), Source::File(Arc::new(Mutex::new(file.add_to(StaticKeys::new())))))
            }
            (None, Some((line, url))) => {
                check_url(fields, line, "key_service", &url)?;
                let Some((_, group)) = group else {
                    let hint = "set security_group = \"NAME\", as the key service calls it";
                    return Err(fields.mistake("key_service needs to know whose keys to ask for", hint));
                };
                let user = match user {
                    (Some(user), Some(file)) => Some((user, file)),
                    (None, None) => None,
                    _ => {
                        let hint = "set key_service_user and key_service_password_file";
                        return Err(fields.mistake("a user needs a name and a password", hint));
                    }
                };
                (group, Source::Service(Box::new(Remote::secured(fields, url, pki, user))))
            }
        };
        let mode = mode.unwrap_or(SecurityMode::SignAndEncrypt);
        if mode == SecurityMode::None {
            let hint = "leave them out, or set message_security = \"sign-and-encrypt\"";
            return Err(fields.mistake("there are keys, but nothing is secured", hint));
        }
        let mut store = KeyStore::new(Arc::new(AwsPubSubProvider), KeyStoreOptions::default());
        store.add_group(&group, &[]);
        let (deadline, request, reason) = (settings.deadline, None, String::new());
        Ok(Some(Self { group, mode, store, source, deadline, request, reason }))
    }

    /// A few words about it.
    pub(super) fn describe(&self) -> String {
        let how = if self.mode == SecurityMode::Sign { "signed" } else { "encrypted" };
        format!("{how} with keys of {}", self.group)
    }

    /// Asks for keys if it is time for it. Waits for them.
    ///
    /// # Errors
    /// There are no keys.
    pub(super) async fn prepare(&mut self) -> Result<(), Fault> {
        if self.request.is_none() {
            self.request = self.store.poll_request(monotonic());
        }
        if let Some(request) = self.request.clone() {
            let outcome = self.source.fetch(&request, self.deadline).await;
            self.request = None;
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

    fn fault(&self, error: &SecurityError) -> Fault {
        Fault::other(format!("security group {:?}", self.group), error)
    }

    /// Makes a message with the next nonce. `write` appends it and says where its payload begins.
    ///
    /// # Errors
    /// There is no key, or no nonce, to make it with.
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

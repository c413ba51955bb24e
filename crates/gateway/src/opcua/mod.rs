//! Connections to other OPC UA servers, for sources and destinations.

use crate::fault::Fault;
use crate::fields::{Fields, Mistake, Setting};
use crate::tls::{identity_hint, read_identity};
use crate::value::Kind;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use taktwerk::Client;
use taktwerk::client::Error;
use taktwerk_client::{ClientError, ReconnectPolicy, Security as Wanted};
use taktwerk_types::{BuiltInType, ExpandedNodeId, NodeId, StatusCode, UaString, Variant};

/// The default directory of certificates.
pub const PKI: &str = "pki-gateway";

/// How connections are secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Security {
    None,
    Best,
}

/// The user of a connection.
#[derive(Debug)]
enum User {
    /// A name, and the file with the password.
    Name(String, PathBuf),
    /// The files of a certificate and of its key.
    Certificate(PathBuf, PathBuf),
}

/// Another server with its connection settings.
#[derive(Debug)]
pub struct Remote {
    /// Its URL; several for redundant servers.
    urls: Vec<String>,
    /// The index of the current URL.
    current: AtomicUsize,
    security: Security,
    pki: PathBuf,
    user: Option<User>,
}

impl Remote {
    /// Takes the settings of a server.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields) -> Result<Self, Mistake> {
        let (line, urls) = match fields.get("url") {
            Some(Setting::List(_)) => (fields.line(), fields.texts("url")?.unwrap_or_default()),
            _ => {
                let (line, url) = fields.required("url", "\"opc.tcp://plc:4840\"")?;
                (line, vec![url])
            }
        };
        if urls.is_empty() {
            return Err(fields.mistake_in(line, "url", "is empty", "write \"opc.tcp://host:4840\""));
        }
        for url in &urls {
            check_url(fields, line, "url", url)?;
        }
        let pki = fields.text("pki")?;
        let security = fields.word("security", &[("none", Security::None), ("best", Security::Best)])?;
        let user = take_user(fields)?;
        let security = security.unwrap_or(if pki.is_some() { Security::Best } else { Security::None });
        if let (Some(user), Security::None) = (&user, security) {
            let hint = "set security = \"best\" and pki = \"FOLDER\"";
            let problem = match user {
                User::Name(..) => "the password would cross the network unencrypted",
                User::Certificate(..) => "a user certificate needs a secured connection",
            };
            return Err(fields.mistake(problem, hint));
        }
        let pki = beside(fields, pki.as_deref().unwrap_or(PKI));
        Ok(Self { urls, current: AtomicUsize::new(0), security, pki, user })
    }

    /// A server with a secured connection. Paths are relative to the directory of the configuration file. `user` is a name and
    /// the password file.
    #[must_use]
    pub fn secured(
        fields: &Fields,
        url: String,
        pki: Option<String>,
        user: Option<(String, String)>,
    ) -> Self {
        Self {
            urls: vec![url],
            current: AtomicUsize::new(0),
            security: Security::Best,
            pki: beside(fields, pki.as_deref().unwrap_or(PKI)),
            user: user.map(|(user, file)| User::Name(user, beside(fields, &file))),
        }
    }

    /// A short description.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("OPC UA {}", self.urls.join(" or "))
    }

    /// Host and port, for messages.
    #[must_use]
    pub fn target(&self) -> &str {
        self.url().trim_start_matches("opc.tcp://")
    }

    fn url(&self) -> &str {
        let at = self.current.load(Ordering::Relaxed) % self.urls.len().max(1);
        self.urls.get(at).map_or("", String::as_str)
    }

    /// The number of redundant servers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.urls.len()
    }

    /// Switches to the next server.
    pub fn turn(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }

    /// Connects. The library does not reconnect. After a failure, or if the future is dropped, the next of several servers is
    /// used.
    ///
    /// # Errors
    /// The connection failed, or the server is not trusted.
    pub async fn connect(&self, session: &str, deadline: Duration) -> Result<Client, Fault> {
        let (url, target) = (self.url().to_owned(), self.target().to_owned());
        let current = self.current.fetch_add(1, Ordering::Relaxed);
        let mut builder = Client::builder(&url)
            .application_name("Taktwerk gateway")
            .session_name(session)
            .request_timeout(deadline)
            // The users of the connection start again as a whole.
            .reconnect(ReconnectPolicy { enabled: false, ..ReconnectPolicy::default() });
        builder = match self.security {
            Security::None => builder.unsecured(),
            Security::Best => {
                let fail =
                    |error: &dyn core::fmt::Display| Fault::other(self.pki.display().to_string(), error);
                let settings =
                    taktwerk_pki::CertificateSettings::new("Taktwerk gateway", "urn:taktwerk:gateway:client");
                let pki = taktwerk::pki::Pki::in_folder(&self.pki)
                    .settings(settings)
                    .create_missing(vec![taktwerk_pki::NewKey::Rsa2048])
                    .open();
                builder.pki(&pki.map_err(|error| fail(&error))?).security(Wanted::Best)
            }
        };
        builder = match &self.user {
            Some(User::Name(user, file)) => {
                let password = taktwerk_config::file::read_text(file, 4096);
                let password = password.map_err(|error| Fault::unreadable("password_file", file, &error))?;
                builder.user(user, password.trim_end_matches(['\r', '\n']))
            }
            Some(User::Certificate(certificate, key)) => {
                // Only the key is used, for signing; this provider validates no certificates.
                let pki = taktwerk::pki::Pki::in_folder(&self.pki).own_files(certificate, key).open();
                let fail = |error: &dyn core::fmt::Display| Fault::other("the user certificate", error);
                builder.user_certificate(pki.map_err(|error| fail(&error))?.provider())
            }
            None => builder,
        };
        let client = builder
            .connect()
            .await
            .map_err(|error| Fault::Connect { target, reason: self.reason(&error) })?;
        self.current.store(current, Ordering::Relaxed);
        Ok(client)
    }

    /// Why the connection failed, and how to correct missing trust.
    fn reason(&self, error: &Error) -> String {
        let Error::Client(error) = error else { return error.to_string() };
        let pki = self.pki.display();
        let is_untrusted = |status| status == StatusCode::BAD_CERTIFICATE_UNTRUSTED;
        if error.refused_certificate().is_some_and(|refusal| is_untrusted(refusal.status())) {
            return format!(
                "{error}; if it is the right server, trust it with: taktwerk pki trust --pki {pki}"
            );
        }
        match error {
            // Servers do not tell untrusted clients more than the first status (Part 4 §6.1.3).
            ClientError::ServerClosed { status, .. } | ClientError::Service { status, .. }
                if *status == StatusCode::BAD_SECURITY_CHECKS_FAILED || is_untrusted(*status) =>
            {
                format!(
                    "{error}; most likely it does not trust the certificate of the gateway yet ({pki}/own/certs)"
                )
            }
            _ => error.to_string(),
        }
    }
}

/// Takes the user: `user` and `password_file`, or `user_certificate_file` and `user_key_file`.
fn take_user(fields: &mut Fields) -> Result<Option<User>, Mistake> {
    let (user, password_file) = (fields.text("user")?, fields.text("password_file")?);
    let certificate = fields.text_at("user_certificate_file")?;
    let key = fields.text_at("user_key_file")?;
    match (user, password_file, certificate, key) {
        (None, None, None, None) => Ok(None),
        (Some(user), Some(file), None, None) => Ok(Some(User::Name(user, beside(fields, &file)))),
        (None, None, Some((line, certificate)), Some((line_of_key, key))) => {
            let (certificate, key) = (beside(fields, &certificate), beside(fields, &key));
            match read_identity(&certificate, &key) {
                Ok(_) => Ok(Some(User::Certificate(certificate, key))),
                Err((is_key, problem)) => {
                    let (line, name) =
                        if is_key { (line_of_key, "user_key_file") } else { (line, "user_certificate_file") };
                    Err(fields.mistake_in(line, name, problem, identity_hint(is_key)))
                }
            }
        }
        (None, None, Some((line, _)), None) => {
            let hint = "set user_key_file, too";
            Err(fields.mistake_in(line, "user_certificate_file", "its private key is missing", hint))
        }
        (None, None, None, Some((line, _))) => {
            let hint = "set user_certificate_file, too";
            Err(fields.mistake_in(line, "user_key_file", "its certificate is missing", hint))
        }
        (_, _, None, None) => {
            Err(fields.mistake("a user needs a name and a password", "set user and password_file"))
        }
        _ => {
            let hint = "set user and password_file, or user_certificate_file and user_key_file";
            Err(fields.mistake("there are a password and a certificate of the user", hint))
        }
    }
}

/// Checks the URL of a server.
///
/// # Errors
/// It is not a valid URL.
pub fn check_url(fields: &Fields, line: usize, key: &str, url: &str) -> Result<(), Mistake> {
    if !url.starts_with("opc.tcp://") || url.len() < 11 || url.contains(char::is_whitespace) {
        let problem = format!("{url:?} is no URL of an OPC UA server");
        return Err(fields.mistake_in(line, key, problem, "write \"opc.tcp://host:4840\""));
    }
    if url.contains('@') {
        let hint = "the user and the file with the password have settings of their own";
        return Err(fields.mistake_in(line, key, "the URL must not contain a user", hint));
    }
    Ok(())
}

/// A path relative to the directory of the configuration file.
fn beside(fields: &Fields, path: &str) -> PathBuf {
    fields.path().parent().map(|folder| folder.join(path)).unwrap_or_else(|| PathBuf::from(path))
}

/// A node as text with its namespace URI, which stays valid if indexes change.
#[must_use]
pub fn address(node: &NodeId, namespaces: &[UaString]) -> String {
    match namespaces.get(usize::from(node.namespace_index)) {
        Some(uri) if node.namespace_index > 0 => {
            let node_id = NodeId { namespace_index: 0, identifier: node.identifier.clone() };
            ExpandedNodeId { node_id, namespace_uri: uri.clone(), server_index: 0 }.to_string()
        }
        _ => node.to_string(),
    }
}

/// Checks a NodeId.
///
/// # Errors
/// It is not a valid NodeId.
pub fn check_node(fields: &Fields, line: usize, key: &str, text: &str) -> Result<(), Mistake> {
    text.parse::<ExpandedNodeId>().map(drop).map_err(|error| {
        let hint = "write nsu=URI;s=NAME, ns=2;s=NAME or i=85; `taktwerk browse URL` shows nodes";
        fields.mistake_in(line, key, format!("{text:?} is not a NodeId ({error})"), hint)
    })
}

/// The type of a mirrored variable. `None` if its values have a meaning only on their own server: ids and names with namespace
/// indexes, and structures.
#[must_use]
pub fn kind_of(data_type: &NodeId, value: Option<&Variant>) -> Option<Kind> {
    use BuiltInType as B;
    let is_array = value.is_some_and(|value| value.as_array().is_some());
    let of_type = match data_type.ns0() {
        Some(290) => Some(B::Double),
        Some(294) => Some(B::DateTime),
        Some(288 | 289) => Some(B::UInt32),
        Some(295) => Some(B::String),
        Some(29) => Some(B::Int32),
        Some(number @ 1..=23) => B::from_number(number as u8),
        _ => None,
    };
    let element = of_type.or_else(|| value.and_then(Variant::built_in_type))?;
    let is_plain = matches!(
        element,
        B::Boolean
            | B::SByte
            | B::Byte
            | B::Int16
            | B::UInt16
            | B::Int32
            | B::UInt32
            | B::Int64
            | B::UInt64
            | B::Float
            | B::Double
            | B::String
            | B::DateTime
            | B::Guid
            | B::ByteString
            | B::XmlElement
            | B::StatusCode
            | B::LocalizedText
    );
    is_plain.then_some(Kind { element, is_array })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk_crypto::CryptoError;

    #[test]
    fn redundant_servers_are_tried_in_turn() {
        let remote = |url: &str| {
            let text = format!("[[source]]\nurl = {url}\n");
            Remote::take(&mut Sections::parse(Path::new("g"), &text).unwrap().sources[0])
        };
        let two = remote("[\"opc.tcp://a:1\", \"opc.tcp://b:2\"]").unwrap();
        assert_eq!((two.describe().as_str(), two.count()), ("OPC UA opc.tcp://a:1 or opc.tcp://b:2", 2));
        assert_eq!(two.target(), "a:1");
        two.turn();
        assert_eq!(two.target(), "b:2");
        two.turn();
        assert_eq!(two.target(), "a:1");
        assert_eq!(remote("\"opc.tcp://a\"").unwrap().count(), 1);
        for wrong in ["[]", "[\"opc.tcp://a\", \"b\"]", "[1]", "\"opc.tcp://u@a\"", "7"] {
            assert_eq!(remote(wrong).unwrap_err().key, "url", "{wrong}");
        }
    }

    #[test]
    fn missing_trust_is_reported_with_the_side_to_correct() {
        let remote = Remote {
            urls: vec!["opc.tcp://plc".to_owned()],
            current: AtomicUsize::new(0),
            security: Security::Best,
            pki: PathBuf::from("pki-gateway"),
            user: None,
        };
        let closed = |status| Error::from(ClientError::ServerClosed { status, reason: "".into() });
        assert_eq!(
            remote.reason(&closed(StatusCode::BAD_SECURITY_CHECKS_FAILED)),
            "the server ended the connection: BadSecurityChecksFailed; most likely it does not trust the certificate \
             of the gateway yet (pki-gateway/own/certs)"
        );
        let told = remote.reason(&closed(StatusCode::BAD_CERTIFICATE_UNTRUSTED));
        assert!(told.ends_with("of the gateway yet (pki-gateway/own/certs)"), "{told}");
        let refused = CryptoError::certificate(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "no issuer");
        let here = remote.reason(&ClientError::Channel(refused.into()).into());
        assert!(here.ends_with("taktwerk pki trust --pki pki-gateway"), "{here}");
        let full = remote.reason(&closed(StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES));
        assert_eq!(full, "the server ended the connection: BadTcpNotEnoughResources");
    }

    #[test]
    fn types_follow_the_data_type_then_the_value() {
        let kind = |id, value: Option<Variant>| kind_of(&id, value.as_ref());
        assert_eq!(kind(NodeId::numeric(0, 11), None), Some(Kind::scalar(BuiltInType::Double)));
        assert_eq!(kind(NodeId::numeric(0, 290), None), Some(Kind::scalar(BuiltInType::Double)));
        assert_eq!(kind(NodeId::numeric(3, 7), Some(2.into())), Some(Kind::scalar(BuiltInType::Int32)));
        assert_eq!(
            kind(NodeId::numeric(0, 26), Some(vec![1u8].into())),
            Some(Kind { element: BuiltInType::Byte, is_array: true })
        );
        assert_eq!(kind(NodeId::numeric(3, 7), None), None);
        assert_eq!(kind(NodeId::numeric(0, 17), Some(NodeId::numeric(1, 2).into())), None);
    }
}

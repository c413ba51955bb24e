//! HTTP/1.1 requests to one server, for sources and destinations.

use crate::connect::{self, host_and_port, is_local};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::tls::ClientTls;
use core::time::Duration;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use taktwerk_types::node_id::base64;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A server with a path, and how to connect to it.
#[derive(Debug)]
pub struct Endpoint {
    host: String,
    port: u16,
    path: String,
    is_tls: bool,
    tls: ClientTls,
    credentials: Option<Credentials>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The credentials of a request (RFC 9110 §11). Files are read for each request, because tokens are renewed.
#[derive(Debug)]
enum Credentials {
    /// A token with its scheme, such as `Bearer`.
    Token { scheme: &'static str, file: PathBuf },
    /// A user with a password (RFC 7617).
    Basic { user: String, password_file: PathBuf },
}

impl Credentials {
    /// Takes `token_file`, or `user` and `password_file`.
    fn take(fields: &mut Fields, scheme: &'static str) -> Result<Option<Self>, Mistake> {
        let folder = fields.path().parent().map(PathBuf::from).unwrap_or_default();
        let token = fields.text("token_file")?;
        let (user, password) = (fields.text_at("user")?, fields.text("password_file")?);
        match (token, user, password) {
            (None, None, None) => Ok(None),
            (Some(file), None, None) => Ok(Some(Self::Token { scheme, file: folder.join(file) })),
            (None, Some((line, user)), Some(_))
                if user.contains(':') || user.chars().any(char::is_control) =>
            {
                let hint = "names of users have no colon and no control characters";
                Err(fields.mistake_in(line, "user", format!("{user:?} is no user"), hint))
            }
            (None, Some((_, user)), Some(file)) => {
                Ok(Some(Self::Basic { user, password_file: folder.join(file) }))
            }
            (Some(_), ..) => {
                Err(fields
                    .mistake("there are a token and a user", "set token_file, or user and password_file"))
            }
            _ => Err(fields.mistake("a user needs a name and a password", "set user and password_file")),
        }
    }

    /// The header's value.
    fn read(&self) -> Result<String, Fault> {
        let read = |key: &str, file: &PathBuf| {
            let text = taktwerk_config::file::read_text(file, 16 << 10);
            text.map_err(|error| Fault::unreadable(key, file, &error))
        };
        Ok(match self {
            Self::Token { scheme, file } => format!("{scheme} {}", read("token_file", file)?.trim()),
            Self::Basic { user, password_file } => {
                let password = read("password_file", password_file)?;
                format!(
                    "Basic {}",
                    base64(format!("{user}:{}", password.trim_end_matches(['\r', '\n'])).as_bytes())
                )
            }
        })
    }
}

/// A connection.
pub type Sender = SendRequest<Full<Bytes>>;

impl Endpoint {
    /// Takes the settings of a server: `url`, `token_file` with `allow_plaintext_token`, `user` and `password_file` with
    /// `allow_plaintext_password`, `headers`, `ca_file`, `certificate_file` and `key_file`.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, example: &str, scheme: &'static str) -> Result<Self, Mistake> {
        let (line, url) = fields.required("url", example)?;
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, ""),
        };
        let cut = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        let is_path = path.chars().all(|char| char.is_ascii_graphic() && char != '#');
        let address = host_and_port(authority, if is_tls { 443 } else { 80 }).filter(|_| is_path);
        let Some((host, port)) = address else {
            let hint = "write \"http://host:port/path\" or \"https://host/path\", without a user";
            return Err(fields.mistake_in(line, "url", "this is no URL", hint));
        };
        let credentials = Credentials::take(fields, scheme)?;
        let is_open = [fields.flag("allow_plaintext_token")?, fields.flag("allow_plaintext_password")?];
        let [is_token_open, is_password_open] = is_open.map(|open| open.unwrap_or(false));
        let (what, is_open) = match &credentials {
            Some(Credentials::Basic { .. }) => ("password", is_password_open),
            _ => ("token", is_token_open),
        };
        if credentials.is_some() && !is_tls && !is_local(&host) && !is_open {
            let hint = format!("use https://, or set allow_plaintext_{what} = true on a trusted network");
            return Err(fields.mistake(format!("the {what} would cross the network unencrypted"), hint));
        }
        let mut headers = Vec::new();
        for entry in fields.texts("headers")?.unwrap_or_default() {
            let header = entry.split_once(':').and_then(|(name, value)| {
                Some((name.trim().parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
            });
            let Some(header) = header else {
                let hint = "write headers = [\"Name: value\"]";
                return Err(fields.mistake(format!("{entry:?} is no header"), hint));
            };
            headers.push(header);
        }
        Ok(Self {
            host,
            port,
            path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
            is_tls,
            tls: ClientTls::take(fields, is_tls)?,
            credentials,
            headers,
        })
    }

    /// Host and port.
    #[must_use]
    pub fn target(&self) -> String {
        connect::target(&self.host, self.port)
    }

    /// The path of the URL, with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Replaces the path of the URL.
    pub fn set_path(&mut self, path: String) {
        self.path = path;
    }

    /// The URL without its query.
    #[must_use]
    pub fn describe(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{}://{}{path}", if self.is_tls { "https" } else { "http" }, self.target())
    }

    /// Connects.
    ///
    /// # Errors
    /// The connection is not established within the deadline, or the server is not trusted.
    pub async fn open(&self, deadline: Duration) -> Result<Sender, Fault> {
        let target = self.target();
        let fail = |error: &dyn core::fmt::Display| Fault::other(target.clone(), error);
        let stream = connect::tcp(&self.host, self.port, deadline).await?;
        let (sender, driver): (Sender, BoxFuture<'static, ()>) = if self.is_tls {
            let connector = TlsConnector::from(self.tls.config()?);
            let name = ServerName::try_from(self.host.clone()).map_err(|error| fail(&error))?;
            let stream = connector.connect(name, stream).await.map_err(|error| {
                let told = error.to_string();
                fail(&crate::tls::advice(&told).unwrap_or(&told))
            })?;
            let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| fail(&error))?;
            (sender, Box::pin(async move { drop(driver.await) }))
        } else {
            let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| fail(&error))?;
            (sender, Box::pin(async move { drop(driver.await) }))
        };
        // The task ends when the sender is dropped.
        tokio::spawn(driver);
        Ok(sender)
    }

    /// Sends a request. Returns the status and the body of the answer, which may have at most `body_max` bytes.
    ///
    /// # Errors
    /// The token cannot be read, or the answer is incomplete.
    pub async fn ask(
        &self,
        sender: &mut Sender,
        method: Method,
        (name, value): (HeaderName, &'static str),
        body: Bytes,
        body_max: usize,
    ) -> Result<(StatusCode, Bytes), Fault> {
        let target = self.target();
        let fail = |error: &dyn core::fmt::Display| self.failed(error);
        let mut request = Request::builder()
            .method(method)
            .uri(&self.path)
            .header(HOST, if matches!(self.port, 80 | 443) { &self.host } else { &target })
            .header(name, value)
            .header(USER_AGENT, "taktwerk-gateway");
        if let Some(credentials) = &self.credentials {
            let value = HeaderValue::try_from(credentials.read()?);
            let mut value = value.map_err(|_| fail(&"the token has characters that a header cannot have"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| fail(&error))?;
        sender.ready().await.map_err(|error| fail(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| fail(&error))?;
        let status = answer.status();
        let body =
            Limited::new(answer.into_body(), body_max).collect().await.map_err(|error| fail(&error))?;
        Ok((status, body.to_bytes()))
    }

    /// A fault of this server.
    pub fn failed(&self, error: &dyn core::fmt::Display) -> Fault {
        let path = self.path.split('?').next().unwrap_or_default();
        let told = error.to_string();
        Fault::other(format!("{}{path}", self.target()), crate::tls::advice(&told).unwrap_or(&told))
    }
}

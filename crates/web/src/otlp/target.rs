//! The HTTP connection to an OTLP collector.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Maximum number of bytes to read of a response.
const ANSWER_MAX: usize = 64 << 10;

/// Why a setting of the export cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The URL is invalid.
    #[error(
        "{0:?} is not the URL of a collector; write \"http://localhost:4318\" or \"https://collector.example.com\""
    )]
    Url(String),
    /// A line of the headers file is invalid.
    #[error("{path}: line {line} is not a header; write \"Name: value\"")]
    Header {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// Headers may contain secrets and need HTTPS or loopback.
    #[error(
        "headers may contain secrets and would be sent unencrypted: use https://, or a collector on this machine"
    )]
    Plaintext,
    /// A file cannot be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// No certificate authorities are available.
    #[error("there are no certificate authorities to trust; name a file with ca_file")]
    NoAuthorities,
    /// The thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Why sending a message failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// For the log.
    pub(super) reason: String,
    /// Whether retrying is useless.
    pub(super) is_final: bool,
}

impl Failure {
    fn of(error: impl std::error::Error) -> Self {
        let reason = match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        Self { reason, is_final: false }
    }

    /// Only some statuses are retryable (OTLP 1.x, "Retryable Response Codes").
    fn answered(path: &str, status: StatusCode, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let text: String = text.trim().chars().take(200).collect();
        let mut reason = format!("{path}: {status} {text}").trim_end().to_owned();
        if status == StatusCode::NOT_FOUND {
            reason.push_str(
                "; correct url, or set metrics or traces = false if the collector does not accept them",
            );
        }
        Self { reason, is_final: !matches!(status.as_u16(), 429 | 502 | 503 | 504) }
    }
}

/// A collector.
pub(super) struct Target {
    host: String,
    port: u16,
    /// The path of the URL without `/` at the end.
    base: String,
    tls: Option<TlsConnector>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Target {
    /// Parses a URL and reads the files with headers and authorities.
    pub(super) fn new(
        url: &str,
        headers: Option<&Path>,
        authorities: Option<&Path>,
    ) -> Result<Self, OtlpError> {
        let wrong = || OtlpError::Url(url.to_owned());
        let uri: hyper::Uri = url.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        if uri.query().is_some() || uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            return Err(wrong());
        }
        let headers = headers.map(read_headers).transpose()?.unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_local =
            bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !headers.is_empty() && !is_tls && !is_local {
            return Err(OtlpError::Plaintext);
        }
        Ok(Self {
            host: bare.to_owned(),
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            base: uri.path().trim_end_matches('/').to_owned(),
            tls: is_tls.then(|| connector(authorities)).transpose()?,
            headers,
        })
    }

    /// Sends a message to `path` below the path of the URL.
    ///
    /// # Errors
    /// The message could not be sent or was not accepted.
    pub(super) async fn post(&self, path: &str, body: Vec<u8>) -> Result<(), Failure> {
        let stream = TcpStream::connect((&*self.host, self.port)).await.map_err(Failure::of)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.post_on(stream, path, body).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(Failure::of)?;
                self.post_on(tls.connect(name, stream).await.map_err(Failure::of)?, path, body).await
            }
        }
    }

    async fn post_on<S>(&self, stream: S, path: &str, body: Vec<u8>) -> Result<(), Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, driver) = handshake(TokioIo::new(stream)).await.map_err(Failure::of)?;
        // The task ends when the sender is dropped.
        tokio::spawn(async move { drop(driver.await) });
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{path}", self.base))
            .header(HOST, self.authority())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, concat!("taktwerk/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(Failure::of)?;
        let answer = sender.send_request(request).await.map_err(Failure::of)?;
        let status = answer.status();
        let text = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        if status.is_success() {
            return Ok(());
        }
        let text = text.map(|text| text.to_bytes()).unwrap_or_default();
        Err(Failure::answered(path, status, &text))
    }

    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The address of the collector, for messages.
    pub(super) fn describe(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.base)
    }
}

fn read_headers(path: &Path) -> Result<Vec<(HeaderName, HeaderValue)>, OtlpError> {
    let text = taktwerk_files::read_text(path, taktwerk_files::SECRET_LEN_MAX)
        .map_err(|error| OtlpError::File { path: path.to_owned(), reason: error.to_string() })?;
    let mut headers = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let header = line.split_once(':').and_then(|(name, value)| {
            let mut value = value.trim().parse::<HeaderValue>().ok()?;
            value.set_sensitive(true);
            Some((name.trim().parse::<HeaderName>().ok()?, value))
        });
        headers.push(header.ok_or_else(|| OtlpError::Header { path: path.to_owned(), line: at + 1 })?);
    }
    Ok(headers)
}

fn connector(authorities: Option<&Path>) -> Result<TlsConnector, OtlpError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(path) => {
            let fail = |reason: String| OtlpError::File { path: path.to_owned(), reason };
            let bytes = taktwerk_files::read_bytes(path, taktwerk_files::CERTIFICATES_LEN_MAX);
            let bytes = bytes.map_err(|error| fail(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&bytes) {
                let certificate = certificate.map_err(|error| fail(error.to_string()))?;
                roots.add(certificate).map_err(|error| fail(error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(OtlpError::NoAuthorities);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| OtlpError::NoAuthorities)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_retryable_statuses_are_retried() {
        let answered =
            |code: u16| Failure::answered("/v1/traces", StatusCode::from_u16(code).unwrap(), b" so \n");
        assert_eq!([429, 502, 503, 504].map(|code| answered(code).is_final), [false; 4]);
        assert_eq!([400, 401, 404, 413, 500].map(|code| answered(code).is_final), [true; 5]);
        assert_eq!(answered(400).reason, "/v1/traces: 400 Bad Request so");
        assert!(answered(404).reason.contains("correct url"));
    }

    #[test]
    fn urls_and_headers_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        std::fs::write(&file, "Authorization: Bearer x\n\nX-Scope-OrgID: plant\n").unwrap();
        let local = Target::new("http://[::1]:4318/otlp/", Some(&file), None).unwrap();
        assert_eq!((local.describe(), local.headers.len()), ("http://[::1]:4318/otlp".to_owned(), 2));
        let told = |url: &str| Target::new(url, Some(&file), None).err().unwrap().to_string();
        assert!(told("http://collector:4318").contains("unencrypted"));
        for wrong in ["collector:4318", "ftp://h", "http://", "http://a@h", "http://h/?x=1"] {
            assert!(told(wrong).contains("is not the URL"), "{wrong}");
        }
        let endless = Target::new("https://collector:4318", None, Some(Path::new("/dev/zero")));
        assert!(endless.err().unwrap().to_string().contains("name a regular file"));
        std::fs::write(&file, "\nnonsense\n").unwrap();
        assert!(told("http://localhost").contains("line 2 is not a header"));
    }
}

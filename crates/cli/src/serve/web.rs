//! The dashboard of a server: where it listens, and what it connects with.

use crate::failure::Failure;
use crate::security::environment;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use taktwerk::RunningServer;
use taktwerk::pki::Pki;
use taktwerk_config::{WebSection, file};
use taktwerk_pki::{CertificateSettings, NewKey};
use taktwerk_web::exposition::Exposition;
use taktwerk_web::sources::SourceList;
use taktwerk_web::{Access, Collector, Settings, Subject, Tls, WebServer};

/// The ApplicationUri of the dashboard's own certificate.
const APPLICATION_URI: &str = "urn:taktwerk:dashboard";
/// Longest token.
const TOKEN_LEN_MAX: u64 = 4096;

/// A dashboard to be.
#[derive(Debug, Clone)]
pub(super) struct Web {
    settings: Settings,
    server_pki: Option<Pki>,
    is_anonymous_allowed: bool,
}

impl Web {
    /// That of the demo: everybody who can reach the address sees what anonymous clients see.
    pub(super) fn demo(bind: SocketAddr) -> Self {
        Self { settings: Settings::at(bind), server_pki: None, is_anonymous_allowed: true }
    }

    /// That of a configuration file. `pki` has the server's certificates if the dashboard needs a secured connection.
    pub(super) fn of_file(
        bind: SocketAddr,
        section: &WebSection,
        resolve: impl Fn(&Path) -> PathBuf,
        pki: Option<&Pki>,
        is_anonymous_allowed: bool,
    ) -> Result<Self, Failure> {
        let mut settings = Settings::at(bind);
        if let (Some(certificate), Some(key)) = (&section.certificate, &section.key) {
            settings.tls = Some(Tls { certificate: resolve(certificate), key: resolve(key) });
        }
        settings.host_names.clone_from(&section.host_names);
        settings.anonymous = section.anonymous.unwrap_or(settings.anonymous);
        if let Some(path) = section.metrics_token_file.as_deref().map(resolve) {
            let text = file::read_text(&path, TOKEN_LEN_MAX);
            let text = text.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
            let token = text.trim();
            if token.len() < 16 {
                return Err(Failure::Usage(format!(
                    "{}: the token has less than 16 characters; `head -c 24 /dev/urandom | base64` makes one",
                    path.display()
                )));
            }
            settings.metrics = Access::Token(token.into());
        }
        Ok(Self { settings, server_pki: pki.cloned(), is_anonymous_allowed })
    }

    /// Starts it beside a server.
    fn start(self, running: &RunningServer, extras: Extras) -> Result<WebServer, Failure> {
        let dashboard_pki = self.server_pki.as_ref().map(dashboard_pki).transpose()?;
        let subject = Subject {
            shared: Arc::clone(running.shared()),
            url: running.url(),
            server_pki: self.server_pki,
            dashboard_pki,
            is_anonymous_allowed: self.is_anonymous_allowed,
            collectors: extras.collectors,
            sources: extras.sources,
            log: Some(crate::logging::recent()),
        };
        let web =
            WebServer::start(subject, self.settings).map_err(|error| Failure::Usage(error.to_string()))?;
        tell!("dashboard: {}", web.url());
        Ok(web)
    }
}

/// The dashboard that a server has now, or none.
#[derive(Debug, Default)]
pub(super) struct Dashboard {
    /// What runs, and what it was made of.
    current: Option<(WebServer, Web)>,
    extras: Extras,
}

/// What the parts of a program beside the server show.
#[derive(Debug, Clone, Default)]
pub(super) struct Extras {
    /// More metrics.
    pub(super) collectors: Vec<Arc<dyn Collector>>,
    /// Those that may come while the program runs.
    pub(super) later: Arc<Later>,
    /// Where values come from.
    pub(super) sources: Option<Arc<dyn SourceList>>,
}

/// What sources and destinations show: metrics, and a list.
pub(super) type OfGateway = (Vec<Arc<dyn Collector>>, Option<Arc<dyn SourceList>>);

/// Metrics of parts that may come while the program runs. All that show metrics share it.
#[derive(Debug, Default)]
pub(super) struct Later(RwLock<Vec<Arc<dyn Collector>>>);

impl Later {
    fn put(&self, collectors: Vec<Arc<dyn Collector>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = collectors;
    }
}

impl Collector for Later {
    fn collect(&self, out: &mut Exposition<'_>) -> core::fmt::Result {
        let collectors = self.0.read().unwrap_or_else(PoisonError::into_inner);
        collectors.iter().try_for_each(|collector| collector.collect(out))
    }
}

impl Extras {
    /// All of them are later ones: those of sources and destinations, of which the first may come with another file.
    pub(super) fn of_gateway((collectors, sources): OfGateway) -> Self {
        let later = Arc::new(Later::default());
        later.put(collectors);
        Self { collectors: vec![Arc::clone(&later) as _], later, sources }
    }
}

impl Dashboard {
    /// Starts what there is to be at the start.
    pub(super) fn start(web: Option<Web>, running: &RunningServer, extras: Extras) -> Result<Self, Failure> {
        let mut dashboard = Self { current: None, extras };
        dashboard.put(web, running)?;
        Ok(dashboard)
    }

    fn put(&mut self, web: Option<Web>, running: &RunningServer) -> Result<(), Failure> {
        if let Some(web) = web {
            self.current = Some((web.clone().start(running, self.extras.clone())?, web));
        }
        Ok(())
    }

    /// Shows more: sources that were not there at the start. A dashboard that runs starts again; what else shows metrics has
    /// theirs at once.
    pub(super) fn extend(
        &mut self,
        (collectors, sources): OfGateway,
        running: &RunningServer,
    ) -> Result<(), Failure> {
        self.extras.later.put(collectors);
        self.extras.sources = sources;
        let web = self.current.take().map(|(server, web)| {
            drop(server);
            web
        });
        self.put(web, running)
    }

    /// Puts another one in its place, or none. If that fails, the one before is there again.
    pub(super) fn replace(&mut self, web: Option<Web>, running: &RunningServer) -> Result<(), Failure> {
        // The address may be the same one, so the old dashboard goes first.
        let before = self.current.take().map(|(server, web)| {
            drop(server);
            web
        });
        self.put(web, running).inspect_err(|_| {
            if let Err(error) = self.put(before, running) {
                tracing::error!(%error, "the dashboard as it was does not start again");
            }
        })
    }
}

/// The dashboard's own certificate, in a folder beside the server's. The two trust each other: they are one program.
fn dashboard_pki(server: &Pki) -> Result<Pki, Failure> {
    let own = Pki::in_folder(taktwerk_config::dashboard(server.store().root()))
        .settings(CertificateSettings::new("Taktwerk dashboard", APPLICATION_URI))
        .create_missing(vec![NewKey::Rsa2048, NewKey::NistP256])
        .open()
        .map_err(environment)?;
    server.trust_those_of(&own).map_err(environment)?;
    own.trust_those_of(server).map_err(environment)?;
    Ok(own)
}

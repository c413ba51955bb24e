//! The dashboard of a server: address, and connection to the server.

use crate::failure::Failure;
use crate::security::environment;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use taktwerk::RunningServer;
use taktwerk::pki::{InProcessClient, Pki};
use taktwerk_config::{WebSection, file};
use taktwerk_pki::CertificateSettings;
use taktwerk_web::exposition::Exposition;
use taktwerk_web::sources::{DestinationState, SourceList, SourceState};
use taktwerk_web::{Access, Collector, Settings, Subject, Tls, WebServer};

/// The ApplicationUri of the dashboard's own certificates.
const APPLICATION_URI: &str = "urn:taktwerk:dashboard";
/// Maximum length of a token.
const TOKEN_LEN_MAX: u64 = 4096;

/// The settings of a dashboard.
#[derive(Debug, Clone)]
pub(super) struct Web {
    settings: Settings,
    server_pki: Option<Pki>,
    is_anonymous_allowed: bool,
}

impl Web {
    /// The dashboard of the demo: everyone who can reach the address sees what anonymous clients see.
    pub(super) fn demo(bind: SocketAddr) -> Self {
        Self { settings: Settings::at(bind), server_pki: None, is_anonymous_allowed: true }
    }

    /// The dashboard of a configuration. `pki` has the server's certificates if the dashboard needs a secured
    /// connection.
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
                    "{}: the token has less than 16 characters; `head -c 24 /dev/urandom | base64` creates one",
                    path.display()
                )));
            }
            settings.metrics = Access::Token(token.into());
        }
        Ok(Self { settings, server_pki: pki.cloned(), is_anonymous_allowed })
    }

    /// Starts the dashboard of a server.
    fn start(self, running: &RunningServer, extras: Extras) -> Result<WebServer, Failure> {
        let client = |pki| in_process_client(pki, running);
        let dashboard = self.server_pki.as_ref().map(client).transpose()?;
        let subject = Subject {
            shared: Arc::clone(running.shared()),
            url: running.url(),
            server_pki: self.server_pki,
            dashboard,
            is_anonymous_allowed: self.is_anonymous_allowed,
            collectors: extras.collectors,
            sources: Some(extras.later),
            history: running.recorder().map(Arc::clone),
            log: Some(crate::logging::recent()),
        };
        let web =
            WebServer::start(subject, self.settings).map_err(|error| Failure::Usage(error.to_string()))?;
        tell!("dashboard: {}", web.url());
        Ok(web)
    }
}

/// The dashboard of a server, if it has one.
#[derive(Debug, Default)]
pub(super) struct Dashboard {
    /// The running dashboard and its settings.
    current: Option<(WebServer, Web)>,
    extras: Extras,
}

/// Data of other parts of the program for the dashboard.
#[derive(Debug, Clone, Default)]
pub(super) struct Extras {
    /// Additional metrics.
    pub(super) collectors: Vec<Arc<dyn Collector>>,
    /// What may be added while the program runs.
    later: Arc<Later>,
}

/// Metrics and lists of sources and destinations.
pub(super) type OfGateway = (Vec<Arc<dyn Collector>>, Option<Arc<dyn SourceList>>);

/// The metrics and lists of sources and destinations, of which the first may be added by a reload. Shared by the dashboard and
/// all outputs of metrics.
#[derive(Debug, Default)]
struct Later(RwLock<OfGateway>);

impl Later {
    fn put(&self, of_gateway: OfGateway) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = of_gateway;
    }

    fn get(&self) -> OfGateway {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Collector for Later {
    fn collect(&self, out: &mut Exposition<'_>) -> core::fmt::Result {
        self.get().0.iter().try_for_each(|collector| collector.collect(out))
    }
}

impl SourceList for Later {
    fn is_gateway(&self) -> bool {
        self.get().1.is_some()
    }

    fn sources(&self) -> Vec<SourceState> {
        self.get().1.map(|list| list.sources()).unwrap_or_default()
    }

    fn destinations(&self) -> Vec<DestinationState> {
        self.get().1.map(|list| list.destinations()).unwrap_or_default()
    }
}

impl Extras {
    /// The metrics and lists of a gateway, if the server is one.
    pub(super) fn of_gateway(of_gateway: OfGateway) -> Self {
        let later = Arc::new(Later::default());
        later.put(of_gateway);
        Self { collectors: vec![Arc::clone(&later) as _], later }
    }
}

impl Dashboard {
    /// Starts the dashboard, if configured.
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

    /// Adds sources that did not exist at the start. The dashboard and other outputs of metrics show them at once.
    pub(super) fn extend(&self, of_gateway: OfGateway) {
        self.extras.later.put(of_gateway);
    }

    /// Replaces or removes the dashboard. If that fails, the previous one is restored.
    pub(super) fn replace(&mut self, web: Option<Web>, running: &RunningServer) -> Result<(), Failure> {
        // The new one may use the same address, so the old one is stopped first.
        let before = self.current.take().map(|(server, web)| {
            drop(server);
            web
        });
        self.put(web, running).inspect_err(|_| {
            if let Err(error) = self.put(before, running) {
                tracing::error!(%error, "cannot restore the previous dashboard");
            }
        })
    }
}

/// The dashboard's own certificates. The dashboard and the server trust each other, because they are one program.
fn in_process_client(server: &Pki, running: &RunningServer) -> Result<InProcessClient, Failure> {
    let address = running.addresses().first().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), SocketAddr::ip);
    let settings = CertificateSettings::new("Taktwerk dashboard", APPLICATION_URI);
    Ok(server.in_process_client(&settings, address).map_err(environment)?)
}

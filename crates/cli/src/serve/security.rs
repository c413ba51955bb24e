//! Which security the server offers, and with which certificates.

use super::ServeArgs;
use crate::failure::Failure;
use crate::security::{NEW_KEYS, client_pki, data_folder, environment, new_keys, warn_of_expiry};
use crate::tell::StandardError;
use std::path::PathBuf;
use taktwerk::pki::Pki;
use taktwerk::server::ServerBuilder;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_lab::outcome::wrapped;
use taktwerk_pki::CertificateSettings;

/// The demo server's ApplicationUri; its certificate says the same.
pub(crate) const APPLICATION_URI: &str = "urn:taktwerk:demo-server";
/// Its name for people.
pub(crate) const APPLICATION_NAME: &str = "Taktwerk demo server";

/// What is offered.
pub(super) struct Offer {
    /// The policies besides None, the strongest first.
    policies: Vec<SecurityPolicy>,
    /// Whether None is offered.
    is_open: bool,
    /// Where the certificates are.
    folder: Option<PathBuf>,
}

/// Decides what is offered, and makes the certificates for it when they are missing.
pub(super) fn offer(
    mut builder: ServerBuilder,
    arguments: &ServeArgs,
) -> Result<(ServerBuilder, Offer), Failure> {
    let named = arguments.policy.iter().map(|text| {
        text.parse::<SecurityPolicy>().map_err(|error| Failure::Usage(format!("{text}: {error}")))
    });
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let none = SecurityPolicy::None;
    // Anything but loopback is open to strangers: there None has to be asked for.
    let is_open = if named.is_empty() { arguments.bind.is_loopback() } else { named.contains(&none) };
    let mut offer = Offer { policies: Vec::new(), is_open, folder: None };
    if named.is_empty() || named.iter().any(|policy| *policy != none) {
        match pki(arguments, &named) {
            Ok(pki) => {
                builder = builder.pki(&pki);
                // Clients compare: a folder that was made for another application makes this one of that name.
                if let Some(uri) = pki.application_uri() {
                    builder = builder.application_uri(uri);
                }
                offer.policies = if named.is_empty() { pki.policies() } else { named };
                offer.policies.retain(|policy| *policy != none);
                offer.folder = Some(pki.store().root().to_owned());
                check_offer(&pki, &offer.policies)?;
            }
            Err(error) if named.is_empty() && is_open => {
                tell!("{error}: only SecurityPolicy None is offered");
            }
            Err(error) => return Err(error),
        }
    }
    for policy in &offer.policies {
        builder = builder
            .security(*policy, MessageSecurityMode::SignAndEncrypt)
            .security(*policy, MessageSecurityMode::Sign);
    }
    if is_open {
        builder = builder.security(none, MessageSecurityMode::None);
    }
    Ok((builder, offer))
}

/// Refuses policies that the certificates do not serve.
pub(super) fn check_offer(pki: &Pki, policies: &[SecurityPolicy]) -> Result<(), Failure> {
    let Some(missing) = policies.iter().find(|policy| !pki.provider().supports(**policy)) else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "{missing} cannot be offered: it is broken, the library does not carry it, or there is no certificate for it in {}",
        pki.store().root().display()
    )))
}

/// Says what was made, and what does not count.
pub(super) fn report(pki: &Pki) {
    for path in pki.created() {
        tell!("made a certificate for this server: {}", path.display());
    }
    for problem in pki.problems() {
        tell!("{}: {}", problem.path.display(), problem.what);
    }
    warn_of_expiry(pki, &StandardError);
}

/// The server's certificates; the demo's own folder unless another one was named.
fn pki(arguments: &ServeArgs, policies: &[SecurityPolicy]) -> Result<Pki, Failure> {
    let folder = match &arguments.pki {
        Some(folder) => folder.clone(),
        None => data_folder()?.join("demo-server").join("pki"),
    };
    let mut settings = CertificateSettings::new(APPLICATION_NAME, APPLICATION_URI);
    if !arguments.bind.is_loopback() && !arguments.bind.is_unspecified() {
        settings.hosts.push(arguments.bind.to_string());
    }
    let pki = Pki::in_folder(folder)
        .settings(settings)
        .create_missing(new_keys(policies))
        .disclose_keys(arguments.allow_key_log)
        .open();
    let pki = pki.map_err(environment)?;
    report(&pki);
    if arguments.pki.is_none() && arguments.bind.is_loopback() {
        introduce(&pki)?;
    }
    Ok(pki)
}

/// The demo and the client commands of the same user on the same machine know each other.
fn introduce(server: &Pki) -> Result<(), Failure> {
    let client = client_pki(None)?.create_missing(NEW_KEYS).open().map_err(environment)?;
    server.trust_those_of(&client).map_err(environment)?;
    Ok(client.trust_those_of(server).map_err(environment)?)
}

impl Offer {
    /// Says who can get in.
    pub(super) fn announce(&self, arguments: &ServeArgs) {
        let reach = if arguments.bind.is_loopback() { "loopback only" } else { "reachable from the network" };
        let names: Vec<_> = self.policies.iter().map(|policy| policy.name()).collect();
        let offered = match (names.is_empty(), self.is_open) {
            (false, true) => format!("{}, and None", names.join(", ")),
            (false, false) => names.join(", "),
            (true, _) => "None only".to_owned(),
        };
        tell_part!("{}", wrapped("", &format!("{reach}; security: {offered}")));
        if let Some(folder) = &self.folder {
            tell!("certificates: {}; clients in trusted/certs are let in", folder.display());
        }
        if self.is_open && arguments.bind.is_loopback() {
            tell!("anonymous users welcome: programs on this machine can connect without security");
        } else if self.is_open {
            let warning = format!(
                "listening on {} with SecurityPolicy None: everyone who can reach this address can read, write and \
                 call, and messages are not encrypted",
                arguments.bind
            );
            tell_part!("{}", wrapped("WARNING: ", &warning));
        }
    }

    /// For `--json`.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let none = self.is_open.then_some(SecurityPolicy::None);
        self.policies.iter().copied().chain(none).map(SecurityPolicy::name).collect()
    }
}

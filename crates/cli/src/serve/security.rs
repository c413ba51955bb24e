//! Security policies and certificates of the server.

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

/// The ApplicationUri of the demo server. Its certificate contains the same.
pub(crate) const APPLICATION_URI: &str = "urn:taktwerk:demo-server";
/// The ApplicationName of the demo server.
pub(crate) const APPLICATION_NAME: &str = "Taktwerk demo server";

/// The offered security policies.
pub(super) struct Offer {
    /// The policies except None, strongest first.
    policies: Vec<SecurityPolicy>,
    /// Whether None is offered.
    is_open: bool,
    /// The certificate directory.
    folder: Option<PathBuf>,
}

/// Selects the policies, and creates missing certificates for them.
pub(super) fn offer(
    mut builder: ServerBuilder,
    arguments: &ServeArgs,
) -> Result<(ServerBuilder, Offer), Failure> {
    let named = arguments.policy.iter().map(|text| {
        text.parse::<SecurityPolicy>().map_err(|error| Failure::Usage(format!("{text}: {error}")))
    });
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let none = SecurityPolicy::None;
    // On a non-loopback address, None must be requested explicitly.
    let is_open = if named.is_empty() { arguments.bind.is_loopback() } else { named.contains(&none) };
    let mut offer = Offer { policies: Vec::new(), is_open, folder: None };
    if named.is_empty() || named.iter().any(|policy| *policy != none) {
        match pki(arguments, &named) {
            Ok(pki) => {
                builder = builder.pki(&pki);
                // Clients compare the ApplicationUri with the certificate, so use that of an existing certificate.
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

/// Refuses policies without a matching certificate.
pub(super) fn check_offer(pki: &Pki, policies: &[SecurityPolicy]) -> Result<(), Failure> {
    let Some(missing) = policies.iter().find(|policy| !pki.provider().supports(**policy)) else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "cannot offer {missing}: it is broken, not supported by the library, or has no certificate in {}",
        pki.store().root().display()
    )))
}

/// Reports created certificates and ignored files.
pub(super) fn report(pki: &Pki) {
    for path in pki.created() {
        tell!("created a certificate for this server: {}", path.display());
    }
    for problem in pki.problems() {
        tell!("{}: {}", problem.path.display(), problem.what);
    }
    warn_of_expiry(pki, &StandardError);
}

/// The server's certificates. Default: the directory of the demo server.
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

/// Lets the demo server and the client commands of the same user trust each other.
fn introduce(server: &Pki) -> Result<(), Failure> {
    let client = client_pki(None)?.create_missing(NEW_KEYS).open().map_err(environment)?;
    server.trust_those_of(&client).map_err(environment)?;
    Ok(client.trust_those_of(server).map_err(environment)?)
}

impl Offer {
    /// Reports the offered policies, and who can connect.
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
            tell!("certificates: {}; clients in trusted/certs are accepted", folder.display());
        }
        if self.is_open && arguments.bind.is_loopback() {
            tell!("anonymous users are allowed: programs on this machine can connect without security");
        } else if self.is_open {
            let warning = format!(
                "listening on {} with SecurityPolicy None: everyone who can reach this address can read, write and \
                 call, and messages are not encrypted",
                arguments.bind
            );
            tell_part!("{}", wrapped("WARNING: ", &warning));
        }
    }

    /// The names for `--json`.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let none = self.is_open.then_some(SecurityPolicy::None);
        self.policies.iter().copied().chain(none).map(SecurityPolicy::name).collect()
    }
}

//! Certificates of the command: where they are stored, and which of them a connection uses.

use super::Tell;
use crate::error::GeneratorError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use taktwerk::pki::{Pki, PkiError};
use taktwerk_client::config::Security;
use taktwerk_crypto::{MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_load::connection::SecurityArgs;
use taktwerk_load::endpoint::Endpoint;
use taktwerk_load::suggestion::question;
use taktwerk_pki::doctor::own_expiry;
use taktwerk_pki::{CertificateSettings, NewKey, Store};

/// ApplicationUri of our client certificate.
const CLIENT_URI: &str = "urn:taktwerk:client";

/// Keys created on first use. With both kinds, there is a common policy with every server that supports security.
pub const NEW_KEYS: [NewKey; 2] = [NewKey::Rsa2048, NewKey::NistP256];

/// Kinds of keys for policies: the kinds that the named policies need, or [`NEW_KEYS`].
pub fn new_keys(policies: &[SecurityPolicy]) -> Vec<NewKey> {
    let mut keys = Vec::new();
    for key in policies.iter().filter_map(|policy| NewKey::for_policy(*policy)) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() { NEW_KEYS.to_vec() } else { keys }
}

/// Data directory of the command: `$XDG_DATA_HOME/taktwerk`, usually `~/.local/share/taktwerk`.
pub fn data_folder() -> Result<PathBuf, GeneratorError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("taktwerk")).ok_or_else(|| {
        GeneratorError::Environment(
            "no directory for certificates: set HOME, or pass a directory with --pki".to_owned(),
        )
    })
}

/// A problem with certificates or directories on this machine.
pub fn environment(error: PkiError) -> GeneratorError {
    GeneratorError::Environment(error.to_string())
}

/// The client's certificates and trust lists, in the default or the named directory.
pub fn client_pki(folder: Option<&PathBuf>) -> Result<taktwerk::pki::PkiBuilder, GeneratorError> {
    let folder = match folder {
        Some(folder) => folder.clone(),
        None => data_folder()?.join("pki"),
    };
    let mut settings = CertificateSettings::new("taktwerk", CLIENT_URI);
    // An existing key of another kind is still ours: an application has one ApplicationUri for all of its certificates.
    if let Some(own) = Store::at(&folder).own(&mut Vec::new()).first() {
        let (name, uri) = (own.certificate.common_name(), own.certificate.application_uri());
        settings.application_name = name.unwrap_or(settings.application_name);
        settings.application_uri = uri.map_or(settings.application_uri, str::to_owned);
    }
    Ok(Pki::in_folder(folder).settings(settings))
}

/// Warns about own certificates that have expired or soon will, with the command that renews them.
pub fn warn_of_expiry(pki: &Pki, tell: &dyn Tell) {
    for own in pki.store().own(&mut Vec::new()) {
        if let Some(expiry) = own_expiry(&own, pki.store().root(), taktwerk_net::clock::wall()) {
            tell.tell(&format!("WARNING: {}: {}", own.path.display(), expiry.sentence));
            if let Some(command) = expiry.command {
                tell.tell(&format!("  {command}"));
            }
        }
    }
}

/// Policy and mode from `--policy` and `--mode`. By default, servers on this machine are used without security, all
/// others with the best available. Unsecured messages over a network must be requested explicitly.
pub fn wanted(server: &Endpoint, arguments: &SecurityArgs) -> Result<Security, GeneratorError> {
    let usage = |error: &dyn core::fmt::Display| GeneratorError::Usage(error.to_string());
    let mode = arguments.mode.as_deref().map(str::parse::<MessageSecurityMode>).transpose();
    let mode = mode.map_err(|_| {
        let text = arguments.mode.as_deref().unwrap_or_default();
        let modes = ["None", "Sign", "SignAndEncrypt"];
        usage(&format!("--mode {text}: the modes are {}{}", modes.join(", "), question(text, modes)))
    })?;
    let best = Ok(Security::Best);
    let policy = match arguments.policy.as_deref() {
        Some(text) if text.eq_ignore_ascii_case("best") => match mode {
            // `best` always means SignAndEncrypt if the server offers it.
            None | Some(MessageSecurityMode::SignAndEncrypt) => return best,
            Some(mode) => {
                return Err(usage(&format!(
                    "policy best also chooses the mode: remove --mode {mode}, or name a policy such as Basic256Sha256"
                )));
            }
        },
        Some(text) => text.parse::<SecurityPolicy>().map_err(|_| usage(&unknown_policy(text)))?,
        None if mode.is_some_and(|mode| mode != MessageSecurityMode::None) => {
            return Err(usage(&"--mode needs a matching --policy, such as Basic256Sha256"));
        }
        None if mode.is_none() && (arguments.cert.is_some() || !server.is_loopback()) => return best,
        None => SecurityPolicy::None,
    };
    let secured = policy != SecurityPolicy::None;
    let default = if secured { MessageSecurityMode::SignAndEncrypt } else { MessageSecurityMode::None };
    let mode = mode.unwrap_or(default);
    if secured != (mode != MessageSecurityMode::None) {
        return Err(usage(&format!(
            "SecurityPolicy {policy} cannot be combined with mode {mode}: None requires None"
        )));
    }
    Ok(Security::Exactly(policy, mode))
}

/// The message for an unknown policy.
fn unknown_policy(text: &str) -> String {
    let names: Vec<String> = SecurityPolicy::ALL.iter().map(ToString::to_string).collect();
    let names = || names.iter().map(String::as_str).chain(["best"]);
    let all = names().collect::<Vec<_>>().join(", ");
    format!("--policy {text}: there is no such SecurityPolicy (there are {all}){}", question(text, names()))
}

/// Whether only messages without security are requested.
pub fn is_none(security: Security) -> bool {
    matches!(security, Security::Exactly(SecurityPolicy::None, _))
}

/// The user's certificate and key, for logging in with a certificate.
pub fn user(arguments: &SecurityArgs) -> Result<Option<Arc<dyn Provider>>, GeneratorError> {
    let (Some(certificate), Some(key)) = (&arguments.user_cert, &arguments.user_key) else { return Ok(None) };
    // Only the key is used, for signing; this provider validates no certificates.
    let pki = client_pki(arguments.pki.as_ref())?.own_files(certificate, key).open().map_err(environment)?;
    Ok(Some(pki.provider()))
}

/// The certificate directory passed to this command.
static NAMED_PKI: OnceLock<PathBuf> = OnceLock::new();

/// Whether this command trusts a server at the first connection.
static TRUSTS_FIRST_USE: AtomicBool = AtomicBool::new(false);

/// Whether this command trusts a server at the first connection.
pub fn trusts_first_use() -> bool {
    TRUSTS_FIRST_USE.load(Ordering::Relaxed)
}

/// Options to add to `taktwerk pki` commands in messages, so that they refer to the same directory; empty for the
/// default.
pub fn named_pki() -> String {
    NAMED_PKI.get().map(|folder| format!(" --pki {}", folder.display())).unwrap_or_default()
}

/// Own certificate and trust list, if the connection needs them.
pub fn pki(
    server: &Endpoint,
    arguments: &SecurityArgs,
    tell: &dyn Tell,
) -> Result<Option<Pki>, GeneratorError> {
    let wanted = wanted(server, arguments)?;
    // Passwords are encrypted even on a connection without security, which needs a trusted server certificate.
    if is_none(wanted) && !arguments.has_secret() {
        return Ok(None);
    }
    if let Some(folder) = &arguments.pki {
        // A command uses one directory for all connections.
        let _ = NAMED_PKI.set(folder.clone());
    }
    TRUSTS_FIRST_USE.fetch_or(arguments.trust_on_first_use, Ordering::Relaxed);
    let mut builder = client_pki(arguments.pki.as_ref())?
        .trust_on_first_use(arguments.trust_on_first_use)
        .disclose_keys(arguments.allow_key_log);
    builder = match (&arguments.cert, &arguments.key) {
        (Some(certificate), Some(key)) => builder.own_files(certificate, key),
        _ => {
            let mut keys = NEW_KEYS.to_vec();
            if let Security::Exactly(policy, _) = wanted {
                // In addition to the default keys, which come first, because the first one identifies this client.
                keys.extend(NewKey::for_policy(policy).filter(|key| !NEW_KEYS.contains(key)));
            }
            builder.create_missing(keys)
        }
    };
    let pki = builder.open().map_err(environment)?;
    for path in pki.created() {
        tell.tell(&format!("created a client certificate: {}", path.display()));
    }
    for problem in pki.problems() {
        tell.tell(&format!("{}: {}", problem.path.display(), problem.what));
    }
    if arguments.cert.is_none() {
        warn_of_expiry(&pki, tell);
    }
    Ok(Some(pki))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use taktwerk_load::connection::ConnectionArgs;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    fn parse(arguments: &[&str]) -> ConnectionArgs {
        Command::try_parse_from([&["x"], arguments].concat()).unwrap().connection
    }

    #[test]
    fn policy_and_mode_complete_each_other() {
        use taktwerk_client::config::Security;
        use taktwerk_crypto::{MessageSecurityMode as Mode, SecurityPolicy as Policy};
        let exactly = |policy, mode| Some(Security::Exactly(policy, mode));
        for (arguments, expected) in [
            (&["host"][..], Some(Security::Best)),
            (&["10.0.0.7:4841"], Some(Security::Best)),
            (&["localhost"], exactly(Policy::None, Mode::None)),
            (&["opc.tcp://127.0.0.1:4840"], exactly(Policy::None, Mode::None)),
            (&["[::1]"], exactly(Policy::None, Mode::None)),
            (&["localhost", "--cert", "a", "--key", "b"], Some(Security::Best)),
            (&["host", "--policy", "None"], exactly(Policy::None, Mode::None)),
            (
                &["host", "--policy", "http://opcfoundation.org/UA/SecurityPolicy#None"],
                exactly(Policy::None, Mode::None),
            ),
            (&["host", "--policy", "basic256sha256"], exactly(Policy::Basic256Sha256, Mode::SignAndEncrypt)),
            (
                &["host", "--policy", "ECC_nistP256_AesGcm", "--mode", "sign"],
                exactly(Policy::ECC_nistP256_AesGcm, Mode::Sign),
            ),
            (&["host", "--policy", "best"], Some(Security::Best)),
            (&["host", "--cert", "a", "--key", "b"], Some(Security::Best)),
            (&["host", "--mode", "Sign"], None),
            (&["host", "--policy", "best", "--mode", "Sign"], None),
            (&["host", "--policy", "None", "--mode", "Sign"], None),
            (&["host", "--policy", "Basic256Sha256", "--mode", "None"], None),
            (&["host", "--policy", "Basic512"], None),
        ] {
            let mut connection = parse(arguments);
            let found = wanted(&connection.endpoint, &connection.security).ok();
            assert_eq!(found, expected, "{arguments:?}");
            connection.security.settle_for(&connection.endpoint);
            let elsewhere: Endpoint = "localhost:1".parse().unwrap();
            assert_eq!(wanted(&elsewhere, &connection.security).ok(), expected, "{arguments:?}");
        }
    }
}

//! `taktwerk config`: the configuration file of `taktwerk serve`.

use crate::config_file::{load, users};
use crate::config_init::{self, Place};
use crate::failure::Failure;
use crate::output::Output;
use crate::serve::control;
use clap::{Args, Subcommand};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use taktwerk_config::users::{User, Users};
use taktwerk_config::{Config, ConfigError};
use taktwerk_crypto::SecurityPolicy;
#[cfg(feature = "gateway")]
use taktwerk_gateway::init::{Recording, Wishes};
use taktwerk_lab::table::{Align, Table};
use taktwerk_pki::{Group, Store};

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file and summarise it.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Apply a changed file to the server that runs with it. An invalid file changes nothing.
    Apply {
        /// The file that the server was started with.
        file: PathBuf,
    },
    /// Write a commented configuration file to edit.
    Init(Box<InitArgs>),
}

/// `taktwerk config init`
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// File to write; it must not exist.
    #[arg(default_value = "server.toml")]
    file: PathBuf,
    /// Directory for data of the server: certificates, users, history. Default: beside the file. A service uses
    /// /var/lib/taktwerk.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Turn on the dashboard at this address of this machine, such as 127.0.0.1:8080.
    #[arg(long, value_name = "ADDR:PORT")]
    web: Option<SocketAddr>,
    /// Add a source for the Modbus device at HOST[:PORT], or at a serial line such as /dev/ttyUSB0. The file then runs as it
    /// is. Can be repeated.
    #[cfg(feature = "gateway")]
    #[arg(long, value_name = "HOST[:PORT]")]
    modbus: Vec<String>,
    /// Show the topics of an MQTT broker at mqtt://HOST[:PORT].
    #[cfg(feature = "gateway")]
    #[arg(long, value_name = "URL")]
    mqtt: Vec<String>,
    /// Mirror an OPC UA server at opc.tcp://HOST[:PORT].
    #[cfg(feature = "gateway")]
    #[arg(long, value_name = "URL")]
    opcua: Vec<String>,
    /// Poll JSON at http://HOST[:PORT]/PATH.
    #[cfg(feature = "gateway")]
    #[arg(long, value_name = "URL")]
    http: Vec<String>,
    /// Read a file that another program writes.
    #[cfg(feature = "gateway")]
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Follow the lines that are appended to a file.
    #[cfg(feature = "gateway")]
    #[arg(long = "log", value_name = "FILE")]
    logs: Vec<PathBuf>,
    /// Play a recording in CSV, whose first line names the columns.
    #[cfg(feature = "gateway")]
    #[arg(long = "replay", value_name = "FILE")]
    recordings: Vec<PathBuf>,
}

/// Runs a command.
pub(crate) fn run(command: &ConfigCommand, output: Output) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check { file } => check(file, output),
        ConfigCommand::Init(arguments) => init(arguments, output),
        ConfigCommand::Apply { file } => apply(file, output),
    }
}

fn init(arguments: &InitArgs, output: Output) -> Result<(), Failure> {
    let place = Place { file: &arguments.file, state: arguments.state.as_deref(), web: arguments.web };
    #[cfg(feature = "gateway")]
    {
        let recordings = absolute(&arguments.recordings)?;
        let recordings: Result<_, _> = recordings.iter().map(|path| Recording::read(path)).collect();
        let wishes = Wishes {
            modbus: arguments.modbus.clone(),
            mqtt: arguments.mqtt.clone(),
            opcua: arguments.opcua.clone(),
            http: arguments.http.clone(),
            files: absolute(&arguments.files)?,
            logs: absolute(&arguments.logs)?,
            recordings: recordings.map_err(Failure::Usage)?,
        };
        if !wishes.is_empty() {
            return config_init::gateway(&place, &wishes, output);
        }
    }
    config_init::server(&place, output)
}

/// Absolute paths of files: they are relative to the current directory, but the configuration may be elsewhere.
#[cfg(feature = "gateway")]
fn absolute(paths: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let absolute = |path: &PathBuf| {
        let fail = |reason: &dyn core::fmt::Display| Failure::Usage(format!("{}: {reason}", path.display()));
        let path = std::path::absolute(path).map_err(|error| fail(&error))?;
        path.to_str().map(str::to_owned).ok_or_else(|| fail(&"the name is not UTF-8; rename the file"))
    };
    paths.iter().map(absolute).collect()
}

fn check(path: &Path, output: Output) -> Result<(), Failure> {
    let file = load(path)?;
    let config = file.config();
    let users = users(&file)?;
    for nodeset in &config.server.nodesets {
        let nodeset = file.resolve(nodeset);
        // A directory stands for the files in it.
        if !nodeset.exists() {
            return Err(Failure::Usage(format!(
                "{}: the file {} does not exist",
                path.display(),
                nodeset.display()
            )));
        }
    }
    let pubsub = crate::serve::check_files(&file)?;
    let gateway = crate::serve::check_gateway(&file)?;
    crate::serve::check_nodes(&file)?;
    let authorization = file.authorization().map_err(|error| Failure::Usage(error.to_string()))?;
    let known: Vec<&str> = authorization.roles.iter().map(|role| role.name.as_str()).collect();
    let user_list: Vec<_> = users.iter().flat_map(Users::iter).collect();
    let mut warnings: Vec<String> = user_list
        .iter()
        .flat_map(|user| user.roles.iter().map(move |role| (user, role)))
        .filter(|(_, role)| !known.contains(&role.as_str()))
        .map(|(user, role)| format!("the user {:?} has the unknown role {role:?}", user.name))
        .collect();
    let usage = |error: ConfigError| Failure::Usage(error.to_string());
    let policies = file.policies().map_err(usage)?;
    let policies: Option<Vec<_>> =
        policies.map(|policies| policies.into_iter().map(SecurityPolicy::name).collect());
    let modes: Vec<String> = file.modes().map_err(usage)?.iter().map(ToString::to_string).collect();
    let pki = file.resolve(&config.security.pki);
    let store = Store::at(&pki);
    let trusted_users =
        config.identities.certificates.then(|| store.trust_list(Group::Users, &mut Vec::new()).trusted_len());
    if config.identities.users_file.is_some() && user_list.is_empty() {
        warnings.push("there are no users yet; `taktwerk user add NAME --role ROLE` adds one".to_owned());
    }
    if trusted_users == Some(0) {
        warnings.push(format!(
            "no user's certificate is trusted yet; `taktwerk pki import --users --pki {} FILE` trusts one",
            pki.display()
        ));
    }
    warnings.extend(unknown_users(config, &user_list));
    warnings.extend(crate::serve::missing_files(&file));
    if output.is_json() {
        return output.document(&json!({
            "Bind": file.binds(),
            "LoopbackOnly": file.is_loopback(),
            "Policies": policies,
            "Modes": modes,
            "SecurityPolicyNone": config.security.none,
            "Pki": pki.display().to_string(),
            "Anonymous": config.identities.anonymous,
            "Users": user_list.len(),
            "CertificateUsers": trusted_users,
            "Roles": known,
            "PubSubConnections": pubsub,
            "Sources": gateway.as_ref().map(|gateway| gateway.sources),
            "Tags": gateway.as_ref().map(|gateway| gateway.tags),
            "Destinations": gateway.as_ref().map(|gateway| gateway.destinations),
            "History": history(config),
            "Alarms": config.alarms.alarm.len(),
            "DurableSubscriptions": config.durable_subscriptions.file,
            "Files": config.files.len(),
            "NodeManagement": config.node_management.enabled,
            "NodeSetMethods": config.nodeset_methods.enabled,
            "PushManagement": config.security.push_management,
            "Dashboard": config.web.bind.as_ref().map(|bind| bind.get_ref()),
            "Warnings": warnings,
        }));
    }
    let reach = if file.is_loopback() { "only this machine" } else { "every machine that can reach these" };
    let mut table = Table::new(&[("Setting", Align::Left), ("Meaning", Align::Left)]);
    table.row(["listens on", &format!("{} ({reach})", file.binds().join(", "))]);
    match policies {
        Some(policies) if policies.is_empty() => {}
        Some(policies) => {
            table.row(["security", &modes.join(", ")]);
            for policy in policies {
                table.row(["", policy]);
            }
        }
        None => table.row([
            "security",
            &format!("{} with every policy that matches a key of the server", modes.join(", ")),
        ]),
    }
    if config.security.none {
        let readers = if file.is_loopback() {
            "offered: other programs on this machine can read the messages"
        } else {
            "offered: everyone on the network can read the messages"
        };
        table.row(["SecurityPolicy None", readers]);
    }
    table.row(["certificates", &pki.display().to_string()]);
    table.row(["anonymous clients", if config.identities.anonymous { "allowed" } else { "refused" }]);
    table.row(["users with passwords", &user_list.len().to_string()]);
    let certificates =
        trusted_users.map_or_else(|| "refused".to_owned(), |trusted| format!("{trusted} trusted"));
    table.row(["users with certificates", &certificates]);
    let own = known.len() - taktwerk::server::authorization::role::well_known::ALL.len();
    table.row(["roles", &format!("the specification's and {own} of its own")]);
    table.row(["namespaces with rules", &config.namespace.len().to_string()]);
    let audit = match (&config.audit.file, config.audit.sessions || config.audit.updates) {
        (Some(file), true) => format!("logged, and written to {}", file.display()),
        (None, true) => "logged".to_owned(),
        (_, false) => "off".to_owned(),
    };
    table.row(["audit", &audit]);
    if config.identities.jwt.is_some() {
        table.row(["access tokens", "taken"]);
    }
    if let Some(connections) = pubsub {
        table.row(["PubSub", &format!("{connections} connections")]);
    }
    if let Some(gateway) = gateway {
        table.row([
            "sources",
            &format!("{} with {}", gateway.sources, crate::output::counted(gateway.tags, "tag")),
        ]);
        if gateway.destinations > 0 {
            table.row(["destinations", &gateway.destinations.to_string()]);
        }
    }
    for row in parts(config) {
        table.row(row);
    }
    output.text(&table.to_string())?;
    for warning in &warnings {
        tell!("warning: {warning}");
    }
    Ok(())
}

/// Where the history is stored.
fn history(config: &Config) -> Option<String> {
    let section = &config.history;
    let file = section.file.as_ref().map(|file| file.display().to_string());
    file.or_else(|| section.postgresql.as_ref().map(|url| url.get_ref().clone()))
}

/// Rows for the parts of the server that are off by default.
fn parts(config: &Config) -> Vec<[String; 2]> {
    let off = || "off".to_owned();
    let switch = |is_on: bool| if is_on { "on".to_owned() } else { off() };
    let rows = [
        ("history", history(config).unwrap_or_else(off)),
        ("alarms", config.alarms.alarm.len().to_string()),
        (
            "durable subscriptions",
            config.durable_subscriptions.file.as_ref().map_or_else(off, |file| file.display().to_string()),
        ),
        ("shared folders", config.files.len().to_string()),
        ("NodeManagement", switch(config.node_management.enabled)),
        ("NodeSets by methods", switch(config.nodeset_methods.enabled)),
        ("push management", switch(config.security.push_management)),
        ("dashboard", config.web.bind.as_ref().map_or_else(off, |bind| bind.get_ref().clone())),
    ];
    rows.into_iter().map(|(setting, meaning)| [setting.to_owned(), meaning]).collect()
}

/// Warnings for names in `[[role]] users` that are not in the users file. Users of access tokens are not known before
/// they log on.
fn unknown_users(config: &Config, known: &[&User]) -> Vec<String> {
    if config.identities.jwt.is_some() {
        return Vec::new();
    }
    let named = config.role.iter().flat_map(|role| role.users.iter().map(move |user| (role, user)));
    let unknown = named.filter(|(_, user)| !known.iter().any(|known| known.name == **user));
    unknown
        .map(|(role, user)| {
            format!(
                "the role {:?} names the user {user:?}, who is not in the users file; `taktwerk user add {user}` adds one",
                role.name.get_ref()
            )
        })
        .collect()
}

fn apply(path: &Path, output: Output) -> Result<(), Failure> {
    // Mistakes are reported here, with their line, whether a server runs or not.
    let file = load(path)?;
    crate::serve::check_files(&file)?;
    crate::serve::check_gateway(&file)?;
    crate::serve::check_nodes(&file)?;
    let outcome = control::apply(path)?;
    // The users file is read only at the start. This program may have no permission to read it.
    if let Err(problem) = users(&file) {
        tell!("warning: {problem}. The server will not start with this file");
    }
    if let Some(problem) = &outcome.problem {
        let what = match outcome.applied.as_slice() {
            [] => "the server stays as it was".to_owned(),
            applied => format!("the server applied only {}", applied.join(", ")),
        };
        return Err(Failure::Usage(format!("{what}: {problem}")));
    }
    if output.is_json() {
        return output.document(&json!(outcome));
    }
    output.text(&match outcome.applied.as_slice() {
        [] => "no setting that a running server can apply has changed".to_owned(),
        applied => format!("applied: {}", applied.join(", ")),
    })?;
    if !outcome.waiting.is_empty() {
        output.text(&format!("waiting for a restart: {}", outcome.waiting.join(", ")))?;
    }
    outcome.remarks.iter().try_for_each(|remark| output.text(remark))
}

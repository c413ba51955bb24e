//! `taktwerk gateway check`: lists all errors and warnings in a file.

use crate::failure::Failure;
use crate::output::{Output, counted};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use taktwerk_config::{ConfigFile, file};
use taktwerk_gateway::roles::TagRoles;
use taktwerk_gateway::{GatewayConfig, Mistake, files, review};
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::PermissionType;
use taktwerk_server::authorization::{IdentityRule, Unspecified};
use taktwerk_types::NodeId;

/// Arguments of `taktwerk gateway check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration file.
    file: PathBuf,

    /// Fail on warnings too.
    #[arg(long)]
    strict: bool,
}

/// Checks and prints.
pub(crate) fn run(arguments: &CheckArgs, output: Output) -> Result<(), Failure> {
    let path = arguments.file.as_path();
    let text = file::read_text(path, taktwerk_config::FILE_LEN_MAX)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let (config, mut mistakes) = GatewayConfig::examine(path, &text);
    mistakes.sort_by(|one, two| (&one.path, one.line).cmp(&(&two.path, two.line)));
    let mut errors: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let whole = if mistakes.is_empty() { rest(path, &text, config.as_ref()) } else { None };
    let mut documents: Vec<Value> = mistakes.iter().map(document).collect();
    if let Some(problem) = whole {
        documents.push(json!({ "Problem": problem }));
        errors.push(problem);
    }
    let warnings = match &config {
        // Warnings about an incomplete configuration would be misleading.
        Some(config) if errors.is_empty() => {
            let mut warnings = review::review(path, config);
            warnings.extend(files::missing(path, &text).unwrap_or_default());
            warnings.extend(ConfigFile::parse(path, &text).ok().and_then(|file| unseen(&file, config)));
            warnings
        }
        _ => Vec::new(),
    };
    if output.is_json() {
        output.document(&json!({
            "File": path.display().to_string(),
            "Errors": documents,
            "Warnings": warnings.iter().map(document).collect::<Vec<_>>(),
            "Sources": config.as_ref().map(sources),
            "Destinations": config.as_ref().map(destinations),
        }))?;
    } else {
        let mut text: String = errors.iter().map(|error| format!("error: {error}\n")).collect();
        text.extend(warnings.iter().map(|warning| format!("warning: {warning}\n")));
        if errors.is_empty() {
            text.push_str(&summary(config.as_ref()));
        }
        output.text(&text)?;
    }
    let name = path.display();
    match (errors.len(), warnings.len()) {
        (0, 0) => Ok(()),
        (0, count) if arguments.strict => {
            Err(Failure::Usage(format!("{name}: {}", counted(count, "warning"))))
        }
        (0, _) => Ok(()),
        (count, _) => Err(Failure::Usage(format!("{name}: {}", counted(count, "error")))),
    }
}

/// Errors in the rest of the file, which the server needs too.
fn rest(path: &Path, text: &str, config: Option<&GatewayConfig>) -> Option<String> {
    let Some(config) = config else {
        return Some(format!(
            "{}: there is no [[source]]; `taktwerk config init FILE --modbus HOST` writes a file with one",
            path.display()
        ));
    };
    match ConfigFile::parse(path, text) {
        Err(error) => Some(error.to_string()),
        Ok(file) if config.historizes() && !file.config().history.has_store() => Some(format!(
            "{}: tags with historize = true need a place to record to; set file = \"history.db\" under [history]",
            path.display()
        )),
        Ok(file) => crate::serve::check_nodes(&file).err().map(|error| error.to_string()),
    }
}

/// A warning if clients without a user are allowed, and see none of the tags.
fn unseen(file: &ConfigFile, config: &GatewayConfig) -> Option<Mistake> {
    let authorization = file.authorization().ok().filter(|_| file.config().identities.anonymous)?;
    // Without security, applications are not identified.
    let is_secured = !file.config().security.none;
    let may_be_anonymous = |rule: &IdentityRule| match rule {
        IdentityRule::Anonymous => true,
        IdentityRule::TrustedApplication | IdentityRule::Application(_) => is_secured,
        _ => false,
    };
    let granted = authorization.roles.iter().filter(|role| role.identities.iter().any(may_be_anonymous));
    let granted: Vec<&NodeId> = granted.map(|role| &role.id).collect();
    let may_browse = |permissions: &[(NodeId, PermissionType)]| {
        let mut theirs = permissions.iter().filter(|(role, _)| granted.contains(&role));
        theirs.any(|(_, permissions)| permissions.contains(PermissionType::BROWSE))
    };
    let of_namespace = authorization.namespaces.get(&config.namespace);
    let is_open = match (
        of_namespace.and_then(|access| access.role_permissions.as_ref()),
        &authorization.unspecified,
    ) {
        (Some(permissions), _) => may_browse(permissions),
        (None, Unspecified::Open) => true,
        (None, Unspecified::Permissions { others, .. }) => may_browse(others),
    };
    // Tags with roles of their own do not have the permissions of the namespace.
    let is_seen =
        |roles: &TagRoles| roles.access(false).role_permissions.map_or(is_open, |own| may_browse(&own));
    let mut sources = config.sources.iter();
    let is_any_seen = sources.any(|source| {
        source.tags.iter().any(|it| is_seen(&it.tag.roles)) || (source.tags.is_empty() && is_open)
    });
    if config.sources.is_empty() || is_any_seen {
        return None;
    }
    let section = file.config().namespace.iter().find(|section| *section.uri.get_ref() == config.namespace);
    let uri = &config.namespace;
    Some(Mistake {
        path: file.path().to_owned(),
        line: section.map_or(0, |section| taktwerk_config::line_of(file.text(), section.uri.span().start)),
        key: "namespace.permissions".to_owned(),
        problem: "clients without a user are allowed, but they see none of the tags".to_owned(),
        hint: format!(
            "write Anonymous = [\"Browse\", \"Read\"] in [namespace.permissions] of the [[namespace]] with uri = \"{uri}\", or \
             anonymous = false in [identities]"
        ),
    })
}

fn document(mistake: &Mistake) -> Value {
    json!({
        "File": mistake.path.display().to_string(),
        "Line": mistake.line,
        "Key": mistake.key,
        "Problem": mistake.problem,
        "Hint": mistake.hint,
    })
}

fn sources(config: &GatewayConfig) -> Value {
    let sources = config.sources.iter().map(|source| {
        json!({
            "Name": source.settings.name,
            "Description": source.adapter.describe(),
            "IntervalMillis": source.settings.interval.map(|interval| interval.as_secs_f64() * 1e3),
            "Tags": source.tags.len(),
        })
    });
    sources.collect()
}

fn destinations(config: &GatewayConfig) -> Value {
    let destinations = config.destinations.iter().map(|destination| {
        json!({ "Name": destination.settings.name, "Description": destination.sink.describe() })
    });
    destinations.collect()
}

fn summary(config: Option<&GatewayConfig>) -> String {
    let Some(config) = config else { return String::new() };
    let mut table = Table::new(&[
        ("source", Align::Wrap),
        ("what it is", Align::Left),
        ("interval", Align::Right),
        ("tags", Align::Right),
    ]);
    for source in &config.sources {
        let interval = source.settings.interval.map_or("by itself".to_owned(), |it| format!("{it:?}"));
        let tags = source.tags.len().to_string();
        table.row([source.settings.name.clone(), source.adapter.describe(), interval, tags]);
    }
    for destination in &config.destinations {
        let name = format!("→ {}", destination.settings.name);
        table.row([name, destination.sink.describe(), String::new(), String::new()]);
    }
    table.to_string()
}

//! Parsing of the command line. `TAKTWERK_ENDPOINT` replaces a missing server URL.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use std::ffi::OsString;

/// The environment variable with the default server.
pub(crate) const ENDPOINT: &str = "TAKTWERK_ENDPOINT";

/// Parses the command line. On an error, prints the message and exits.
pub(crate) fn parse<T: Parser>() -> T {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let endpoint = std::env::var_os(ENDPOINT).filter(|value| !value.is_empty());
    parse_from(&arguments, endpoint).unwrap_or_else(|error| {
        if let Some(message) = of_number(&error).or_else(|| of_configuration(&error)) {
            tell!("{}", message.trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// The message for an invalid number, with a hint instead of the parser's error.
fn of_number(error: &clap::Error) -> Option<String> {
    let source = std::error::Error::source(error)?;
    let wanted = if source.is::<std::num::ParseIntError>() {
        "write a whole number"
    } else if source.is::<std::num::ParseFloatError>() {
        "write a number, such as 2.5"
    } else {
        return None;
    };
    Some(error.render().to_string().replace(&source.to_string(), wanted))
}

/// Options of `serve` that a configuration file replaces, and what to write there: the section and the setting.
const IN_FILE: [(&str, &str, &str); 17] = [
    ("--web", "web", "bind = \"127.0.0.1:8080\""),
    ("--bind", "server", "bind = [\"0.0.0.0:4840\"]"),
    ("--port", "server", "bind = [\"127.0.0.1:4840\"]"),
    ("--no-plant", "server", "simulated_plant = false"),
    ("--nodeset", "server", "nodesets = [\"machine.xml\"]"),
    ("--threads", "server", "threads = 2"),
    ("--max-sessions", "limits", "sessions = 1000"),
    ("--policy", "security", "policies = [\"Basic256Sha256\"]"),
    ("--pki", "security", "pki = \"pki\""),
    ("--node-management", "node_management", "enabled = true"),
    ("--pubsub", "pubsub", "configuration = \"pubsub.toml\""),
    ("--pubsub-save", "pubsub", "save_to = \"pubsub.uabinary\""),
    ("--pubsub-keys", "pubsub", "keys = [\"plant.keys\"]"),
    ("--pubsub-replay-file", "pubsub", "replay_file = \"pubsub.replay\""),
    ("--history", "history", "file = \"history.db\""),
    ("--durable", "durable_subscriptions", "file = \"subscriptions.db\""),
    ("--headroom", "headroom", "calibration = \"model.json\""),
];

/// The message for an option of `serve` beside `--config`, with the key for the configuration file.
fn of_configuration(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let mut options: Vec<&str> = Vec::new();
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        match error.get(kind) {
            Some(ContextValue::String(option)) => options.push(option),
            Some(ContextValue::Strings(all)) => options.extend(all.iter().map(String::as_str)),
            _ => {}
        }
    }
    let names: Vec<&str> = options.iter().filter_map(|option| option.split(' ').next()).collect();
    let settings = IN_FILE.iter().filter(|(option, ..)| names.contains(option));
    let settings: Vec<String> =
        settings.map(|(_, section, setting)| format!("{setting} under [{section}]")).collect();
    let message = error.render().to_string();
    if settings.is_empty() || !names.contains(&"--config") || !message.contains("taktwerk serve ") {
        return None;
    }
    let (first, rest) = message.split_once("\n\n")?;
    Some(format!("{first}\n\n  With --config, write into the file: {}\n\n{rest}", settings.join(", ")))
}

/// Parses the command line. If that fails and `endpoint` is set, tries again with `endpoint` inserted as the URL: in
/// `taktwerk read i=2258`, the only positional argument is a node.
fn parse_from<T: Parser>(arguments: &[OsString], endpoint: Option<OsString>) -> Result<T, clap::Error> {
    let error = match parse_all::<T>(arguments) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let is_positional = matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument
    );
    let (true, Some(endpoint), Some(at)) =
        (is_positional, endpoint, url_position(&<T as CommandFactory>::command(), arguments))
    else {
        return Err(error);
    };
    let mut completed = arguments.to_vec();
    completed.insert(at, endpoint);
    // If both attempts reject a value, the second error is the relevant one.
    parse_all::<T>(&completed).map_err(|second| match (error.kind(), second.kind()) {
        (ErrorKind::ValueValidation, ErrorKind::ValueValidation) => second,
        _ => error,
    })
}

/// Parses a command line without `TAKTWERK_ENDPOINT`. `--help` shows the examples of all commands.
fn parse_all<T: Parser>(arguments: &[OsString]) -> Result<T, clap::Error> {
    let mut command = crate::examples::with_examples(T::command());
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// The position of the URL: after the last subcommand, if that takes a URL.
fn url_position(root: &Command, arguments: &[OsString]) -> Option<usize> {
    let mut command = root;
    let mut at = None;
    let mut is_value = false;
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        let argument = argument.to_string_lossy();
        if core::mem::take(&mut is_value) {
            continue;
        }
        if argument.starts_with('-') {
            is_value = takes_next([root, command], &argument);
        } else if let Some(found) = command.find_subcommand(&*argument) {
            command = found;
            at = Some(index + 1);
        } else {
            break;
        }
    }
    at.filter(|_| command.get_positionals().any(|positional| positional.get_id() == "endpoint"))
}

/// Whether the argument after an option is its value, as in `--color never`.
fn takes_next(commands: [&Command; 2], option: &str) -> bool {
    let is_named = |argument: &&clap::Arg| match option.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        // The last one of several short options may have a value.
        None => argument.get_short().is_some_and(|short| option.ends_with(short)),
    };
    let mut known = commands.into_iter().flat_map(Command::get_arguments);
    known.find(is_named).is_some_and(|argument| argument.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;

    fn parse(arguments: &[&str], endpoint: Option<&str>) -> Result<String, clap::Error> {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        parse_from::<Cli>(&arguments, endpoint.map(Into::into)).map(|cli| format!("{:?}", cli.command))
    }

    #[test]
    fn the_variable_replaces_a_missing_url() {
        let at = |arguments: &[&str]| parse(arguments, Some("plc7:4841")).unwrap();
        for arguments in [
            &["taktwerk", "read", "i=2258"][..],
            &["taktwerk", "read", "i=2258", "ns=2;s=Plant/Mode"],
            &["taktwerk", "read", "/Objects/2:Plant/*", "--all"],
            &["taktwerk", "-j", "write", "ns=2;s=Setpoint", "65.5"],
            &["taktwerk", "call", "ns=2;s=Add", "1", "2"],
            &["taktwerk", "watch", "i=2258", "-I", "100"],
            &["taktwerk", "browse", "/Objects"],
            &["taktwerk", "browse", "i=85", "-r"],
            &["taktwerk", "--color", "never", "read", "i=2258"],
            &["taktwerk", "-q", "--color=never", "read", "i=2258"],
            &["taktwerk", "--color", "never", "-j", "browse"],
            &["taktwerk", "watch", "-I", "100", "i=2258"],
        ] {
            assert!(at(arguments).contains("plc7"), "{arguments:?}: {}", at(arguments));
        }
        // A URL on the command line has precedence.
        assert!(at(&["taktwerk", "read", "localhost", "i=2258"]).contains("localhost"));
        assert!(!at(&["taktwerk", "read", "localhost", "i=2258"]).contains("plc7"));
    }

    #[test]
    fn invalid_numbers_have_a_hint() {
        let of = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            of_number(&parse_from::<Cli>(&words, None).unwrap_err()).unwrap()
        };
        let message = of(&["taktwerk", "browse", "localhost", "--depth", "x"]);
        assert!(message.contains("'x' for '--depth <LEVELS>': write a whole number"), "{message}");
        let message = of(&["taktwerk", "serve", "--headroom-limit", "much"]);
        assert!(
            message.contains("'much' for '--headroom-limit <SHARE>': write a number, such as 2.5"),
            "{message}"
        );
    }

    #[test]
    fn options_beside_a_configuration_name_its_keys() {
        let of = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            of_configuration(&parse_from::<Cli>(&words, None).unwrap_err())
        };
        let known = IN_FILE.iter().filter(|(option, ..)| cfg!(feature = "web") || *option != "--web");
        for (option, section, setting) in known {
            let value = match *option {
                "--web" => Some("127.0.0.1:8080"),
                "--bind" => Some("127.0.0.1"),
                "--no-plant" | "--node-management" => None,
                _ => Some("1"),
            };
            let words = ["taktwerk", "serve", "--config", "s.toml", option].into_iter().chain(value);
            let message = of(&words.collect::<Vec<_>>()).unwrap();
            assert!(message.contains("cannot be used with"), "{message}");
            // As it is written, because a section and its setting on one line are not TOML.
            assert!(message.contains(&format!(" the file: {setting} under [{section}]\n")), "{message}");
        }
        // The order does not matter, and other commands have another --config.
        assert!(of(&["taktwerk", "serve", "--no-plant", "--config", "s.toml"]).is_some());
        let publish = ["taktwerk", "pubsub", "publish", "--config", "p.toml", "--signals", "3"];
        assert_eq!(of(&publish), None);
    }

    /// The keys in the hints are those of the file.
    #[test]
    fn the_hints_are_settings_of_a_configuration() {
        for (option, section, setting) in IN_FILE {
            let base = "[identities]\nanonymous = true\n";
            let none = if section == "security" { "none = true\n" } else { "" };
            let mut text = format!("{base}[{section}]\n{setting}\n{none}");
            if none.is_empty() {
                text += "[security]\nnone = true\n";
            }
            if option == "--bind" {
                // Other machines need certificates and users.
                text = text.replace("0.0.0.0", "127.0.0.1");
            }
            let parsed = taktwerk_config::ConfigFile::parse(std::path::Path::new("s.toml"), &text);
            assert!(parsed.is_ok(), "{option}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn without_the_variable_the_first_error_is_reported() {
        let error = parse(&["taktwerk", "read", "i=2258"], None).unwrap_err().to_string();
        assert!(error.contains("TAKTWERK_ENDPOINT") || error.contains("NODE"), "{error}");
        let error = parse(&["taktwerk", "read", "i=2258#Valeu"], Some("plc7")).unwrap_err().to_string();
        assert!(error.contains("unknown attribute \"Valeu\"; did you mean Value?"), "{error}");
        // Commands without a server are not affected.
        assert!(parse(&["taktwerk", "size"], Some("plc7")).is_err());
    }
}

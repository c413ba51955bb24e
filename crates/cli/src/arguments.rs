//! The command line, with `TAKTWERK_ENDPOINT` for the server of any command.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use std::ffi::OsString;

/// The variable that names the server if the command line does not.
pub(crate) const ENDPOINT: &str = "TAKTWERK_ENDPOINT";

/// Parses the command line, or prints what is wrong with it and ends the program.
pub(crate) fn parse<T: Parser>() -> T {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let endpoint = std::env::var_os(ENDPOINT).filter(|value| !value.is_empty());
    parse_from(&arguments, endpoint).unwrap_or_else(|error| {
        if let Some(message) = of_number(&error) {
            tell!("{}", message.trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// The message about a text that is no number, with what would be right instead of what the parser met.
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

/// In `taktwerk read i=2258`, the only positional argument is a node. If the command line makes no sense as it is and
/// `endpoint` is set, `endpoint` takes the place of the missing URL.
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
        (is_positional, endpoint, place(&<T as CommandFactory>::command(), arguments))
    else {
        return Err(error);
    };
    let mut completed = arguments.to_vec();
    completed.insert(at, endpoint);
    // If the first argument is a node and something is wrong with it, that is the mistake.
    parse_all::<T>(&completed).map_err(|second| match (error.kind(), second.kind()) {
        (ErrorKind::ValueValidation, ErrorKind::ValueValidation) => second,
        _ => error,
    })
}

/// Parses a command line as it is. `--help` shows the examples of all commands.
fn parse_all<T: Parser>(arguments: &[OsString]) -> Result<T, clap::Error> {
    let mut command = crate::examples::with_examples(T::command());
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Where the URL stands: behind the last subcommand, if that takes one.
fn place(root: &Command, arguments: &[OsString]) -> Option<usize> {
    let mut command = root;
    let mut at = None;
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        if let Some(found) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            command = found;
            at = Some(index + 1);
        } else if !argument.to_string_lossy().starts_with('-') {
            break;
        }
    }
    at.filter(|_| command.get_positionals().any(|positional| positional.get_id() == "endpoint"))
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
    fn the_variable_takes_the_place_of_the_missing_url() {
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
        ] {
            assert!(at(arguments).contains("plc7"), "{arguments:?}: {}", at(arguments));
        }
        // What the command line names is taken.
        assert!(at(&["taktwerk", "read", "localhost", "i=2258"]).contains("localhost"));
        assert!(!at(&["taktwerk", "read", "localhost", "i=2258"]).contains("plc7"));
    }

    #[test]
    fn a_text_that_is_no_number_says_what_to_write() {
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
    fn without_the_variable_the_mistake_is_named() {
        let error = parse(&["taktwerk", "read", "i=2258"], None).unwrap_err().to_string();
        assert!(error.contains("TAKTWERK_ENDPOINT") || error.contains("NODE"), "{error}");
        let error = parse(&["taktwerk", "read", "i=2258#Valeu"], Some("plc7")).unwrap_err().to_string();
        assert!(error.contains("unknown attribute \"Valeu\"; did you mean Value?"), "{error}");
        // A command without a server gets none.
        assert!(parse(&["taktwerk", "size"], Some("plc7")).is_err());
    }
}

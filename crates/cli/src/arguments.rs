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
    parse_from(&arguments, endpoint).unwrap_or_else(|error| error.exit())
}

/// In `taktwerk read i=2258`, the only positional argument is a node. If the command line makes no sense as it is and
/// `endpoint` is set, `endpoint` takes the place of the missing URL.
fn parse_from<T: Parser>(arguments: &[OsString], endpoint: Option<OsString>) -> Result<T, clap::Error> {
    let error = match T::try_parse_from(arguments) {
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
    T::try_parse_from(completed).map_err(|second| match (error.kind(), second.kind()) {
        (ErrorKind::ValueValidation, ErrorKind::ValueValidation) => second,
        _ => error,
    })
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
    fn without_the_variable_the_mistake_is_named() {
        let error = parse(&["taktwerk", "read", "i=2258"], None).unwrap_err().to_string();
        assert!(error.contains("TAKTWERK_ENDPOINT") || error.contains("NODE"), "{error}");
        let error = parse(&["taktwerk", "read", "i=2258#Valeu"], Some("plc7")).unwrap_err().to_string();
        assert!(error.contains("unknown attribute \"Valeu\"; did you mean Value?"), "{error}");
        // A command without a server gets none.
        assert!(parse(&["taktwerk", "size"], Some("plc7")).is_err());
    }
}

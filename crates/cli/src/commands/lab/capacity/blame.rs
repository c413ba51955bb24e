//! Decides whether a failed load shows a limit of the server, or a problem of this machine or program.

use rustix::io::Errno;
use taktwerk_lab::place::PlaceError;
use taktwerk_lab::program::ProgramError;
use taktwerk_types::StatusCode;

/// The cause of a failed load, with an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blame {
    /// The server refused, did not respond, or closed the connection.
    Server(String),
    /// This machine or this program. The explanation says what to do.
    Searcher(String),
}

/// Exit codes of a load: no connection, and a Bad status.
const CONNECT: i32 = 3;
const REFUSED: i32 = 4;

/// Status codes that mean an exhausted limit of the server.
const LIMITS: [StatusCode; 19] = [
    StatusCode::BAD_OUT_OF_MEMORY,
    StatusCode::BAD_RESOURCE_UNAVAILABLE,
    StatusCode::BAD_TOO_MANY_OPERATIONS,
    StatusCode::BAD_TOO_MANY_SESSIONS,
    StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS,
    StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS,
    StatusCode::BAD_TOO_MANY_MONITORED_ITEMS,
    StatusCode::BAD_TCP_SERVER_TOO_BUSY,
    StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES,
    StatusCode::BAD_SERVER_TOO_BUSY,
    StatusCode::BAD_MAX_CONNECTIONS_REACHED,
    StatusCode::BAD_LICENSE_LIMITS_EXCEEDED,
    StatusCode::BAD_TIMEOUT,
    StatusCode::BAD_REQUEST_TIMEOUT,
    // The server closed what it had accepted.
    StatusCode::BAD_CONNECTION_CLOSED,
    StatusCode::BAD_SECURE_CHANNEL_CLOSED,
    StatusCode::BAD_SESSION_CLOSED,
    StatusCode::BAD_SESSION_ID_INVALID,
    StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
];

/// Messages of loads for a server that does not respond or closes connections, without a status.
const SILENT: [&str; 5] =
    ["connection: ", " in time", "peer: timeout", "the server does not go on", "not connected"];

/// Errors of the operating system for exhausted resources of this machine.
const LOCAL_LIMITS: [Errno; 6] =
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL, Errno::NOSPC];

/// Classifies the error of a load.
pub(super) fn blame(error: &PlaceError) -> Blame {
    match error {
        PlaceError::Program(ProgramError::TimedOut { seconds, .. }) => {
            Blame::Server(format!("it was not set up and measured within {seconds} s"))
        }
        // Stopped by this program, because another client had to wait.
        PlaceError::Program(ProgramError::Stopped { .. }) => Blame::Server("it was ended".to_owned()),
        PlaceError::Load { code, stderr, status, .. } => {
            let said = stderr.lines().last().unwrap_or_default().trim_start_matches("error: ");
            match code {
                Some(CONNECT | REFUSED) if is_servers(said) => Blame::Server(said.to_owned()),
                _ if said.is_empty() => searcher(&format!("the load generator ended with {status}")),
                _ => searcher(said),
            }
        }
        other => searcher(&other.to_string()),
    }
}

/// Whether a message is about a limit of the server.
fn is_servers(said: &str) -> bool {
    if has_run_out(said) {
        return false;
    }
    let words = said.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    match words.filter(|word| word.starts_with("Bad")).find_map(StatusCode::from_name) {
        Some(status) => LIMITS.contains(&status),
        None => SILENT.iter().any(|silent| said.contains(silent)),
    }
}

/// Whether this machine has run out of files, ports or memory for connections.
fn has_run_out(said: &str) -> bool {
    LOCAL_LIMITS.iter().any(|errno| said.contains(&format!("(os error {})", errno.raw_os_error())))
}

fn searcher(said: &str) -> Blame {
    let advice = if has_run_out(said) {
        "this machine has too few resources for the load generator: raise its limit of open files (ulimit -n), or search with --most \
         below this load"
    } else {
        "that is no limit of the server: fix it and search again"
    };
    Blame::Searcher(format!("{said}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_lab::pin::CpuList;

    fn load(code: i32, said: &str) -> Blame {
        blame(&PlaceError::Load {
            line: "taktwerk bench subscribe".to_owned(),
            status: format!("exit status: {code}"),
            code: Some(code),
            stderr: format!("a warning\nerror: {said}"),
        })
    }

    #[test]
    fn refusals_and_missing_responses_are_limits_of_the_server() {
        for (code, said) in [
            (
                3,
                "cannot connect to opc.tcp://h: CreateSession failed: BadTooManySessions: The server has reached its maximum",
            ),
            (3, "cannot connect to opc.tcp://h: the server ended the connection: BadTcpNotEnoughResources "),
            (3, "cannot connect to opc.tcp://h: connection: Connection refused (os error 111)"),
            (3, "cannot connect to opc.tcp://h: no answer to CreateSession in time"),
            (3, "cannot connect to opc.tcp://h: channel: peer: timeout: the channel was not opened"),
            (
                3,
                "the server does not go on: 1 of 5 subscriptions and 0 of 5 items after 30 s without an answer",
            ),
            (4, "31185 of 531185 monitored items were refused; the first: BadTooManyMonitoredItems"),
        ] {
            assert_eq!(load(code, said), Blame::Server(said.to_owned()));
        }
        let late = ProgramError::TimedOut { path: "taktwerk".into(), what: "end", seconds: 27 };
        let late = blame(&PlaceError::Program(late));
        assert_eq!(late, Blame::Server("it was not set up and measured within 27 s".to_owned()));
    }

    #[test]
    fn local_failures_are_not_limits_of_the_server() {
        let why = |blamed: Blame| match blamed {
            Blame::Searcher(why) => why,
            Blame::Server(why) => panic!("{why}"),
        };
        let files =
            why(load(3, "cannot connect to opc.tcp://h: connection: Too many open files (os error 24)"));
        assert!(files.contains("ulimit -n") && files.contains("os error 24"), "{files}");
        for (code, said) in [
            (4, "5 of 5 monitored items were refused; the first: BadNodeIdUnknown"),
            (3, "cannot connect to opc.tcp://h: security: the server's nonce is not acceptable"),
            (6, "cannot pin to CPU 3"),
            (2, "unexpected argument"),
            (101, "connection: a panic that mentions it"),
        ] {
            let why = why(load(code, said));
            assert!(why.starts_with(said) && why.ends_with("search again"), "{why}");
        }
        let killed = PlaceError::Load {
            line: String::new(),
            status: "signal: 9 (SIGKILL)".to_owned(),
            code: None,
            stderr: String::new(),
        };
        assert!(why(blame(&killed)).contains("SIGKILL"));
        let start = ProgramError::Start { path: "/gone".into(), source: std::io::ErrorKind::NotFound.into() };
        assert!(why(blame(&PlaceError::Program(start))).contains("/gone"));
        let pin = CpuList::single(1_000).pin().unwrap_err();
        assert!(why(blame(&PlaceError::Program(pin.into()))).contains("1000"));
    }
}

//! Logs go to standard error; standard output belongs to results.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging: warnings by default, more with each `-v`, or as `RUST_LOG` says.
pub(crate) fn start(verbosity: u8) {
    let default = match verbosity {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let color =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(color).init();
}

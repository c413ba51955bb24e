//! The limit of open files. Each connection is a file, and thousands of them exceed the default of shells.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of open files as far as permitted, and returns it.
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(1 << 20);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }) {
        Ok(()) => wanted,
        Err(_) => current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_as_high_as_allowed() {
        let raised = raise_limit();
        assert!(raised >= 256);
        assert_eq!(raise_limit(), raised);
    }
}

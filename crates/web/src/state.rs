//! What all requests share.

use crate::rate_limit::RateLimit;
use crate::settings::Settings;
use crate::subject::Subject;
use crate::visitor::Visitors;
use std::collections::BTreeSet;

/// Shared by all requests.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) subject: Subject,
    pub(crate) settings: Settings,
    pub(crate) visitors: Visitors,
    pub(crate) logins: RateLimit,
    /// Values of the Host header that are accepted; anything if empty.
    pub(crate) hosts: BTreeSet<String>,
}

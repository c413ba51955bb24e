//! Data that all requests share.

use crate::backlog::Backlogs;
use crate::rate_limit::Logins;
use crate::reach::Reach;
use crate::settings::Settings;
use crate::subject::Subject;
use crate::visitor::Visitors;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Data that all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) subject: Subject,
    pub(crate) settings: Settings,
    pub(crate) visitors: Visitors,
    pub(crate) reach: Reach,
    pub(crate) logins: Logins,
    /// What streams of values have not sent yet.
    pub(crate) backlogs: Arc<Backlogs>,
    /// Accepted values of the Host header; empty accepts any.
    pub(crate) hosts: BTreeSet<String>,
}

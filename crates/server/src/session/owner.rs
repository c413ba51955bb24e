//! Whose a subscription is.

use super::Session;
use crate::account::heap_size;
use crate::identity::User;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::UaString;

/// Whom a session works for, as far as it decides on whose subscriptions are whose (Part 4 §5.14.7.1).
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    user: User,
    /// The client's ApplicationUri. Over a secured channel it is the one in its certificate.
    application_uri: UaString,
    is_secured: bool,
}

impl Owner {
    /// Whether two are the same. Behind Anonymous may be anybody, so there it has to be the same application as well, and
    /// what an application on a secured channel has is not given to one that only says that it is the same. Over
    /// SecurityPolicy None nobody can tell: §5.14.7.1 gives nothing to anybody there, and another sentence of Part 4 wants
    /// transfers for Anonymous where the ApplicationUri has not changed. Here the name counts, which is as much as
    /// everything else counts without security, and lets clients come back.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let is_same_application =
            self.application_uri == other.application_uri && self.is_secured == other.is_secured;
        self.user.is_same_as(&other.user) && (self.user != User::Anonymous || is_same_application)
    }
}

heap_size!(Owner { user, application_uri; is_secured });

impl Session {
    /// Whom the session works for; `None` before it is activated.
    pub(crate) fn owner(&self) -> Option<Owner> {
        Some(Owner {
            user: self.user.clone()?,
            application_uri: self.entry.client.application_uri.clone(),
            is_secured: self.mode != MessageSecurityMode::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_clients_are_told_apart_by_their_application() {
        let owner =
            |user: User, uri: &str, is_secured| Owner { user, application_uri: uri.into(), is_secured };
        let anonymous = |uri, is_secured| owner(User::Anonymous, uri, is_secured);
        let joe = |uri, is_secured| owner(User::Named("joe".into()), uri, is_secured);
        assert!(anonymous("urn:a", true).is_same_as(&anonymous("urn:a", true)));
        assert!(anonymous("urn:a", false).is_same_as(&anonymous("urn:a", false)));
        assert!(!anonymous("urn:a", true).is_same_as(&anonymous("urn:b", true)));
        assert!(!anonymous("urn:a", false).is_same_as(&anonymous("urn:b", false)));
        assert!(!anonymous("urn:a", true).is_same_as(&anonymous("urn:a", false)));
        assert!(!anonymous("urn:a", false).is_same_as(&anonymous("urn:a", true)));
        // A user who has a name may use any application.
        assert!(joe("urn:a", true).is_same_as(&joe("urn:b", false)));
        assert!(!joe("urn:a", true).is_same_as(&anonymous("urn:a", true)));
        assert!(!joe("urn:a", true).is_same_as(&owner(User::Named("ann".into()), "urn:a", true)));
    }
}

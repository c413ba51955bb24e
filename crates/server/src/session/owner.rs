//! Owners of subscriptions.

use super::Session;
use crate::account::heap_size;
use crate::identity::User;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::{Decode, DecodeError, Decoder, Encode, UaString};

/// The user and application of a session, as far as they decide on ownership of subscriptions (Part 4 §5.14.7.1).
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    user: User,
    /// The client's ApplicationUri. On a secured channel it is that of its certificate.
    application_uri: UaString,
    is_secured: bool,
}

impl Owner {
    /// Whether two owners are the same. Anonymous users must also use the same application, and what an application on
    /// a secured channel owns is not given to one on an unsecured channel. Over SecurityPolicy None the identity is
    /// unknown: §5.14.7.1 forbids any transfer there, but another sentence of Part 4 requires transfers for Anonymous
    /// with an unchanged ApplicationUri. This server accepts the claimed ApplicationUri, which is no weaker than
    /// everything else without security, and lets clients resume their subscriptions.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let is_same_application =
            self.application_uri == other.application_uri && self.is_secured == other.is_secured;
        self.user.is_same_as(&other.user) && (self.user != User::Anonymous || is_same_application)
    }
}

impl Owner {
    /// A name that is equal for owners that [are the same](Self::is_same_as) and differs otherwise. All clients with
    /// neither a user nor a secured channel share one name: they could claim any ApplicationUri, and each would have
    /// its own limit.
    pub(crate) fn account_name(&self) -> String {
        match &self.user {
            User::Anonymous if self.is_secured => format!("anonymous {}", self.application_uri.as_str()),
            User::Anonymous => "anonymous".to_owned(),
            User::Named(name) => format!("named {name}"),
            User::Certificate { user_id, .. } => format!("certificate {user_id}"),
            User::Issued { user_id, .. } => format!("issued {user_id}"),
        }
    }
}

impl Encode for Owner {
    fn encode(&self, out: &mut Vec<u8>) {
        let text = |text: &str, out: &mut Vec<u8>| UaString::from(text).encode(out);
        match &self.user {
            User::Anonymous => out.push(0),
            User::Named(name) => {
                out.push(1);
                text(name, out);
            }
            User::Certificate { user_id, thumbprint, subject, issuer } => {
                out.push(2);
                [user_id, thumbprint, subject, issuer].into_iter().for_each(|part| text(part, out));
            }
            User::Issued { user_id, roles, groups } => {
                out.push(3);
                text(user_id, out);
                for names in [roles, groups] {
                    names.iter().map(|name| UaString::from(&**name)).collect::<Vec<_>>().encode(out);
                }
            }
        }
        self.application_uri.encode(out);
        self.is_secured.encode(out);
    }
}

impl<'a> Decode<'a> for Owner {
    const MIN_LEN: usize = 6;

    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        fn text(decoder: &mut Decoder<'_>) -> Result<Box<str>, DecodeError> {
            Ok(decoder.str()?.unwrap_or_default().into())
        }
        fn names(decoder: &mut Decoder<'_>) -> Result<std::sync::Arc<[Box<str>]>, DecodeError> {
            Ok(decoder.array::<UaString>()?.iter().map(|name| name.as_str().into()).collect())
        }
        let user = match decoder.byte()? {
            0 => User::Anonymous,
            1 => User::Named(text(decoder)?),
            2 => User::Certificate {
                user_id: text(decoder)?,
                thumbprint: text(decoder)?,
                subject: text(decoder)?,
                issuer: text(decoder)?,
            },
            3 => User::Issued { user_id: text(decoder)?, roles: names(decoder)?, groups: names(decoder)? },
            _ => return Err(DecodeError::Invalid("kind of user")),
        };
        Ok(Self {
            user,
            application_uri: <UaString as Decode>::decode(decoder)?,
            is_secured: bool::decode(decoder)?,
        })
    }
}

heap_size!(Owner { user, application_uri; is_secured });

impl Session {
    /// The owner that the session represents. `None` before activation, and while its user must change the password:
    /// the user's subscriptions are for a session with the user's rights (Part 18 §5.2.8).
    pub(crate) fn owner(&self) -> Option<Owner> {
        if self.must_change_password {
            return None;
        }
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
    fn anonymous_clients_are_distinguished_by_their_application() {
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
        // A named user may use any application.
        assert!(joe("urn:a", true).is_same_as(&joe("urn:b", false)));
        assert!(!joe("urn:a", true).is_same_as(&anonymous("urn:a", true)));
        assert!(!joe("urn:a", true).is_same_as(&owner(User::Named("ann".into()), "urn:a", true)));
    }
}

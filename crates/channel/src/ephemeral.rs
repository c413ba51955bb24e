//! Ephemeral keys for user secrets: how CreateSession and ActivateSession carry them in the AdditionalHeader of
//! requests and responses (Part 6 §6.8.2, Table 70).

use taktwerk_crypto::SecurityPolicy;
use taktwerk_schema::{AdditionalParametersType, EphemeralKeyType, KeyValuePair};
use taktwerk_types::{ExtensionObject, QualifiedName, StatusCode, UaString, Variant};

/// Name of the parameter with the policy.
const POLICY: &str = "ECDHPolicyUri";
/// Name of the parameter with the key.
const KEY: &str = "ECDHKey";
/// Parameters examined: a header has these two, and perhaps some random padding.
const PARAMETERS_MAX: usize = 16;

/// The additional header with which a client requests a key of this policy.
#[must_use]
pub fn ask(policy: SecurityPolicy) -> ExtensionObject {
    let policy = pair(POLICY, UaString::from(policy.uri()).into());
    ExtensionObject::new(&AdditionalParametersType { parameters: vec![policy] })
}

/// The policy that a client requests a key for. `None` if it requests no key; an error if the policy is unknown.
///
/// # Errors
/// Bad_SecurityPolicyRejected, which the server returns.
pub fn wanted(header: &ExtensionObject) -> Option<Result<SecurityPolicy, StatusCode>> {
    let value = find(header, POLICY)?;
    let policy = match &value {
        Variant::String(uri) => SecurityPolicy::from_uri(uri.as_str()),
        _ => None,
    };
    Some(policy.ok_or(StatusCode::BAD_SECURITY_POLICY_REJECTED))
}

/// The additional header of the server's response: the key, or why there is none.
#[must_use]
pub fn offer(policy: Option<SecurityPolicy>, key: Result<EphemeralKeyType, StatusCode>) -> ExtensionObject {
    let value = match key {
        Ok(key) => Variant::from_structure(&key),
        Err(status) => Variant::StatusCode(status),
    };
    let policy = policy.map(|policy| pair(POLICY, UaString::from(policy.uri()).into()));
    ExtensionObject::new(&AdditionalParametersType {
        parameters: policy.into_iter().chain([pair(KEY, value)]).collect(),
    })
}

/// The key that a server offers, before its signature is verified. `None` if the header has no key parameters.
///
/// # Errors
/// The server's reason for having no key, or Bad_DecodingError.
pub fn offered(header: &ExtensionObject) -> Option<Result<EphemeralKeyType, StatusCode>> {
    Some(match find(header, KEY)? {
        Variant::StatusCode(status) => Err(status),
        Variant::ExtensionObject(key) => {
            key.decode::<EphemeralKeyType>().map_err(|_| StatusCode::BAD_DECODING_ERROR)
        }
        _ => Err(StatusCode::BAD_DECODING_ERROR),
    })
}

fn pair(key: &str, value: Variant) -> KeyValuePair {
    KeyValuePair { key: QualifiedName { namespace_index: 0, name: key.into() }, value }
}

fn find(header: &ExtensionObject, key: &str) -> Option<Variant> {
    if !header.is::<AdditionalParametersType>() {
        return None;
    }
    let parameters = header.decode::<AdditionalParametersType>().ok()?.parameters;
    let mut parameters = parameters.into_iter().take(PARAMETERS_MAX);
    parameters.find(|parameter| parameter.key.name == *key).map(|parameter| parameter.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_asked_for_and_offered() {
        let policy = SecurityPolicy::ECC_nistP256_AesGcm;
        assert_eq!(wanted(&ask(policy)), Some(Ok(policy)));
        assert_eq!(wanted(&ExtensionObject::NULL), None);
        let key = EphemeralKeyType { public_key: vec![1; 64].into(), signature: vec![2; 64].into() };
        let header = offer(Some(policy), Ok(key.clone()));
        assert_eq!(offered(&header), Some(Ok(key)));
        let refused = offer(None, Err(StatusCode::BAD_SECURITY_POLICY_REJECTED));
        assert_eq!(offered(&refused), Some(Err(StatusCode::BAD_SECURITY_POLICY_REJECTED)));
        assert_eq!(offered(&ask(policy)), None);
    }

    #[test]
    fn nonsense_is_refused() {
        let header = |key: &str, value: Variant| {
            ExtensionObject::new(&AdditionalParametersType { parameters: vec![pair(key, value)] })
        };
        let unknown = header(POLICY, UaString::from("http://policy").into());
        assert_eq!(wanted(&unknown), Some(Err(StatusCode::BAD_SECURITY_POLICY_REJECTED)));
        assert!(wanted(&header(POLICY, Variant::UInt32(1))).is_some_and(|wanted| wanted.is_err()));
        let decoding = Some(Err(StatusCode::BAD_DECODING_ERROR));
        assert_eq!(offered(&header(KEY, Variant::UInt32(1))), decoding);
        assert_eq!(offered(&header(KEY, ExtensionObject::NULL.into())), decoding);
        assert_eq!(offered(&ExtensionObject::new(&KeyValuePair::default())), None);
    }
}

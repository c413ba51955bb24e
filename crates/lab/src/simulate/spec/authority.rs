//! Reads certificate authorities in the simulator's own files.

use super::super::study::StudyError;
use super::{Reader, span};
use core::time::Duration;
use serde::Deserialize;
use taktwerk_sim::authority::{Protocol, Unknown};
use taktwerk_sim::scenario::{Authority, Scenario};

/// Bytes of a revocation list: its headers and signature, and 37 bytes for each of 40 revoked certificates.
const LIST: usize = 2_000;
/// How long a revocation list is valid by default, in seconds.
const VALID: f64 = 3_600.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProtocolSpec {
    #[default]
    Ocsp,
    Crl,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FailureSpec {
    #[default]
    Refuse,
    Accept,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthoritySpec {
    name: String,
    host: Option<String>,
    link: Option<String>,
    #[serde(default)]
    protocol: ProtocolSpec,
    response_bytes: Option<usize>,
    valid_s: Option<f64>,
    #[serde(default)]
    processing_ms: f64,
    timeout_s: Option<f64>,
    #[serde(default)]
    on_failure: FailureSpec,
}

impl Reader<'_> {
    pub(super) fn authority(
        &self,
        at: usize,
        spec: &AuthoritySpec,
        scenario: &Scenario,
    ) -> Result<Authority, StudyError> {
        let key = |field: &str| format!("authority.{at}.{field}");
        let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        let hosts: Vec<&str> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let find = |field: &str, name: Option<&String>, all: &[&str]| {
            name.map(|name| self.find(&key(field), field, name, all)).transpose()
        };
        let usual = Authority::new(&spec.name);
        let protocol = match (spec.protocol, spec.valid_s) {
            (ProtocolSpec::Ocsp, None) => Protocol::Ocsp,
            (ProtocolSpec::Ocsp, Some(_)) => {
                let problem = "OCSP answers are not kept: leave it out, or write protocol = \"crl\"";
                return Err(self.wrong(&key("valid_s"), problem));
            }
            (ProtocolSpec::Crl, valid) => {
                Protocol::Crl(self.seconds(&key("valid_s"), valid.unwrap_or(VALID))?)
            }
        };
        let response_len = match protocol {
            Protocol::Ocsp => usual.response_len,
            Protocol::Crl(_) => LIST,
        };
        Ok(Authority {
            host: find("host", spec.host.as_ref(), &hosts)?,
            link: find("link", spec.link.as_ref(), &links)?,
            protocol,
            response_len: spec.response_bytes.unwrap_or(response_len),
            processing: self.ms(&key("processing_ms"), spec.processing_ms)?,
            timeout: match spec.timeout_s {
                Some(seconds) => self.seconds(&key("timeout_s"), seconds)?,
                None => usual.timeout,
            },
            unknown: match spec.on_failure {
                FailureSpec::Refuse => Unknown::Refuse,
                FailureSpec::Accept => Unknown::Accept,
            },
            ..usual
        })
    }

    /// The authorities that a server or client asks.
    pub(super) fn chain(
        &self,
        key: &str,
        names: &[String],
        scenario: &Scenario,
    ) -> Result<Vec<usize>, StudyError> {
        let known: Vec<&str> = scenario.authorities.iter().map(|one| one.name.as_str()).collect();
        names.iter().map(|name| self.find(key, "authority", name, &known)).collect()
    }

    /// The additional time of a slow authority.
    pub(super) fn slowdown(&self, key: &str, by: Option<&String>) -> Result<Duration, StudyError> {
        let seconds = by.and_then(|text| span(text)).filter(|seconds| *seconds > 0.0);
        let problem = || self.wrong(key, "write how much longer an answer takes, such as \"2s\"");
        seconds.map(Duration::from_secs_f64).ok_or_else(problem)
    }
}

/// Assigns machines to authorities without one, in the same way as for servers.
pub(in crate::simulate) fn place(
    scenario: &mut Scenario,
    host: &mut dyn FnMut(&mut Scenario, &str) -> usize,
) {
    for at in 0..scenario.authorities.len() {
        let Some(one) = scenario.authorities.get(at).filter(|one| one.host.is_none()) else { continue };
        let name = one.name.clone();
        let own = host(scenario, &name);
        if let Some(one) = scenario.authorities.get_mut(at) {
            one.host = Some(own);
        }
    }
}

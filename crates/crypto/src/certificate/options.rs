//! What may be overlooked, and by whom it is allowed to be.

/// Which failures do not count. Nothing is suppressed by default; what is suppressed still becomes a finding.
///
/// The names are those of TrustListValidationOptions (Part 12 §7.8.2.10) as far as it has them. The other steps can
/// not be suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ValidationOptions {
    /// Ignore the validity period of the certificate itself.
    pub suppress_certificate_expired: bool,
    /// Ignore that the host name is not in the certificate. The ApplicationUri always has to match: Part 4 §6.1.3
    /// does not allow to suppress it.
    pub suppress_host_name_invalid: bool,
    /// Ignore that there is no revocation list of the certificate's issuer.
    pub suppress_revocation_status_unknown: bool,
    /// Ignore the validity periods of issuers.
    pub suppress_issuer_certificate_expired: bool,
    /// Ignore that there is no revocation list of an issuer's issuer.
    pub suppress_issuer_revocation_status_unknown: bool,
    /// Ignore key lengths outside the policy and weak hashes, of everybody in the chain.
    pub suppress_policy_check_failed: bool,
    /// Ignore a wrong use of the key unless the certificate marks the extension as critical. That an issuer has to
    /// be an authority is never ignored.
    pub suppress_use_not_allowed: bool,
    /// Do not look for revocation lists at all: the administrator has disabled revocation checks. What an available
    /// list revokes stays revoked.
    pub disable_revocation_lists: bool,
}

impl ValidationOptions {
    /// From the bits of TrustListValidationOptions. The bits of online checks have no effect: nothing is fetched.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        const CHECK_ONLINE: u32 = 1 << 5;
        const CHECK_OFFLINE: u32 = 1 << 6;
        Self {
            suppress_certificate_expired: bits & 1 != 0,
            suppress_host_name_invalid: bits & 2 != 0,
            suppress_revocation_status_unknown: bits & 4 != 0,
            suppress_issuer_certificate_expired: bits & 8 != 0,
            suppress_issuer_revocation_status_unknown: bits & 16 != 0,
            suppress_policy_check_failed: false,
            suppress_use_not_allowed: false,
            disable_revocation_lists: bits & (CHECK_ONLINE | CHECK_OFFLINE) == 0,
        }
    }
}

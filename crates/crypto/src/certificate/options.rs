//! Validation options: which failures are suppressed.

/// The failures to suppress. By default there are none. A suppressed failure is still reported as a finding.
///
/// The names are those of TrustListValidationOptions (Part 12 §7.8.2.10) where it has them. Other steps cannot be
/// suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ValidationOptions {
    /// Ignore the validity period of the certificate itself.
    pub suppress_certificate_expired: bool,
    /// Ignore that the host name is not in the certificate. The ApplicationUri must always match: Part 4 §6.1.3 does
    /// not allow suppressing that.
    pub suppress_host_name_invalid: bool,
    /// Ignore that the certificate's issuer has no revocation list.
    pub suppress_revocation_status_unknown: bool,
    /// Ignore the validity periods of issuers.
    pub suppress_issuer_certificate_expired: bool,
    /// Ignore that an issuer's issuer has no revocation list.
    pub suppress_issuer_revocation_status_unknown: bool,
    /// Ignore key lengths that the policy does not allow and weak hashes, in the whole chain.
    pub suppress_policy_check_failed: bool,
    /// Ignore a wrong key usage unless the extension is critical. That an issuer must be an authority is never ignored.
    pub suppress_use_not_allowed: bool,
    /// Do not require revocation lists: the administrator has disabled revocation checks. Certificates in an available
    /// list are still revoked.
    pub disable_revocation_lists: bool,
}

impl ValidationOptions {
    /// From the bits of TrustListValidationOptions. The bits of online checks have no effect, because nothing is
    /// fetched.
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

//! Audit records for ApplyChanges and for the Methods of trust lists (Part 12 §7.8.2.13, §7.10.27), and a warning if a client
//! locks itself out.

use super::certificates::own_of;
use super::transaction::Transaction;
use super::{GROUPS, Push, trust_list_of};
use crate::space::{now, ns0};
use taktwerk_crypto::CertificatePurpose;
use taktwerk_crypto::certificate::{
    AwsLcVerifier, TrustList, Validation, ValidationOptions, ValidationRequest,
};
use taktwerk_pki::{Group, Lists};
use taktwerk_schema::ids::object_ids;
use taktwerk_server::audit::{AuditChange, AuditRecord};
use taktwerk_server::callback::CallContext;

impl Push {
    /// The changes that a transaction makes.
    pub(super) fn changes_of(&self, transaction: &Transaction) -> Vec<AuditChange> {
        let store = self.trust.store();
        let lists = transaction.lists.iter().filter_map(|list| {
            let before = store.lists(list.group);
            let is_changed = list.replacement.over(before.clone()).differs_from(&before);
            is_changed.then(|| self.trust_list_change(list.group)).flatten()
        });
        let certificates = transaction.certificates.iter().filter_map(|new| {
            let before = own_of(store, &ns0(new.kind)).ok().map(|own| own.certificate);
            let is_changed = before.as_ref() != new.chain.first();
            is_changed.then(|| certificate_change(new.kind))
        });
        lists.chain(certificates).collect()
    }

    /// The change of a group's trust list.
    pub(super) fn trust_list_change(&self, group: Group) -> Option<AuditChange> {
        let (id, _) = GROUPS.iter().find(|(_, of)| *of == group)?;
        let trust_list = trust_list_of(&*self.space.upgrade()?, *id)?;
        Some(AuditChange::TrustList { trust_list })
    }

    /// Creates audit records and events of completed changes. Immediately, not with the answer to the call: the changes are made
    /// even if the client does not wait for it.
    pub(super) fn note(&self, caller: &CallContext, changes: impl IntoIterator<Item = AuditChange>) {
        let records = changes.into_iter().filter_map(|change| AuditRecord::of_change(caller, now(), change));
        for record in records {
            self.sink.record(&record);
            if let Some(space) = self.space.upgrade() {
                space.raise_audit(&record, &self.application_uri);
            }
        }
    }

    /// Whether the changes of a transaction lock out the client that makes them.
    pub(super) fn locks_caller_out(&self, caller: &CallContext, transaction: &Transaction) -> bool {
        transaction.lists.iter().any(|list| {
            let before = self.trust.store().lists(list.group);
            is_locked_out(caller, list.group, &before, &list.replacement.over(before.clone()))
        })
    }
}

/// The change of the own certificate of a CertificateType.
pub(super) fn certificate_change(kind: u32) -> AuditChange {
    let group = ns0(object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP);
    AuditChange::Certificate { group, certificate_type: ns0(kind) }
}

/// Whether a new trust list of applications rejects the client that writes it, although the old one accepts it. The specification
/// allows this: Part 12 §7.10.9 says that clients may not be able to reconnect.
pub(super) fn is_locked_out(caller: &CallContext, group: Group, before: &Lists, after: &Lists) -> bool {
    let certificate = caller.client_certificate().filter(|_| group == Group::Applications);
    certificate.is_some_and(|certificate| locks_out(&certificate, before, after))
}

/// Warns that the client has locked itself out.
pub(super) fn warn_of_lockout(caller: &CallContext) {
    let client = caller.client_name().unwrap_or_default();
    tracing::warn!(
        client,
        "the new trust list does not accept the client that wrote it: the client cannot connect again. \
         Use `taktwerk pki trust` on this machine to trust a client"
    );
}

/// Whether a client could connect before and no longer can.
fn locks_out(certificate: &[u8], before: &Lists, after: &Lists) -> bool {
    accepts(&before.trust_list(), certificate) && !accepts(&after.trust_list(), certificate)
}

/// Whether clients with a certificate may connect.
fn accepts(trust: &TrustList, certificate: &[u8]) -> bool {
    let (options, purpose) = (ValidationOptions::default(), CertificatePurpose::Client { address: None });
    let validation = Validation { trust, verifier: &AwsLcVerifier, options, now: now(), exhaustive: false };
    validation.run(certificate, &ValidationRequest::new(&purpose)).failure().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::certificate::Certificate;
    use taktwerk_pki::{CertificateSettings, NewKey, PrivateKey, create};

    fn certificate(name: &str) -> Certificate {
        let key = PrivateKey::generate(NewKey::NistP256).unwrap();
        create::self_signed(&CertificateSettings::new(name, &format!("urn:test:{name}")), &key).unwrap()
    }

    #[test]
    fn a_client_is_locked_out_by_the_list_that_removes_it() {
        let [mine, other] = ["mine", "other"].map(certificate);
        let of = |trusted: &[&Certificate]| Lists {
            trusted: trusted.iter().copied().cloned().collect(),
            ..Lists::default()
        };
        let before = of(&[&mine, &other]);
        for (after, expected) in
            [(of(&[]), true), (of(&[&other]), true), (of(&[&mine]), false), (of(&[&other, &mine]), false)]
        {
            assert_eq!(locks_out(mine.der(), &before, &after), expected);
        }
        // The client was not accepted before either.
        assert!(!locks_out(mine.der(), &of(&[&other]), &of(&[])));
    }

    #[test]
    fn the_order_of_a_list_does_not_matter() {
        let [mine, other] = ["mine", "other"].map(certificate);
        let of = |trusted: &[&Certificate], issuers: &[&Certificate]| Lists {
            trusted: trusted.iter().copied().cloned().collect(),
            issuers: issuers.iter().copied().cloned().collect(),
            ..Lists::default()
        };
        let list = of(&[&mine, &other], &[]);
        assert!(!list.differs_from(&of(&[&other, &mine, &other], &[])));
        assert!(list.differs_from(&of(&[&mine], &[])));
        assert!(list.differs_from(&of(&[&mine], &[&other])));
    }
}

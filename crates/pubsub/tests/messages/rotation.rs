//! Many messages over many keys: no repeated nonce, no valid message lost, no forged or replayed message accepted
//! (security acceptance 34). 10^5 messages here; `examples/key_rotation.rs` sends 10^7.

use crate::endurance::{Plan, run};
use std::sync::Arc;
use taktwerk_crypto::PubSubProvider;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_crypto_dummy::DummyPubSubProvider;

fn check(plan: Plan, provider: Arc<dyn PubSubProvider>) {
    let report = run(plan, provider, |_| {});
    assert!(report.holds(), "{report:#?}");
    assert_eq!((report.sent, report.nonces), (plan.messages, plan.messages));
    let keys = plan.messages / plan.messages_per_key;
    // The lifetime of keys continues while publishers restart.
    assert!((keys..keys + keys / 10 + 2).contains(&report.keys), "{report:#?}");
    assert!(report.restarts > 0 && report.key_requests_failed > 0, "{report:#?}");
    assert!(report.refused_by_security > report.replays_refused, "{report:#?}");
}

#[test]
fn a_hundred_keys() {
    check(Plan { messages: 100_000, messages_per_key: 1_000, seed: 1 }, Arc::new(DummyPubSubProvider));
}

#[test]
fn with_real_keys() {
    check(Plan { messages: 20_000, messages_per_key: 1_000, seed: 2 }, Arc::new(AwsPubSubProvider));
}

#[test]
fn a_seed_replays_exactly() {
    let plan = Plan { messages: 5_000, messages_per_key: 500, seed: 3 };
    let first = run(plan, Arc::new(DummyPubSubProvider), |_| {});
    let second = run(plan, Arc::new(DummyPubSubProvider), |_| {});
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
}

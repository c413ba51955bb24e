use super::cores::Step;
use super::*;
use std::sync::Arc;
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_sim::Costs;

#[test]
fn costs_are_recovered_despite_interruptions() {
    let truth = [50.0, 0.0, 3.0];
    let mut steps = Vec::new();
    for number in 0..2_000u64 {
        let counts = vec![1 + number % 3, number % 5, 10 * (number % 7)];
        let is_timer = number % 2 == 0;
        let mut nanos: f64 = counts.iter().zip(truth).map(|(count, cost)| *count as f64 * cost).sum();
        nanos += if is_timer { 200.0 } else { 0.0 };
        // One step in ten is interrupted.
        nanos += if number % 10 == 3 { 50_000.0 } else { 0.0 };
        steps.push(Step { counts, is_timer, nanos });
    }
    let close = |found: f64, truth: f64| (found - truth).abs() < 0.5;
    // After a pause, a step takes a microsecond longer.
    let asleep = |step: &Step| Step { nanos: step.nanos + 1_000.0, ..step.clone() };
    let asleep: Vec<Step> = steps.iter().filter(|step| step.nanos < 50_000.0).map(asleep).collect();
    let fitted = fit::fit(&steps, &asleep, &steps).unwrap();
    assert!(close(fitted.cold, 1_000.0) && close(fitted.cold_deep, 0.0), "{fitted:?}");
    assert!(fitted.costs.iter().zip(truth).all(|(found, truth)| close(*found, truth)), "{fitted:?}");
    assert!(close(fitted.timer, 200.0) && fitted.error < 0.01, "{fitted:?}");
    assert_eq!(fit::fit(&steps, &[], &[]).unwrap().cold, 0.0, "no pauses");
    assert_eq!(fit::fit(&steps[..5], &[], &[]), None, "too few");
}

#[test]
fn numbers_have_four_digits() {
    assert_eq!([123_456.0, 0.001_234_56, 9_999.6, 0.0].map(rounded), [123_500.0, 0.001_235, 10_000.0, 0.0]);
}

#[test]
fn the_profile_of_this_machine_is_usable() {
    let providers = Providers {
        server: Arc::new(DummyProvider::new("server", 2048)),
        server_uri: "urn:dummy:server".to_owned(),
        client: Arc::new(DummyProvider::new("client", 2048)),
    };
    let mut told = Vec::new();
    let measured = measure(&providers, Extent::Smoke, &mut |share| {
        told.push(share);
        true
    });
    let mut measured = measured.unwrap();
    measured.add_jobs(BTreeMap::from([
        ("check-credential".to_owned(), vec![2e7, 3e7]),
        ("read-history".to_owned(), Vec::new()),
    ]));
    let Measured { profile, steps, .. } = measured;
    assert!(profile.jobs.contains_key("check-credential") && !profile.jobs.contains_key("read-history"));
    assert!(steps > 500 && told.is_sorted() && told.len() > 10);
    let read = HostProfile::parse(&profile.to_toml()).unwrap();
    assert_eq!(read, profile);
    assert_eq!(read.check_origin(env!("CARGO_PKG_VERSION"), Some(&Machine::this().cpu)), Ok(()));
    Costs::new(&read).unwrap();
    for costs in [&read.server, &read.client] {
        assert!(["send", "receive", "turn"].iter().all(|name| costs[*name] > 0.0), "{costs:?}");
    }
    assert!(read.server.values().len() > 6, "{:?}", read.server);
    for policy in ["Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss", "ECC_nistP256"] {
        let job = format!("open-channel/{policy}");
        assert!(read.jobs.contains_key(&job), "{job}: {:?}", read.jobs.keys());
        let job = format!("open-chunk/{policy}");
        assert!(read.client_jobs.contains_key(&job), "{job}: {:?}", read.client_jobs.keys());
    }
    let stopped = measure(&providers, Extent::Smoke, &mut |_| false);
    assert!(matches!(stopped, Err(HostError::Run(RunError::Stopped))));
}

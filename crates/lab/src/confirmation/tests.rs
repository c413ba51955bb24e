use super::*;
use serde_json::json;
use taktwerk_model::tune::analytic::Analytic;
use taktwerk_model::tune::problem::Options;
use taktwerk_model::tune::{Evaluate, tune};

const PLANT: &str = "
    link = \"ppp-2m,busy=30%\"
    [[signals]]
    count = 5
    period_ms = 5
    bytes = 4
    [[signals]]
    count = 5
    period_ms = 15
    bytes = 4
    [tune]
    publish_every = 0.8
    measured_s = 4
";

/// Relative errors of the recommended setting by repetition; the default setting is measured exactly.
struct Errors<'a> {
    delay: &'a [f64],
    bandwidth: f64,
    waited_s: f64,
}

/// Values of the recommended setting that did not arrive, and those of them that the server reported as lost.
#[derive(Clone, Copy, Default)]
struct Missing {
    values: f64,
    told: u32,
}

fn judged(sets: &[&str], errors: &Errors<'_>) -> Confirmed {
    judged_with(sets, errors, Missing::default())
}

fn judged_with(sets: &[&str], errors: &Errors<'_>, missing: Missing) -> Confirmed {
    let options = Options { sets: sets.iter().map(|set| (*set).to_owned()).collect(), ..Options::default() };
    let problem = Problem::parse(PLANT, "p.toml", &options).unwrap();
    let formulas = Analytic::new(&problem, None);
    let tuned = tune(&problem, &formulas, &formulas, &mut |_| true).unwrap();
    let settings = confirm::default_setting(&tuned.recommended.settings);
    let figures = formulas.evaluate(&settings, 1).unwrap();
    let default = Point { settings, figures, ..tuned.recommended.clone() };
    let confirmation = Confirmation::new(&problem, &tuned, Some(default.clone())).unwrap();
    assert_eq!(confirmation.link(), "ppp-2m,busy=30%");
    let mut measurements = Vec::new();
    for (repetition, delay) in (0..).zip(errors.delay) {
        for (name, condition) in confirmation.conditions() {
            let is_default = name == DEFAULT;
            let point = if is_default { &default } else { &tuned.recommended };
            let (delay, bandwidth) =
                if is_default { (1.0, 1.0) } else { (1.0 + delay, 1.0 + errors.bandwidth) };
            let (promised, window) = (&point.figures, condition.time.duration_s);
            let missing = if is_default { Missing::default() } else { missing };
            let document = json!({
                "window_s": window,
                "notifications": problem.values_per_s() * window * (1.0 - promised.loss) - missing.values,
                "lost_messages": 0,
                "progress": {"overflows": missing.told},
                "age": {
                    "mean_us": promised.delay_mean_ms * 1e3 * delay,
                    "p99_us": promised.delay_p99_ms * 1e3 * delay,
                    "max_us": promised.delay_max_ms * 1e3,
                },
                "line": {"up_bits_s": 0.0, "down_bits_s": promised.bandwidth_bits_s * bandwidth},
                "server": {"cpu_s": 0.1, "cpu_percent": 2.5, "runqueue_wait_s": errors.waited_s},
            });
            measurements.push(Measurement::from_document(name, condition.clone(), repetition, document));
        }
    }
    confirmation.judge(measurements)
}

fn verdicts(confirmed: &Confirmed) -> Vec<Option<bool>> {
    confirmed.findings.iter().map(|finding| finding.holds).collect()
}

const STEADY: [f64; 5] = [0.03, 0.04, 0.05, 0.04, 0.03];

#[test]
fn kept_promises_are_confirmed() {
    let errors = Errors { delay: &STEADY, bandwidth: 0.0, waited_s: 0.001 };
    let confirmed = judged(&["tune.constraints=[\"loss <= 0\"]"], &errors);
    assert_eq!(confirmed.confirmed, Some(true), "{confirmed:?}");
    let last = confirmed.findings.last().unwrap();
    // The default queue of one value loses most of them.
    assert!(last.claim.contains("dominates") && last.evidence.contains("loss <= 0"), "{last:?}");
    let text = confirmed.outcome().text();
    assert!(text.starts_with("Confirmed by measurement") && text.contains("+3.8 %"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_default_that_is_only_different_is_compared_by_the_scaled_figures() {
    let errors = Errors { delay: &STEADY, bandwidth: 0.0, waited_s: 0.001 };
    let confirmed = judged(&["tune.search.queue_size=1"], &errors);
    let last = confirmed.findings.last().unwrap();
    assert!(last.claim.contains("sum of the scaled figures"), "{last:?}");
    assert_eq!((last.holds, confirmed.confirmed), (Some(true), Some(true)), "{last:?}");
}

#[test]
fn the_interval_of_the_mean_decides() {
    let with = |delay: &[f64], bandwidth| verdicts(&judged(&[], &Errors { delay, bandwidth, waited_s: 0.0 }));
    assert_eq!(with(&[0.2, 0.21, 0.2, 0.19, 0.2], 0.0)[..3], [Some(false), Some(false), Some(true)]);
    assert_eq!(with(&[-0.2, -0.21, -0.2, -0.19, -0.2], -0.3)[..3], [Some(false); 3]);
    let noisy = judged(&[], &Errors { delay: &[0.0, 0.3, 0.02, 0.25, 0.1], bandwidth: 0.0, waited_s: 0.0 });
    assert_eq!((verdicts(&noisy)[0], noisy.confirmed), (None, None));
    assert!(noisy.outcome().text().contains("open"));
    // A single measurement decides nothing.
    assert_eq!(with(&[0.0], 0.0)[..3], [None; 3]);
}

#[test]
fn measurements_of_a_busy_machine_are_invalid_and_decide_nothing() {
    let confirmed = judged(&[], &Errors { delay: &STEADY, bandwidth: 0.0, waited_s: 0.5 });
    assert_eq!((confirmed.invalid.len(), confirmed.confirmed), (2, None));
    let said = &confirmed.invalid[0];
    assert!(said.contains("5 of 5") && said.contains("the server waited for a CPU during 12 %"), "{said}");
    let text = confirmed.outcome().text();
    assert!(text.contains("do not decide") && text.contains("busy"), "{text}");
}

/// Fewer values are missing than can be under way at the edges of the window. Those that the server reports are lost.
#[test]
fn values_that_are_reported_as_lost_are_lost() {
    let errors = Errors { delay: &STEADY, bandwidth: 0.0, waited_s: 0.001 };
    let judge = |told| {
        let missing = Missing { values: 20.0, told };
        let confirmed = judged_with(&["tune.constraints=[\"loss <= 0\"]"], &errors, missing);
        let meets = confirmed.findings.iter().find(|one| one.claim.contains("meets loss <= 0")).unwrap();
        (meets.holds, confirmed.findings.last().unwrap().holds == Some(true))
    };
    assert_eq!(judge(0), (Some(true), true));
    assert_eq!(judge(20).0, Some(false));
    assert_ne!(judge(20), judge(0));
    // Also if they did arrive in the end: an overflow is a lost value.
    assert_eq!(judge(1).0, Some(false));
}

/// Without a queue, nothing says how many values were lost: they are counted.
#[test]
fn values_at_the_edges_of_the_window_are_not_lost() {
    // 1 000 values a second for 4 s, 100 of them under way.
    assert_eq!(lost(4_000.0, 4_000.0, 100.0), 0.0);
    assert_eq!(lost(4_000.0, 3_950.0, 100.0), 0.0);
    assert_eq!(lost(4_000.0, 4_050.0, 100.0), 0.0);
    assert_eq!(lost(4_000.0, 3_000.0, 100.0), 0.25);
}

#[test]
fn a_recommended_setting_that_is_the_default_one_is_measured_once_and_not_compared() {
    let sets = ["tune.search.queue_size=1", "tune.search.publishing_ms=500", "tune.search.sampling_ms=0"];
    let errors = Errors { delay: &STEADY, bandwidth: 0.0, waited_s: 0.001 };
    let confirmed = judged(&sets, &errors);
    assert!(confirmed.rows.iter().all(|row| row.setting == RECOMMENDED), "{confirmed:?}");
    assert_eq!(confirmed.rows.len(), COMPARED.len());
    assert!(confirmed.rows.iter().all(|row| row.measured.is_some()), "{confirmed:?}");
    // That is no claim that could fail.
    assert!(confirmed.is_default && confirmed.findings.iter().all(|one| !one.claim.contains("default")));
    assert!(confirmed.outcome().text().contains("is the default one"));
}

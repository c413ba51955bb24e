use super::*;
use crate::scenario::{Kind, LoadSpec, Scenario};
use serde_json::json;

fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("taktwerk-store-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path.join("results.sqlite")
}

fn measurement() -> Measurement {
    let condition = Scenario::new("x", LoadSpec::new(Kind::Read)).conditions().remove(0);
    let mut times = Times::new();
    (1..500).for_each(|value| times.record(value * 997));
    let mut one = Measurement::from_document("e", condition, 3, json!({"a": {"b": 1.5}}));
    one.histograms.insert("latency".into(), times);
    one
}

#[test]
fn concurrent_opening_of_a_new_file_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = directory.path().join(format!("{round}.sqlite"));
        let begin = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            let open = || {
                begin.wait();
                Store::open(&path).map(|_| ()).map_err(|error| error.to_string())
            };
            let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            for one in all {
                assert_eq!(one.join().unwrap(), Ok(()));
            }
        });
    }
}

#[test]
fn measurements_without_a_document_are_read() {
    let path = temporary("none");
    let mut store = Store::open(&path).unwrap();
    let run = store.begin("first", "x", true, &json!({})).unwrap();
    let condition = measurement().condition;
    store.add(run, &Measurement::failed("e", condition, 0, "no server".into())).unwrap();
    let back = store.measurements(run).unwrap().remove(0);
    assert_eq!(back.invalid, ["no server"]);
    // Format of earlier versions.
    store.connection.execute("UPDATE measurement SET document = 'null'", []).unwrap();
    let old = store.measurements(run).unwrap().remove(0);
    assert_eq!((old.document, old.invalid), (back.document, back.invalid));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn stored_runs_are_read_back_completely() {
    let path = temporary("whole");
    let mut store = Store::open(&path).unwrap();
    let run = store.begin("first", "burger-cpu", true, &json!({"cpu": "x"})).unwrap();
    store.add(run, &measurement()).unwrap();
    assert_eq!(store.find("first").unwrap().unwrap().state, State::Running);
    store.finish(run, &["nothing".into()]).unwrap();
    let again = store.begin("first", "burger-cpu", true, &json!({})).unwrap();
    assert_ne!(run, again);
    drop(store);
    let store = Store::open(&path).unwrap();
    let names: Vec<String> = store.runs().unwrap().into_iter().map(|run| run.name).collect();
    assert_eq!(names, ["first", "first-2"]);
    let found = store.choose(None).unwrap();
    assert_eq!((found.id, found.measurements, found.state), (run, 1, State::Complete));
    let back = store.measurements(run).unwrap().remove(0);
    let sent = measurement();
    assert_eq!((back.condition, back.repetition, &back.metrics), (sent.condition, 3, &sent.metrics));
    assert_eq!(back.histograms["latency"].summary(), sent.histograms["latency"].summary());
    assert!(store.choose(Some("second")).unwrap_err().to_string().contains("lab runs"));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn databases_of_other_applications_are_not_changed() {
    let path = temporary("foreign");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn writers_that_lost_a_run_cannot_write_to_it() {
    let path = temporary("lost");
    let mut store = Store::open(&path).unwrap();
    let run = store.begin("x", "x", false, &json!({})).unwrap();
    store.add(run, &measurement()).unwrap();
    store.connection.execute("UPDATE run SET writer = 'somebody else'", []).unwrap();
    assert!(matches!(store.add(run, &measurement()), Err(StoreError::TakenOver { .. })));
    assert!(matches!(store.finish(run, &[]), Err(StoreError::TakenOver { .. })));
    assert_eq!(store.measurements(run).unwrap().len(), 1);
    assert!(store.runs().unwrap()[0].state != State::Complete);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn numeric_names_are_not_confused_with_run_numbers() {
    let path = temporary("number");
    let mut store = Store::open(&path).unwrap();
    let first = store.begin("2", "x", false, &json!({})).unwrap();
    let second = store.begin("second", "x", false, &json!({})).unwrap();
    assert_eq!((first, second), (1, 2));
    assert_eq!(store.choose(Some("2")).unwrap().name, "second");
    assert_eq!(store.choose(Some("2-2")).unwrap().id, first);
    // Name as written by earlier versions.
    store.connection.execute("UPDATE run SET name = '2' WHERE id = 1", []).unwrap();
    assert_eq!(store.choose(Some("2")).unwrap().id, second);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn runs_without_measurements_are_chosen_only_by_name() {
    let path = temporary("empty");
    let mut store = Store::open(&path).unwrap();
    let mut begin = |name: &str, has_some: bool| {
        let run = store.begin(name, "x", false, &json!({})).unwrap();
        if has_some {
            store.add(run, &measurement()).unwrap();
        }
        store.finish(run, &[]).unwrap();
        (run, store.choose(None).map(|run| run.id))
    };
    let (first, none) = begin("empty", false);
    assert!(none.unwrap_err().to_string().contains("run with measurements"));
    let (whole, chosen) = begin("whole", true);
    assert_eq!(chosen.unwrap(), whole);
    assert_eq!(begin("empty again", false).1.unwrap(), whole);
    assert_eq!(store.choose(Some("empty")).unwrap().id, first);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn concurrent_runs_get_different_names() {
    const EACH: usize = 15;
    let path = temporary("names");
    drop(Store::open(&path).unwrap());
    let begin = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut store = Store::open(&path).unwrap();
                begin.wait();
                for _ in 0..EACH {
                    store.begin("same", "x", false, &json!({})).unwrap();
                }
            });
        }
    });
    let runs = Store::open(&path).unwrap().runs().unwrap();
    let names: std::collections::BTreeSet<String> = runs.into_iter().map(|run| run.name).collect();
    assert_eq!(names.len(), 2 * EACH);
    assert!(names.contains("same") && names.contains("same-30"), "{names:?}");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn a_run_of_a_dead_writer_is_incomplete() {
    let path = temporary("dead");
    let mut store = Store::open(&path).unwrap();
    let run = store.begin("killed", "x", false, &json!({})).unwrap();
    store.add(run, &measurement()).unwrap();
    // Written by a version without namespaces.
    let this = writer();
    let [boot, pid, ..] = this.split(' ').collect::<Vec<_>>()[..] else { panic!("{this}") };
    let nobody = format!("{boot} {pid} 1");
    store.connection.execute("UPDATE run SET writer = ?1", [nobody]).unwrap();
    assert_eq!(store.runs().unwrap()[0].state, State::Incomplete);
    assert!(store.choose(None).is_err());
    assert_eq!(store.measurements(run).unwrap().len(), 1);
    // The process that resumes it owns it; other processes cannot resume it.
    let found = store.choose(Some("killed")).unwrap();
    store.resume(&found, false).unwrap();
    let found = store.choose(Some("killed")).unwrap();
    assert_eq!((found.state, found.measurements), (State::Running, 1));
    assert!(matches!(store.resume(&found, false), Err(StoreError::Running { .. })));
    store.finish(run, &[]).unwrap();
    let found = store.choose(None).unwrap();
    store.resume(&found, false).unwrap();
    assert!(store.choose(None).is_err(), "it is not complete any more");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn runs_of_other_containers_need_take_over() {
    let path = temporary("elsewhere");
    let mut store = Store::open(&path).unwrap();
    let run = store.begin("contained", "x", false, &json!({})).unwrap();
    store.add(run, &measurement()).unwrap();
    // The same process, as seen from another container.
    let this = writer();
    let elsewhere = format!("{} 1", this.rsplit_once(' ').unwrap().0);
    store.connection.execute("UPDATE run SET writer = ?1", [elsewhere]).unwrap();
    let found = store.choose(Some("contained")).unwrap();
    assert_eq!((found.state, found.state.name()), (State::Unknown, "unknown"));
    assert!(store.choose(None).is_err(), "it is not complete");
    let refused = store.resume(&found, false).unwrap_err();
    assert!(refused.to_string().contains("another container") && refused.to_string().contains("--take-over"));
    store.resume(&found, true).unwrap();
    assert_eq!(store.choose(Some("contained")).unwrap().state, State::Running);
    // A visible process that still runs cannot be taken over.
    assert!(matches!(store.resume(&found, true), Err(StoreError::Running { .. })));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn a_later_format_is_refused() {
    let path = temporary("later");
    let store = Store::open(&path).unwrap();
    store.connection.pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    assert!(Store::open(&path).unwrap_err().to_string().contains("later version"));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

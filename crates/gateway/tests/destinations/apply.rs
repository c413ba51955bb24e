//! Applies other destinations while sources run: no value is lost, and the order of a tag's values is kept.

use crate::counting;
use crate::stand::{MS, Stand};
use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk_gateway::{Applied, Changes, GatewayConfig, GatewayError};
use tokio::time::sleep;

fn apply(stand: &mut Stand, folder: &Path, text: &str) -> Result<Applied, GatewayError> {
    let config = GatewayConfig::parse(&folder.join("g.toml"), text).unwrap();
    let config = config.unwrap_or_else(GatewayConfig::empty);
    tokio::task::block_in_place(|| stand.gateway.apply(config))
}

fn destination(name: &str, folder: &str, more: &str) -> String {
    format!(
        "[[destination]]\nname = \"{name}\"\ntype = \"file\"\nfolder = \"{folder}\"\nretry = \"20 ms\"\nretry_max = \"50 ms\"\n\
         flush = \"10 ms\"\n{more}\n"
    )
}

/// The integers in the files of a folder, as pairs of tag and value.
fn written(folder: &Path) -> Vec<(String, i64)> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let values = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some((line["tag"].as_str()?.to_owned(), line["value"].as_i64()?))
    });
    values.collect()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        sleep(10 * MS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_destination_loses_nothing_and_others_continue() {
    const LAST: i64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A folder of this name cannot be created, so values wait.
    std::fs::write(folder.join("broken"), "").unwrap();
    let source = counting::source(LAST as u32);
    let other = destination("other", "other", "");
    let mut stand =
        Stand::in_folder(folder, &[&source[..], &destination("d", "broken", ""), &other].concat()).await;
    stand.until_destination("d", |view| view.counters.queued > 20).await;
    let before = stand.destination("other").counters;
    let wait = async |stand: &Stand, least: i64| {
        let name = "counter/Count";
        stand
            .until(name, |value| value.value.as_ref().and_then(|it| it.as_f64()) >= Some(least as f64))
            .await;
    };
    // Changed again and again, with values in the queue and without.
    let all = |to: &str, more: &str| [&source[..], &destination("d", to, more), &other].concat();
    for (least, to, more) in [
        (200, "good", "batch_max = 7"),
        (500, "good", "batch_max = 9\nsync = true"),
        (700, "broken", ""),
        (900, "broken", "values = \"all\""),
        (1100, "good", "batch_max = 11"),
        (1300, "good", "queue_mb_max = 3"),
    ] {
        wait(&stand, least).await;
        let applied = apply(&mut stand, folder, &all(to, more)).unwrap();
        let changes = Changes { changed: vec!["d".to_owned()], ..Changes::default() };
        assert_eq!(applied, Applied { destinations: changes, ..Applied::default() });
    }
    assert_eq!(stand.destination("d").queue_bytes_max, 3 << 20);
    // Removed, with values in its queue, and added again.
    apply(&mut stand, folder, &all("broken", "")).unwrap();
    stand.until_destination("d", |view| view.counters.queued > 20).await;
    let applied = apply(&mut stand, folder, &[&source[..], &other].concat()).unwrap();
    assert_eq!(applied.destinations.removed, ["d"]);
    assert_eq!(applied.left.len(), 1);
    let left = &applied.left[0];
    assert_eq!((&left.destination[..], left.path.file_name().unwrap()), ("d", "d.queue.db".as_ref()));
    assert!(left.waiting > 20, "{left:?}");
    let names: Vec<String> = stand.gateway.destinations().views().into_iter().map(|view| view.name).collect();
    assert_eq!(names, ["other"]);
    let seen = written(&folder.join("good")).last().unwrap().1;
    // Another destination with this queue sends them.
    let new = destination("new", "good", "queue = \"./d.queue.db\"");
    let applied = apply(&mut stand, folder, &[&source[..], &other, &new].concat()).unwrap();
    assert_eq!((applied.destinations.added, applied.left), (vec!["new".to_owned()], Vec::new()));
    wait(&stand, LAST).await;
    for name in ["new", "other"] {
        stand.until_destination(name, |view| view.counters.queued == 0).await;
    }
    until("the last value is written", || written(&folder.join("good")).last().unwrap().1 == LAST).await;
    let mut numbers: Vec<i64> = written(&folder.join("good")).into_iter().map(|(_, number)| number).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    // A new or changed destination first receives the current value.
    numbers.dedup();
    let last_before = numbers.iter().position(|number| *number == seen).unwrap();
    assert!(numbers[..=last_before].iter().copied().eq(1..=seen), "{numbers:?}");
    // Between removal and addition there was no destination.
    let gaps = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(gaps <= 1 && numbers.len() as i64 > LAST / 2, "{gaps} {}", numbers.len());
    // The unchanged destination has everything, once, and kept its counters.
    let numbers: Vec<i64> = written(&folder.join("other")).into_iter().map(|(_, number)| number).collect();
    assert!(numbers.iter().copied().eq(1..=LAST), "{numbers:?}");
    let after = stand.destination("other").counters;
    assert!(after.accepted >= LAST as u64 && before.accepted > 0 && after.errors == 0, "{after:?}");
    assert_eq!(stand.source("counter").statistics.connections, 1);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_destination_receives_current_values_and_a_wrong_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("broken"), "").unwrap();
    let constant = |value: i64| {
        format!(
            "[[source]]\nname = \"s\"\ntype = \"simulation\"\ninterval = \"20 ms\"\nstale_after = \"1 min\"\n\
             [[tag]]\nsource = \"s\"\nname = \"a\"\nsignal = \"constant\"\nvalue = {value}\ntype = \"Int64\"\n\
             [[tag]]\nsource = \"s\"\nname = \"b\"\nsignal = \"constant\"\nvalue = 7\ntype = \"Int64\"\n"
        )
    };
    let mut stand = Stand::in_folder(folder, &constant(5)).await;
    stand.value("s/a", 5i64).await;
    // It would never receive these values as changes.
    let one = destination("one", "one", "tags = [\"s/a\"]");
    apply(&mut stand, folder, &[&constant(5)[..], &one].concat()).unwrap();
    until("the current value", || written(&folder.join("one")) == [("s/a".to_owned(), 5)]).await;
    let more = destination("one", "one", "tags = [\"s/*\"]\nexcept = [\"s/a\"]");
    apply(&mut stand, folder, &[&constant(5)[..], &more].concat()).unwrap();
    until("another tag", || written(&folder.join("one")).last().unwrap() == &("s/b".to_owned(), 7)).await;
    // A queue that cannot be used. The other changes of the file are not applied either.
    let wrong = [
        &constant(6)[..],
        &destination("one", "two", ""),
        &destination("wrong", "w", "queue = \"broken/q.db\""),
    ];
    let wrong = wrong.concat();
    for _ in 0..2 {
        let error = apply(&mut stand, folder, &wrong).unwrap_err().to_string();
        assert!(error.contains("destination wrong") && error.contains("broken"), "{error}");
    }
    stand.value("s/a", 5i64).await;
    let views = stand.gateway.destinations().views();
    assert_eq!(views.len(), 1);
    assert_eq!(views[0].description, format!("files in {}", folder.join("one").display()));
    // A source and its destination change together.
    apply(&mut stand, folder, &[&constant(6)[..], &destination("one", "two", "")].concat()).unwrap();
    let both = [("s/a".to_owned(), 6), ("s/b".to_owned(), 7)];
    until("both values", || written(&folder.join("two")) == both).await;
    stand.end().await;
}

//! Values in Parquet files, read back by another library, and replayed by a source.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it skips

mod counting;
mod missing;
mod stand;

use stand::Stand;
use std::path::Path;
use std::process::Command;

const LAST: u32 = 1000;

fn destination(folder: &Path, more: &str) -> String {
    format!(
        "[[destination]]\nname = \"files\"\ntype = \"parquet\"\nfolder = {:?}\nqueue = {:?}\nflush = \"10 ms\"\n{more}",
        folder.join("values").display().to_string(),
        folder.join("q.db").display().to_string(),
    )
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join("values"))
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    names.sort();
    names
}

/// What pyarrow reads of a file: tag, value, text, and the year, a line per row.
fn read_by_another(file: &str) -> Option<Vec<String>> {
    let python = missing::python("TAKTWERK_PYARROW_PYTHON", "pyarrow.parquet", "pyarrow")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/pyarrow/read.py");
    let output = Command::new(python).args([script, file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_written_when_full_or_due_and_contain_each_value_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = counting::source(LAST) + &destination(folder.path(), "rows_max = 300\nfile_age = \"1 h\"\n");
    let stand = Stand::new(&text).await;
    stand.until_values("counter", LAST).await;
    stand.until_destination("files", |view| view.counters.sent >= 900 && view.counters.queued < 300).await;
    stand.end().await;
    // The remaining values wait for more, or for the maximum age, also after a restart.
    let text = destination(folder.path(), "rows_max = 300\nfile_age = \"50 ms\"\n");
    let stand = Stand::new(&text).await;
    stand.until_destination("files", |view| view.counters.queued == 0).await;
    stand.end().await;
    let names = files(folder.path());
    assert!(names.len() >= 4 && names.iter().all(|name| name.ends_with(".parquet")), "{names:?}");
    let mut numbers = Vec::new();
    for name in &names {
        let Some(rows) = read_by_another(name) else { break };
        for row in rows {
            let cells: Vec<&str> = row.split('|').collect();
            assert_eq!((cells[0], cells[3]), ("counter/Count", "2023"), "{row}");
            // After its last value, the counter is uncertain.
            if cells[4] == "0" {
                numbers.push(cells[1].parse::<f64>().unwrap() as u32);
            }
        }
    }
    assert!(numbers.is_empty() || numbers == (1..=LAST).collect::<Vec<_>>(), "{numbers:?}");
    // A source replays the first file: each row is a value of a tag.
    let text = format!(
        "[[source]]\nname = \"again\"\ntype = \"replay\"\nfile = {:?}\ntime_column = \"time\"\ntag_column = \"tag\"\n\
         repeat = false\nspeed = 100000\nlost_after = \"1 h\"\n\
         [[tag]]\nsource = \"again\"\nname = \"Count\"\ncolumn = \"counter/Count\"\ntype = \"Int64\"\n\
         [[tag]]\nsource = \"again\"\nname = \"Other\"\ncolumn = \"no such tag\"\n",
        names[0]
    );
    let stand = Stand::new(&text).await;
    stand.until("again/Count", |value| value.value == Some(300i64.into())).await;
    assert_eq!(stand.source("again").statistics.values, 300);
    stand.end().await;
    // Alternatively each column is a tag.
    let text = format!(
        "[[source]]\nname = \"wide\"\ntype = \"replay\"\nfile = {:?}\ninterval = \"10 ms\"\nspeed = 100\n\
         [[tag]]\nsource = \"wide\"\nname = \"Value\"\ncolumn = \"value\"\n\
         [[tag]]\nsource = \"wide\"\nname = \"tag\"\ntype = \"String\"\n",
        names[0]
    );
    let stand = Stand::new(&text).await;
    stand.value("wide/tag", "counter/Count").await;
    stand.until("wide/Value", |value| value.value.is_some() && value.status().is_good()).await;
    stand.end().await;
}

use super::*;
use std::sync::mpsc;
use taktwerk_types::{StatusCode, UtcTime};

fn batch(numbers: core::ops::Range<u64>) -> Batch {
    let time = UtcTime::parse("2026-01-02T03:04:05Z").unwrap();
    let record = |number: u64| Record {
        number,
        tag: "Line, 1/T".into(),
        value: format!("v{number}\n00ff-9").as_str().into(),
        status: StatusCode::GOOD,
        time,
        received: time,
    };
    let records = numbers.map(record).collect();
    Batch { queue: "00ff".to_owned(), records, is_last: true, next: u64::MAX, is_parked: false }
}

fn lines(settings: &FileSettings) -> String {
    std::fs::read_to_string(settings.file("2026-01-02", 0)).unwrap()
}

/// A writer of a process that has just started.
fn writer(folder: &Path, format: Format) -> FileSettings {
    lock(&WRITERS).retain(|(known, ..), _| known != folder);
    changed(folder, format)
}

/// A writer beside those of this process.
fn changed(folder: &Path, format: Format) -> FileSettings {
    FileSettings {
        folder: folder.to_owned(),
        format,
        bytes_max: 1 << 20,
        sync: false,
        queue: Mutex::default(),
    }
}

#[test]
fn a_batch_that_is_sent_again_is_written_once() {
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let settings = FileSettings { sync: true, ..writer(folder.path(), format) };
        settings.write(&batch(1..4)).unwrap();
        let once = lines(&settings);
        settings.write(&batch(1..4)).unwrap();
        assert_eq!(lines(&settings), once);
        settings.write(&batch(1..6)).unwrap();
        let all = lines(&settings);
        for number in 1..6 {
            assert_eq!(all.matches(&format!("00ff-{number}")).count(), 1, "{all}");
        }
        // The process was killed in the middle of a line.
        let path = settings.file("2026-01-02", 0);
        std::fs::write(&path, format!("{all}{{\"key\":\"00ff-6\",\"ti")).unwrap();
        settings.write(&batch(6..7)).unwrap();
        let repaired = lines(&settings);
        assert!(repaired.starts_with(&all) && repaired.matches("00ff-6").count() == 1, "{repaired}");
    }
}

/// The process was killed before its queue had noted that a batch was taken, and others have written since.
#[test]
fn a_writer_that_starts_again_finds_its_last_record_behind_those_of_others() {
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let settings = writer(folder.path(), format);
        settings.write(&batch(1..4)).unwrap();
        let other = writer(folder.path(), format);
        // More than one part of a day, and the next day.
        let day = UtcTime::parse("2026-01-03T03:04:05Z").unwrap();
        for (numbers, received) in [(1..30_000, None), (30_000..60_000, None), (60_000..60_002, Some(day))] {
            let mut others = Batch { queue: "aaaa".to_owned(), ..batch(numbers) };
            if let Some(received) = received {
                others.records.iter_mut().for_each(|record| record.received = received);
            }
            other.write(&others).unwrap();
        }
        assert!(settings.file("2026-01-02", 1).exists() && settings.file("2026-01-03", 0).exists());
        writer(folder.path(), format).write(&batch(1..6)).unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let texts: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        for number in 1..6 {
            let key = |line: &&str| {
                let key = line.split(['"', ',']).find(|part| part.starts_with("00ff-"));
                key == Some(&*format!("00ff-{number}"))
            };
            assert_eq!(texts.lines().filter(key).count(), 1, "{format:?} {number}");
        }
    }
}

/// Two gateways with leases, of which one polls the sources at a time, and both live on.
#[test]
fn writers_of_a_folder_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let of = |format| writer(folder.path(), format);
    let (first, second, other) = (of(Format::JsonLines), of(Format::JsonLines), of(Format::Csv));
    let theirs = |numbers| Batch { queue: "ffff".to_owned(), ..batch(numbers) };
    for round in 0..3 {
        first.write(&batch(round + 1..round + 2)).unwrap();
        second.write(&theirs(round + 1..round + 2)).unwrap();
        // Sent again, because the answer came too late.
        first.write(&batch(round + 1..round + 2)).unwrap();
    }
    // Both at once.
    std::thread::scope(|scope| {
        scope.spawn(|| (4..50).for_each(|number| first.write(&batch(number..number + 1)).unwrap()));
        scope.spawn(|| (4..50).for_each(|number| second.write(&theirs(number..number + 1)).unwrap()));
    });
    let all = lines(&first);
    let keys = all.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["key"].as_str().unwrap().to_owned()
    });
    let mut keys: Vec<String> = keys.collect();
    keys.sort_unstable();
    let mut expected: Vec<String> =
        (1..50).flat_map(|number| [format!("00ff-{number}"), format!("ffff-{number}")]).collect();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    other.write(&batch(2..3)).unwrap();
}

/// Another writer would repair the line that is being written.
#[test]
fn a_folder_that_another_writer_keeps_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let settings = writer(folder.path(), Format::JsonLines);
    let lock = FileLock::of_folder(folder.path(), "jsonl.lock").unwrap();
    let refused = settings.write(&batch(1..2)).unwrap_err().to_string();
    assert!(refused.contains("is used by"), "{refused}");
    assert!(!settings.file("2026-01-02", 0).exists());
    drop(lock);
    settings.write(&batch(1..2)).unwrap();
    assert!(lines(&settings).contains("00ff-1"));
}

/// A search may read many lines of others. They write meanwhile, and a retry does not read them again.
#[test]
fn a_search_needs_no_turn_and_happens_once() {
    let folder = tempfile::tempdir().unwrap();
    writer(folder.path(), Format::JsonLines).write(&batch(1..4)).unwrap();
    let settings = writer(folder.path(), Format::JsonLines);
    let lock = FileLock::of_folder(folder.path(), "jsonl.lock").unwrap();
    settings.write(&batch(3..5)).unwrap_err();
    drop(lock);
    // Another search would find this line.
    let path = settings.file("2026-01-02", 0);
    std::fs::write(&path, lines(&settings) + "{\"key\":\"00ff-9\"}\n").unwrap();
    settings.write(&batch(3..5)).unwrap();
    let all = lines(&settings);
    assert!([3, 4].iter().all(|number| all.matches(&format!("\"00ff-{number}\"")).count() == 1), "{all}");
}

/// A write that takes long goes on after the settings of its destination have changed.
#[test]
fn writers_of_a_queue_know_what_the_others_write() {
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        writer(folder.path(), format).write(&batch(1..3)).unwrap();
        let (old, new) = (changed(folder.path(), format), changed(folder.path(), format));
        let other = FileLock::of_folder(folder.path(), &format!("{}.lock", format.extension())).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| old.write(&batch(2..5)).unwrap());
            std::thread::sleep(Duration::from_millis(100));
            scope.spawn(|| new.write(&batch(2..6)).unwrap());
            std::thread::sleep(Duration::from_millis(100));
            drop(other);
        });
        let keys: Vec<String> = read(&new).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, (1..6).map(|number| format!("00ff-{number}")).collect::<Vec<_>>());
    }
}

/// A destination of another type has parked them. Their numbers do not rise from batch to batch.
#[test]
fn parked_records_are_written_whatever_their_numbers_are() {
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let settings = writer(folder.path(), format);
        let parked = |numbers| Batch { is_parked: true, ..batch(numbers) };
        settings.write(&parked(5..7)).unwrap();
        settings.write(&batch(20..22)).unwrap();
        settings.write(&parked(7..10)).unwrap();
        // The answer came too late. The next batch is smaller.
        settings.write(&parked(7..8)).unwrap();
        settings.write(&parked(8..11)).unwrap();
        settings.write(&batch(21..24)).unwrap();
        settings.write(&parked(1..5)).unwrap();
        // After a restart.
        writer(folder.path(), format).write(&parked(11..13)).unwrap();
        let mut keys: Vec<String> = read(&settings).into_iter().map(|(key, _)| key).collect();
        keys.sort();
        let mut expected: Vec<String> =
            (1..13).chain(20..24).map(|number| format!("00ff-{number}")).collect();
        expected.sort();
        assert_eq!(keys, expected, "{format:?}");
    }
}

/// A device that is always full instead of a full disk: it cannot be truncated, so the lines are searched again.
#[test]
fn a_batch_whose_write_failed_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = writer(folder.path(), Format::JsonLines);
    let path = settings.file("2026-01-02", 0);
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    settings.write(&batch(1..4)).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    // What the device would have taken of it.
    writer(folder.path(), Format::JsonLines).write(&batch(1..3)).unwrap();
    settings.write(&batch(1..4)).unwrap();
    assert_eq!(lines(&settings).matches("\"00ff-").count(), 3);
}

#[test]
fn the_lines_of_others_do_not_hide_the_last_record() {
    let folder = tempfile::tempdir().unwrap();
    let settings = writer(folder.path(), Format::JsonLines);
    settings.write(&batch(1..4)).unwrap();
    let path = settings.file("2026-01-02", 0);
    let line = format!("{{\"key\":\"ffff-1\",\"value\":\"{}\"}}\n", "x".repeat(search::BLOCK as usize));
    std::fs::write(&path, lines(&settings) + &line).unwrap();
    let settings = FileSettings { bytes_max: 1 << 30, ..settings };
    settings.write(&batch(1..6)).unwrap();
    assert_eq!(lines(&settings).matches("\"00ff-").count(), 5);
}

#[test]
fn a_full_file_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let settings = FileSettings { bytes_max: 10, ..writer(folder.path(), Format::JsonLines) };
    settings.write(&batch(1..2)).unwrap();
    settings.write(&batch(1..2)).unwrap();
    settings.write(&batch(2..3)).unwrap();
    let read = |part| std::fs::read_to_string(settings.file("2026-01-02", part)).unwrap();
    assert!(read(0).contains("00ff-1") && read(1).contains("00ff-2") && !read(1).contains("00ff-1\""));
}

/// Records with these texts, from a number on.
fn texts(first: u64, texts: &[&str]) -> Batch {
    let mut batch = batch(first..first + texts.len() as u64);
    for (record, text) in batch.records.iter_mut().zip(texts) {
        record.value = (*text).into();
    }
    batch.next = first + texts.len() as u64;
    batch
}

/// The keys and texts of today's file, as another program reads them.
fn read(settings: &FileSettings) -> Vec<(String, String)> {
    let all = lines(settings);
    match settings.format {
        Format::JsonLines => all
            .lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let text = |name: &str| line[name].as_str().unwrap().to_owned();
                (text("key"), text("value"))
            })
            .collect(),
        Format::Csv => csv::Reader::from_reader(all.as_bytes())
            .records()
            .map(|record| {
                let record = record.unwrap();
                assert_eq!((record.len(), &record[3], &record[4]), (6, "Line, 1/T", "Good"));
                let text = match &record[5] {
                    json if json.starts_with('"') => serde_json::from_str(json).unwrap(),
                    text => text.to_owned(),
                };
                (record[0].to_owned(), text)
            })
            .collect(),
    }
}

/// A device or a client chooses the text. The second line of the first one is like the beginning of a record.
const TEXTS: [&str; 7] = [
    "x\n00ff-99999999999,2026,,,,\n{\"key\":\"00ff-99999999999\"}\n",
    "\r\n00ff-6\r",
    "\"quoted\"",
    "\"",
    "C:\\new, \"x\"",
    "",
    "ä\n\u{0}\"",
];

#[test]
fn a_text_with_line_breaks_is_read_back_and_hides_no_record() {
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        // Each text is once the last one before a start.
        for first in 0..TEXTS.len() as u64 {
            let number = first * 10 + 1;
            let settings = writer(folder.path(), format);
            let batch = texts(number, &TEXTS);
            settings.write(&texts(number, &TEXTS[..first as usize + 1])).unwrap();
            writer(folder.path(), format).write(&batch).unwrap();
            expected.extend(
                (number..).zip(TEXTS).map(|(number, text)| (format!("00ff-{number}"), text.to_owned())),
            );
            assert_eq!(read(&settings), expected, "{format:?}");
        }
        let head = usize::from(format == Format::Csv);
        let all = lines(&writer(folder.path(), format));
        assert_eq!(all.matches(['\n', '\r']).count(), expected.len() + head, "one line for each record");
    }
}

/// Files of earlier programs have texts with line breaks.
#[test]
fn numbers_that_the_queue_has_not_reached_are_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    let settings = writer(folder.path(), Format::Csv);
    let old = "00ff-3,2026,2026,T,Good,\"x\n00ff-7,2026,,,,\n{\"\"key\"\":\"\"00ff-5\"\"}\n{\"key\":\"00ff-6\"}\ny\"\n";
    std::fs::write(settings.file("2026-01-02", 0), format!("{CSV_HEAD}{old}")).unwrap();
    let new = Batch { next: 7, ..batch(3..7) };
    settings.write(&new).unwrap();
    let all = lines(&settings);
    let added = all.strip_prefix(&format!("{CSV_HEAD}{old}")).unwrap();
    let keys: Vec<&str> = added.lines().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(keys, ["00ff-4", "00ff-5", "00ff-6"]);
}

/// The process was killed, or the disk was full and the file could not be truncated.
#[test]
fn a_write_that_ends_anywhere_is_completed() {
    let batch = texts(1, &TEXTS);
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let settings = writer(folder.path(), format);
        settings.write(&batch).unwrap();
        let all = lines(&settings);
        let path = settings.file("2026-01-02", 0);
        for len in 0..=all.len() {
            std::fs::write(&path, &all.as_bytes()[..len]).unwrap();
            writer(folder.path(), format).write(&batch).unwrap();
            assert_eq!(lines(&settings), all, "{format:?} {len}");
        }
        // Also if the file is full, so that the rest is in the next one.
        let next = settings.file("2026-01-02", 1);
        for len in 0..=all.len() {
            std::fs::write(&path, &all.as_bytes()[..len]).unwrap();
            let _ = std::fs::remove_file(&next);
            let settings = FileSettings { bytes_max: 10, ..writer(folder.path(), format) };
            settings.write(&batch).unwrap();
            let rest = std::fs::read_to_string(&next).unwrap_or_default();
            let rest = rest.strip_prefix(CSV_HEAD).unwrap_or(&rest);
            assert_eq!(lines(&settings) + rest, all, "{format:?} {len}");
        }
    }
}

#[test]
fn a_long_incomplete_line_is_removed() {
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let settings = FileSettings { bytes_max: 1 << 30, ..writer(folder.path(), format) };
        settings.write(&batch(1..3)).unwrap();
        let all = lines(&settings);
        let long = "x".repeat(2 * search::BLOCK as usize + 7);
        std::fs::write(settings.file("2026-01-02", 0), format!("{all}00ff-3,{long}")).unwrap();
        let settings = FileSettings { bytes_max: 1 << 30, ..writer(folder.path(), format) };
        settings.write(&batch(1..4)).unwrap();
        let repaired = lines(&settings);
        assert!(repaired.starts_with(&all) && !repaired.contains(&long), "{format:?}");
        let keys: Vec<String> = read(&settings).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["00ff-1", "00ff-2", "00ff-3"]);
    }
}

/// Writes in the background: a pipe could block.
fn written(settings: FileSettings, batch: Batch) {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(settings.write(&batch)));
    told.recv_timeout(Duration::from_secs(20)).expect("it must not wait").unwrap();
}

#[test]
fn what_is_no_regular_file_is_left_alone() {
    use std::os::unix::fs::symlink;
    for format in [Format::JsonLines, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let of = || writer(folder.path(), format);
        let pipe = |path: &Path| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        };
        let other = |name: &str| folder.path().join(name).with_extension(format.extension());
        // Others in the folder, and in place of the files of the day.
        symlink("/nonexistent/values", other("latest")).unwrap();
        symlink(other("loop"), other("loop")).unwrap();
        std::fs::create_dir(other("old")).unwrap();
        pipe(&other("pipe"));
        std::fs::create_dir(of().file("2026-01-02", 0)).unwrap();
        pipe(&of().file("2026-01-02", 1));
        symlink("/nonexistent/values", of().file("2026-01-02", 2)).unwrap();
        written(of(), batch(1..4));
        written(of(), batch(1..6));
        let lines = || std::fs::read_to_string(of().file("2026-01-02", 3)).unwrap();
        let count =
            |number: u64| lines().lines().filter(|line| line.contains(&format!("00ff-{number}"))).count();
        assert!((1..6).all(|number| count(number) == 1), "{}", lines());
        // A file that was moved away, with a link in its place.
        let archive = tempfile::tempdir().unwrap();
        let moved = archive.path().join("values");
        std::fs::rename(of().file("2026-01-02", 3), &moved).unwrap();
        symlink(&moved, other("moved")).unwrap();
        written(of(), batch(4..8));
        assert!((1..8).all(|number| count(number) == usize::from(number > 5)), "{}", lines());
    }
}

/// A disk that fails behind a link: its file may have the last record.
#[test]
fn errors_behind_a_link_are_reported() {
    for (format, is_of_the_day) in
        [(Format::JsonLines, true), (Format::JsonLines, false), (Format::Csv, true), (Format::Csv, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let of = || writer(folder.path(), format);
        let link = match is_of_the_day {
            true => of().file("2026-01-02", 0),
            false => folder.path().join("other").with_extension(format.extension()),
        };
        std::os::unix::fs::symlink("/dev/null/values", &link).unwrap();
        let error = of().write(&batch(1..2)).unwrap_err();
        let name = link.file_name().unwrap().to_string_lossy();
        assert_eq!(error.to_string(), format!("cannot read {name}: not a directory"));
        // A writer that knows its last record does not search.
        let settings = of();
        lock(&settings.writing("00ff")).last = Some(None);
        assert_eq!(settings.write(&batch(1..2)).is_err(), is_of_the_day);
    }
}

#[test]
fn errors_name_the_file() {
    let error = named("read", Path::new("values/x.csv"), &io::Error::from_raw_os_error(13));
    assert_eq!(error.to_string(), "cannot read x.csv: permission denied");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

//! Keys and changes of the list go in; rows and operations are checked.

use super::*;
use taktwerk_types::ByteString;

fn event(number: u32, severity: u16, source: &str) -> ConditionEvent {
    let mut event = ConditionEvent::default();
    event.condition_id = NodeId::numeric(2, number);
    event.event_id = ByteString::from(vec![number as u8]);
    (event.source_name, event.name) = (source.to_owned(), "LevelAlarm".to_owned());
    event.message = format!("{source} is too high");
    event.severity = severity;
    (event.enabled, event.retain) = (true, true);
    (event.active, event.acked) = (Some(true), Some(false));
    event
}

fn plant(count: u32) -> ConditionTable {
    let mut table = ConditionTable::new();
    for number in 1..=count {
        // Number 1 is the most severe one.
        table.take(event(number, 900 - number as u16, &format!("Pump {number}")));
    }
    table
}

fn keys(view: &mut View, table: &ConditionTable, text: &str) -> Vec<Command> {
    let key = |letter| match letter {
        '\n' => Key::Enter,
        '\x1b' => Key::Escape,
        '\x08' => Key::Backspace,
        letter => Key::Char(letter),
    };
    text.chars().filter_map(|letter| view.key(key(letter), table)).collect()
}

fn selected(view: &mut View, table: &ConditionTable) -> Option<String> {
    let rows = view.list(table, 5).rows;
    rows.into_iter().find(|row| row.is_selected).map(|row| row.cells[4].clone())
}

/// How many alarms there are, and how many of them the filter shows.
fn counts(view: &mut View, table: &ConditionTable) -> (usize, usize) {
    (table.len(), view.list(table, 5).matching)
}

fn operation(commands: &[Command]) -> Operation {
    let [Command::Call(operation)] = commands else { panic!("{commands:?}") };
    Operation::clone(operation)
}

#[test]
fn the_selection_moves_and_the_table_scrolls() {
    let (mut view, table) = (View::default(), plant(12));
    let pump = |number: u32| Some(format!("Pump {number} LevelAlarm"));
    assert_eq!(selected(&mut view, &table), pump(1));
    keys(&mut view, &table, "jjj");
    assert_eq!(selected(&mut view, &table), pump(4));
    view.key(Key::Up, &table);
    assert_eq!(selected(&mut view, &table), pump(3));
    view.key(Key::PageDown, &table);
    assert_eq!(selected(&mut view, &table), pump(8));
    let first = view.list(&table, 5).rows[0].cells[4].clone();
    assert_eq!(Some(first), pump(4), "the selected one is the last visible row");
    for (key, number) in [(Key::End, 12), (Key::Down, 12), (Key::PageUp, 7), (Key::Home, 1), (Key::Up, 1)] {
        view.key(key, &table);
        assert_eq!(selected(&mut view, &table), pump(number), "{key:?}");
    }
}

/// Operations are about the alarm that the user has selected, however the list changes.
#[test]
fn the_selection_follows_its_alarm() {
    let (mut view, mut table) = (View::default(), plant(4));
    keys(&mut view, &table, "jj");
    table.take(event(9, 1000, "Fire"));
    assert_eq!(selected(&mut view, &table).unwrap(), "Pump 3 LevelAlarm");
    let operation = operation(&keys(&mut view, &table, "a"));
    assert_eq!((operation.what, &operation.event.condition_id), ("acknowledge", &NodeId::numeric(2, 3)));
    assert_eq!(operation.call.input_arguments[0], ByteString::from(vec![3]).into());
    // It is gone: the next one is selected.
    let mut gone = event(3, 897, "Pump 3");
    gone.retain = false;
    table.take(gone);
    assert_eq!(selected(&mut view, &table).unwrap(), "Pump 4 LevelAlarm");
    // Branches are rows of their own.
    let mut branch = event(4, 896, "Pump 4");
    branch.branch_id = NodeId::numeric(2, 99);
    table.take(branch);
    assert_eq!(view.list(&table, 9).rows.iter().filter(|row| row.is_selected).count(), 1);
    assert_eq!(view.list(&table, 9).rows.len(), 5);
}

#[test]
fn each_key_calls_its_method() {
    let (mut view, table) = (View::default(), plant(1));
    let id = NodeId::numeric(2, 1);
    let about = ByteString::from(vec![1]);
    let expected = [
        ("a", calls::acknowledge(&id, &about, "")),
        ("c", calls::confirm(&id, &about, "")),
        ("s", calls::one_shot_shelve(&id)),
        ("t1x\x080\n", calls::timed_shelve(&id, 600_000.0)),
        ("t1.5\n", calls::timed_shelve(&id, 90_000.0)),
        ("u", calls::unshelve(&id)),
        ("m on my way \n", calls::add_comment(&id, &about, "on my way")),
        ("dy", calls::enable(&id, false)),
        ("r", calls::reset(&id)),
    ];
    for (text, call) in expected {
        assert_eq!(operation(&keys(&mut view, &table, text)).call, call, "{text:?}");
        assert_eq!(view.prompt(), None, "{text:?}");
    }
    assert_eq!(keys(&mut view, &table, "q"), [Command::Quit]);
    assert_eq!(view.key(Key::Interrupt, &table), Some(Command::Interrupt));
}

#[test]
fn questions_are_asked_until_they_are_answered_or_left() {
    let (mut view, table) = (View::default(), plant(1));
    assert!(keys(&mut view, &table, "t").is_empty());
    assert_eq!(view.prompt().unwrap(), "shelve Pump 1 LevelAlarm for how many minutes? ");
    // Letters are text here.
    assert!(keys(&mut view, &table, "q\n").is_empty());
    let status = view.status().unwrap().clone();
    assert!(status.is_bad && status.text.contains("\"q\" is not a number of minutes"), "{status:?}");
    for wrong in ["\x08-5\n", "\x08\x080\n", "\x081e99\n", "\x08\x08\x08\x08nan\n"] {
        assert!(keys(&mut view, &table, wrong).is_empty(), "{wrong:?}");
        assert!(view.prompt().is_some());
    }
    assert!(keys(&mut view, &table, "\x1b").is_empty());
    assert_eq!(view.prompt(), None);
    // An empty comment is none.
    assert!(keys(&mut view, &table, "m  \n").is_empty());
    assert!(view.prompt().unwrap().starts_with("comment on Pump 1"));
    assert!(keys(&mut view, &table, "\x1bdn").is_empty(), "disabling needs a y");
    // The alarm that was asked about is gone meanwhile: the server says so.
    keys(&mut view, &table, "mgone");
    let operation = operation(&keys(&mut view, &ConditionTable::new(), "\n"));
    assert_eq!(operation.what, "comment on");
}

#[test]
fn the_filter_applies_while_it_is_typed() {
    let (mut view, mut table) = (View::default(), plant(3));
    let mut shelved = event(7, 100, "Boiler");
    (shelved.suppressed_or_shelved, shelved.shelving) = (true, "TimedShelved".to_owned());
    table.take(shelved);
    keys(&mut view, &table, "/BOIL");
    assert_eq!(
        (selected(&mut view, &table).unwrap().as_str(), counts(&mut view, &table)),
        ("Boiler LevelAlarm", (4, 1))
    );
    keys(&mut view, &table, "x");
    assert_eq!((selected(&mut view, &table), counts(&mut view, &table)), (None, (4, 0)));
    keys(&mut view, &table, "\x08\n");
    assert_eq!((view.filter(), view.prompt()), ("BOIL", None));
    // Operations are about what is shown.
    assert_eq!(operation(&keys(&mut view, &table, "u")).event.source_name, "Boiler");
    keys(&mut view, &table, "\x1b");
    assert_eq!(view.filter(), "");
    assert_eq!(counts(&mut view, &table), (4, 4));
    // States can be searched, too.
    keys(&mut view, &table, "/shelved\n");
    assert_eq!(counts(&mut view, &table), (4, 1));
}

#[test]
fn results_are_told_with_what_to_do() {
    let (mut view, table) = (View::default(), plant(2));
    let told = |view: &View| view.status().map(|status| (status.is_bad, status.text.clone())).unwrap();
    let acknowledge = operation(&keys(&mut view, &table, "a"));
    assert_eq!(told(&view), (false, "acknowledge Pump 1 LevelAlarm …".to_owned()));
    view.answered(&acknowledge, Ok(StatusCode::GOOD));
    assert_eq!(told(&view), (false, "acknowledge Pump 1 LevelAlarm: done".to_owned()));
    view.answered(&acknowledge, Ok(StatusCode::BAD_CONDITION_BRANCH_ALREADY_ACKED));
    let (is_bad, text) = told(&view);
    assert!(is_bad && text.contains("BadConditionBranchAlreadyAcked: it is acknowledged already"), "{text}");
    view.answered(&acknowledge, Ok(StatusCode::BAD_USER_ACCESS_DENIED));
    assert!(told(&view).1.contains("connect with --user"), "{:?}", told(&view));
    view.answered(&acknowledge, Ok(StatusCode::BAD_OUT_OF_MEMORY));
    assert!(told(&view).1.len() > 60, "other codes have their description: {:?}", told(&view));
    view.answered(&acknowledge, Err("connection lost".to_owned()));
    assert_eq!(told(&view), (true, "cannot acknowledge Pump 1 LevelAlarm: connection lost".to_owned()));
    // Nothing to operate on.
    assert!(keys(&mut view, &ConditionTable::new(), "a").is_empty());
    assert_eq!(told(&view), (true, "no alarm is selected".to_owned()));
}

/// A disabled alarm is not in the list any more, but can be enabled again.
#[test]
fn a_disabled_alarm_can_be_enabled_again() {
    let (mut view, mut table) = (View::default(), plant(2));
    assert!(keys(&mut view, &table, "e").is_empty(), "none is disabled");
    assert!(view.status().unwrap().is_bad);
    let disable = operation(&keys(&mut view, &table, "dy"));
    let mut gone = disable.event.clone();
    (gone.retain, gone.enabled) = (false, false);
    table.take(gone);
    view.answered(&disable, Ok(StatusCode::GOOD));
    assert!(view.status().unwrap().text.contains("e enables it again"));
    let enable = operation(&keys(&mut view, &table, "e"));
    assert_eq!(enable.call, calls::enable(&NodeId::numeric(2, 1), true));
    view.answered(&enable, Ok(StatusCode::GOOD));
    assert!(keys(&mut view, &table, "e").is_empty());
}

#[test]
fn rows_say_what_operators_have_to_do() {
    let mut view = View::default();
    let mut table = ConditionTable::new();
    let mut change = |number: u32, change: &dyn Fn(&mut ConditionEvent)| {
        let mut event = event(number, 900 - number as u16, "Pu\u{1b}[2Jmp");
        change(&mut event);
        table.take(event);
    };
    change(1, &|event| event.limit = "HighHigh".to_owned());
    change(2, &|event| (event.acked, event.confirmed) = (Some(true), Some(false)));
    change(3, &|event| event.active = Some(false));
    change(4, &|event| event.suppressed_or_shelved = true);
    let rows = view.list(&table, 10).rows;
    let shown: Vec<_> =
        rows.iter().map(|row| (row.cells[1].as_str(), row.cells[2].as_str(), row.is_urgent)).collect();
    assert_eq!(
        shown,
        [
            ("HighHigh", "acknowledge", true),
            ("active", "confirm", false),
            ("inactive", "acknowledge", false),
            ("shelved", "acknowledge", false),
        ]
    );
    assert!(rows.iter().all(|row| row.cells.iter().all(|cell| !cell.contains('\u{1b}'))));
    assert!(!view.is_help());
    keys(&mut view, &table, "?");
    assert!(view.is_help());
    assert!(keys(&mut view, &table, "q").is_empty(), "any key leaves the help");
    assert!(!view.is_help());
}

//! Settings of tags and sources, and mistakes in them.

use super::*;

fn section(text: &str) -> Fields {
    Sections::parse(Path::new("g.toml"), text).unwrap().sources.remove(0)
}

#[test]
fn settings_are_taken_with_their_lines() {
    let mut fields =
        section("# a\n[[source]]\nname = \"a\"\ninterval = \"2 s\"\nunit = 0x11\nrange = [0, 1.5]\n");
    assert_eq!(fields.line(), 2);
    assert_eq!(fields.text_at("name").unwrap(), Some((3, "a".to_owned())));
    assert_eq!(fields.span("interval").unwrap(), Some(Duration::from_secs(2)));
    assert_eq!(fields.integer("unit", 0, 255).unwrap(), Some(17));
    assert_eq!(fields.pair("range").unwrap(), Some((0.0, 1.5)));
    fields.finish().unwrap();
}

#[test]
fn invalid_numbers_are_reported() {
    let told = |value: &str| {
        let mut fields = section(&format!("[[source]]\nname = \"a\"\nlow = {value}\n"));
        fields.number("low").unwrap_err().to_string()
    };
    assert!(told("nan").contains("write a finite number"), "{}", told("nan"));
    assert!(told("true").contains("write a number"), "{}", told("true"));
}

#[test]
fn mistakes_have_a_position_and_a_correction() {
    let twice = Sections::parse(Path::new("g.toml"), "[[tag]]\nname = \"a\"\nname = \"b\"\n").map(drop);
    let twice = twice.unwrap_err().to_string();
    assert!(twice.starts_with("g.toml:3: `name` is there a second time; "), "{twice}");
    let mut fields =
        section("[[source]]\nnam = \"a\"\nunit = 256\nkind = \"tpc\"\nspan = \"2 x\"\nlow = [2, 1]\n");
    let all = |error: Mistake| error.to_string();
    assert_eq!(
        all(fields.required("name", "\"plc\"").unwrap_err()),
        "g.toml:1: name is missing; write name = \"plc\""
    );
    assert_eq!(
        all(fields.integer("unit", 0, 255).unwrap_err()),
        "g.toml:3: unit: the number does not fit; write a whole number from 0 to 255"
    );
    let words = [("tcp", 1), ("rtu", 2)];
    assert_eq!(
        all(fields.word("kind", &words).unwrap_err()),
        "g.toml:4: kind: there is no \"tpc\"; did you mean \"tcp\"?"
    );
    assert!(all(fields.span("span").unwrap_err()).contains("g.toml:5: span: this is the text"));
    assert!(all(fields.pair("low").unwrap_err()).starts_with("g.toml:6: low: this is no range"));
    assert_eq!(
        all(fields.finish().unwrap_err()),
        "g.toml:2: nam: there is no such setting here; did you mean `name`?"
    );
}

#[test]
fn table_cells_are_read_as_the_wanted_type() {
    let cells = [("n", "2.5"), ("f", "yes"), ("r", "-1..1"), ("t", "10 min"), ("e", "")];
    let cells = cells.map(|(key, cell)| (key.to_owned(), cell.to_owned()));
    let head = Arc::new(Head { line: 1, columns: BTreeSet::new() });
    let mut fields = Fields::of_cells(Path::new("t.csv"), (&head, 7), cells);
    assert_eq!(fields.number("n").unwrap(), Some(2.5));
    assert_eq!(fields.flag("f").unwrap(), Some(true));
    assert_eq!(fields.pair("r").unwrap(), Some((-1.0, 1.0)));
    assert_eq!(fields.span("t").unwrap(), Some(Duration::from_secs(600)));
    assert!(!fields.has("e"), "an empty cell is no setting");
    fields.finish().unwrap();
}

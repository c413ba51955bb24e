use super::*;

/// `motohawk.dbc` of cantools, and a message of SAE J1939 as explained by CSS Electronics.
const PUBLISHED: &str = r#"VERSION "1.0"

BU_: PCM1 FOO

BO_ 496 ExampleMessage: 8 PCM1
 SG_ Temperature : 0|12@0- (0.01,250) [229.52|270.47] "degK"  PCM1,FOO
 SG_ AverageRadius : 6|6@0+ (0.1,0) [0|5] "m" Vector__XXX
 SG_ Enable : 7|1@0+ (1,0) [0|0] "-" Vector__XXX

BO_ 2364540158 EEC1: 8 Vector__XXX
 SG_ EngineSpeed : 24|16@1+ (0.125,0) [0|8031.875] "rpm" Vector__XXX

BO_ 100 Mux: 8 FOO
 SG_ Sel M : 0|4@1+ (1,0) [0|0] "" PCM1
 SG_ A m0 : 8|16@1- (1,0) [0|0] "" PCM1
 SG_ B m1 : 8|32@1- (1,0) [0|0] "" PCM1
 SG_ Outside : 60|16@1- (1,0) [0|0] "" PCM1

CM_ SG_ 496 Enable "Whether it runs.";
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 496 100;
VAL_ 496 Enable 1 "Enabled" 0 "Disabled" ;
SIG_VALTYPE_ 100 B : 1;
"#;

fn value(network: &Network, message: &str, signal: &str, data: &[u8]) -> Option<Variant> {
    let message = &network.messages[network.message(message).unwrap()];
    message.value(message.signal(signal).unwrap(), data).unwrap()
}

fn near(value: Option<Variant>, expected: f64) {
    let number = value.as_ref().and_then(Variant::as_f64).unwrap();
    assert!((number - expected).abs() < 1e-9, "{value:?}");
}

#[test]
fn published_frames_have_their_published_values() {
    let network = Network::parse(PUBLISHED.as_bytes()).unwrap();
    let data = [0xC0, 0x06, 0xE0, 0, 0, 0, 0, 0];
    near(value(&network, "ExampleMessage", "Temperature", &data), 250.55);
    near(value(&network, "ExampleMessage", "AverageRadius", &data), 3.2);
    assert_eq!(value(&network, "ExampleMessage", "Enable", &data), Some(true.into()));
    near(value(&network, "ExampleMessage", "Temperature", &[0x80, 0x4A, 0x0F, 0, 0, 0, 0, 0]), 255.92);
    near(value(&network, "EEC1", "EngineSpeed", &[0xFF, 0xFF, 0xFF, 0x68, 0x13, 0xFF, 0xFF, 0xFF]), 621.0);
    let example = &network.messages[0];
    assert_eq!((example.id, example.cycle), (496, Some(Duration::from_millis(100))));
    assert_eq!((network.messages[1].id, network.messages[1].cycle), (2_364_540_158, None));
    let enable = &example.signals[2];
    assert_eq!(enable.comment.as_deref(), Some("Whether it runs."));
    assert_eq!(example.label(2, &data), Ok(Some("Enabled".into())));
    assert_eq!(example.signals[0].range, Some((229.52, 270.47)));
    // And back.
    let mut made = [0; 8];
    example.set(0, &250.55.into(), &mut made).unwrap();
    example.set(1, &3.2.into(), &mut made).unwrap();
    example.set(2, &"Enabled".into(), &mut made).unwrap();
    assert_eq!(made, data);
}

#[test]
fn multiplexed_signals_are_present_if_their_switch_matches() {
    let network = Network::parse(PUBLISHED.as_bytes()).unwrap();
    let mut data = [0xF0, 0xFE, 0xFF, 0, 0, 0, 0, 0];
    assert_eq!(value(&network, "Mux", "A", &data), Some(Variant::Int64(-2)));
    assert_eq!(value(&network, "Mux", "B", &data), None);
    let mux = &network.messages[network.message("Mux").unwrap()];
    assert_eq!(mux.signal("Outside"), None, "it is not within the frame");
    let b = mux.signal("B").unwrap();
    mux.set(b, &1.5f32.into(), &mut data).unwrap();
    assert_eq!(data, [0xF1, 0, 0, 0xC0, 0x3F, 0, 0, 0], "the switch is set, what else is in its byte stays");
    assert_eq!(value(&network, "Mux", "B", &data), Some(Variant::Float(1.5)));
    assert_eq!(mux.value(b, &data[..4]), Err(TooShort));
}

#[test]
fn extended_multiplexing_supports_ranges_and_chains_and_bounds_cycles() {
    let text = r#"VERSION ""
BU_: A
BO_ 1 M: 8 A
 SG_ S0 M : 0|8@1+ (1,0) [0|0] "" A
 SG_ S1 m3M : 8|8@1+ (1,0) [0|0] "" A
 SG_ V m7 : 16|8@1+ (1,0) [0|0] "" A
BO_ 2 Circle: 8 A
 SG_ S0 m1M : 0|8@1+ (1,0) [0|0] "" A
 SG_ S1 m1M : 8|8@1+ (1,0) [0|0] "" A
SG_MUL_VAL_ 1 S1 S0 3-5, 9-9;
SG_MUL_VAL_ 1 V S1 7-7;
SG_MUL_VAL_ 2 S0 S1 1-1;
SG_MUL_VAL_ 2 S1 S0 1-1;
"#;
    let network = Network::parse(text.as_bytes()).unwrap();
    let of = |data: [u8; 3]| value(&network, "M", "V", &data);
    assert_eq!(of([4, 7, 42]), Some(Variant::UInt64(42)));
    assert_eq!(of([9, 7, 42]), Some(Variant::UInt64(42)));
    assert_eq!((of([6, 7, 42]), of([4, 8, 42])), (None, None));
    let mut data = [0; 8];
    network.messages[0].set(2, &5u8.into(), &mut data).unwrap();
    assert_eq!(data, [3, 7, 5, 0, 0, 0, 0, 0]);
    assert_eq!(value(&network, "Circle", "S0", &[1, 1]), Some(Variant::UInt64(1)));
}

#[test]
fn values_that_do_not_fit_are_not_sent() {
    let network = Network::parse(PUBLISHED.as_bytes()).unwrap();
    let (example, mux) = (&network.messages[0], &network.messages[2]);
    let mut data = [7; 8];
    let mut set = |message: &Message, signal: usize, value: Variant| message.set(signal, &value, &mut data);
    assert_eq!(set(example, 0, 300.0.into()), Err(Unsendable::OutOfRange));
    assert_eq!(set(example, 0, f64::NAN.into()), Err(Unsendable::OutOfRange));
    assert_eq!(set(example, 2, 2.0.into()), Err(Unsendable::OutOfRange));
    assert_eq!(set(example, 2, "On".into()), Err(Unsendable::NoNumber));
    assert_eq!(set(mux, 1, 32_768.into()), Err(Unsendable::OutOfRange));
    assert_eq!(set(mux, 1, f64::INFINITY.into()), Err(Unsendable::OutOfRange));
    assert_eq!(data, [7; 8]);
}

#[test]
fn files_of_other_tools_are_read_and_other_files_refused() {
    // A degree sign in Windows-1252, and a byte order mark.
    let latin = PUBLISHED.replace("\"degK\"", "\"@C\"").into_bytes();
    let at = latin.windows(3).position(|part| part == b"\"@C").unwrap();
    let latin = [&latin[..=at], &[0xB0], &latin[at + 2..]].concat();
    assert_eq!(Network::parse(&latin).unwrap().messages[0].signals[0].unit, "°C");
    assert!(Network::parse(&[b"\xEF\xBB\xBF", PUBLISHED.as_bytes()].concat()).is_ok());
    assert!(Network::parse(b"[[source]]\n").is_err());
}

#[test]
fn multiplexed_signals_without_their_switch_are_omitted() {
    let text = r#"VERSION ""
BU_: A
BO_ 1 Far: 8 A
 SG_ Sel M : 80|8@1+ (1,0) [0|0] "" A
 SG_ V0 m0 : 8|8@1+ (1,0) [0|0] "" A
 SG_ V1 m1M : 8|8@1+ (1,0) [0|0] "" A
 SG_ V2 m1 : 16|8@1+ (1,0) [0|0] "" A
 SG_ Plain : 24|8@1+ (1,0) [0|0] "" A
BO_ 2 None: 8 A
 SG_ V0 m0 : 8|8@1+ (1,0) [0|0] "" A
BO_ 3 Twice: 8 A
 SG_ V : 8|8@1+ (1,0) [0|0] "" A
 SG_ Sel M : 0|8@1+ (1,0) [0|0] "" A
 SG_ V m1 : 16|8@1+ (1,0) [0|0] "" A
SG_MUL_VAL_ 1 V2 V1 1-1;
"#;
    let network = Network::parse(text.as_bytes()).unwrap();
    let names = |at: usize| network.messages[at].signals.iter().map(|it| &*it.name).collect::<Vec<_>>();
    assert_eq!(names(0), ["Plain"], "nothing says in which frames the others are");
    assert_eq!(names(1), Vec::<&str>::new());
    assert_eq!(names(2), ["V", "Sel"]);
    assert_eq!(value(&network, "Twice", "V", &[0, 7, 8]), Some(Variant::UInt64(7)), "the first one counts");
}

#[test]
fn a_switch_without_a_matching_value_is_not_written() {
    let text = r#"VERSION ""
BU_: A
BO_ 1 M: 8 A
 SG_ Sel M : 0|4@1+ (1,0) [0|0] "" A
 SG_ V m17 : 8|8@1+ (1,0) [0|0] "" A
 SG_ W m1 : 8|8@1+ (1,0) [0|0] "" A
 SG_ Over m2 : 0|8@1+ (1,0) [0|0] "" A
 SG_ F : 32|32@1- (1,0) [0|0] "" A
SIG_VALTYPE_ 1 F : 1;
"#;
    let message = &Network::parse(text.as_bytes()).unwrap().messages[0];
    let mut data = [0; 8];
    for (name, wrong) in [("V", 5.0), ("Over", 255.0), ("F", 1e300)] {
        let signal = message.signal(name).unwrap();
        assert!(message.set(signal, &wrong.into(), &mut [0; 8]).is_err(), "{name}");
    }
    message.set(message.signal("W").unwrap(), &5.0.into(), &mut data).unwrap();
    assert_eq!(data[..2], [1, 5]);
}

#[test]
fn comments_and_value_names_are_assigned_in_large_files() {
    use std::fmt::Write;
    let mut text = String::from("VERSION \"\"\nBU_: A\n");
    let count = 6_000;
    for message in 0..count / 60 {
        let _ = writeln!(text, "BO_ {message} M{message}: 64 A");
        for at in 0..60 {
            let _ = writeln!(text, " SG_ S{at} : {}|8@1+ (1,0) [0|0] \"\" A", at * 8);
        }
    }
    let each = |text: &mut String, line: &dyn Fn(usize, usize) -> String| {
        (0..count).for_each(|it| text.push_str(&line(it / 60, it % 60)));
    };
    each(&mut text, &|message, at| format!("CM_ SG_ {message} S{at} \"c{at}\";\n"));
    each(&mut text, &|message, at| format!("VAL_ {message} S{at} {at} \"l{at}\" ;\n"));
    let network = Network::parse(text.as_bytes()).unwrap();
    let last = network.messages.last().unwrap().signals.last().unwrap();
    assert_eq!((last.comment.as_deref(), &*last.labels[0].1), (Some("c59"), "l59"));
}

#[test]
fn mistakes_name_the_line_number_without_its_text() {
    let text = format!("VERSION \"\"\nBU_: A\nBO_ 1 M: 8 A\n SG_ {} 0|8@1+ A\n", "S".repeat(100_000));
    let mistake = Network::parse(text.as_bytes()).unwrap_err();
    assert!(mistake.starts_with("line 4: expected ") && mistake.len() < 250, "{mistake}");
}

use super::*;
use crate::latency::Summary;
use serde_json::json;

/// A document with all members of a server's load.
fn full() -> Document {
    let mut document = Document::default();
    let usage = crate::process::Usage { seconds: 2.0, cpu_percent: 12.5, ..Default::default() };
    document.add(&Accounts {
        window_s: 2.0,
        server: Some(Server { usage, per: Per::of(Unit::Request, 7.5), ..Server::default() }),
        ..Accounts::default()
    });
    document.add(&Requests { sent: 10, due: 10, requests: 10, per_second: Some(5.0), ..Requests::default() });
    document
}

#[test]
fn parts_share_a_document() {
    let document = full();
    let accounts: Accounts = document.part().unwrap();
    let server = accounts.server.unwrap();
    assert_eq!((server.usage.cpu_percent, server.per.cpu_us_per_request), (12.5, Some(7.5)));
    assert_eq!(server.per.cpu_us_per_signal, None);
    assert_eq!(document.part::<Requests>().unwrap().per_second, Some(5.0));
    let figures = document.figures();
    assert_eq!(figures["server.cpu_us_per_request"], 7.5);
    assert_eq!(figures["server.cpu_percent"], 12.5);
    assert!(!figures.contains_key("server.cpu_us_per_signal"), "a unit that was not counted is no figure");
}

/// As the first version wrote them: without the members that have come since.
#[test]
fn old_documents_are_read_and_a_missing_figure_is_named() {
    let summary = json!(Summary::default());
    let old = json!({
        "tool": "taktwerk bench", "command": "read", "window_s": 1.5, "server": null,
        "sent": 3, "due": 3, "requests": 3, "failed": 0, "bad": 0,
        "latency": {"corrected": null, "uncorrected": summary},
        "invalid": [{"reason": "no_samples", "message": "nothing came"}, {"reason": "of another version", "message": "x"},
            {"message": "late"}],
    });
    let document = Document::from(old.clone());
    assert_eq!(document.part::<Accounts>().unwrap().server, None);
    assert_eq!(document.part::<Requests>().unwrap().per_second, None);
    assert_eq!(document.part::<Answered>().unwrap().latency.lateness, None);
    let ending: Ending = document.part().unwrap();
    let reasons: Vec<_> = ending.invalid.iter().map(|it| (it.reason.clone(), it.message.as_str())).collect();
    assert_eq!(reasons, [(Some(Invalid::NoSamples), "nothing came"), (None, "x"), (None, "late")]);
    let mut renamed = old;
    renamed.as_object_mut().unwrap().remove("requests");
    let error = Document::from(renamed).part::<Requests>().unwrap_err();
    assert!(error.to_string().contains("missing field `requests`"), "{error}");
}

#[test]
fn documents_are_written_and_read_again() {
    let mut document = full();
    let machine = Machine { real_time: false, ..Machine::this() };
    let head = |machine| Head {
        tool: "x".into(),
        version: "1".into(),
        command: "read".into(),
        url: "opc.tcp://x".into(),
        machine,
    };
    document.add(&head(machine.clone()));
    assert_eq!(document.part::<Head>().unwrap(), head(machine), "a member that is left out is read too");
    document.add(&Ending {
        valid: false,
        invalid: vec![Reason::from(&Invalid::ConnectionsLost { lost: 2 })],
        interrupted: false,
    });
    document.set("of_another_version", 17);
    let mut times = Times::new();
    times.record(5_000);
    let mut histograms = Histograms::default();
    histograms.add("latency", &times);
    histograms.histograms.insert("broken".to_owned(), "?".to_owned());
    document.add(&histograms);
    let mut read = Document::parse(document.to_string().as_bytes()).unwrap();
    assert_eq!(read, document);
    let json = document.into_value();
    assert_eq!(json["invalid"][0]["reason"], "connections_lost");
    assert_eq!(json["invalid"][0]["lost"], 2);
    assert!(json["invalid"][0]["message"].as_str().unwrap().contains("2 connections"));
    let found = read.take_histograms();
    assert_eq!((found.len(), found["latency"].count()), (1, 1));
    assert!(read.take_histograms().is_empty());
    assert_eq!(read.part::<Ending>().unwrap().invalid[0].reason, Some(Invalid::ConnectionsLost { lost: 2 }));
    assert_eq!(read.figures()["of_another_version"], 17.0, "members of other versions are kept");
    assert!(Document::parse(b"[1]").is_err());
}

use super::names::whole;
use super::*;
use crate::latency::Summary;
use serde_json::json;

/// A document with all members of a load of a server.
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

/// Format of the first version, without members added later.
#[test]
fn old_documents_are_read_and_missing_figures_are_named() {
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
    assert_eq!(document.part::<Head>().unwrap(), head(machine), "omitted members are read too");
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

#[test]
fn every_named_figure_is_in_a_document() {
    let figures = whole().figures();
    // The report adds the figures of a current sensor.
    let beside = [Figure::SUPPLY_AMPERE, Figure::SUPPLY_JOULE];
    let missing: Vec<&Figure> = Figure::ALL
        .iter()
        .filter(|figure| !beside.contains(figure) && !figures.contains_key(figure.name()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}: which member was renamed?");
}

#[test]
fn unknown_figure_names_are_detected() {
    for known in [
        "latency.corrected.p90_us",
        "server.cpu_us_per_message",
        "server.threads_percent.shard 0",
        "energy_j.package",
        "requested.rate",
        "closing.max_us",
        "progress.worst_item_ratio",
        "supply.joule",
    ] {
        assert_eq!(unknown_figure(known), None, "{known}");
    }
    let told = unknown_figure("server.cpu_percnt").unwrap();
    assert_eq!(told, "there is no figure \"server.cpu_percnt\"; did you mean \"server.cpu_percent\"?");
    let far = unknown_figure("xyzzy").unwrap();
    assert!(far.contains("server.cpu_percent") && far.contains("--json"), "{far}");
}

/// Format of versions before these were types.
#[test]
fn comparisons_of_gateways_are_read_as_they_were_written() {
    let summary = json!(Summary::default());
    let value = json!({
        "requested": {"devices": 2, "against": ["other"]},
        "comparison": [
            {"gateway": "taktwerk", "version": "1", "devices": 2, "values_per_s": 1.5, "changes_per_s": 2.0,
                "in_time": 1.0, "delay": summary, "cpu_percent": 3.0, "cpu_us_per_value": 0.5, "rss_bytes": 7,
                "holds": true, "ratio": 1.0, "invalid": null},
            {"gateway": "other", "version": "2", "devices": 2, "holds": false, "error": "gone"},
        ],
        "alternatives": [
            {"gateway": "other", "devices": 0},
            {"gateway": "third", "version": "3", "devices": 1, "cpu_us_per_value": 9.0, "ratio_same_load": null,
                "ratio_all_devices": 18.0},
        ],
        "cpu_ratio_to_best": 0.05,
        "cpu_ratio_within_limit": true,
    });
    let read: Compared = Document::from(value.clone()).part().unwrap();
    assert_eq!(read.comparison[0].measured.as_ref().unwrap().cpu_us_per_value, Some(0.5));
    assert_eq!((&read.comparison[1].measured, read.comparison[1].error.as_deref()), (&None, Some("gone")));
    assert_eq!(read.alternatives[0].cost, None);
    assert_eq!(read.alternatives[1].cost.as_ref().unwrap().ratio_all_devices, Some(18.0));
    let mut document = Document::default();
    document.add(&read);
    let mut written = document.into_value();
    written["requested"] = value["requested"].clone();
    assert_eq!(written, value);
    assert!(full().part::<Compared>().is_err(), "other results contain no comparison");
}

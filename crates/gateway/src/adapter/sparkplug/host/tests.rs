use super::*;
use crate::sparkplug::payload::{PropertySet, PropertyValue, Template};

fn metric(name: &str, alias: u64, value: f64) -> Metric {
    let alias = Some(alias).filter(|alias| *alias > 0);
    Metric { alias, ..Metric::new(name, 10, Value::Double(value)) }
}

fn aliased(alias: u64, value: f64) -> Metric {
    Metric { alias: Some(alias), value: Some(Value::Double(value)), ..Metric::default() }
}

fn session_metric(number: u64) -> Metric {
    Metric::new("bdSeq", 8, Value::Long(number))
}

struct Stand {
    host: Host,
    now: Instant,
}

impl Stand {
    fn new() -> Self {
        Self { host: Host::new(100), now: Instant::now() }
    }

    fn tell(&mut self, topic: &str, seq: Option<u64>, metrics: Vec<Metric>) -> Vec<Told> {
        let payload = Payload { timestamp: Some(1_000), metrics, seq };
        self.host.receive(&format!("spBv1.0/{topic}"), &payload.encode_to_vec(), self.now)
    }

    /// The effects in short form: names with values or statuses, and rebirths.
    fn short(&mut self, topic: &str, seq: Option<u64>, metrics: Vec<Metric>) -> String {
        let told = self.tell(topic, seq, metrics).into_iter().map(|told| match told {
            Told::Value { id, value, status, .. } => {
                let value = value.as_f64().map_or_else(|| status.to_string(), |number| number.to_string());
                format!(
                    "{}{}={value}",
                    id.device.as_deref().map(|it| format!("{it}:")).unwrap_or_default(),
                    id.name
                )
            }
            Told::Rebirth { group, node } => format!("rebirth {group} {node}"),
            Told::Dropped(count) => format!("dropped {count}"),
            Told::Invalid => "invalid".to_owned(),
        });
        told.collect::<Vec<_>>().join(" ")
    }
}

fn birth(stand: &mut Stand, session: u64) -> String {
    let first = stand.short("g/NBIRTH/n", Some(0), vec![session_metric(session), metric("T", 1, 1.0)]);
    let second = stand.short("g/DBIRTH/n/d", Some(1), vec![metric("P", 2, 2.0)]);
    format!("{first} {second}")
}

#[test]
fn births_define_metrics_and_data_use_their_aliases() {
    let mut stand = Stand::new();
    assert_eq!(birth(&mut stand, 0), "T=1 d:P=2");
    assert_eq!(stand.short("g/NDATA/n", Some(2), vec![aliased(1, 1.5)]), "T=1.5");
    assert_eq!(
        stand.short("g/DDATA/n/d", Some(3), vec![aliased(2, 2.5), metric("P", 0, 2.75)]),
        "d:P=2.5 d:P=2.75"
    );
    // An alias of the node is not valid for its device.
    let unknown = stand.short("g/DDATA/n/d", Some(4), vec![aliased(1, 9.0)]);
    assert!(unknown.ends_with("rebirth g n"), "{unknown}");
}

#[test]
fn a_gap_makes_all_values_of_the_node_bad_until_its_rebirth() {
    let mut stand = Stand::new();
    birth(&mut stand, 7);
    let lost = stand.short("g/NDATA/n", Some(4), vec![aliased(1, 9.0)]);
    assert_eq!(lost, "T=BadNoCommunication d:P=BadNoCommunication rebirth g n");
    // Rebirth requests are rate limited, and data are ignored until then.
    assert_eq!(stand.short("g/NDATA/n", Some(5), vec![aliased(1, 9.0)]), "");
    stand.now += REBIRTH_PAUSE;
    assert_eq!(stand.short("g/NDATA/n", Some(6), vec![aliased(1, 9.0)]), "rebirth g n");
    assert_eq!(birth(&mut stand, 7), "T=1 d:P=2");
    // Sequence numbers wrap from 255 to 0.
    for seq in 2..300u64 {
        assert_eq!(stand.short("g/NDATA/n", Some(seq % 256), vec![aliased(1, 3.0)]), "T=3");
    }
}

#[test]
fn deaths_apply_only_to_their_session() {
    let mut stand = Stand::new();
    birth(&mut stand, 3);
    assert_eq!(stand.short("g/NDEATH/n", None, vec![session_metric(2)]), "", "a late one");
    assert_eq!(stand.short("g/DDEATH/n/d", Some(2), vec![]), "d:P=BadNoCommunication");
    assert_eq!(stand.short("g/NDATA/n", Some(3), vec![aliased(1, 4.0)]), "T=4");
    let dead = stand.short("g/NDEATH/n", None, vec![session_metric(3)]);
    assert_eq!(dead, "T=BadNoCommunication d:P=BadNoCommunication");
    assert_eq!(stand.short("g/NDEATH/n", None, vec![session_metric(3)]), "");
}

#[test]
fn nodes_older_than_the_host_are_asked_for_a_rebirth() {
    let mut stand = Stand::new();
    assert_eq!(stand.short("g/DDATA/n/d", Some(9), vec![aliased(1, 1.0)]), "rebirth g n");
    assert_eq!(stand.short("g/NCMD/n", None, vec![metric("x", 0, 1.0)]), "");
    assert_eq!(stand.short("STATE/host", None, vec![]), "");
    let told = stand.host.receive("spBv1.0/g/NDATA/n", &[0x12, 200], stand.now);
    assert_eq!(told, [Told::Invalid]);
    // A megabyte of empty metrics would need a hundred megabytes decoded.
    let told = stand.host.receive("spBv1.0/g/NDATA/n", &[0x12, 0].repeat(500_000), stand.now);
    assert_eq!(told, [Told::Invalid]);
}

#[test]
fn quality_null_history_types_and_templates_are_understood() {
    let mut stand = Stand::new();
    let with_quality = |quality: u32| PropertySet {
        keys: vec!["Quality".to_owned()],
        values: vec![PropertyValue { value: Some(Property::Int(quality)), ..PropertyValue::default() }],
    };
    let member = metric("Speed", 0, 5.0);
    let instance = Template { metrics: vec![member.clone()], is_definition: None };
    let definition = Template { metrics: vec![member], is_definition: Some(true) };
    let of = |template: Template| Metric::new("Motor", TEMPLATE, Value::Template(template));
    let metrics = vec![
        metric("T", 1, 1.0),
        Metric { properties: Some(with_quality(0)), ..metric("Bad", 2, 1.0) },
        Metric { properties: Some(with_quality(500)), ..metric("Stale", 3, 1.0) },
        Metric { is_null: Some(true), value: None, ..metric("Null", 4, 1.0) },
        Metric::new("Wrong", 9, Value::Double(1.0)),
        Metric::new("Set", 16, Value::Boolean(true)),
        Metric::new("Node Control/Rebirth", 11, Value::Boolean(false)),
        of(definition),
        of(instance.clone()),
    ];
    assert_eq!(
        stand.short("g/NBIRTH/n", Some(0), metrics),
        "T=1 Bad=BadDeviceFailure Stale=1 Null=BadNoData Wrong=BadTypeMismatch dropped 1 Motor/Speed=5"
    );
    let old = Metric { is_historical: Some(true), ..aliased(1, 0.5) };
    assert_eq!(stand.short("g/NDATA/n", Some(1), vec![old]), "dropped 1");
    assert_eq!(stand.short("g/NDATA/n", Some(2), vec![of(instance)]), "Motor/Speed=5");
    let unknown = stand.short("g/NDATA/n", Some(3), vec![metric("New", 0, 1.0)]);
    assert!(unknown.ends_with("rebirth g n"), "{unknown}");
}

#[test]
fn data_of_a_hidden_metric_do_not_invalidate_other_values() {
    let mut stand = Stand::new();
    let set = Metric { alias: Some(2), ..Metric::new("Set", 16, Value::Bytes(vec![1])) };
    let birth = vec![metric("T", 1, 1.0), set];
    assert_eq!(stand.short("g/NBIRTH/n", Some(0), birth), "T=1 dropped 1");
    // Data messages omit types, and have aliases instead of names.
    let data = Metric { alias: Some(2), value: Some(Value::Bytes(vec![2])), ..Metric::default() };
    assert_eq!(stand.short("g/NDATA/n", Some(1), vec![data.clone()]), "dropped 1");
    let data = Metric { name: Some("Set".to_owned()), alias: None, ..data };
    assert_eq!(stand.short("g/NDATA/n", Some(2), vec![data, aliased(1, 2.0)]), "dropped 1 T=2");
}

#[test]
fn aliases_have_a_limit() {
    let mut stand = Stand::new();
    stand.tell("g/NBIRTH/n", Some(0), vec![]);
    for device in 0..20u64 {
        // Many metrics, and many aliases of one.
        let many = (1..200u64).map(|at| metric(&format!("m{}", at % 150), 1000 * device + at, 1.0));
        stand.tell(&format!("g/DBIRTH/n/d{device}"), Some(device + 1), many.collect());
        let node = stand.host.nodes.values().next().unwrap();
        assert!(node.is_online && node.aliases.len() <= 100, "{} aliases", node.aliases.len());
    }
    // Data beyond the limit are dropped, and do not invalidate other values.
    assert_eq!(stand.short("g/DDATA/n/d19", Some(21), vec![aliased(19_100, 1.0)]), "");
    assert_eq!(stand.short("g/DDATA/n/d0", Some(22), vec![aliased(1, 2.0)]), "d0:m1=2");
}

#[test]
fn metrics_of_a_node_are_limited() {
    let mut stand = Stand::new();
    let many: Vec<Metric> = (0..150).map(|number| metric(&format!("m{number}"), 0, 1.0)).collect();
    for _ in 0..3 {
        let told = stand.tell("g/NBIRTH/n", Some(0), many.clone());
        assert_eq!(told.iter().filter(|told| matches!(told, Told::Value { .. })).count(), 100);
    }
    assert_eq!(stand.host.metrics, 100);
}

/// No message causes a panic or exceeds the limits, whatever its content.
#[test]
fn broken_messages_are_survived() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut stand = Stand::new();
    let template = Template { metrics: vec![metric("x", 0, 1.0)], is_definition: None };
    let metrics = vec![
        session_metric(1),
        metric("T", 1, 1.0),
        Metric::new("A", 23, Value::Bytes(vec![1, 2, 3, 4])),
        Metric::new("M", TEMPLATE, Value::Template(template)),
    ];
    let whole = Payload { timestamp: Some(1_000), metrics, seq: Some(0) }.encode_to_vec();
    let topics = ["g/NBIRTH/n", "g/NDATA/n", "g/DBIRTH/n/d", "g/DDATA/n/d", "g/NDEATH/n", "g/DDEATH/n/d"];
    let mut values = 0;
    for round in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..random(4) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        bytes.truncate(bytes.len() - random(3));
        let topic = format!("spBv1.0/{}", topics[random(topics.len())]);
        stand.now += Duration::from_millis(random(100) as u64);
        let told = stand.host.receive(&topic, &bytes, stand.now);
        values += told.iter().filter(|told| matches!(told, Told::Value { .. })).count();
        assert!(stand.host.metrics <= 100, "round {round}");
        let kept: usize = stand.host.nodes.values().map(|node| node.metrics.len()).sum();
        assert_eq!(stand.host.metrics, kept, "round {round}");
    }
    assert!(values > 1000, "{values}");
}

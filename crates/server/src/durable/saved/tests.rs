use super::*;
use crate::durable::record::SavedParameters;
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::{NodeId, QualifiedName, Variant};

fn header() -> Section {
    Section::Header(Box::new(Header {
        namespaces: vec!["http://opcfoundation.org/UA/".into(), "urn:a".into()],
        owner: vec![1, 2],
        roles: vec![NodeId::numeric(0, 15_656)],
        mode: MessageSecurityMode::SignAndEncrypt,
        is_limited: false,
        parameters: SavedParameters {
            publishing_interval: 100.0,
            lifetime_count: 36_000,
            max_keep_alive_count: 10,
            max_notifications: 1_000,
            priority: 3,
        },
        publishing_enabled: true,
        lifetime_hours: 1,
    }))
}

fn entry(sections: &[Section]) -> Vec<u8> {
    let mut out = record::begin();
    sections.iter().for_each(|section| section.encode(&mut out));
    out
}

fn values(first: u64, from: u64, added: &[f64]) -> Section {
    let added = added.iter().map(|value| DataValue::new(*value)).collect();
    Section::Values(QueueChange { item: 7, first, from, overflow: false, added })
}

fn numbers(saved: &Saved) -> Vec<f64> {
    let of = |value: &DataValue| value.value.as_ref().and_then(Variant::as_f64).unwrap();
    saved.items[&7].values.elements.iter().map(of).collect()
}

fn created(item: u32) -> Section {
    Section::Created { item, timestamps: 2, request: vec![1, 2, 3] }
}

#[test]
fn queues_follow_what_was_added_taken_and_replaced() {
    let mut log = vec![entry(&[header(), created(7), values(0, 0, &[1.0, 2.0, 3.0])])];
    assert_eq!(numbers(&Saved::from_entries(1, &log).unwrap()), [1.0, 2.0, 3.0]);
    // Two removed, one added.
    log.push(entry(&[values(2, 3, &[4.0])]));
    assert_eq!(numbers(&Saved::from_entries(1, &log).unwrap()), [3.0, 4.0]);
    // The newest was replaced.
    log.push(entry(&[values(2, 3, &[5.0])]));
    assert_eq!(numbers(&Saved::from_entries(1, &log).unwrap()), [3.0, 5.0]);
    // Everything was removed, with five more that were never written; then another one was added.
    log.push(entry(&[values(9, 9, &[6.0])]));
    let saved = Saved::from_entries(1, &log).unwrap();
    assert_eq!((numbers(&saved), saved.items[&7].values.first), (vec![6.0], 9));
}

#[test]
fn one_entry_is_equivalent_to_all() {
    let event = StoredEvent {
        condition: Some(NodeId::numeric(1, 5)),
        fields: vec![(vec![QualifiedName::new(0, "Severity")], 500u16.into())],
    };
    let events = QueueChange { item: 8, first: 3, from: 3, overflow: true, added: vec![event] };
    let messages =
        Section::Messages { next: 6, available: vec![4, 5], new: vec![(4, vec![1]), (5, vec![2])] };
    let log = [
        entry(&[header(), created(7), created(8), created(9)]),
        entry(&[values(0, 0, &[1.0, 2.0]), Section::Events(events.clone())]),
        entry(&[
            Section::Links { item: 7, linked: vec![8, 9] },
            Section::Modified { item: 7, timestamps: 1, parameters: vec![9] },
            Section::Mode { item: 8, mode: 1 },
            Section::Deleted { item: 9 },
        ]),
        entry(&[messages]),
        entry(&[
            Section::Messages { next: 7, available: vec![5, 6], new: vec![(6, vec![3])] },
            Section::Closed,
        ]),
    ];
    let whole = Saved::from_entries(1, &log).unwrap();
    let short = Saved { log_len: whole.log_len, ..Saved::from_entries(1, &[whole.to_entry()]).unwrap() };
    assert_eq!(format!("{whole:?}"), format!("{short:?}"));
    assert!(short.is_complete && short.next_sequence_number == 7);
    assert_eq!(short.messages, [(5, vec![2]), (6, vec![3])]);
    assert_eq!((short.items.len(), short.items[&7].linked.as_slice()), (2, [8].as_slice()));
    assert_eq!(short.items[&8].events.elements, events.added);
    // Entries after a regular shutdown were written by another process.
    let later = Saved::from_entries(1, &[whole.to_entry(), entry(&[values(1, 2, &[])])]).unwrap();
    assert!(!later.is_complete);
    assert_eq!(numbers(&later), [2.0]);
}

#[test]
fn damaged_logs_are_errors() {
    let good = entry(&[header(), created(7), values(0, 0, &[1.0])]);
    for len in 1..good.len() {
        // A cut between two sections is a shorter entry.
        if let Ok(saved) = Saved::from_entries(1, &[good[..len].to_vec()]) {
            assert!(saved.items.len() <= 1, "{len}");
        }
    }
    let mut other = good.clone();
    other[0] = 9;
    assert!(Saved::from_entries(1, &[other]).is_err());
    assert!(Saved::from_entries(1, &[]).is_err());
    assert!(Saved::from_entries(1, &[entry(&[created(7)])]).is_err());
    assert!(Saved::from_entries(1, &[good, vec![1, 99]]).is_err());
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    fn good() -> Vec<u8> {
        let event = StoredEvent {
            condition: Some(NodeId::numeric(1, 5)),
            fields: vec![(vec![QualifiedName::new(0, "Severity")], 500u16.into())],
        };
        let events = QueueChange { item: 8, first: 3, from: 3, overflow: true, added: vec![event] };
        entry(&[
            header(),
            created(7),
            created(8),
            values(2, 4, &[1.0, 2.0]),
            Section::Events(events),
            Section::Links { item: 7, linked: vec![8] },
            Section::Modified { item: 7, timestamps: 1, parameters: vec![9] },
            Section::Messages { next: 6, available: vec![4], new: vec![(4, vec![1])] },
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// A log of random bytes is an error or a subscription, and a restored subscription reproduces itself.
        #[test]
        fn random_logs_never_panic(
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
            more in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..3),
        ) {
            let mut first = good();
            for (at, byte) in changes {
                let at = at.index(first.len());
                first[at] = byte;
            }
            let log: Vec<Vec<u8>> = core::iter::once(first).chain(more).collect();
            if let Ok(saved) = Saved::from_entries(1, &log) {
                let again = Saved::from_entries(1, &[saved.to_entry()]).unwrap();
                prop_assert_eq!(saved.to_entry(), again.to_entry());
            }
        }
    }
}

/// Entries of version 1 have no flag in their header.
#[test]
fn a_limited_user_stays_limited_and_older_logs_can_be_read() {
    let limited = |is_limited| match header() {
        Section::Header(header) => Section::Header(Box::new(Header { is_limited, ..*header })),
        other => other,
    };
    for is_limited in [false, true] {
        let saved = Saved::from_entries(1, &[entry(&[limited(is_limited), created(7)])]).unwrap();
        assert_eq!(saved.header.is_limited, is_limited);
        let again = Saved::from_entries(1, &[saved.to_entry()]).unwrap();
        assert_eq!(again.header.is_limited, is_limited);
    }
    let new = entry(&[limited(false), created(7)]);
    let true_one = entry(&[limited(true), created(7)]);
    let at = new.iter().zip(&true_one).position(|(one, other)| one != other).unwrap();
    let mut old = new;
    old.remove(at);
    old[0] = 1;
    let saved = Saved::from_entries(1, &[old.clone()]).unwrap();
    assert!(!saved.header.is_limited && saved.header.lifetime_hours == 1 && saved.items.contains_key(&7));
    old[0] = 3;
    assert!(Saved::from_entries(1, &[old]).is_err());
}

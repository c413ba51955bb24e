use super::addresses::Addresses;
use super::*;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use taktwerk_types::{ByteString, Variant};

fn server(sessions: usize) -> Arc<Account> {
    Account::server(Maxima::bytes(1 << 20).with(Category::Sessions, sessions))
}

#[test]
fn a_charge_counts_at_every_level_until_it_is_dropped() {
    let server = server(100_000);
    let address = server.child(Level::Address, usize::MAX);
    let session = address.child(Level::Session, usize::MAX);
    let charge = session.charge(Category::Sessions, 1_000).unwrap();
    assert_eq!(session.used(Category::Sessions), 1_000);
    // A session draws a step in advance.
    for above in [&address, &server] {
        assert!((1_000..=1_000 + 8_192).contains(&above.used(Category::Sessions)));
    }
    drop(charge);
    assert_eq!(session.used(Category::Sessions), 0);
    drop(session);
    assert_eq!((address.bytes(), server.bytes()), (0, 0));
}

#[test]
fn the_limit_of_each_level_and_category_holds() {
    let server = server(10_000);
    let address = server.child(Level::Address, 6_000);
    let connection = address.child(Level::Connection, 3_000);
    let refused = connection.charge(Category::Sessions, 3_001).unwrap_err();
    assert_eq!(refused.level, Level::Connection);
    let one = connection.charge(Category::Sessions, 3_000).unwrap();
    let other = address.child(Level::Connection, usize::MAX);
    let refused = other.charge(Category::Sessions, 3_001).unwrap_err();
    assert_eq!(refused.level, Level::Address);
    let two = other.charge(Category::Sessions, 3_000).unwrap();
    let far = server.child(Level::Address, usize::MAX);
    let refused = far.charge(Category::Sessions, 4_001).unwrap_err();
    assert_eq!(refused, Exhausted { level: Level::Server, category: Category::Sessions });
    assert_eq!(Fault::from(refused).status(), StatusCode::BAD_OUT_OF_MEMORY);
    // Another category has its own limit.
    let three = far.charge(Category::Requests, 100_000).unwrap();
    assert!(far.charge(Category::Requests, 1 << 20).is_err());
    assert!(far.charge(Category::Requests, usize::MAX).is_err());
    drop((one, two, three));
    assert_eq!(server.bytes(), 0);
}

#[test]
fn an_account_draws_less_in_advance_near_the_limit() {
    let server = server(5_000);
    let session = server.child(Level::Session, usize::MAX);
    let charge = session.charge(Category::Sessions, 5_000).unwrap();
    assert!(session.charge(Category::Sessions, 1).is_err());
    assert_eq!(charge.amount(), 5_000);
}

#[test]
fn counts_are_not_bytes() {
    let server = Account::server(Maxima::bytes(10).with(Category::HandshakeCount, 100));
    let charge = server.charge(Category::HandshakeCount, 100).unwrap();
    assert_eq!(server.bytes(), 0);
    assert!(server.charge(Category::HandshakeCount, 1).is_err());
    drop(charge);
    let _again = server.charge(Category::HandshakeCount, 1).unwrap();
}

#[test]
fn existing_data_is_charged_beyond_the_limit() {
    let server = server(100);
    let connection = server.child(Level::Connection, usize::MAX);
    let mut charge = connection.charge_anyway(Category::Sessions, 150);
    assert!(server.is_over(Category::Sessions) && !server.is_over(Category::Requests));
    assert!(charge.resize(151).is_err() && charge.amount() == 150);
    charge.resize(100).unwrap();
    assert!(!server.is_over(Category::Sessions));
    charge.resize_anyway(101);
    assert!(server.is_over(Category::Sessions));
}

#[test]
fn growth_stops_at_the_limit() {
    let server = server(1_000);
    let session = server.child(Level::Session, usize::MAX);
    let mut charge = session.charge(Category::Sessions, 100).unwrap();
    assert_eq!(charge.grow_up_to(20, 64), 14);
    assert_eq!(charge.amount(), 100 + 14 * 64);
    assert_eq!(charge.grow_up_to(20, 64), 0);
}

#[test]
fn an_account_moves_with_everything_below_it() {
    let server = server(1 << 20);
    let [one, two] = [(); 2].map(|()| server.child(Level::Address, usize::MAX));
    let session = one.child(Level::Session, usize::MAX);
    let subscription = session.child(Level::Subscription, usize::MAX);
    let charge = subscription.charge(Category::Retransmission, 20_000).unwrap();
    let total = server.used(Category::Retransmission);
    subscription.move_up();
    assert_eq!(session.used(Category::Retransmission), 0);
    assert!(one.used(Category::Retransmission) >= 20_000);
    subscription.move_to(&two);
    drop(session);
    assert_eq!(one.bytes(), 0);
    assert!(two.used(Category::Retransmission) >= 20_000);
    assert!(server.used(Category::Retransmission) <= total);
    drop((charge, subscription));
    assert_eq!((one.bytes(), two.bytes(), server.bytes()), (0, 0, 0));
}

#[test]
fn a_charged_value_is_measured_with_its_heap() {
    let server = server(1 << 20);
    let text = String::with_capacity(1_000);
    let bytes = Variant::from(ByteString::from(vec![0; 5_000]));
    assert!(Charged::new(&server, Category::Sessions, vec![0u8; 1 << 20]).is_err());
    let mut kept = Charged::new(&server, Category::Sessions, bytes).unwrap();
    assert!((5_000..5_100).contains(&server.used(Category::Sessions)));
    kept.replace(Variant::from(1.0)).unwrap();
    assert!(server.used(Category::Sessions) < 100);
    assert!(kept.replace(Variant::from(vec![0.0; 1 << 20])).is_err());
    assert_eq!(*kept, Variant::from(1.0));
    kept.change(|value| *value = Variant::from(vec![1.0; 1_000]));
    assert!((8_000..8_200).contains(&server.used(Category::Sessions)));
    drop((text, kept));
    assert_eq!(server.bytes(), 0);
}

#[test]
fn addresses_share_an_account_while_it_is_in_use() {
    let server = server(1 << 20);
    let addresses = Addresses::new(Arc::clone(&server), 1_000);
    let v4 = |last| Some(IpAddr::from(Ipv4Addr::new(10, 0, 0, last)));
    let v6 = |last| Some(IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)));
    let held = addresses.account(v4(1));
    assert!(Arc::ptr_eq(&held, &addresses.account(v4(1))));
    assert!(!Arc::ptr_eq(&held, &addresses.account(v4(2))));
    let network = addresses.account(v6(1));
    assert!(Arc::ptr_eq(&network, &addresses.account(v6(2))));
    assert!(!Arc::ptr_eq(&addresses.account(None), &addresses.account(None)));
    for last in 0..=255 {
        for third in 0..10 {
            drop(addresses.account(Some(Ipv4Addr::new(10, 1, third, last).into())));
        }
    }
    assert!(Arc::ptr_eq(&held, &addresses.account(v4(1))));
}

#[derive(Debug, Clone)]
enum Step {
    Charge { to: usize, amount: usize, force: bool },
    Resize { at: usize, amount: usize, force: bool },
    Drop { at: usize },
    Move { from: usize, to: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4usize, 0..30_000usize, any::<bool>()).prop_map(|(to, amount, force)| Step::Charge {
            to,
            amount,
            force
        }),
        (0..20usize, 0..30_000usize, any::<bool>()).prop_map(|(at, amount, force)| Step::Resize {
            at,
            amount,
            force
        }),
        (0..20usize).prop_map(|at| Step::Drop { at }),
        (0..4usize, 0..2usize).prop_map(|(from, to)| Step::Move { from, to }),
    ]
}

proptest! {
    #[test]
    fn sums_are_right_after_any_sequence_of_steps(steps in prop::collection::vec(step(), 0..200)) {
        let server = server(100_000);
        let addresses = [(); 2].map(|()| server.child(Level::Address, 80_000));
        let sessions = [0, 0, 1, 1].map(|at: usize| addresses[at].child(Level::Session, 60_000));
        let mut charges: Vec<(usize, Charge)> = Vec::new();
        for step in steps {
            match step {
                Step::Charge { to, amount, force: true } => {
                    charges.push((to, sessions[to].charge_anyway(Category::Sessions, amount)));
                }
                Step::Charge { to, amount, force: false } => {
                    if let Ok(charge) = sessions[to].charge(Category::Sessions, amount) {
                        charges.push((to, charge));
                    }
                }
                Step::Resize { at, amount, force } => {
                    if let Some((_, charge)) = charges.get_mut(at) {
                        if force {
                            charge.resize_anyway(amount);
                        } else {
                            let _ = charge.resize(amount);
                        }
                    }
                }
                Step::Drop { at } => {
                    if at < charges.len() {
                        drop(charges.remove(at));
                    }
                }
                Step::Move { from, to } => sessions[from].move_to(&addresses[to]),
            }
            let mut sum = 0;
            for (at, session) in sessions.iter().enumerate() {
                let own: usize = charges.iter().filter(|(to, _)| *to == at).map(|(_, it)| it.amount()).sum();
                prop_assert_eq!(session.used(Category::Sessions), own);
                sum += own;
            }
            let known = server.used(Category::Sessions);
            prop_assert!(sum <= known && known <= sum + 4 * 2 * 4096, "{} of {}", sum, known);
            let both: usize = addresses.iter().map(|address| address.used(Category::Sessions)).sum();
            prop_assert_eq!(both, known);
        }
        drop((charges, sessions));
        prop_assert_eq!(server.bytes(), 0);
    }
}

//! A full store blocks nothing, and data waiting for it is bounded and charged.

use super::*;

#[test]
fn a_full_disk_blocks_nothing() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    next(&mut client, &mut first);
    *store.is_full.lock().unwrap() = true;
    for value in [1.0, 2.0, 3.0] {
        first.set(value);
        let message = next(&mut client, &mut first).notification_message;
        assert_eq!(of_item(&message, 5), [(value, false)]);
    }
    first.set(4.0);
    *store.is_full.lock().unwrap() = false;
    first.pass_and_write(1_500);
    drop(first);
    let mut second = server(&store);
    let mut client = second.session();
    let result = transfer(&mut client, &mut second, id);
    assert_eq!(result.available_sequence_numbers.len(), 4);
    let message = next(&mut client, &mut second).notification_message;
    assert_eq!(of_item(&message, 5), [(4.0, false), (0.0, true)]);
}

#[test]
fn data_waiting_for_a_full_disk_does_not_grow() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 10, 5);
    next(&mut client, &mut first);
    *store.is_full.lock().unwrap() = true;
    first.set(1.0);
    first.pass_and_write(300);
    let asked = *store.asked.lock().unwrap();
    for round in 0..10 {
        for value in 0..10 {
            first.set(f64::from(100 * round + value));
            first.pass_and_write(110);
        }
    }
    assert!(*store.asked.lock().unwrap() <= asked, "{} > {asked}", store.asked.lock().unwrap());
    *store.is_full.lock().unwrap() = false;
    first.pass_and_write(1_500);
    drop(first);
    let mut second = server(&store);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let values = of_item(&next(&mut client, &mut second).notification_message, 5);
    // The newest ten, the first with the Overflow bit; then the present value.
    let newest: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    assert_eq!(newest[newest.len() - 2..], [909.0, 0.0], "{values:?}");
    assert!(values[0].1, "{values:?}");
}

#[test]
fn unwritten_changes_move_to_another_shard() {
    let store = Arc::new(Memory::default());
    let mut pair = Pair::with(|config| {
        config.durable = Some(DurableConfig::new(Arc::clone(&store) as Arc<dyn DurableStore>));
    });
    let pass_and_write = |pair: &mut Pair, ms: u64| {
        for _ in 0..ms.div_ceil(10) {
            for server in &mut pair.shards {
                server.pass_and_write(10);
            }
            pair.deliver();
        }
    };
    let mut client = pair.shards[0].session();
    let id = durable(&mut client, &mut pair.shards[0]);
    add_item(&mut client, &mut pair.shards[0], id, 100, 5);
    assert_eq!(of_item(&next(&mut client, &mut pair.shards[0]).notification_message, 5), [(1.0, false)]);
    // Another one stays, with its own changes.
    let other = durable(&mut client, &mut pair.shards[0]);
    add_item(&mut client, &mut pair.shards[0], other, 100, 6);
    pass_and_write(&mut pair, 300);
    *store.is_full.lock().unwrap() = true;
    pair.set(2.0);
    pass_and_write(&mut pair, 300);
    let now = pair.shards[0].now;
    pair.shards[0].shard.closed(client.connection, now);
    let mut client = pair.shards[1].session();
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [StatusCode::GOOD]);
    // The new shard first writes the old one's unwritten changes.
    *store.is_full.lock().unwrap() = false;
    pair.set(3.0);
    pair.shards[1].pass_and_write(2_000);
    let written = store.records(id).unwrap().len();
    pair.shards[0].pass_and_write(2_000);
    assert_eq!(store.records(id).unwrap().len(), written, "the old shard has nothing of it left");
    drop(pair);
    let mut second = server(&store);
    let mut client = second.session();
    for (id, handle) in [(id, 5), (other, 6)] {
        assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
        let values = of_item(&next(&mut client, &mut second).notification_message, handle);
        let expected = if handle == 5 { vec![] } else { vec![(1.0, false)] };
        let rest = [(2.0, false), (3.0, false), (0.0, true)];
        assert_eq!(values, [expected, rest.to_vec()].concat(), "{handle}");
    }
}

#[test]
fn unwritten_changes_are_charged_on_every_shard() {
    let store = Arc::new(Memory::default());
    let mut pair = Pair::with(|config| {
        config.durable = Some(DurableConfig::new(Arc::clone(&store) as Arc<dyn DurableStore>));
    });
    let mut client = pair.shards[0].session();
    let id = durable(&mut client, &mut pair.shards[0]);
    let item = add_item(&mut client, &mut pair.shards[0], id, 10, 5);
    pair.shards[0].pass_and_write(300);
    *store.is_full.lock().unwrap() = true;
    let before = pair.shards[0].used(Category::Requests);
    for mode in [MonitoringMode::SAMPLING, MonitoringMode::REPORTING] {
        let request = SetMonitoringModeRequest {
            request_header: client.header(),
            subscription_id: id,
            monitoring_mode: mode,
            monitored_item_ids: vec![item; 5_000],
        };
        client.call(&mut pair.shards[0], &request).unwrap();
    }
    pair.shards[0].pass_and_write(300);
    let kept = pair.shards[0].used(Category::Requests) - before;
    assert!(kept > 20_000, "{kept}");
    for at in [1, 0, 1] {
        let now = pair.shards[1 - at].now;
        pair.shards[1 - at].shard.closed(client.connection, now);
        client = pair.shards[at].session();
        assert_eq!(pair.transfer(&mut client, at, &[id]), [StatusCode::GOOD]);
        for _ in 0..50 {
            pair.shards[at].pass_and_write(10);
            pair.deliver();
        }
        let now = pair.shards[at].used(Category::Requests) - before;
        // Buffers without free capacity move.
        assert!(now >= kept / 10 * 9, "shard {at}: {now} of {kept} bytes");
    }
}

#[test]
fn a_full_disk_bounds_the_changes_of_clients() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    let item = add_item(&mut client, &mut server, id, 10, 5);
    next(&mut client, &mut server);
    *store.is_full.lock().unwrap() = true;
    server.set(1.0);
    server.pass_and_write(300);
    let mut set_mode = |server: &mut Server, mode: MonitoringMode, count: usize| {
        let request = SetMonitoringModeRequest {
            request_header: client.header(),
            subscription_id: id,
            monitoring_mode: mode,
            monitored_item_ids: vec![item; count],
        };
        client.call(server, &request).unwrap().results
    };
    // Every change waits for the disk, up to a limit.
    let before = server.used(Category::Requests);
    let mut refused = 0;
    for round in 0..60 {
        let mode = if round % 2 == 0 { MonitoringMode::SAMPLING } else { MonitoringMode::REPORTING };
        let results = set_mode(&mut server, mode, 5_000);
        refused += results.iter().filter(|status| **status == StatusCode::BAD_OUT_OF_MEMORY).count();
    }
    let kept = server.used(Category::Requests) - before;
    assert!(refused > 100_000 && kept < 3 << 20, "{refused} refused, {kept} bytes kept");
    // Other items can be deleted: the resulting log growth is bounded by their number.
    *store.is_full.lock().unwrap() = false;
    server.pass_and_write(2_000);
    assert_eq!(set_mode(&mut server, MonitoringMode::REPORTING, 1), [StatusCode::GOOD]);
    // Subscriptions created and deleted in the meantime leave nothing.
    let request = DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![id] };
    assert_eq!(client.call(&mut server, &request).unwrap().results, [StatusCode::GOOD]);
    server.pass_and_write(2_000);
    assert!(store.logs.lock().unwrap().is_empty());
}

//! The queue of credential checks.
//!
//! A password check deliberately takes tens of milliseconds of CPU, and any client can request one. So only a few run
//! at a time, which leaves the other worker threads for handshakes and signatures. Clients take turns, however many
//! checks each has queued, and clients that have logged on before come first. When the queue is full, the client with
//! most checks loses one.

use crate::effect::Task;
use crate::session::lockout::Client;
use crate::slab::Key;
use std::collections::{BTreeMap, VecDeque};

/// The [`part`](crate::Token::part) of a check's token: there are no other parts.
pub(crate) const PART: u32 = u32::MAX;

/// A request and its check.
type Check = (Key, Task);

/// Whether the queue can take one more check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capacity {
    Free,
    /// If this request is removed.
    InsteadOf(Key),
    None,
}

/// Waiting checks, and the number of running ones.
#[derive(Debug)]
pub(crate) struct CredentialQueue {
    /// Checks of users who have logged on before.
    familiar: VecDeque<Check>,
    /// Checks of all others. No queue in it is empty.
    strangers: BTreeMap<Client, VecDeque<Check>>,
    /// The order of turns: each client in `strangers` once.
    turns: VecDeque<Client>,
    /// Number of checks in `strangers`.
    len: usize,
    under_way: usize,
    under_way_max: usize,
    waiting_max: usize,
}

impl CredentialQueue {
    pub(crate) fn new(under_way_max: usize, waiting_max: usize) -> Self {
        Self {
            familiar: VecDeque::new(),
            strangers: BTreeMap::new(),
            turns: VecDeque::new(),
            len: 0,
            under_way: 0,
            under_way_max,
            waiting_max,
        }
    }

    /// Finds a place in the queue.
    pub(crate) fn capacity_for(&self, client: Client, is_familiar: bool) -> Capacity {
        if is_familiar {
            return if self.familiar.len() < self.waiting_max { Capacity::Free } else { Capacity::None };
        }
        if self.len < self.waiting_max {
            return Capacity::Free;
        }
        let own = self.strangers.get(&client).map_or(0, VecDeque::len);
        let longest = self.strangers.values().max_by_key(|queue| queue.len());
        match longest.filter(|queue| queue.len() > own + 1).and_then(VecDeque::back) {
            Some((key, _)) => Capacity::InsteadOf(*key),
            None => Capacity::None,
        }
    }

    /// Adds a check.
    pub(crate) fn put(&mut self, key: Key, job: Task, client: Client, is_familiar: bool) {
        if is_familiar {
            return self.familiar.push_back((key, job));
        }
        let queue = self.strangers.entry(client).or_default();
        if queue.is_empty() {
            self.turns.push_back(client);
        }
        queue.push_back((key, job));
        self.len += 1;
    }

    /// The next check to run, if one may. Call [`Self::ended`] when it is done.
    pub(crate) fn next(&mut self) -> Option<Check> {
        if self.under_way >= self.under_way_max {
            return None;
        }
        let check = self.familiar.pop_front().or_else(|| self.next_stranger())?;
        self.under_way += 1;
        Some(check)
    }

    fn next_stranger(&mut self) -> Option<Check> {
        let client = self.turns.pop_front()?;
        let queue = self.strangers.get_mut(&client)?;
        let check = queue.pop_front()?;
        self.len -= 1;
        if queue.is_empty() {
            self.strangers.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        Some(check)
    }

    /// A check has ended.
    pub(crate) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Removes a request. Returns true if its check was still waiting, so that the credential was not checked.
    pub(crate) fn leave(&mut self, key: Key) -> bool {
        let find = |queue: &VecDeque<Check>| queue.iter().position(|(waiting, _)| *waiting == key);
        if let Some(at) = find(&self.familiar) {
            return self.familiar.remove(at).is_some();
        }
        let found = self.strangers.iter_mut().find_map(|(client, queue)| {
            let at = find(queue)?;
            queue.remove(at)?;
            Some((*client, queue.is_empty()))
        });
        let Some((client, is_empty)) = found else { return false };
        self.len -= 1;
        if is_empty {
            self.strangers.remove(&client);
            self.turns.retain(|other| *other != client);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::JobResult;
    use crate::job_kind::JobKind;
    use core::net::IpAddr;
    use proptest::prelude::*;

    fn client(number: u8) -> Client {
        Client::Address(IpAddr::from([10, 0, 0, number]).into())
    }

    fn key(index: u32) -> Key {
        Key { index, generation: 0 }
    }

    fn put(queue: &mut CredentialQueue, index: u32, from: u8, is_familiar: bool) {
        let check = Task::blocking(JobKind::CheckCredential, || JobResult::Failed);
        queue.put(key(index), check, client(from), is_familiar);
    }

    fn next(queue: &mut CredentialQueue) -> Option<u32> {
        queue.next().map(|(key, _)| key.index)
    }

    #[test]
    fn clients_take_turns_and_few_run_at_a_time() {
        let mut queue = CredentialQueue::new(2, 10);
        for index in 0..6 {
            put(&mut queue, index, 1, false);
        }
        put(&mut queue, 10, 2, false);
        put(&mut queue, 20, 3, false);
        let mut order = Vec::new();
        while let Some(index) = next(&mut queue) {
            order.push(index);
        }
        assert_eq!(order, [0, 10], "two at a time");
        for _ in 0..8 {
            queue.ended();
            order.extend(next(&mut queue));
        }
        assert_eq!(order, [0, 10, 20, 1, 2, 3, 4, 5]);
        assert!(queue.strangers.is_empty() && queue.turns.is_empty() && queue.len == 0);
    }

    #[test]
    fn users_with_an_earlier_login_come_first() {
        let mut queue = CredentialQueue::new(1, 3);
        put(&mut queue, 0, 1, false);
        put(&mut queue, 1, 1, false);
        put(&mut queue, 2, 1, false);
        assert_eq!(
            queue.capacity_for(client(1), true),
            Capacity::Free,
            "other clients do not use their places"
        );
        put(&mut queue, 9, 1, true);
        assert_eq!(next(&mut queue), Some(9));
    }

    #[test]
    fn the_client_with_most_checks_loses_one() {
        let mut queue = CredentialQueue::new(1, 4);
        for index in 0..3 {
            put(&mut queue, index, 1, false);
        }
        put(&mut queue, 3, 2, false);
        assert_eq!(queue.capacity_for(client(1), false), Capacity::None, "it has most itself");
        assert_eq!(queue.capacity_for(client(2), false), Capacity::InsteadOf(key(2)));
        assert!(queue.leave(key(2)));
        put(&mut queue, 4, 3, false);
        // No client has two checks more than the next one would have, so the queue is full.
        assert_eq!(queue.capacity_for(client(2), false), Capacity::None);
        assert_eq!(queue.capacity_for(client(4), false), Capacity::InsteadOf(key(1)));
        assert!(!queue.leave(key(2)), "it has already been removed");
    }

    proptest! {
        #[test]
        fn counts_match_the_queues(steps in prop::collection::vec((0u8..4, 0u8..5, any::<bool>()), 0..200)) {
            let mut queue = CredentialQueue::new(2, 8);
            let (mut there, mut under_way) = (std::collections::BTreeSet::new(), 0usize);
            for (index, (what, from, is_familiar)) in (0u32..).zip(steps) {
                match what {
                    0 | 1 => {
                        match queue.capacity_for(client(from), is_familiar) {
                            Capacity::None => continue,
                            Capacity::Free => {}
                            Capacity::InsteadOf(other) => {
                                prop_assert!(queue.leave(other));
                                prop_assert!(there.remove(&other.index));
                            }
                        }
                        put(&mut queue, index, from, is_familiar);
                        there.insert(index);
                    }
                    2 => match next(&mut queue) {
                        Some(index) => {
                            prop_assert!(there.remove(&index));
                            under_way += 1;
                        }
                        None => prop_assert!(under_way == 2 || there.is_empty()),
                    },
                    _ => {
                        queue.ended();
                        under_way = under_way.saturating_sub(1);
                        if let Some(index) = there.pop_first() {
                            prop_assert!(queue.leave(key(index)));
                        }
                    }
                }
                let waiting: usize = queue.strangers.values().map(VecDeque::len).sum();
                prop_assert_eq!(queue.len, waiting);
                prop_assert_eq!(there.len(), waiting + queue.familiar.len());
                prop_assert_eq!(queue.turns.len(), queue.strangers.len());
                prop_assert!(under_way <= 2 && waiting <= 8 && queue.familiar.len() <= 8);
            }
        }
    }
}

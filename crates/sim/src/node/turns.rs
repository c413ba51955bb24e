//! When a process works: immediately, or in turns of a thread on its machine, each of which costs processor time.

use super::{Doing, Node, NodeHost};
use crate::fabric::Fabric;
use crate::host::Costs;
use crate::host::costs::DriverCosts;
use crate::ids::HostId;
use crate::trace::Track;
use crate::violation::Broken;
use core::time::Duration;
use std::sync::Arc;

/// Number of turns at one instant after which a process is reported as never idle.
const TURNS_MAX: usize = 5_000_000;

impl NodeHost {
    /// Does everything that is pending at this instant, or ensures that the thread will do it.
    pub(crate) fn settle(&mut self, fabric: &mut Fabric) {
        if self.place.is_some() {
            return self.wake(fabric);
        }
        for _ in 0..TURNS_MAX {
            self.deliver(fabric);
            self.connect_and_close(fabric);
            if let Some(bytes) = self.poll_datagram() {
                fabric.send_datagram(self.id, &bytes);
            } else if let Some(link) = self.next_write() {
                self.write(link, fabric);
            } else if let Some(input) = self.next_input() {
                self.apply(input, fabric);
            } else if self.is_due(fabric.queue.now()) {
                self.handle_timeout(fabric);
            } else if !self.is_delivering() {
                return self.arm(fabric);
            }
        }
        let reason = "a publisher, subscriber, broker or certificate authority";
        fabric.broken(Broken::Restless { host: HostId::Node(self.id), reason });
    }

    fn driver(&self, costs: &Costs) -> DriverCosts {
        match &self.node {
            Some(Node::Subscriber(_) | Node::Asker(_)) => costs.client,
            _ => costs.server,
        }
    }

    fn wake(&mut self, fabric: &mut Fabric) {
        let Some(machine) = self.place else { return };
        let has_work = self.has_input() || self.is_due(fabric.queue.now());
        let Some(thread) = self.thread.filter(|_| has_work && !self.is_awake) else {
            if !self.is_awake {
                self.arm(fabric);
            }
            return;
        };
        let Some((machine, queue)) = fabric.machine_and_queue(machine) else { return };
        let driver = self.driver(&Arc::clone(&machine.costs));
        self.is_awake = true;
        let cost = machine.noisy(driver.wake + driver.turn);
        machine.start(thread, cost, driver.cold(), queue);
        fabric.trace_begin(Track::Node(self.id), "turn");
        fabric.trace_begin(Track::Node(self.id), "wake");
    }

    /// The thread has finished its work. Carries out the results and begins the next step: returns its cost and name,
    /// or `None` if there is nothing to do.
    pub(crate) fn step(&mut self, incarnation: u32, fabric: &mut Fabric) -> Option<(Duration, &'static str)> {
        if incarnation != self.incarnation {
            return None;
        }
        let machine = self.place?;
        let costs = Arc::clone(&fabric.machine(machine)?.costs);
        let driver = self.driver(&costs);
        match self.doing.take() {
            Some(Doing::Datagram(bytes)) => fabric.send_datagram(self.id, &bytes),
            Some(Doing::Write(link)) => self.write(link, fabric),
            None => {}
        }
        self.deliver(fabric);
        self.connect_and_close(fabric);
        // The result of a write.
        let mut nanos = self.take_cost(&costs);
        let name = if let Some(bytes) = self.poll_datagram() {
            self.doing = Some(Doing::Datagram(bytes));
            nanos += driver.send;
            "send"
        } else if let Some(link) = self.next_write() {
            self.doing = Some(Doing::Write(link));
            nanos += driver.send;
            "send"
        } else if let Some(input) = self.next_input() {
            if self.apply(input, fabric) {
                nanos += driver.receive;
            }
            nanos += self.take_cost(&costs);
            "receive"
        } else if self.is_due(fabric.queue.now()) {
            self.handle_timeout(fabric);
            nanos += driver.timer + self.take_cost(&costs);
            "deadline"
        } else if nanos > 0.0 {
            "rest"
        } else {
            self.is_awake = false;
            self.arm(fabric);
            return None;
        };
        Some((fabric.machine(machine)?.noisy(nanos), name))
    }
}

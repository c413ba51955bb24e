//! A batch as a Program (Part 10): clients start, suspend, resume, halt and reset it. It takes one minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use taktwerk::program::{Program, State, Transition};
use taktwerk::{BuildError, Node, Unit, UtcTime, Variable};

/// Duration of a batch, in seconds.
const SECONDS: f64 = 60.0;

/// The batch and its variables.
pub(super) struct Batch {
    program: Program,
    /// Set when the batch is restarted.
    is_new: Arc<AtomicBool>,
    done: f64,
    count: u32,
    progress: Variable<f64>,
    batches: Variable<u32>,
}

impl Batch {
    /// Adds the batch.
    pub(super) fn add(plant: &Node) -> Result<Self, BuildError> {
        let is_new = Arc::new(AtomicBool::new(false));
        let started = Arc::clone(&is_new);
        let program = plant.program("Batch", move |_, transition| {
            if transition == Transition::ReadyToRunning {
                started.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        let results = plant.object("BatchResults").add()?;
        Ok(Self {
            program,
            is_new,
            done: 0.0,
            count: 0,
            progress: results.variable("Progress", 0.0).range(0.0..=100.0).units(Unit::PERCENT).add()?,
            batches: results.variable("Batches", 0u32).units(Unit::PIECE).add()?,
        })
    }

    /// Advances by one second.
    pub(super) fn second(&mut self, now: UtcTime) {
        if self.program.state() != State::Running {
            return;
        }
        if self.is_new.swap(false, Ordering::Relaxed) {
            self.done = 0.0;
        }
        self.done = (self.done + 1.0).min(SECONDS);
        self.progress.set_at(100.0 * self.done / SECONDS, now);
        // A client may have halted it since the check.
        if self.done >= SECONDS && self.program.finish().is_ok() {
            self.count += 1;
            self.batches.set_at(self.count, now);
        }
    }
}

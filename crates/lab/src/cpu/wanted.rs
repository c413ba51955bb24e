//! The CPU conditions requested for a measurement. Sets all or none, and undoes them together.

use super::isolation::{Isolation, Kind};
use super::{Class, Governor, NotPermitted};
use crate::pin::CpuList;

/// The requested conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The CPUs of the program.
    pub cpus: CpuList,
    /// Whether all other programs must leave these CPUs.
    pub isolate: bool,
    /// Scheduling class; inherited if `None`.
    pub class: Option<Class>,
    /// Frequency governor; unchanged if `None`.
    pub governor: Option<String>,
}

/// Conditions that are set until this is dropped.
#[derive(Debug)]
pub struct Set {
    wanted: Wanted,
    isolation: Option<Isolation>,
    _governor: Option<Governor>,
}

impl Wanted {
    /// Only CPU affinity.
    #[must_use]
    pub fn pinned(cpus: CpuList) -> Self {
        Self { cpus, isolate: false, class: None, governor: None }
    }

    /// Whether more than CPU affinity is requested.
    #[must_use]
    pub fn is_special(&self) -> bool {
        self.isolate || self.class.is_some() || self.governor.is_some()
    }

    /// Sets the conditions of the machine. Call [`Set::admit`] for the program.
    ///
    /// # Errors
    /// If the machine or the user cannot have them; the message says what is missing. In this case nothing stays
    /// changed.
    pub fn set(self) -> Result<Set, NotPermitted> {
        let governor = self.governor.as_deref().map(|name| Governor::set(name, &self.cpus)).transpose()?;
        let isolation = self.isolate.then(|| Isolation::of(&self.cpus)).transpose()?;
        Ok(Set { wanted: self, isolation, _governor: governor })
    }
}

impl Set {
    /// CPUs to start the program on. `None` if a control group will confine it: until the program is in that group, it
    /// may not run on the isolated CPUs.
    #[must_use]
    pub fn start_on(&self) -> Option<&CpuList> {
        let is_confined = self.isolation.as_ref().is_some_and(|isolation| isolation.kind() != Kind::Boot);
        (!is_confined).then_some(&self.wanted.cpus)
    }

    /// Moves a program onto the isolated CPUs and sets its class.
    ///
    /// # Errors
    /// If the program has ended or this user lacks the right.
    pub fn admit(&self, pid: u32) -> Result<(), NotPermitted> {
        self.move_onto(pid)?;
        self.wanted.class.map_or(Ok(()), |class| class.apply(pid))
    }

    /// Moves a program onto the isolated CPUs.
    ///
    /// # Errors
    /// If the program has ended.
    pub fn move_onto(&self, pid: u32) -> Result<(), NotPermitted> {
        let Some(isolation) = &self.isolation else { return Ok(()) };
        isolation.admit(pid).map_err(|error| {
            NotPermitted(format!("the program cannot be moved onto CPU {}: {error}", self.wanted.cpus))
        })
    }

    /// Method of isolation, if any.
    #[must_use]
    pub fn isolation(&self) -> Option<Kind> {
        self.isolation.as_ref().map(Isolation::kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::observe;
    use crate::program::Program;
    use std::time::Duration;

    #[test]
    fn pinning_changes_only_the_cpus() {
        let first = CpuList::single(CpuList::allowed().cpus()[0]);
        let wanted = Wanted::pinned(first.clone());
        assert!(!wanted.is_special());
        let set = wanted.set().unwrap();
        assert_eq!((set.start_on(), set.isolation()), (Some(&first), None));
    }

    #[test]
    fn classes_are_set_or_refused_with_a_reason() {
        let first = CpuList::single(CpuList::allowed().cpus()[0]);
        let class = Class::Fifo(2);
        let wanted = Wanted { class: Some(class), ..Wanted::pinned(first.clone()) };
        assert!(wanted.is_special());
        let set = wanted.set().unwrap();
        let sleeper = Program::new("/bin/sh").args(["-c", "echo READY here; exec sleep 60"]).on(first);
        let running = sleeper.serve(Duration::from_secs(10)).unwrap();
        match set.admit(running.pid()) {
            Ok(()) => assert_eq!(observe(running.pid()).unwrap().class, class.to_string()),
            Err(refused) => assert!(refused.to_string().contains("measure without"), "{refused}"),
        }
    }

    #[test]
    fn unavailable_conditions_are_refused() {
        let all: CpuList =
            std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap();
        let everything = Wanted { isolate: true, ..Wanted::pinned(all) };
        assert!(everything.set().unwrap_err().to_string().contains("leave one"));
        let governor = Wanted { governor: Some("warp".into()), ..Wanted::pinned(CpuList::single(0)) };
        let refused = governor.set().unwrap_err().to_string();
        assert!(refused.contains("governor"), "{refused}");
    }
}

//! The CPU conditions that a measurement asks for: set all of them or none, and undo them together.

use super::isolation::{Isolation, Kind};
use super::{Class, Governor, NotPermitted};
use crate::pin::CpuList;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The CPUs of the program.
    pub cpus: CpuList,
    /// Whether everything else has to leave them.
    pub isolate: bool,
    /// Scheduling class; whatever it inherits without one.
    pub class: Option<Class>,
    /// Frequency governor; the machine's own without one.
    pub governor: Option<String>,
}

/// Conditions that stand, until this is dropped.
#[derive(Debug)]
pub struct Set {
    wanted: Wanted,
    isolation: Option<Isolation>,
    _governor: Option<Governor>,
}

impl Wanted {
    /// These CPUs, and nothing else.
    #[must_use]
    pub fn pinned(cpus: CpuList) -> Self {
        Self { cpus, isolate: false, class: None, governor: None }
    }

    /// Whether more is asked for than CPUs.
    #[must_use]
    pub fn is_special(&self) -> bool {
        self.isolate || self.class.is_some() || self.governor.is_some()
    }

    /// Sets what concerns the machine. The program comes in by [`Set::admit`].
    ///
    /// # Errors
    /// If this machine or this user cannot have it; the sentence says what is missing. Nothing stays changed then.
    pub fn set(self) -> Result<Set, NotPermitted> {
        let governor = self.governor.as_deref().map(|name| Governor::set(name, &self.cpus)).transpose()?;
        let isolation = self.isolate.then(|| Isolation::of(&self.cpus)).transpose()?;
        Ok(Set { wanted: self, isolation, _governor: governor })
    }
}

impl Set {
    /// The CPUs to start the program on. None where a control group confines it, which it enters afterwards: until then
    /// nobody may run there.
    #[must_use]
    pub fn start_on(&self) -> Option<&CpuList> {
        let is_confined = self.isolation.as_ref().is_some_and(|isolation| isolation.kind() != Kind::Boot);
        (!is_confined).then_some(&self.wanted.cpus)
    }

    /// Lets a program in: onto isolated CPUs, and into its class.
    ///
    /// # Errors
    /// If it has ended or this user may not.
    pub fn admit(&self, pid: u32) -> Result<(), NotPermitted> {
        if let Some(isolation) = &self.isolation {
            isolation.admit(pid).map_err(|error| {
                NotPermitted(format!("the program cannot be moved onto CPU {}: {error}", self.wanted.cpus))
            })?;
        }
        self.wanted.class.map_or(Ok(()), |class| class.apply(pid))
    }

    /// By what CPUs are isolated, if they are.
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
    fn pinned_only_changes_nothing_but_the_cpus() {
        let first = CpuList::single(CpuList::allowed().cpus()[0]);
        let wanted = Wanted::pinned(first.clone());
        assert!(!wanted.is_special());
        let set = wanted.set().unwrap();
        assert_eq!((set.start_on(), set.isolation()), (Some(&first), None));
    }

    #[test]
    fn a_class_is_the_programs_or_refused_with_a_sentence() {
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
    fn what_the_machine_does_not_have_is_refused() {
        let all: CpuList =
            std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap();
        let everything = Wanted { isolate: true, ..Wanted::pinned(all) };
        assert!(everything.set().unwrap_err().to_string().contains("leave one"));
        let governor = Wanted { governor: Some("warp".into()), ..Wanted::pinned(CpuList::single(0)) };
        let refused = governor.set().unwrap_err().to_string();
        assert!(refused.contains("governor"), "{refused}");
    }
}

//! The level of detail of model change events (Part 3 §9.32, §9.33).

/// Which events report model changes and semantic changes. NodeVersions and the SemanticsChanged bit do not depend on
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelChangeEvents {
    /// No events.
    Off,
    /// One BaseModelChangeEvent for each request or import, without details.
    Brief,
    /// GeneralModelChangeEvents and SemanticChangeEvents, which name the nodes. Many nodes are split over several
    /// events; if more than [`EVENTS_MAX`](Self::EVENTS_MAX) would be needed, one BaseModelChangeEvent replaces them.
    #[default]
    Full,
}

impl ModelChangeEvents {
    /// Maximum number of events for the changes of one request or import.
    pub const EVENTS_MAX: usize = 16;

    pub(crate) const fn to_bits(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Brief => 1,
            Self::Full => 2,
        }
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Off,
            1 => Self::Brief,
            _ => Self::Full,
        }
    }

    /// Whether `changes` are named individually, with `per_event` of them per event.
    pub(crate) fn names(self, changes: usize, per_event: usize) -> bool {
        self == Self::Full && changes <= Self::EVENTS_MAX * per_event
    }
}

#[cfg(test)]
mod tests {
    use super::ModelChangeEvents as Events;

    #[test]
    fn too_many_changes_are_not_named() {
        for events in [Events::Off, Events::Brief, Events::Full] {
            assert_eq!(Events::from_bits(events.to_bits()), events);
        }
        assert!(Events::Full.names(160, 10) && !Events::Full.names(161, 10) && !Events::Brief.names(1, 10));
    }
}

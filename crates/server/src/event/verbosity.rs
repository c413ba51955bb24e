//! How much the server tells of changes of the address space (Part 3 §9.32, §9.33).

/// What clients that monitor events hear of changed nodes and of values with another meaning. NodeVersions count and values
/// have the SemanticsChanged bit in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelChangeEvents {
    /// Nothing.
    Off,
    /// That something has changed: one BaseModelChangeEvent for each request or import.
    Brief,
    /// GeneralModelChangeEvents and SemanticChangeEvents, which name the nodes. Many nodes are told in several events; a
    /// BaseModelChangeEvent stands for more than [`EVENTS_MAX`](Self::EVENTS_MAX) of these.
    #[default]
    Full,
}

impl ModelChangeEvents {
    /// Events for the changes of one request or import.
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

    /// Whether so many changes are named, if one event names `per_event` of them.
    pub(crate) fn names(self, changes: usize, per_event: usize) -> bool {
        self == Self::Full && changes <= Self::EVENTS_MAX * per_event
    }
}

#[cfg(test)]
mod tests {
    use super::ModelChangeEvents as Events;

    #[test]
    fn what_is_too_much_is_not_named() {
        for events in [Events::Off, Events::Brief, Events::Full] {
            assert_eq!(Events::from_bits(events.to_bits()), events);
        }
        assert!(Events::Full.names(160, 10) && !Events::Full.names(161, 10) && !Events::Brief.names(1, 10));
    }
}

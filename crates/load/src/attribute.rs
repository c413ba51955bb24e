//! Attributes by name (Part 6 Annex A.1).

use crate::suggestion;
use std::fmt;
use std::str::FromStr;

/// A node's attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute(u32);

const NAMES: [&str; 27] = [
    "NodeId",
    "NodeClass",
    "BrowseName",
    "DisplayName",
    "Description",
    "WriteMask",
    "UserWriteMask",
    "IsAbstract",
    "Symmetric",
    "InverseName",
    "ContainsNoLoops",
    "EventNotifier",
    "Value",
    "DataType",
    "ValueRank",
    "ArrayDimensions",
    "AccessLevel",
    "UserAccessLevel",
    "MinimumSamplingInterval",
    "Historizing",
    "Executable",
    "UserExecutable",
    "DataTypeDefinition",
    "RolePermissions",
    "UserRolePermissions",
    "AccessRestrictions",
    "AccessLevelEx",
];

/// The text is not the name of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseAttributeError(String);

impl std::error::Error for ParseAttributeError {}

impl fmt::Display for ParseAttributeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meant = suggestion::question(&self.0, NAMES);
        write!(f, "unknown attribute {:?}{meant}; the attributes are {}", self.0, NAMES.join(", "))
    }
}

impl Attribute {
    /// NodeClass.
    pub const NODE_CLASS: Self = Self(2);
    /// BrowseName.
    pub const BROWSE_NAME: Self = Self(3);
    /// Value.
    pub const VALUE: Self = Self(13);
    /// DataType.
    pub const DATA_TYPE: Self = Self(14);
    /// ValueRank.
    pub const VALUE_RANK: Self = Self(15);

    /// All attributes.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..).zip(NAMES).map(|(id, _)| Self(id))
    }

    /// The number on the wire.
    pub const fn id(self) -> u32 {
        self.0
    }

    /// The name in the specification.
    pub fn name(self) -> &'static str {
        NAMES.get(self.0 as usize - 1).copied().unwrap_or("")
    }
}

impl FromStr for Attribute {
    type Err = ParseAttributeError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        (1..)
            .zip(NAMES)
            .find(|(id, name)| name.eq_ignore_ascii_case(text) || text.parse() == Ok(*id))
            .map(|(id, _)| Self(id))
            .ok_or_else(|| ParseAttributeError(text.to_owned()))
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!("value".parse(), Ok(Attribute::VALUE));
        assert_eq!("13".parse(), Ok(Attribute::VALUE));
        assert_eq!("AccessLevelEx".parse::<Attribute>().unwrap().id(), 27);
        assert_eq!(Attribute::DATA_TYPE.name(), "DataType");
        assert_eq!(
            (Attribute::VALUE_RANK.name(), Attribute::BROWSE_NAME.name()),
            ("ValueRank", "BrowseName")
        );
        assert!("28".parse::<Attribute>().is_err() && "Wert".parse::<Attribute>().is_err());
        assert_eq!(Attribute::all().count(), 27);
        let error = "Valeu".parse::<Attribute>().unwrap_err().to_string();
        assert!(error.contains("did you mean Value?"), "{error}");
    }
}

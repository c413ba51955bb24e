//! MessageSecurityMode (Part 4 §7.20).

use core::fmt;
use core::str::FromStr;

/// How the messages of a channel are protected. The specification's value 0 (Invalid) cannot be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum MessageSecurityMode {
    /// Neither signed nor encrypted.
    #[default]
    None = 1,
    /// Signed, but readable by anyone.
    Sign = 2,
    /// Signed and encrypted.
    SignAndEncrypt = 3,
}

impl MessageSecurityMode {
    /// From the encoded number; `None` for 0 (Invalid) and unknown numbers.
    #[must_use]
    pub const fn from_number(number: i32) -> Option<Self> {
        match number {
            1 => Some(Self::None),
            2 => Some(Self::Sign),
            3 => Some(Self::SignAndEncrypt),
            _ => None,
        }
    }

    /// The encoded number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The specification's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Sign => "Sign",
            Self::SignAndEncrypt => "SignAndEncrypt",
        }
    }
}

impl fmt::Display for MessageSecurityMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not a message security mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a message security mode (None, Sign, SignAndEncrypt)")]
pub struct ParseModeError;

impl FromStr for MessageSecurityMode {
    type Err = ParseModeError;
    fn from_str(text: &str) -> Result<Self, ParseModeError> {
        let plain: String = text.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
        [Self::None, Self::Sign, Self::SignAndEncrypt]
            .into_iter()
            .find(|mode| mode.name().eq_ignore_ascii_case(&plain))
            .ok_or(ParseModeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for mode in
            [MessageSecurityMode::None, MessageSecurityMode::Sign, MessageSecurityMode::SignAndEncrypt]
        {
            assert_eq!(MessageSecurityMode::from_number(mode.number()), Some(mode));
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("sign-and-encrypt".parse(), Ok(MessageSecurityMode::SignAndEncrypt));
        assert_eq!(MessageSecurityMode::from_number(0), None);
        assert!("both".parse::<MessageSecurityMode>().is_err());
    }
}

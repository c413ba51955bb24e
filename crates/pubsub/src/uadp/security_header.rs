//! The SecurityHeader of a UADP NetworkMessage (Part 14 §7.2.4.4.2).

use taktwerk_types::{DecodeError, Decoder, Encode};

const SIGNED: u8 = 0x01;
const ENCRYPTED: u8 = 0x02;
const FOOTER: u8 = 0x04;
const FORCE_KEY_RESET: u8 = 0x08;
const RESERVED: u8 = 0xf0;

/// Protection of a NetworkMessage, ordered by strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SecurityMode {
    /// None.
    #[default]
    None,
    /// Signed.
    Sign,
    /// Signed and encrypted.
    SignAndEncrypt,
}

/// Security mode and key of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SecurityHeader<'a> {
    /// The security mode.
    pub mode: SecurityMode,
    /// All keys will soon be invalidated: fetch new ones.
    pub force_key_reset: bool,
    /// Id of the key in the SecurityGroup.
    pub token_id: u32,
    /// The MessageNonce: 8 bytes in counter mode.
    pub nonce: &'a [u8],
    /// Length of the SecurityFooter before the signature; `None` without one.
    pub footer_len: Option<u16>,
}

impl SecurityHeader<'_> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mode = match self.mode {
            SecurityMode::None => 0,
            SecurityMode::Sign => SIGNED,
            SecurityMode::SignAndEncrypt => SIGNED | ENCRYPTED,
        };
        let footer = if self.footer_len.is_some() { FOOTER } else { 0 };
        out.push(mode | footer | if self.force_key_reset { FORCE_KEY_RESET } else { 0 });
        self.token_id.encode(out);
        out.push(u8::try_from(self.nonce.len()).unwrap_or(u8::MAX));
        out.extend(self.nonce.iter().take(usize::from(u8::MAX)));
        if let Some(len) = self.footer_len {
            len.encode(out);
        }
    }
}

impl<'a> SecurityHeader<'a> {
    pub(crate) fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let flags = decoder.byte()?;
        if flags & RESERVED != 0 {
            return Err(DecodeError::Invalid("SecurityFlags: reserved bits"));
        }
        let mode = match flags & (SIGNED | ENCRYPTED) {
            0 => SecurityMode::None,
            SIGNED => SecurityMode::Sign,
            ENCRYPTED => return Err(DecodeError::Invalid("SecurityFlags: encrypted but not signed")),
            _ => SecurityMode::SignAndEncrypt,
        };
        let token_id = u32::from_le_bytes(decoder.take_array()?);
        let nonce_len = decoder.byte()?;
        let nonce = decoder.take(usize::from(nonce_len))?;
        let footer_len =
            if flags & FOOTER != 0 { Some(u16::from_le_bytes(decoder.take_array()?)) } else { None };
        Ok(Self { mode, force_key_reset: flags & FORCE_KEY_RESET != 0, token_id, nonce, footer_len })
    }
}

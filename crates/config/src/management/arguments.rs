//! Arguments of method calls. The server has already checked their number and types.

use taktwerk_types::{ExtensionObject, StatusCode, Structure, UaString, Variant};

const INVALID: StatusCode = StatusCode::BAD_INVALID_ARGUMENT;

/// The remaining arguments of a call.
pub(super) struct Inputs(std::vec::IntoIter<Variant>);

impl Inputs {
    pub(super) fn new(inputs: Vec<Variant>) -> Self {
        Self(inputs.into_iter())
    }

    pub(super) fn take<T: TryFrom<Variant>>(&mut self) -> Result<T, StatusCode> {
        self.0.next().and_then(|value| value.try_into().ok()).ok_or(INVALID)
    }

    /// A string; null counts as empty.
    pub(super) fn text(&mut self) -> Result<String, StatusCode> {
        match self.0.next() {
            None | Some(Variant::Empty) => Ok(String::new()),
            Some(value) => {
                UaString::try_from(value).map(|text| text.as_str().to_owned()).map_err(|_| INVALID)
            }
        }
    }

    pub(super) fn structure<T: Structure>(&mut self) -> Result<T, StatusCode> {
        let object: ExtensionObject = self.take()?;
        if !object.is::<T>() {
            return Err(StatusCode::BAD_TYPE_MISMATCH);
        }
        object.decode().map_err(|_| INVALID)
    }
}

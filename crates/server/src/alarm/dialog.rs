//! Dialogs: conditions that ask operators a question (Part 9 §5.6).

use taktwerk_types::{LocalizedText, StatusCode};

/// Maximum number of responses.
pub const RESPONSES_MAX: usize = 32;

/// The question of a dialog.
#[derive(Debug, Clone, PartialEq)]
pub struct Dialog {
    /// DialogState: whether it waits for a response.
    pub is_active: bool,
    /// Prompt.
    pub prompt: LocalizedText,
    /// ResponseOptionSet.
    pub responses: Vec<LocalizedText>,
    /// DefaultResponse: an index into the responses.
    pub default_response: i32,
    /// OkResponse.
    pub ok_response: i32,
    /// CancelResponse.
    pub cancel_response: i32,
    /// LastResponse.
    pub last_response: i32,
}

impl Dialog {
    /// A question with its responses. The first is the default and means OK; the last means Cancel.
    #[must_use]
    pub fn new(prompt: impl Into<LocalizedText>, responses: &[&str]) -> Self {
        let responses: Vec<LocalizedText> =
            responses.iter().take(RESPONSES_MAX).map(|text| LocalizedText::from(*text)).collect();
        let last = i32::try_from(responses.len().saturating_sub(1)).unwrap_or(0);
        Self {
            is_active: false,
            prompt: prompt.into(),
            responses,
            default_response: 0,
            ok_response: 0,
            cancel_response: last,
            last_response: -1,
        }
    }

    /// Respond (§5.6.3).
    ///
    /// # Errors
    /// Bad_DialogNotActive; Bad_DialogResponseInvalid if the response does not exist.
    pub fn respond(&mut self, response: i32) -> Result<(), StatusCode> {
        if !self.is_active {
            return Err(StatusCode::BAD_DIALOG_NOT_ACTIVE);
        }
        let is_one = usize::try_from(response).is_ok_and(|at| at < self.responses.len());
        if !is_one {
            return Err(StatusCode::BAD_DIALOG_RESPONSE_INVALID);
        }
        (self.is_active, self.last_response) = (false, response);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_active_dialog_accepts_one_of_its_responses() {
        let mut dialog = Dialog::new("Open the valve?", &["Yes", "No"]);
        assert_eq!(dialog.respond(0), Err(StatusCode::BAD_DIALOG_NOT_ACTIVE));
        dialog.is_active = true;
        for response in [-1, 2, i32::MAX, i32::MIN] {
            assert_eq!(dialog.respond(response), Err(StatusCode::BAD_DIALOG_RESPONSE_INVALID));
        }
        assert_eq!(dialog.respond(1), Ok(()));
        assert_eq!((dialog.is_active, dialog.last_response), (false, 1));
        assert_eq!(dialog.respond(1), Err(StatusCode::BAD_DIALOG_NOT_ACTIVE));
    }
}

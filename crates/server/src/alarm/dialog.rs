//! Dialogs: conditions that ask operators a question (Part 9 §5.6).

use taktwerk_types::{LocalizedText, StatusCode, UtcTime};

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
    /// When it was last asked, answered or ended (TransitionTime of DialogState).
    pub changed: UtcTime,
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
            changed: UtcTime::NULL,
        }
    }

    /// Asks the question, or ends it without a response.
    pub fn set_active(&mut self, is_active: bool, now: UtcTime) {
        (self.is_active, self.changed) = (is_active, now);
    }

    /// Respond (§5.6.3).
    ///
    /// # Errors
    /// Bad_DialogNotActive; Bad_DialogResponseInvalid if the response does not exist.
    pub fn respond(&mut self, response: i32, now: UtcTime) -> Result<(), StatusCode> {
        if !self.is_active {
            return Err(StatusCode::BAD_DIALOG_NOT_ACTIVE);
        }
        let is_one = usize::try_from(response).is_ok_and(|at| at < self.responses.len());
        if !is_one {
            return Err(StatusCode::BAD_DIALOG_RESPONSE_INVALID);
        }
        self.set_active(false, now);
        self.last_response = response;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_active_dialog_accepts_one_of_its_responses() {
        let mut dialog = Dialog::new("Open the valve?", &["Yes", "No"]);
        let respond = |dialog: &mut Dialog, response| dialog.respond(response, UtcTime::from_ticks(2));
        assert_eq!(respond(&mut dialog, 0), Err(StatusCode::BAD_DIALOG_NOT_ACTIVE));
        dialog.set_active(true, UtcTime::from_ticks(1));
        for response in [-1, 2, i32::MAX, i32::MIN] {
            assert_eq!(respond(&mut dialog, response), Err(StatusCode::BAD_DIALOG_RESPONSE_INVALID));
        }
        assert_eq!(dialog.changed.ticks(), 1);
        assert_eq!(respond(&mut dialog, 1), Ok(()));
        assert_eq!((dialog.is_active, dialog.last_response, dialog.changed.ticks()), (false, 1, 2));
        assert_eq!(respond(&mut dialog, 1), Err(StatusCode::BAD_DIALOG_NOT_ACTIVE));
    }
}

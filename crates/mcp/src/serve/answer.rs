//! What a call is answered with.

use hermes_core::StoreError;
use rmcp::model::{CallToolResult, ContentBlock};

/// The answer to a call, or why there is none. Both reach the client as a result, so that a model can read them.
pub(super) type CallOutcome = Result<CallToolResult, Refused>;

/// Why a call is not done, and what would help. Written for a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) String);

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self(match &error {
            StoreError::NotFound { name } => {
                format!("there is no conversation `{name}`; conversations_list shows what there is")
            }
            StoreError::NoApproval { id } => {
                format!("there is no question `{id}`; permissions_list_open shows what waits")
            }
            StoreError::Ambiguous { .. } => format!("{error}; write more of the key"),
            _ => format!("{error}; {}", error.hint()),
        })
    }
}

impl From<Refused> for CallToolResult {
    fn from(refused: Refused) -> Self {
        Self::error(vec![ContentBlock::text(refused.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_conversation_is_told_in_the_words_of_our_tools() {
        let error = StoreError::NotFound { name: "x".into() };
        let Refused(text) = error.into();
        assert!(text.contains("`x`") && text.contains("conversations_list"));
    }
}

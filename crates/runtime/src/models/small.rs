//! Which models are small: they do better with few tools. Told by their names, or by a window that has no room for more.

use hermes_core::Model;
use hermes_llm::is_small_name;

/// Tokens of a window in which a long list of tools takes too much.
const WINDOW_MAX: u64 = 16_384;

/// What is known of a model's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSize {
    pub name: String,
    /// Tokens, where its provider or the settings state them.
    pub context_window: Option<u64>,
}

impl ModelSize {
    pub fn of(model: &dyn Model) -> Self {
        Self {
            name: model.name().model,
            context_window: model.context_window(),
        }
    }

    /// Returns whether the model is known to be small.
    pub fn is_small(&self) -> bool {
        let has_small_window = self
            .context_window
            .is_some_and(|tokens| tokens <= WINDOW_MAX);
        has_small_window || is_small_name(&self.name)
    }
}

//! Which models are small: they do better with few tools. Told by their names, or by a window that has no room for more.

use hermes_core::Model;
use hermes_llm::is_small_name;

/// Tokens of a window in which a long list of tools takes too much.
const WINDOW_MAX: u64 = 16_384;

/// Returns whether a model is known to be small.
pub fn is_small(model: &dyn Model) -> bool {
    let has_small_window = model
        .context_window()
        .is_some_and(|tokens| tokens <= WINDOW_MAX);
    has_small_window || is_small_name(&model.name().model)
}

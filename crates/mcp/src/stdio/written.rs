//! Which requests went into a pipe. One that did not cannot have run, whatever became of its connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rmcp::model::RequestId;

/// The last request that was written as a whole. Ids count up, so later ones were not.
#[derive(Debug, Clone)]
pub(crate) struct Written(Arc<AtomicI64>);

impl Default for Written {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(i64::MIN)))
    }
}

impl Written {
    pub(super) fn note(&self, id: &RequestId) {
        if let RequestId::Number(number) = id {
            self.0.fetch_max(*number, Ordering::SeqCst);
        }
    }

    /// Returns whether the request certainly was not written. Final once the stream has ended.
    pub(crate) fn excludes(&self, id: &RequestId) -> bool {
        match id {
            RequestId::Number(number) => *number > self.0.load(Ordering::SeqCst),
            RequestId::String(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_after_everything_written_is_excluded() {
        let written = Written::default();
        assert!(written.excludes(&RequestId::Number(0)));
        written.note(&RequestId::Number(6));
        written.note(&RequestId::Number(5));
        assert!(!written.excludes(&RequestId::Number(5)));
        assert!(!written.excludes(&RequestId::Number(6)));
        assert!(written.excludes(&RequestId::Number(7)));
    }
}

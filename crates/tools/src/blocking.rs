//! File work off the async threads.

use hermes_core::CancellationToken;

/// Runs blocking work, and returns `None` as soon as `stop` is cancelled.
///
/// The work itself is not interrupted: it ends on its own thread, unseen.
pub(crate) async fn unless_stopped<T: Send + 'static>(
    stop: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if stop.is_cancelled() {
        return None;
    }
    tokio::select! {
        () = stop.cancelled() => None,
        done = tokio::task::spawn_blocking(work) => match done {
            Ok(done) => Some(done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime is shutting down.
            Err(_) => None,
        },
    }
}

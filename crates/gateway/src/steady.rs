//! Work that goes on although it broke: a panic is logged, and after a pause it is begun again.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

/// The first pause; each one after it is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// How long something rests that broke so often one time after the other.
pub(crate) fn pause_after(times: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(times.saturating_sub(1));
    PAUSE.saturating_mul(doubled).min(PAUSE_MAX)
}

/// Does a piece of work to its end, however often it breaks.
pub(crate) async fn steadily<F: Future<Output = ()>>(
    name: &'static str,
    mut begin: impl FnMut() -> F,
) {
    let mut times = 0;
    while AssertUnwindSafe(begin()).catch_unwind().await.is_err() {
        times += 1;
        let pause = pause_after(times);
        tracing::error!(
            name,
            times,
            ?pause,
            "a part of the gateway broke; it is begun again"
        );
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_breaks_is_begun_again_after_longer_and_longer_pauses() {
        let began = tokio::time::Instant::now();
        let mut tries = 0;
        steadily("test", || {
            tries += 1;
            let breaks = tries < 4;
            async move { assert!(!breaks, "broken on purpose") }
        })
        .await;
        assert_eq!(tries, 4);
        assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 4));
        assert_eq!(pause_after(40), PAUSE_MAX);
    }
}

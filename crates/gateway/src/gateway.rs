//! One process for months: its parts run side by side until somebody ends it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use hermes_core::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::shutdown::Shutdown;

/// How long a part may take to notice that it is to end at once.
const STOPPING_PATIENCE: Duration = Duration::from_secs(5);

/// The parts of a gateway, as the binary puts them together: the HTTP API, webhooks, platforms, schedules.
#[derive(Default)]
pub struct Gateway {
    parts: Vec<Part>,
    shutdown: Shutdown,
}

struct Part {
    name: &'static str,
    running: BoxFuture<'static, ()>,
}

impl Gateway {
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Adds a part. It runs until [`Shutdown`] says otherwise, and heals itself: one that ends before is not begun again.
    pub fn add(&mut self, name: &'static str, running: impl Future<Output = ()> + Send + 'static) {
        self.parts.push(Part {
            name,
            running: Box::pin(running),
        });
    }

    /// Runs all parts until somebody wants an end: then what runs may come to its own for as long as `drain` is, or until
    /// it is wanted again. Returns whether everything came to its own end.
    pub async fn run(self, mut end_wanted: impl AsyncFnMut(), drain: Duration) -> bool {
        let shutdown = self.shutdown;
        let mut parts = JoinSet::new();
        for Part { name, running } in self.parts {
            parts.spawn(async move {
                // Whoever waits for its end hears of it then; whoever runs it should know now.
                if AssertUnwindSafe(running).catch_unwind().await.is_err() {
                    tracing::error!(
                        name,
                        "a part of the gateway broke; restart it to have it again"
                    );
                }
                name
            });
        }
        end_wanted().await;
        shutdown.drain();
        let drained = tokio::select! {
            drained = timeout(drain, all_ended(&mut parts)) => drained.is_ok(),
            () = end_wanted() => false,
        };
        if !drained {
            shutdown.stop();
            if timeout(STOPPING_PATIENCE, all_ended(&mut parts))
                .await
                .is_err()
            {
                tracing::warn!("parts of the gateway did not end in time");
            }
        }
        parts.shutdown().await;
        drained
    }
}

async fn all_ended(parts: &mut JoinSet<&'static str>) {
    while let Some(ended) = parts.join_next().await {
        match ended {
            Ok(name) => tracing::debug!(name, "a part of the gateway has ended"),
            Err(error) => tracing::error!(%error, "a part of the gateway broke"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn parts_end_what_they_do_unless_it_takes_too_long() {
        let run = async |work: Duration| {
            let mut gateway = Gateway::default();
            let shutdown = gateway.shutdown().clone();
            gateway.add("work", async move {
                shutdown.draining().await;
                tokio::select! {
                    () = tokio::time::sleep(work) => {}
                    () = shutdown.stopped() => {}
                }
            });
            let mut wanted = 0;
            let end_wanted = async || {
                wanted += 1;
                if wanted > 1 {
                    std::future::pending::<()>().await;
                }
            };
            gateway.run(end_wanted, Duration::from_secs(10)).await
        };
        assert!(run(Duration::from_secs(9)).await);
        assert!(!run(Duration::from_secs(11)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_ends_it_twice_means_at_once() {
        let mut gateway = Gateway::default();
        let shutdown = gateway.shutdown().clone();
        gateway.add("work", async move { shutdown.stopped().await });
        let drain = Duration::from_secs(3600);
        assert!(!gateway.run(async || {}, drain).await);
    }
}

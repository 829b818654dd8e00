//! A server that is away for a while under somebody who keeps asking.

use hermes_core::breaker::BreakerState;
use tokio::time::timeout;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_call_tries_at_once_and_the_first_after_the_outage_succeeds() {
    let refused = Failure::Unreachable {
        cause: "refused".to_owned(),
    };
    let world = World {
        failures: Mutex::new(vec![refused; 1000].into()),
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    while bench.server.view().breaker == BreakerState::Closed {
        let _ = timeout(SECOND, bench.call()).await;
    }
    for outage in 1..=60 {
        let asked = Instant::now();
        let error = bench.call().await.unwrap_err();
        assert!(asked.elapsed() <= SECOND, "{outage}: {error}");
        assert!(error.contains("did not run"), "{outage}: {error}");
        sleep(SECOND).await;
    }
    bench.world.failures.lock().unwrap().clear();
    let back = Instant::now();
    bench.call().await.unwrap();
    assert!(back.elapsed() <= SECOND, "{:?}", back.elapsed());
    assert_eq!(bench.server.view().breaker, BreakerState::Closed);
}

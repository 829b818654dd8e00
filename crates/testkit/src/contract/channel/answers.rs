//! What is acknowledged to the platform, and what is not.

use hermes_core::WebRequest;

use super::{Bench, LeftOut, Place, PlatformSide, Played, Said};

/// Waits until the platform holds so many updates.
async fn wait_until_waiting<S: PlatformSide>(bench: &Bench<S>, count: usize) -> Played {
    for _ in 0..2000 {
        if bench.side.waiting().await.ok_or(LeftOut)? == count {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the platform never holds {count} updates");
}

pub(super) async fn what_is_taken_is_acknowledged<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    bench.hear(Place::Direct, Said::words("hello")).await?;
    wait_until_waiting(bench, 0).await
}

pub(super) async fn what_is_not_taken_is_not_acknowledged<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.meet().await;
    bench.inlet.set_refusing(true);
    bench.listen();
    bench.say(Place::Direct, Said::words("hello")).await?;
    bench
        .inlet
        .wait_for("it was offered", |kept| kept.refused_count > 0)
        .await;
    bench.stop().await;
    assert_eq!(bench.side.waiting().await.ok_or(LeftOut)?, 1);
    assert!(bench.inlet.kept().updates.is_empty());
    Ok(())
}

pub(super) async fn what_was_not_taken_comes_again<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.meet().await;
    bench.inlet.set_refusing(true);
    bench.listen();
    let id = bench.say(Place::Direct, Said::words("hello")).await?;
    bench
        .inlet
        .wait_for("it was offered", |kept| kept.refused_count > 0)
        .await;
    bench.stop().await;
    bench.inlet.set_refusing(false);
    bench.listen();
    bench.arrived(&id).await;
    Ok(())
}

pub(super) async fn nothing_comes_twice_after_a_restart<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.connect().await;
    bench.hear(Place::Direct, Said::words("one")).await?;
    wait_until_waiting(bench, 0).await?;
    bench.stop().await;
    bench.connect().await;
    bench.hear(Place::Direct, Said::words("two")).await?;
    assert_eq!(bench.inlet.kept().numbers.len(), 2);
    Ok(())
}

pub(super) async fn receiving_can_stop_and_begin_again<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    for word in ["one", "two", "three"] {
        bench.connect().await;
        bench.hear(Place::Direct, Said::words(word)).await?;
        bench.stop().await;
    }
    assert_eq!(bench.inlet.kept().updates.len(), 3);
    Ok(())
}

/// The request that the platform would make for a message.
async fn request<S: PlatformSide>(bench: &Bench<S>) -> Result<WebRequest, LeftOut> {
    bench.channel.webhook().ok_or(LeftOut)?;
    bench.connect().await;
    bench.stop().await;
    bench.say(Place::Direct, Said::words("hello")).await?;
    bench.side.next_request().await.ok_or(LeftOut)
}

pub(super) async fn a_request_with_a_wrong_secret_is_refused<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let good = request(bench).await?;
    let mut bare = good.clone();
    bare.headers.clear();
    let mut forged = good.clone();
    for (_, value) in &mut forged.headers {
        value.push('x');
    }
    let mut asked = good;
    asked.method = "GET".to_owned();
    asked.body.clear();
    for request in [bare, forged, asked] {
        let answer = bench.channel.on_request(request, &*bench.inlet).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    assert!(bench.inlet.kept().updates.is_empty());
    Ok(())
}

pub(super) async fn a_request_that_makes_no_sense_does_no_harm<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let good = request(bench).await?;
    for body in ["", "null", "[]", "{}", "{\"update_id\": \"x\"}", "\u{0}"] {
        let mut odd = good.clone();
        odd.body = body.as_bytes().to_vec();
        bench.channel.on_request(odd, &*bench.inlet).await;
    }
    assert!(bench.inlet.kept().updates.is_empty());
    let answer = bench.channel.on_request(good, &*bench.inlet).await;
    assert_eq!(answer.status, 200);
    assert_eq!(bench.inlet.kept().updates.len(), 1);
    Ok(())
}

//! What goes wrong, and what must not.

use std::time::Duration;

use hermes_core::{Arrival, Trouble};

use super::{Bench, Fault, LeftOut, Place, PlatformSide, Played, Said};

pub(super) async fn duplicates_have_the_same_number<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.meet().await;
    let id = bench.say(Place::Direct, Said::words("hello")).await?;
    bench.fault(Fault::Duplicate).await?;
    bench.connect().await;
    bench.arrived(&id).await;
    bench.hear(Place::Direct, Said::words("goodbye")).await?;
    assert_eq!(bench.inlet.kept().updates.len(), 2);
    assert!(bench.inlet.kept().numbers.len() >= 3);
    Ok(())
}

pub(super) async fn another_order_loses_nothing<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.meet().await;
    let mut said = Vec::new();
    for word in ["a", "b", "c"] {
        said.push(bench.say(Place::Direct, Said::words(word)).await?);
    }
    bench.fault(Fault::Reorder).await?;
    bench.connect().await;
    for id in &said {
        bench.arrived(id).await;
    }
    Ok(())
}

async fn goes_on_after<S: PlatformSide>(bench: &Bench<S>, fault: Fault) -> Played {
    bench.meet().await;
    bench.fault(fault).await?;
    let first = bench.say(Place::Direct, Said::words("hello")).await?;
    bench.fault(fault).await?;
    bench.connect().await;
    bench.arrived(&first).await;
    bench.fault(fault).await?;
    bench.hear(Place::Direct, Said::words("goodbye")).await?;
    assert_eq!(bench.inlet.kept().updates.len(), 2);
    Ok(())
}

pub(super) async fn nonsense_stops_nothing<S: PlatformSide>(bench: &Bench<S>) -> Played {
    goes_on_after(bench, Fault::Malformed).await
}

pub(super) async fn unknown_kinds_stop_nothing<S: PlatformSide>(bench: &Bench<S>) -> Played {
    goes_on_after(bench, Fault::UnknownKind).await
}

pub(super) async fn a_lost_connection_is_said<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    bench.fault(Fault::Disconnect).await?;
    let error = bench.ended().await;
    assert_eq!(error.trouble, Trouble::Passing, "{error:?}");
    assert!(!error.message.is_empty());
    Ok(())
}

pub(super) async fn after_a_lost_connection_it_goes_on<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.connect().await;
    bench.hear(Place::Direct, Said::words("before")).await?;
    bench.fault(Fault::Disconnect).await?;
    bench.ended().await;
    let meanwhile = bench.say(Place::Direct, Said::words("meanwhile")).await?;
    bench.connect().await;
    bench.arrived(&meanwhile).await;
    bench.hear(Place::Direct, Said::words("after")).await?;
    assert_eq!(bench.inlet.kept().updates.len(), 3);
    Ok(())
}

pub(super) async fn a_second_receiver_is_said<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    bench.fault(Fault::Conflict).await?;
    let error = bench.ended().await;
    assert_eq!(error.trouble, Trouble::Conflict, "{error:?}");
    assert!(error.hint.is_some());
    Ok(())
}

pub(super) async fn a_wrong_password_is_said_with_what_to_do<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.fault(Fault::WrongPassword).await?;
    bench.listen();
    let error = bench.ended().await;
    assert_eq!(error.trouble, Trouble::NotAuthorised, "{error:?}");
    assert!(error.hint.is_some_and(|hint| hint.len() > 20));
    assert!(bench.inlet.kept().connected.is_empty());
    Ok(())
}

pub(super) async fn a_probe_notices_a_wrong_password<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::WrongPassword).await?;
    let error = bench.channel.probe().await.unwrap_err();
    assert_eq!(error.trouble, Trouble::NotAuthorised, "{error:?}");
    Ok(())
}

pub(super) async fn a_throttle_says_how_long<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let wait = Duration::from_secs(7);
    bench.fault(Fault::Throttle(wait)).await?;
    let error = bench
        .channel
        .send(&bench.text(Place::Direct, "hello")?)
        .await
        .unwrap_err();
    assert_eq!(error.trouble, Trouble::Throttled { wait });
    assert!(bench.side.seen(Place::Direct).await.is_empty());
    Ok(())
}

pub(super) async fn after_a_throttle_it_is_sent_once<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::Throttle(Duration::from_secs(1))).await?;
    let message = bench.text(Place::Direct, "hello")?;
    bench.channel.send(&message).await.unwrap_err();
    bench.send(&message).await;
    assert_eq!(bench.side.seen(Place::Direct).await.len(), 1);
    Ok(())
}

pub(super) async fn a_lost_answer_leaves_doubt<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::LoseAnswer).await?;
    let message = bench.text(Place::Direct, "hello")?;
    let error = bench.channel.send(&message).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Ambiguous, "{error:?}");
    assert_eq!(bench.side.seen(Place::Direct).await.len(), 1);
    let arrival = bench.channel.find_sent(&message).await.unwrap();
    assert_ne!(arrival, Arrival::NotArrived);
    if bench.channel.facts().knows_keys {
        bench.send(&message).await;
        assert_eq!(bench.side.seen(Place::Direct).await.len(), 1);
    }
    Ok(())
}

pub(super) async fn a_lost_call_may_be_tried_again<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::LoseCall).await?;
    let message = bench.text(Place::Direct, "hello")?;
    let error = bench.channel.send(&message).await.unwrap_err();
    assert!(
        matches!(error.trouble, Trouble::Passing | Trouble::Ambiguous),
        "{error:?}"
    );
    bench.send(&message).await;
    assert_eq!(bench.side.seen(Place::Direct).await.len(), 1);
    Ok(())
}

pub(super) async fn garbage_is_no_answer<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::Garbage).await?;
    let error = bench
        .channel
        .send(&bench.text(Place::Direct, "hello")?)
        .await
        .unwrap_err();
    assert!(
        matches!(error.trouble, Trouble::Passing | Trouble::Ambiguous),
        "{error:?}"
    );
    Ok(())
}

pub(super) async fn a_bad_format_is_sent_plainly<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::BadFormat).await?;
    let seen = bench.shown(Place::Direct, "some **bold** words").await?;
    assert!(seen.text.contains("bold"));
    assert_eq!(bench.side.seen(Place::Direct).await.len(), 1);
    Ok(())
}

pub(super) async fn being_blocked_is_said<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.fault(Fault::Block).await?;
    let error = bench
        .channel
        .send(&bench.text(Place::Direct, "hello")?)
        .await
        .unwrap_err();
    assert_eq!(error.trouble, Trouble::Forbidden, "{error:?}");
    Ok(())
}

pub(super) async fn a_chat_that_is_none_is_said<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let mut message = bench.text(Place::Direct, "hello")?;
    message.to.chat = "404404404".to_owned();
    let error = match bench.channel.send(&message).await {
        // Some only find out later.
        Ok(_) => return Err(LeftOut),
        Err(error) => error,
    };
    assert!(
        matches!(error.trouble, Trouble::NotFound | Trouble::Forbidden),
        "{error:?}"
    );
    Ok(())
}

pub(super) async fn no_error_tells_the_secret<S: PlatformSide>(bench: &Bench<S>) -> Played {
    for fault in [
        Fault::Garbage,
        Fault::LoseCall,
        Fault::Block,
        Fault::WrongPassword,
    ] {
        if !bench.side.fault(fault).await {
            continue;
        }
        let sent = bench
            .channel
            .send(&bench.text(Place::Direct, "hello")?)
            .await;
        if let Err(error) = sent {
            let told = format!("{error:?} {error}");
            assert!(!told.contains(&bench.side.secret()), "{told}");
        }
    }
    Ok(())
}

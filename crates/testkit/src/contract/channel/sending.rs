//! What we say, and how it is seen.

use futures_util::future::join_all;
use hermes_core::{Body, MessageId, Reaction, Trouble};

use super::{Bench, LeftOut, Place, PlatformSide, Played, Said};

pub(super) async fn a_text_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let seen = bench.shown(Place::Direct, "Hello, you.").await?;
    assert_eq!(seen.text, "Hello, you.");
    assert!(seen.buttons.is_empty() && seen.file.is_none());
    Ok(())
}

pub(super) async fn messages_have_ids_of_their_own<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let first = bench.send(&bench.text(Place::Direct, "one")?).await;
    let second = bench.send(&bench.text(Place::Direct, "two")?).await;
    assert_ne!(first, second);
    Ok(())
}

pub(super) async fn a_message_goes_to_its_thread<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.shown(Place::Thread, "in the thread").await?;
    assert!(bench.side.seen(Place::Direct).await.is_empty());
    Ok(())
}

pub(super) async fn a_reply_refers<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let question = bench.say(Place::Direct, Said::words("a question")).await?;
    let mut answer = bench.text(Place::Direct, "an answer")?;
    answer.replies_to = Some(question.clone());
    let id = bench.send(&answer).await;
    let seen = bench.seen_as(Place::Direct, &id).await.expect("it is seen");
    assert_eq!(seen.replies_to.ok_or(LeftOut)?, question.as_str());
    Ok(())
}

pub(super) async fn a_reply_to_what_is_gone_still_arrives<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let mut answer = bench.text(Place::Direct, "an answer")?;
    answer.replies_to = Some(MessageId::from("999999"));
    let id = bench.send(&answer).await;
    assert!(bench.seen_as(Place::Direct, &id).await.is_some());
    Ok(())
}

pub(super) async fn markup_is_not_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let seen = bench.shown(Place::Direct, "some **bold** words").await?;
    assert_eq!(seen.text, "some bold words");
    Ok(())
}

const ODD: &[&str] = &[
    "**unclosed",
    "a_b_c * d ~ e",
    "```\nopen fence",
    "[a](b",
    "> quote",
    "# Head\n- a\n  - b",
    "1. a\n2. b",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "||spoiler||",
    "<b>html</b> &amp;",
    "\\",
    ".",
    "!",
    "---",
    "`",
    "~~x~~ _y_ ***z***",
    "😀",
    "@everyone /stop #tag",
    "a\n\n\n\nb",
    "https://a.b/c_d_(e)?f=[g]",
];

pub(super) async fn whatever_models_write_arrives<S: PlatformSide>(bench: &Bench<S>) -> Played {
    for markdown in ODD {
        let seen = bench.shown(Place::Direct, markdown).await?;
        assert!(!seen.text.is_empty(), "{markdown:?}");
    }
    Ok(())
}

/// A text of exactly this length.
fn of_length<S: PlatformSide>(bench: &Bench<S>, unit: &str, length: usize) -> String {
    let each = bench.channel.length(unit).max(1);
    unit.repeat(length / each) + &"x".repeat(length % each)
}

pub(super) async fn a_text_of_the_greatest_length_arrives<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let text = of_length(bench, "x", bench.channel.facts().length_max);
    assert_eq!(bench.shown(Place::Direct, &text).await?.text, text);
    Ok(())
}

pub(super) async fn greatest_lengths_count_odd_letters_too<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    for unit in ["😀", "é", "你"] {
        let text = of_length(bench, unit, bench.channel.facts().length_max);
        assert_eq!(bench.shown(Place::Direct, &text).await?.text, text);
    }
    Ok(())
}

pub(super) async fn a_text_beyond_it_is_refused<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let text = of_length(bench, "x", bench.channel.facts().length_max + 1);
    let error = bench
        .channel
        .send(&bench.text(Place::Direct, &text)?)
        .await
        .unwrap_err();
    assert_eq!(error.trouble, Trouble::TooLong);
    Ok(())
}

pub(super) async fn a_preview_of_anything_arrives<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.channel.facts().edit_interval.ok_or(LeftOut)?;
    for markdown in ODD {
        let body = Body::Text {
            markdown: (*markdown).to_owned(),
            is_preview: true,
        };
        bench.send(&bench.outgoing(Place::Direct, body)?).await;
    }
    Ok(())
}

pub(super) async fn a_silent_message_is_silent<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let mut message = bench.text(Place::Direct, "psst")?;
    message.is_silent = true;
    let id = bench.send(&message).await;
    let seen = bench.seen_as(Place::Direct, &id).await.expect("it is seen");
    seen.is_silent.then_some(()).ok_or(LeftOut)
}

pub(super) async fn sends_at_once_all_arrive<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let texts: Result<Vec<_>, _> = (0..10)
        .map(|at| bench.text(Place::Direct, &format!("text {at}")))
        .collect();
    let texts = texts?;
    join_all(texts.iter().map(|text| bench.send(text))).await;
    let mut seen: Vec<String> = bench
        .side
        .seen(Place::Direct)
        .await
        .into_iter()
        .map(|seen| seen.text)
        .collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 10);
    Ok(())
}

pub(super) async fn order_of_sends_is_kept<S: PlatformSide>(bench: &Bench<S>) -> Played {
    for number in 0..5 {
        bench
            .send(&bench.text(Place::Direct, &number.to_string())?)
            .await;
    }
    let seen: Vec<String> = bench
        .side
        .seen(Place::Direct)
        .await
        .into_iter()
        .map(|seen| seen.text)
        .collect();
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
    Ok(())
}

pub(super) async fn sending_needs_no_receiving<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let other = bench.side.open();
    other
        .send(&bench.text(Place::Direct, "from another process")?)
        .await
        .unwrap();
    assert_eq!(bench.side.seen(Place::Direct).await.len(), 1);
    Ok(())
}

pub(super) async fn typing_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.channel.facts().typing.ok_or(LeftOut)?;
    for place in [Place::Direct, Place::Thread] {
        let Ok(to) = bench.place(place) else {
            continue;
        };
        bench.channel.typing(&to).await.unwrap();
        assert_eq!(bench.side.typing(place).await.ok_or(LeftOut)?, 1);
    }
    Ok(())
}

pub(super) async fn a_mark_is_seen_and_taken_away<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench
        .channel
        .facts()
        .has_reactions
        .then_some(())
        .ok_or(LeftOut)?;
    let id = bench.say(Place::Direct, Said::words("a question")).await?;
    let to = bench.place(Place::Direct)?;
    for (reaction, count) in [
        (Some(Reaction::Seen), 1),
        (Some(Reaction::Seen), 1),
        (Some(Reaction::Failed), 1),
        (Some(Reaction::Done), 1),
        (None, 0),
    ] {
        bench.channel.react(&to, &id, reaction).await.unwrap();
        assert_eq!(
            bench.side.marks(Place::Direct, &id).await.ok_or(LeftOut)?,
            count
        );
    }
    Ok(())
}

pub(super) async fn a_thread_is_opened_and_written_to<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let mut below = bench.place(Place::Thread)?;
    let old = below.thread.take();
    // Where threads are chats of their own, one is opened below a chat that is none.
    if old.is_none() {
        below = bench.place(Place::Group)?;
    }
    let thread = match bench
        .channel
        .create_thread(&below, None, "Hermes — plans")
        .await
    {
        Err(error) if error.trouble == Trouble::Unsupported => return Err(LeftOut),
        opened => opened.unwrap(),
    };
    assert!(thread != below && (thread.thread != old || thread.chat != below.chat));
    let mut message = bench.text(Place::Thread, "hello")?;
    message.to = thread;
    bench.send(&message).await;
    Ok(())
}

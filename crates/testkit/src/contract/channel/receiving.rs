//! What people say, and how it arrives.

use hermes_core::{Address, ChatKind};

use super::{Bench, LeftOut, Place, PlatformSide, Played, Said};

pub(super) async fn connecting_proves_who_we_are<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let kept = bench.inlet.kept();
    assert!(!kept.connected[0].id.is_empty());
    assert!(!kept.connected[0].name.is_empty());
    Ok(())
}

pub(super) async fn a_message_arrives_with_its_words<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let message = bench
        .hear(Place::Direct, Said::words("hello there"))
        .await?;
    assert_eq!(message.text, "hello there");
    assert!(message.attachments.is_empty());
    assert_eq!(message.replies_to, None);
    Ok(())
}

pub(super) async fn a_message_has_the_platforms_id<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let first = bench.hear(Place::Direct, Said::words("one")).await?;
    let second = bench.hear(Place::Direct, Said::words("two")).await?;
    assert_ne!(first.id, second.id);
    Ok(())
}

pub(super) async fn a_sender_has_an_id_and_a_name<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let sender = bench
        .hear(Place::Direct, Said::words("hello"))
        .await?
        .sender;
    assert!(!sender.id.is_empty());
    assert!(sender.name.is_some() || sender.username.is_some());
    assert!(!sender.is_bot);
    Ok(())
}

pub(super) async fn a_direct_chat_is_one<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let message = bench.hear(Place::Direct, Said::words("hello")).await?;
    assert_eq!(message.chat.kind, ChatKind::Dm);
    assert_eq!(message.chat.id, bench.place(Place::Direct)?.chat);
    Ok(())
}

pub(super) async fn a_group_is_a_group<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.place(Place::Group)?;
    bench.connect().await;
    let message = bench.hear(Place::Group, Said::words("hello")).await?;
    assert!(message.chat.kind != ChatKind::Dm);
    assert_eq!(message.chat.id, bench.place(Place::Group)?.chat);
    Ok(())
}

pub(super) async fn a_thread_is_a_thread<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let place = bench.place(Place::Thread)?;
    bench.connect().await;
    let message = bench.hear(Place::Thread, Said::words("hello")).await?;
    let platform = bench.channel.facts().platform;
    assert_eq!(Address::of(platform, &message.chat), place);
    assert_eq!(message.replies_to, None);
    Ok(())
}

pub(super) async fn what_is_said_in_different_places_is_told_apart<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.place(Place::Group)?;
    bench.connect().await;
    let direct = bench.hear(Place::Direct, Said::words("hello")).await?;
    let group = bench.hear(Place::Group, Said::words("hello")).await?;
    assert_ne!(direct.chat.id, group.chat.id);
    assert_eq!(direct.sender.id, group.sender.id);
    Ok(())
}

pub(super) async fn a_reply_names_what_it_replies_to<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let first = bench.hear(Place::Direct, Said::words("the first")).await?;
    let said = Said {
        replies_to: Some(first.id.clone()),
        ..Said::words("the second")
    };
    let second = bench.hear(Place::Direct, said).await?;
    let replied = second.replies_to.ok_or(LeftOut)?;
    assert_eq!(replied.id, first.id);
    assert!(replied.text.is_none_or(|text| text.contains("the first")));
    assert!(!replied.is_ours);
    Ok(())
}

pub(super) async fn a_reply_to_us_is_known_as_one<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let ours = bench
        .send(&bench.text(Place::Direct, "what do you think?")?)
        .await;
    let said = Said {
        replies_to: Some(ours.clone()),
        ..Said::words("a lot")
    };
    let message = bench.hear(Place::Direct, said).await?;
    let replied = message.replies_to.ok_or(LeftOut)?;
    assert_eq!(replied.id, ours);
    assert!(replied.is_ours);
    Ok(())
}

pub(super) async fn a_mention_of_us_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let said = Said {
        mentions_us: true,
        ..Said::words("what is it?")
    };
    let message = bench.hear(Place::Group, said).await?;
    assert!(message.mentions.us);
    assert!(!message.mentions.other_bots);
    assert!(message.text.ends_with("what is it?"));
    Ok(())
}

pub(super) async fn words_without_a_mention_have_none<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let message = bench
        .hear(Place::Group, Said::words("somebody@example.org wrote"))
        .await?;
    assert!(!message.mentions.us);
    Ok(())
}

pub(super) async fn updates_have_numbers_of_their_own<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    for word in ["a", "b", "c"] {
        bench.hear(Place::Direct, Said::words(word)).await?;
    }
    let mut numbers = bench.inlet.kept().numbers;
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 3);
    Ok(())
}

pub(super) async fn order_is_kept<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let mut said = Vec::new();
    for number in 0..10 {
        said.push(
            bench
                .say(Place::Direct, Said::words(&number.to_string()))
                .await?,
        );
    }
    for id in &said {
        bench.arrived(id).await;
    }
    let kept = bench.inlet.kept();
    let arrived: Vec<String> = kept
        .updates
        .iter()
        .filter_map(|update| match &update.incoming {
            hermes_core::Incoming::Message(message) => Some(message.text.clone()),
            _ => None,
        })
        .collect();
    let expected: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(arrived, expected);
    Ok(())
}

pub(super) async fn odd_letters_arrive<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    for text in [
        "😀 👩‍👩‍👧‍👦 🇩🇪",
        "你好，世界",
        "שלום עולם",
        "a\u{301}e\u{308}",
        "<b>&amp;</b> \\ ` * _ ~",
    ] {
        let message = bench.hear(Place::Direct, Said::words(text)).await?;
        assert_eq!(message.text, text);
    }
    Ok(())
}

pub(super) async fn long_words_arrive_whole<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    // Some platforms let people write no more than this.
    let text = "word ".repeat(390).trim_end().to_owned();
    let message = bench.hear(Place::Direct, Said::words(&text)).await?;
    assert_eq!(message.text, text);
    Ok(())
}

pub(super) async fn lines_stay_lines<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    let text = "one\n\n  two\n- three";
    let message = bench.hear(Place::Direct, Said::words(text)).await?;
    assert_eq!(message.text, text);
    Ok(())
}

pub(super) async fn the_platform_says_when<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    bench.hear(Place::Direct, Said::words("hello")).await?;
    let sent = bench.inlet.kept().updates[0].sent;
    assert!(sent.is_some_and(|sent| sent.as_millis() > 1_000_000_000_000));
    Ok(())
}

pub(super) async fn the_raw_update_is_kept<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    bench
        .hear(Place::Direct, Said::words("keep these words"))
        .await?;
    let raw = bench.inlet.kept().updates[0].raw.to_string();
    assert!(raw.contains("keep these words"), "{raw}");
    Ok(())
}

pub(super) async fn the_platform_is_heard<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.connect().await;
    bench.hear(Place::Direct, Said::words("hello")).await?;
    bench
        .inlet
        .wait_for("something is heard", |kept| kept.heard_count > 0)
        .await;
    Ok(())
}

pub(super) async fn what_was_said_while_nobody_listened_arrives<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.meet().await;
    let early = bench
        .say(Place::Direct, Said::words("are you there?"))
        .await?;
    bench.connect().await;
    bench.arrived(&early).await;
    bench.stop().await;
    let late = bench.say(Place::Direct, Said::words("and now?")).await?;
    bench.connect().await;
    bench.arrived(&late).await;
    Ok(())
}

pub(super) async fn an_answer_finds_the_direct_chat<S: PlatformSide>(bench: &Bench<S>) -> Played {
    answer_in(bench, Place::Direct).await
}

pub(super) async fn an_answer_finds_the_group<S: PlatformSide>(bench: &Bench<S>) -> Played {
    answer_in(bench, Place::Group).await
}

pub(super) async fn an_answer_finds_the_thread<S: PlatformSide>(bench: &Bench<S>) -> Played {
    answer_in(bench, Place::Thread).await
}

async fn answer_in<S: PlatformSide>(bench: &Bench<S>, place: Place) -> Played {
    bench.place(place)?;
    bench.connect().await;
    let message = bench.hear(place, Said::words("a question")).await?;
    let mut answer = bench.text(place, "an answer")?;
    answer.to = Address::of(bench.channel.facts().platform, &message.chat);
    answer.replies_to = Some(message.id);
    let id = bench.send(&answer).await;
    let seen = bench.seen_as(place, &id).await.expect("it is seen there");
    assert_eq!(seen.text, "an answer");
    Ok(())
}

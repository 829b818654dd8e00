//! Edits of theirs and of ours, and buttons.

use hermes_core::channel::BUTTON_DATA_BYTES_MAX;
use hermes_core::{Body, Button, MessageId, Outgoing, Trouble};

use super::{Bench, LeftOut, Place, PlatformSide, Played, Said};

/// Leaves a case out where messages cannot be edited.
fn need_edits<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench
        .channel
        .facts()
        .edit_interval
        .map(|_| ())
        .ok_or(LeftOut)
}

fn need_buttons<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench
        .channel
        .facts()
        .has_buttons
        .then_some(())
        .ok_or(LeftOut)
}

fn button(label: &str, data: &str) -> Button {
    Button {
        label: label.to_owned(),
        data: data.to_owned(),
    }
}

fn with_buttons<S: PlatformSide>(bench: &Bench<S>) -> Result<Outgoing, LeftOut> {
    let mut message = bench.text(Place::Direct, "May I?")?;
    message.buttons = vec![
        vec![button("Yes", "ea:once:1"), button("No", "ea:deny:1")],
        vec![button("Always", "ea:always:1")],
    ];
    Ok(message)
}

async fn edit<S: PlatformSide>(bench: &Bench<S>, id: &MessageId, message: &Outgoing) {
    bench.channel.edit(id, message).await.unwrap();
}

pub(super) async fn an_edit_of_somebodys_arrives_as_one<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    bench.connect().await;
    let message = bench.hear(Place::Direct, Said::words("helo")).await?;
    let is_edited = bench.side.edit(Place::Direct, &message.id, "hello").await;
    is_edited.then_some(()).ok_or(LeftOut)?;
    let edited = bench.edited(&message.id).await;
    assert_eq!(edited.text, "hello");
    assert_eq!(edited.sender, message.sender);
    Ok(())
}

pub(super) async fn an_edit_of_ours_is_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_edits(bench)?;
    let id = bench.send(&bench.text(Place::Direct, "one")?).await;
    edit(bench, &id, &bench.text(Place::Direct, "two")?).await;
    let seen = bench.side.seen(Place::Direct).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].text, "two");
    Ok(())
}

pub(super) async fn the_same_again_is_no_error<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_edits(bench)?;
    let id = bench.send(&bench.text(Place::Direct, "one")?).await;
    let same = bench.text(Place::Direct, "one")?;
    edit(bench, &id, &same).await;
    edit(bench, &id, &same).await;
    Ok(())
}

pub(super) async fn an_edit_of_what_is_not_there_is_said<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    need_edits(bench)?;
    let id = bench.send(&bench.text(Place::Direct, "one")?).await;
    bench
        .channel
        .delete(&bench.place(Place::Direct)?, &id)
        .await
        .unwrap();
    let gone = bench
        .channel
        .edit(&id, &bench.text(Place::Direct, "two")?)
        .await;
    assert_eq!(gone.unwrap_err().trouble, Trouble::NotFound);
    let never = MessageId::from("no such message");
    let never = bench
        .channel
        .edit(&never, &bench.text(Place::Direct, "two")?)
        .await;
    assert_eq!(never.unwrap_err().trouble, Trouble::NotFound);
    Ok(())
}

pub(super) async fn an_edit_takes_buttons_away<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_edits(bench)?;
    need_buttons(bench)?;
    let id = bench.send(&with_buttons(bench)?).await;
    edit(bench, &id, &bench.text(Place::Direct, "May I? Yes.")?).await;
    let seen = bench.seen_as(Place::Direct, &id).await.expect("it is seen");
    assert!(seen.buttons.is_empty());
    Ok(())
}

pub(super) async fn a_preview_becomes_the_final_text<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_edits(bench)?;
    let body = |markdown: &str, is_preview| Body::Text {
        markdown: markdown.to_owned(),
        is_preview,
    };
    let id = bench
        .send(&bench.outgoing(Place::Direct, body("Some **bo", true))?)
        .await;
    edit(
        bench,
        &id,
        &bench.outgoing(Place::Direct, body("Some **bold**", true))?,
    )
    .await;
    edit(
        bench,
        &id,
        &bench.outgoing(Place::Direct, body("Some **bold** words", false))?,
    )
    .await;
    let seen = bench.side.seen(Place::Direct).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].text, "Some bold words");
    Ok(())
}

pub(super) async fn many_edits_end_with_the_last<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_edits(bench)?;
    let id = bench.send(&bench.text(Place::Direct, "0")?).await;
    for number in 1..20 {
        edit(
            bench,
            &id,
            &bench.text(Place::Direct, &format!("number {number}"))?,
        )
        .await;
    }
    let seen = bench.seen_as(Place::Direct, &id).await.expect("it is seen");
    assert_eq!(seen.text, "number 19");
    Ok(())
}

/// Sends a message and deletes it; left out where that cannot be done.
async fn deleted<S: PlatformSide>(bench: &Bench<S>) -> Result<MessageId, LeftOut> {
    let id = bench.send(&bench.text(Place::Direct, "a mistake")?).await;
    match bench
        .channel
        .delete(&bench.place(Place::Direct)?, &id)
        .await
    {
        Err(error) if error.trouble == Trouble::Unsupported => Err(LeftOut),
        done => {
            done.unwrap();
            Ok(id)
        }
    }
}

pub(super) async fn a_deleted_message_is_gone<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let id = deleted(bench).await?;
    assert_eq!(bench.seen_as(Place::Direct, &id).await, None);
    Ok(())
}

pub(super) async fn deleting_twice_is_no_error<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let id = deleted(bench).await?;
    bench
        .channel
        .delete(&bench.place(Place::Direct)?, &id)
        .await
        .unwrap();
    Ok(())
}

pub(super) async fn buttons_are_seen<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_buttons(bench)?;
    let message = with_buttons(bench)?;
    let id = bench.send(&message).await;
    let seen = bench.seen_as(Place::Direct, &id).await.expect("it is seen");
    assert_eq!(seen.buttons, message.buttons);
    Ok(())
}

pub(super) async fn a_press_comes_back_with_its_data<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_buttons(bench)?;
    bench.connect().await;
    let id = bench.send(&with_buttons(bench)?).await;
    let is_pressed = bench.side.press(Place::Direct, &id, "ea:deny:1").await;
    is_pressed.then_some(()).ok_or(LeftOut)?;
    let press = bench.pressed().await;
    assert_eq!(press.data, "ea:deny:1");
    assert_eq!(press.message, id);
    assert_eq!(press.chat.id, bench.place(Place::Direct)?.chat);
    assert!(!press.sender.id.is_empty());
    Ok(())
}

pub(super) async fn a_press_is_acknowledged_once_or_twice<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    need_buttons(bench)?;
    bench.connect().await;
    let id = bench.send(&with_buttons(bench)?).await;
    let is_pressed = bench.side.press(Place::Direct, &id, "ea:once:1").await;
    is_pressed.then_some(()).ok_or(LeftOut)?;
    let press = bench.pressed().await;
    bench
        .channel
        .acknowledge(&press, Some(&"Done. ".repeat(100)))
        .await
        .unwrap();
    bench.channel.acknowledge(&press, None).await.unwrap();
    Ok(())
}

pub(super) async fn buttons_take_as_much_as_they_may<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_buttons(bench)?;
    let mut message = bench.text(Place::Direct, "May I?")?;
    message.buttons = vec![vec![button("Yes 👍", &"d".repeat(BUTTON_DATA_BYTES_MAX))]];
    bench.send(&message).await;
    Ok(())
}

pub(super) async fn buttons_with_too_much_are_refused<S: PlatformSide>(bench: &Bench<S>) -> Played {
    need_buttons(bench)?;
    let mut message = bench.text(Place::Direct, "May I?")?;
    message.buttons = vec![vec![button("Yes", &"d".repeat(BUTTON_DATA_BYTES_MAX + 1))]];
    let error = bench.channel.send(&message).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Refused);
    assert!(bench.side.seen(Place::Direct).await.is_empty());
    Ok(())
}

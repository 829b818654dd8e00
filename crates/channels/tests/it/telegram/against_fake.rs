//! The contract, and what is Telegram's own, against the strict server.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use hermes_core::{
    Address, AttachmentKind, Body, Channel, ChatCommand, ChatKind, Incoming, IncomingMessage,
    Outgoing, Trouble,
};
use hermes_testkit::contract::channel::{HeldInlet, channel_contract};
use hermes_testkit::telegram::people::{ALICE, CHANNEL, FORUM, GROUP, TOPIC, alice};
use hermes_testkit::telegram::{BOT_ID, BOT_NAME, CallFault, TOKEN, TelegramServer};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::open_at;
use super::side::{FakeTelegram, Way};

#[tokio::test]
async fn telegram_keeps_the_contract_when_it_polls() {
    let report = channel_contract(async || FakeTelegram::new(Way::Poll).await).await;
    assert!(report.played.len() >= 60, "{}", report.played.len());
    // There are no requests to answer.
    assert_eq!(
        report.left_out,
        [
            "answers::a_request_with_a_wrong_secret_is_refused",
            "answers::a_request_that_makes_no_sense_does_no_harm",
        ]
    );
}

#[tokio::test]
async fn telegram_keeps_the_contract_when_it_is_called() {
    let report = channel_contract(async || FakeTelegram::new(Way::Webhook).await).await;
    assert!(report.played.len() >= 60, "{}", report.played.len());
    assert_eq!(
        report.left_out,
        [
            "faults::a_lost_connection_is_said",
            "faults::after_a_lost_connection_it_goes_on",
            "faults::a_second_receiver_is_said",
        ]
    );
}

/// A server with chats, and a channel to it.
async fn world() -> (TelegramServer, std::sync::Arc<dyn Channel>) {
    world_with(&json!({})).await
}

async fn world_with(settings: &Value) -> (TelegramServer, std::sync::Arc<dyn Channel>) {
    let server = TelegramServer::start().await.with_chats();
    let channel = open_at(&server.url(), TOKEN, settings);
    (server, channel)
}

fn text(to: &str, markdown: &str) -> Outgoing {
    Outgoing {
        to: Address::parse(to).expect("an address"),
        key: "key".to_owned(),
        body: Body::Text {
            markdown: markdown.to_owned(),
            is_preview: false,
        },
        replies_to: None,
        follows: None,
        buttons: Vec::new(),
        is_silent: false,
    }
}

/// What arrives of everything that waits at the server.
async fn arrivals(
    server: &TelegramServer,
    channel: &std::sync::Arc<dyn Channel>,
    count: usize,
) -> Vec<Incoming> {
    let inlet = std::sync::Arc::new(HeldInlet::default());
    let mut receiving = JoinSet::new();
    let (channel, held) = (
        std::sync::Arc::clone(channel),
        std::sync::Arc::clone(&inlet),
    );
    receiving.spawn(async move { channel.receive(&*held).await });
    let kept = inlet.wait_for("all arrive", |kept| kept.updates.len() >= count);
    let updates = kept.await.updates;
    assert_eq!(updates.len(), count);
    // Everything is confirmed, what we do not understand too.
    for _ in 0..2000 {
        if server.pending_count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.pending_count(), 0);
    updates.into_iter().map(|update| update.incoming).collect()
}

async fn heard(chat: i64, content: Value) -> IncomingMessage {
    let (server, channel) = world().await;
    server.say(chat, content);
    match arrivals(&server, &channel, 1).await.remove(0) {
        Incoming::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn topics_are_threads_and_the_general_one_is_number_one() {
    let general = heard(FORUM, json!({"text": "hello"})).await;
    assert_eq!(general.chat.kind, ChatKind::Forum);
    assert_eq!(
        general
            .chat
            .thread
            .as_ref()
            .map(|thread| thread.id.as_str()),
        Some("1")
    );
    // A reply in an ordinary group has a thread's number, which is none.
    let reply = heard(GROUP, json!({"text": "hello", "message_thread_id": 5})).await;
    assert_eq!(reply.chat.thread, None);
    let private = heard(
        ALICE,
        json!({"text": "hi", "message_thread_id": 5, "is_topic_message": true}),
    )
    .await;
    assert_eq!(
        private.chat.thread.map(|thread| thread.id),
        Some("5".to_owned())
    );
}

#[tokio::test]
async fn the_general_topic_is_written_to_without_a_number_and_shown_typing_by_it() {
    let (server, channel) = world().await;
    channel
        .send(&text(&format!("telegram:{FORUM}:1"), "hello"))
        .await
        .unwrap();
    assert_eq!(server.ours(FORUM)[0].get("message_thread_id"), None);
    channel
        .typing(&Address::parse(&format!("telegram:{FORUM}:1")).unwrap())
        .await
        .unwrap();
    assert_eq!(server.typing(), [(FORUM, Some(1))]);
}

#[tokio::test]
async fn a_topic_that_is_gone_is_written_to_the_chat_instead() {
    let (server, channel) = world().await;
    channel
        .send(&text(&format!("telegram:{FORUM}:999"), "hello"))
        .await
        .unwrap();
    assert_eq!(server.ours(FORUM).len(), 1);
    let sends = server.calls_of("sendMessage");
    assert_eq!(sends.len(), 2);
    assert_eq!(sends[1].fields.get("message_thread_id"), None);
    assert_eq!(server.ours(FORUM)[0]["text"], "hello");
}

#[tokio::test]
async fn topics_that_are_not_listened_in_are_not_heard() {
    let topic = |id: i64| json!({"text": id.to_string(), "message_thread_id": id, "is_topic_message": true});
    let check = async |settings: Value, expected: &[&str]| {
        let (server, channel) = world_with(&settings).await;
        for content in [json!({"text": "1"}), topic(TOPIC), topic(78)] {
            server.say(FORUM, content);
        }
        server.say(ALICE, json!({"text": "alice"}));
        let arrivals = arrivals(&server, &channel, expected.len()).await;
        let texts: Vec<&str> = arrivals
            .iter()
            .map(|incoming| match incoming {
                Incoming::Message(message) => message.text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, expected, "{settings}");
    };
    check(json!({}), &["1", "77", "78", "alice"]).await;
    check(json!({"ignored_threads": "77"}), &["1", "78", "alice"]).await;
    check(
        json!({"allowed_topics": [1, format!("{FORUM}:77")]}),
        &["1", "77", "alice"],
    )
    .await;
    check(json!({"allowed_topics": ["-5:77"]}), &["alice"]).await;
}

#[tokio::test]
async fn commands_and_mentions_lose_our_name_and_others_keep_theirs() {
    let check = async |said: &str, text: &str, us: bool, others: bool| {
        let message = heard(GROUP, json!({"text": said})).await;
        assert_eq!(message.text, text);
        assert_eq!(
            (message.mentions.us, message.mentions.other_bots),
            (us, others),
            "{said}"
        );
    };
    check(&format!("/new@{BOT_NAME} now"), "/new now", true, false).await;
    check(
        &format!("@{}: go", BOT_NAME.to_uppercase()),
        "go",
        true,
        false,
    )
    .await;
    check("/new@other_bot now", "/new@other_bot now", false, true).await;
    check("😀😀 @other_bot hi", "😀😀 @other_bot hi", false, true).await;
    check(
        &format!("😀 hi @{BOT_NAME}"),
        &format!("😀 hi @{BOT_NAME}"),
        true,
        false,
    )
    .await;
    check(
        &format!("@{BOT_NAME}_2 hi"),
        &format!("@{BOT_NAME}_2 hi"),
        false,
        false,
    )
    .await;
    check("@bob hi", "@bob hi", false, false).await;
    let named = json!({"text": "you, do it", "entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": BOT_ID, "is_bot": true}}]});
    assert!(heard(GROUP, named).await.mentions.us);
    let beyond =
        json!({"text": "x", "entities": [{"type": "mention", "offset": 500, "length": 9}]});
    assert!(!heard(GROUP, beyond).await.mentions.us);
}

#[tokio::test]
async fn what_is_not_words_is_told_in_words() {
    let place = json!({"latitude": 52.5, "longitude": 13.4});
    let check =
        async |content: Value, words: &str| assert_eq!(heard(ALICE, content).await.text, words);
    check(json!({"location": place}), "[Location: 52.5, 13.4]").await;
    check(json!({"venue": {"location": place, "title": "Café", "address": "Street 1"}, "location": place}), "[Venue: Café, Street 1 (52.5, 13.4)]").await;
    check(
        json!({"contact": {"phone_number": "+49", "first_name": "Bob"}}),
        "[Contact: Bob, +49]",
    )
    .await;
    check(
        json!({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}),
        "[Poll: Tea?]\n- yes\n- no",
    )
    .await;
    check(json!({"dice": {"emoji": "🎲", "value": 4}}), "[Dice 🎲: 4]").await;
    let sticker = heard(
        ALICE,
        json!({"sticker": {"file_id": "s", "emoji": "😀", "set_name": "Cats"}}),
    )
    .await;
    assert_eq!(sticker.text, "[Sticker 😀 from \"Cats\"]");
    assert_eq!(sticker.attachments[0].kind, AttachmentKind::Sticker);
    let animation = json!({"animation": {"file_id": "a"}, "document": {"file_id": "a"}});
    assert_eq!(heard(ALICE, animation).await.attachments.len(), 1);
}

#[tokio::test]
async fn posts_of_channels_and_of_anonymous_people_are_the_chats_own() {
    let post = heard(CHANNEL, json!({"text": "news"})).await;
    assert_eq!(post.chat.kind, ChatKind::Channel);
    assert_eq!(post.sender.id, CHANNEL.to_string());
    let anonymous = json!({"text": "x", "sender_chat": {"id": GROUP, "title": "Friends"}});
    assert_eq!(heard(GROUP, anonymous).await.sender.id, GROUP.to_string());
}

#[tokio::test]
async fn quotes_are_told_rather_than_whole_messages() {
    let quoting = json!({"text": "no", "quote": {"text": "this part"}, "reply_to_message": {"message_id": 3, "chat": {"id": ALICE}, "text": "all of this part"}});
    let replied = heard(ALICE, quoting).await.replies_to.unwrap();
    assert_eq!(replied.text.as_deref(), Some("this part"));
    let picture = json!({"text": "no", "reply_to_message": {"message_id": 3, "chat": {"id": ALICE}, "photo": [{"file_id": "p"}]}});
    assert_eq!(
        heard(ALICE, picture)
            .await
            .replies_to
            .unwrap()
            .text
            .as_deref(),
        Some("[picture]")
    );
}

#[tokio::test]
async fn kinds_that_nobody_answers_are_confirmed_and_forgotten() {
    let (server, channel) = world().await;
    server.tell("my_chat_member", json!({"chat": {"id": 1}}));
    server.say(GROUP, json!({"new_chat_members": [alice()]}));
    server.tell("edited_message", json!({"message_id": 1, "chat": {"id": ALICE}, "from": alice(), "location": {"latitude": 1.0, "longitude": 2.0}}));
    server.tell("message", json!({"message_id": 9, "chat": {"id": ALICE, "type": "private"}, "from": {"id": BOT_ID}, "text": "our own"}));
    server.tell(
        "callback_query",
        json!({"id": "x", "from": alice(), "data": "no message"}),
    );
    server.say(ALICE, json!({"text": "hello"}));
    assert_eq!(arrivals(&server, &channel, 1).await.len(), 1);
}

#[tokio::test]
async fn updates_without_numbers_end_the_connection_and_not_the_process() {
    let (server, channel) = world().await;
    server.tell_nonsense(json!({"message": {}}));
    let inlet = HeldInlet::default();
    let ended = channel.receive(&inlet).await;
    assert_eq!(ended.trouble, Trouble::Passing);
    assert!(inlet.kept().updates.is_empty());
}

#[tokio::test]
async fn numbers_that_begin_anew_are_heard_confirmed_and_no_duplicates_of_old_ones() {
    let (server, channel) = world().await;
    let inlet = std::sync::Arc::new(HeldInlet::default());
    let mut receiving = JoinSet::new();
    let held = std::sync::Arc::clone(&inlet);
    receiving.spawn(async move { channel.receive(&*held).await });
    let arrived = async |count: usize| {
        let all = inlet.wait_for("all arrive", |kept| kept.updates.len() >= count);
        assert_eq!(all.await.updates.len(), count);
        for _ in 0..2000 {
            if server.pending_count() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} updates are never confirmed", server.pending_count());
    };
    server.number_from(900);
    server.say(ALICE, json!({"text": "before", "date": 1_000_000}));
    arrived(1).await;
    // More than one answer has room for.
    server.number_from(1);
    for at in 0..120 {
        server.say(ALICE, json!({"text": at.to_string(), "date": 1_700_000}));
    }
    arrived(121).await;
    let polls = server.calls_of("getUpdates").len();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(server.calls_of("getUpdates").len() <= polls + 1);
    // A number that was used by the first numbering, and what is only told again.
    server.number_from(900);
    server.say(ALICE, json!({"text": "after", "date": 1_800_000}));
    server.repeat_last();
    arrived(122).await;
    assert_eq!(inlet.kept().cursor.as_deref(), Some("901"));
}

#[tokio::test]
async fn a_webhook_of_before_is_taken_away_and_nothing_that_waits_is_dropped() {
    let (server, channel) = world().await;
    server.set_webhook("https://elsewhere.example/hook", "x");
    server.say(ALICE, json!({"text": "hello"}));
    arrivals(&server, &channel, 1).await;
    let call = server.calls_of("deleteWebhook").remove(0);
    assert_eq!(call.fields["drop_pending_updates"], false);
}

#[tokio::test]
async fn a_second_process_ends_the_first_with_a_conflict() {
    let (server, channel) = world().await;
    let inlet = std::sync::Arc::new(HeldInlet::default());
    let mut first = JoinSet::new();
    let held = std::sync::Arc::clone(&inlet);
    let listening = std::sync::Arc::clone(&channel);
    first.spawn(async move { listening.receive(&*held).await });
    inlet
        .wait_for("connected", |kept| !kept.connected.is_empty())
        .await;
    while server.calls_of("getUpdates").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = open_at(&server.url(), TOKEN, &json!({}));
    let second = HeldInlet::default();
    let ended = tokio::select! {
        ended = first.join_next() => ended.unwrap().unwrap(),
        ended = other.receive(&second) => panic!("the newer one goes on: {ended:?}"),
    };
    assert_eq!(ended.trouble, Trouble::Conflict);
    assert!(ended.hint.unwrap().contains("another program"));
}

#[tokio::test]
async fn menus_are_put_for_everybody_and_halved_until_they_fit() {
    let (server, channel) = world().await;
    let commands: Vec<ChatCommand> = (0..80)
        .map(|at| ChatCommand {
            name: format!("cmd-{at}"),
            description: "does something".to_owned(),
        })
        .collect();
    server.fail(
        "setMyCommands",
        CallFault::Refuse(400, "Bad Request: BOT_COMMANDS_TOO_MUCH".to_owned()),
    );
    channel.set_commands(&commands).await.unwrap();
    for scope in ["default", "all_private_chats", "all_group_chats"] {
        let menu = server.menu(scope);
        assert_eq!((menu.len(), menu[0].as_str()), (30, "cmd_0"), "{scope}");
    }
}

#[tokio::test]
async fn a_group_that_moved_is_found_and_remembered() {
    let (server, channel) = world().await;
    server.move_chat(GROUP, -100_777);
    let to = format!("telegram:{GROUP}");
    let id = channel.send(&text(&to, "one")).await.unwrap();
    channel.send(&text(&to, "two")).await.unwrap();
    channel.edit(&id, &text(&to, "three")).await.unwrap();
    assert_eq!(server.ours(-100_777).len(), 2);
    assert_eq!(server.calls_of("sendMessage").len(), 3);
}

#[tokio::test]
async fn a_group_that_became_a_supergroup_is_known_by_its_former_name_after_a_restart_too() {
    const MOVED: i64 = -100_777;
    let check = async |said_in: i64, service: Value| {
        let (server, channel) = world().await;
        server.move_chat(GROUP, MOVED);
        let inlet = std::sync::Arc::new(HeldInlet::default());
        let listen = |channel: std::sync::Arc<dyn Channel>| {
            let held = std::sync::Arc::clone(&inlet);
            let mut receiving = JoinSet::new();
            receiving.spawn(async move { channel.receive(&*held).await });
            receiving
        };
        let said = async |words: &str| {
            let kept = inlet.wait_for(words, |kept| {
                let last = kept.updates.last().map(|update| &update.incoming);
                matches!(last, Some(Incoming::Message(message)) if message.text == words)
            });
            kept.await.updates.pop().unwrap().incoming.chat().clone()
        };
        let receiving = listen(channel);
        server.say(said_in, service);
        server.say(MOVED, json!({"text": "here we are"}));
        let chat = said("here we are").await;
        assert_eq!(chat.id, MOVED.to_string());
        assert_eq!(chat.former, Some(GROUP.to_string()));
        drop(receiving);
        let channel = open_at(&server.url(), TOKEN, &json!({}));
        let _receiving = listen(std::sync::Arc::clone(&channel));
        server.say(MOVED, json!({"text": "still here"}));
        assert_eq!(said("still here").await.former, Some(GROUP.to_string()));
        channel
            .send(&text(&format!("telegram:{GROUP}"), "yes"))
            .await
            .unwrap();
        assert_eq!(
            server.calls_of("sendMessage").len(),
            1,
            "it went there at once"
        );
        // Nobody else is taken for it.
        server.say(ALICE, json!({"text": "and I"}));
        assert_eq!(said("and I").await.former, None);
    };
    check(GROUP, json!({"migrate_to_chat_id": MOVED})).await;
    check(MOVED, json!({"migrate_from_chat_id": GROUP})).await;
}

#[tokio::test]
async fn a_webhook_keeps_what_a_group_is_called_now() {
    let settings =
        json!({"webhook_url": "https://bot.example.org/telegram", "webhook_secret": "s3cret_word"});
    let (server, channel) = world_with(&settings).await;
    let inlet = std::sync::Arc::new(HeldInlet::default());
    let mut receiving = JoinSet::new();
    let (listening, held) = (
        std::sync::Arc::clone(&channel),
        std::sync::Arc::clone(&inlet),
    );
    receiving.spawn(async move { listening.receive(&*held).await });
    inlet
        .wait_for("connected", |kept| !kept.connected.is_empty())
        .await;
    server.say(GROUP, json!({"migrate_to_chat_id": -100_777}));
    let (secret, body) = server.next_post().expect("an update");
    let request = hermes_core::WebRequest {
        method: "POST".to_owned(),
        query: String::new(),
        headers: vec![("x-telegram-bot-api-secret-token".to_owned(), secret)],
        body,
    };
    assert_eq!(channel.on_request(request, &*inlet).await.status, 200);
    let kept = inlet.kept().cursor.expect("a cursor");
    assert!(
        kept.contains(&GROUP.to_string()) && kept.contains("-100777"),
        "{kept}"
    );
}

fn file(to: i64, path: &std::path::Path, kind: AttachmentKind, name: &str) -> Outgoing {
    Outgoing {
        body: Body::File {
            path: path.to_owned(),
            kind,
            name: name.to_owned(),
            caption: "_look_".to_owned(),
        },
        ..text(&format!("telegram:{to}"), "")
    }
}

#[tokio::test]
async fn files_go_by_their_kind_and_to_a_server_of_ones_own_by_their_path() {
    let (server, channel) = world_with(&json!({"local_mode": true})).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("voice.ogg");
    std::fs::write(&path, "OggS and so on").unwrap();
    channel
        .send(&file(ALICE, &path, AttachmentKind::Voice, "voice.ogg"))
        .await
        .unwrap();
    let call = server.calls_of("sendVoice").remove(0);
    assert_eq!(call.fields["voice"], format!("file://{}", path.display()));
    assert_eq!(server.ours(ALICE)[0]["caption"], "look");
    let remote = open_at(&server.url(), TOKEN, &json!({}));
    remote
        .send(&file(ALICE, &path, AttachmentKind::Audio, "a.mp3"))
        .await
        .unwrap();
    let call = server.calls_of("sendAudio").remove(0);
    assert_eq!(call.files, [("a.mp3".to_owned(), 14)]);
    // What is said to be a voice and is none is a document.
    std::fs::write(&path, "not a voice").unwrap();
    remote
        .send(&file(ALICE, &path, AttachmentKind::Voice, "voice.ogg"))
        .await
        .unwrap();
    assert_eq!(server.calls_of("sendDocument").len(), 1);
    std::fs::write(&path, "").unwrap();
    let error = remote
        .send(&file(ALICE, &path, AttachmentKind::Voice, "voice.ogg"))
        .await
        .unwrap_err();
    assert_eq!(error.trouble, Trouble::Refused);
}

#[tokio::test]
async fn downloads_know_their_limit_and_say_what_helps() {
    let (server, channel) = world().await;
    let large = server.add_file(&vec![0; 20_000_001]);
    let Err(error) = channel.download(&large).await else {
        panic!("it is too large");
    };
    assert_eq!(error.trouble, Trouble::TooLong);
    assert!(error.hint.unwrap().contains("Bot API server"));
    let small = server.add_file(b"small");
    let pieces: Vec<Vec<u8>> = channel
        .download(&small)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(pieces.concat(), b"small");
}

#[tokio::test]
async fn an_address_that_resolves_to_nothing_is_reached_by_a_known_one() {
    let server = TelegramServer::start().await.with_chats();
    let url = format!("http://no-such-name.invalid:{}", server.address().port());
    let lost = open_at(&url, TOKEN, &json!({}));
    assert_eq!(lost.probe().await.unwrap_err().trouble, Trouble::Passing);
    let found = open_at(&url, TOKEN, &json!({"fallback_ips": "127.0.0.1"}));
    found.probe().await.unwrap();
    found
        .send(&text(&format!("telegram:{ALICE}"), "here"))
        .await
        .unwrap();
    assert_eq!(server.ours(ALICE).len(), 1);
}

#[tokio::test]
async fn a_proxy_is_gone_through() {
    let site = hermes_testkit::site::Site::open(|_| {
        let me = json!({"ok": true, "result": {"id": 42, "username": "by_proxy"}});
        hermes_testkit::site::Reaction::page("application/json", me.to_string())
    })
    .await;
    let settings = json!({"proxy": format!("http://{}", site.address())});
    let channel = open_at("http://telegram.invalid", TOKEN, &settings);
    channel.probe().await.unwrap();
    let head = site.requests().remove(0);
    assert!(
        head.starts_with("POST http://telegram.invalid/bot"),
        "{head}"
    );
}

#[tokio::test]
async fn nobody_listening_is_passing_and_tells_no_token() {
    let channel = open_at("http://127.0.0.1:1", TOKEN, &json!({}));
    let error = channel
        .send(&text("telegram:1", "hello"))
        .await
        .unwrap_err();
    assert_eq!(error.trouble, Trouble::Passing, "{error:?}");
    assert!(!format!("{error:?}").contains(TOKEN));
}

#[tokio::test]
async fn links_are_shown_with_a_preview_unless_they_are_not_wanted() {
    let (server, channel) = world_with(&json!({"disable_link_previews": true})).await;
    channel
        .send(&text(&format!("telegram:{ALICE}"), "https://example.org"))
        .await
        .unwrap();
    let call = server.calls_of("sendMessage").remove(0);
    assert_eq!(call.fields["link_preview_options"]["is_disabled"], true);
}

#[tokio::test]
async fn nothing_but_signs_is_shown_as_it_is_and_nothing_is_refused() {
    let (server, channel) = world().await;
    let to = format!("telegram:{ALICE}");
    channel.send(&text(&to, "```\n```")).await.unwrap();
    assert_eq!(server.ours(ALICE)[0]["text"], "```\n```");
    let error = channel.send(&text(&to, " \n ")).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Refused);
}

#[tokio::test]
async fn what_is_being_written_is_a_draft_in_private_chats_and_nothing_of_it_stays() {
    let (server, channel) = world().await;
    let alice = format!("telegram:{ALICE}");
    let half = text(&alice, "half *an* answer");
    assert!(channel.has_drafts(&half.to));
    channel.draft(&half).await.unwrap();
    let more = Outgoing {
        replies_to: Some("1".into()),
        ..text(&alice, &"😀".repeat(5_000))
    };
    channel.draft(&more).await.unwrap();
    let calls = server.calls_of("sendMessageDraft");
    assert_eq!(calls[0].fields["text"], "half an answer");
    assert_eq!(calls[0].fields["draft_id"], calls[1].fields["draft_id"]);
    assert_eq!(server.ours(ALICE).len(), 0);
    let in_group = text(&format!("telegram:{GROUP}"), "half");
    assert!(!channel.has_drafts(&in_group.to));
    assert!(channel.draft(&in_group).await.is_err());
}

#[tokio::test]
async fn what_is_passed_on_is_not_what_its_sender_says() {
    let user =
        |id: i64| json!({"id": id, "is_bot": false, "first_name": "Eve", "last_name": "Adams"});
    for (origin, from) in [
        (
            json!({"type": "user", "date": 1, "sender_user": user(999)}),
            Some("Eve Adams"),
        ),
        (
            json!({"type": "hidden_user", "date": 1, "sender_user_name": "Mallory"}),
            Some("Mallory"),
        ),
        (
            json!({"type": "channel", "date": 1, "chat": {"id": -5, "type": "channel", "title": "News"}}),
            Some("News"),
        ),
        (json!({"type": "something new"}), None),
    ] {
        let message = heard(
            ALICE,
            json!({"text": "/new pay me", "forward_origin": origin}),
        )
        .await;
        assert_eq!(message.text, "", "{origin}");
        let forwarded = message.forwarded.expect("what was passed on");
        assert_eq!(forwarded.text, "/new pay me");
        assert_eq!(forwarded.from.as_deref(), from, "{origin}");
    }
    let old = heard(ALICE, json!({"text": "pay me", "forward_date": 1})).await;
    assert_eq!(old.text, "");
    let own = json!({"type": "user", "date": 1, "sender_user": user(ALICE)});
    let own = heard(ALICE, json!({"text": "my words", "forward_origin": own})).await;
    assert_eq!((own.text.as_str(), own.forwarded), ("my words", None));
}

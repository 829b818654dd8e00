//! The contract, and what is Discord's own, against the strict server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use hermes_core::{
    Address, Arrival, Body, Button, Channel, ChannelError, ChatCommand, ChatKind, Incoming,
    IncomingMessage, MessageId, Outgoing, Reaction, Trouble,
};
use hermes_testkit::contract::channel::{HeldInlet, channel_contract};
use hermes_testkit::discord::people::{ALICE, DIRECT, FORUM, GENERAL, THREAD};
use hermes_testkit::discord::{BOT_ID, CallFault, DiscordServer, TOKEN};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::open_at;
use super::side::FakeDiscord;

#[tokio::test]
async fn discord_keeps_the_contract() {
    let report = channel_contract(async || FakeDiscord::new().await).await;
    assert!(report.played.len() >= 60, "{}", report.played.len());
    assert_eq!(
        report.left_out,
        [
            // There are no requests to answer, no albums, and no markup that is refused; several may receive with one token.
            "answers::a_request_with_a_wrong_secret_is_refused",
            "answers::a_request_that_makes_no_sense_does_no_harm",
            "files::an_album_is_told_as_one",
            "faults::a_second_receiver_is_said",
            "faults::a_bad_format_is_sent_plainly",
        ]
    );
}

/// A server with channels, a channel of ours to it, and what it hears.
struct World {
    server: DiscordServer,
    channel: Arc<dyn Channel>,
    inlet: Arc<HeldInlet>,
    receiving: JoinSet<ChannelError>,
}

impl World {
    async fn new() -> Self {
        Self::with(&json!({})).await
    }

    async fn with(settings: &Value) -> Self {
        let server = DiscordServer::start().await.with_channels();
        let channel = open_at(&server.url(), TOKEN, settings);
        Self {
            server,
            channel,
            inlet: Arc::default(),
            receiving: JoinSet::new(),
        }
    }

    /// Begins to receive, and waits until it is connected.
    async fn connect(&mut self) {
        let before = self.inlet.kept().connected.len();
        self.listen();
        self.inlet
            .wait_for("connected", |kept| kept.connected.len() > before)
            .await;
    }

    fn listen(&mut self) {
        let (channel, inlet) = (Arc::clone(&self.channel), Arc::clone(&self.inlet));
        self.receiving
            .spawn(async move { channel.receive(&*inlet).await });
    }

    async fn ended(&mut self) -> ChannelError {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.receiving.join_next());
        ended
            .await
            .expect("it ends")
            .expect("one")
            .expect("no panic")
    }

    /// As after `kill -9`: another process, with what was kept.
    async fn restart(&mut self) {
        self.receiving.shutdown().await;
        self.channel = open_at(&self.server.url(), TOKEN, &json!({}));
        self.connect().await;
    }

    async fn heard(&self, text: &str) -> IncomingMessage {
        let find = |kept: &[hermes_core::Update]| {
            kept.iter().find_map(|update| match &update.incoming {
                Incoming::Message(message) if message.text == text => Some(message.clone()),
                _ => None,
            })
        };
        let kept = self
            .inlet
            .wait_for(text, |kept| find(&kept.updates).is_some())
            .await;
        find(&kept.updates).expect("it was there")
    }

    fn say(&self, channel: &str, text: &str) -> String {
        self.server.say(channel, json!({"content": text}))
    }
}

fn text(channel: &str, markdown: &str, key: &str) -> Outgoing {
    Outgoing {
        to: Address::parse(&format!("discord:{channel}")).unwrap(),
        key: key.to_owned(),
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

fn mention(words: &str) -> Value {
    json!({"content": format!("<@{BOT_ID}> {words}")})
}

#[tokio::test]
async fn a_session_is_resumed_after_a_restart_and_nothing_is_lost_or_doubled() {
    let mut world = World::new().await;
    world.connect().await;
    world.say(DIRECT, "one");
    world.heard("one").await;
    world.receiving.shutdown().await;
    world.say(DIRECT, "two");
    world.say(GENERAL, "three");
    world.restart().await;
    world.heard("two").await;
    // The channel is known though this process was never told of it.
    let three = world.heard("three").await;
    assert_eq!(
        (three.chat.kind, three.chat.title.as_deref()),
        (ChatKind::Group, Some("general"))
    );
    assert_eq!(world.server.sessions_count(), 1, "it was resumed");
    assert_eq!(world.inlet.kept().updates.len(), 3);
    assert_eq!(world.inlet.kept().numbers.len(), 3);
}

#[tokio::test]
async fn a_session_whose_place_is_gone_is_resumed_where_the_gateway_is_now() {
    let mut world = World::new().await;
    world.server.resume_at("ws://127.0.0.1:1");
    world.connect().await;
    world.say(DIRECT, "one");
    world.heard("one").await;
    world.receiving.shutdown().await;
    world.say(DIRECT, "two");
    world.restart().await;
    world.heard("two").await;
    assert_eq!(world.server.sessions_count(), 1, "it was resumed");
    assert_eq!(world.inlet.kept().updates.len(), 2);
    assert!(world.receiving.try_join_next().is_none());
}

#[tokio::test]
async fn a_session_that_nobody_resumes_is_begun_anew_and_what_was_missed_is_asked_for() {
    let mut world = World::new().await;
    world.connect().await;
    world.say(DIRECT, "one");
    world.heard("one").await;
    world.receiving.shutdown().await;
    world.say(DIRECT, "two");
    world.server.hang_up_on_resume();
    world.restart().await;
    world.heard("two").await;
    assert_eq!(world.server.sessions_count(), 2);
    assert_eq!(world.inlet.kept().updates.len(), 2);
}

#[tokio::test]
async fn what_could_not_be_kept_is_replayed() {
    let mut world = World::new().await;
    world.connect().await;
    world.inlet.set_refusing(true);
    world.say(DIRECT, "keep me");
    let error = world.ended().await;
    assert_eq!(error.trouble, Trouble::Passing);
    world.inlet.set_refusing(false);
    world.connect().await;
    world.heard("keep me").await;
    assert_eq!(world.server.sessions_count(), 1);
}

#[tokio::test]
async fn a_new_socket_is_opened_at_once_when_discord_asks_for_it() {
    let mut world = World::new().await;
    world.connect().await;
    for (count, frame) in [
        (2, r#"{"op": 7, "d": null}"#),
        (3, r#"{"op": 9, "d": true}"#),
    ] {
        world.server.send_frame(frame);
        world
            .inlet
            .wait_for("connected again", |kept| kept.connected.len() >= count)
            .await;
    }
    world.say(DIRECT, "still there?");
    world.heard("still there?").await;
    assert_eq!(world.server.sessions_count(), 1);
    assert_eq!(world.server.sockets_count(), 3);
    assert!(
        world.receiving.try_join_next().is_none(),
        "nobody had to connect again"
    );
}

#[tokio::test]
async fn what_was_said_while_the_session_was_lost_is_asked_for() {
    // Complaint 2: messages sent while the gateway was down.
    let mut world = World::new().await;
    world.connect().await;
    world.say(DIRECT, "one");
    world.heard("one").await;
    world.receiving.shutdown().await;
    world.say(DIRECT, "two");
    world.say(GENERAL, "three");
    world.say(THREAD, "four");
    world.server.forget_sessions();
    world.restart().await;
    for words in ["two", "three", "four"] {
        world.heard(words).await;
    }
    assert_eq!(
        world.heard("four").await.chat.parent.as_deref(),
        Some(GENERAL)
    );
    assert_eq!(world.inlet.kept().updates.len(), 4, "and nothing of before");
    world.say(DIRECT, "five");
    world.heard("five").await;
}

#[tokio::test]
async fn what_was_missed_is_asked_for_again_after_a_crash_in_the_midst_of_it() {
    let mut world = World::new().await;
    world.connect().await;
    world.say(DIRECT, "one");
    world.heard("one").await;
    world.receiving.shutdown().await;
    world.say(DIRECT, "two");
    world.server.forget_sessions();
    // The first try breaks off after something newer was kept.
    let route = format!("GET /channels/{DIRECT}/messages");
    world.server.fail(&route, CallFault::Hang);
    world.restart().await;
    world.say(GENERAL, "three");
    world.heard("three").await;
    assert_eq!(world.inlet.kept().updates.len(), 2);
    world.restart().await;
    world.heard("two").await;
    assert_eq!(world.inlet.kept().updates.len(), 3);
}

#[tokio::test]
async fn what_was_missed_is_left_alone_where_settings_say_so() {
    let mut world = World::with(&json!({"missed_message_backfill": false})).await;
    world.connect().await;
    world.say(DIRECT, "one");
    world.heard("one").await;
    world.server.forget_sessions();
    world.server.drop_sockets();
    world.ended().await;
    world.say(DIRECT, "two");
    world.connect().await;
    world.say(DIRECT, "three");
    world.heard("three").await;
    assert_eq!(world.inlet.kept().updates.len(), 2);
}

#[tokio::test]
async fn a_person_is_told_what_to_change_and_only_then() {
    let mut world = World::new().await;
    world.server.withhold_message_content();
    world.listen();
    let error = world.ended().await;
    assert_eq!(error.trouble, Trouble::NotAuthorised);
    let hint = error.hint.expect("a hint");
    assert!(
        hint.contains("Message Content Intent") && hint.contains("Privileged Gateway Intents"),
        "{hint}"
    );

    let mut world = World::new().await;
    world.connect().await;
    world.server.close_sockets(4004);
    let error = world.ended().await;
    assert_eq!(error.trouble, Trouble::NotAuthorised);
    assert!(error.hint.expect("a hint").contains("DISCORD_BOT_TOKEN"));

    world.connect().await;
    world.server.close_sockets(4008);
    assert_eq!(world.ended().await.trouble, Trouble::Passing);
    world.server.use_up_sessions();
    world.server.forget_sessions();
    world.inlet = Arc::default();
    world.listen();
    let error = world.ended().await;
    assert_eq!(
        error.trouble,
        Trouble::Throttled {
            wait: Duration::from_secs(7)
        }
    );
}

#[tokio::test]
async fn a_socket_that_answers_no_heartbeats_is_given_up() {
    let mut world = World::new().await;
    world.connect().await;
    world.server.deafen_sockets();
    let error = world.ended().await;
    assert_eq!(error.trouble, Trouble::Passing);
    assert!(error.message.contains("heartbeat"), "{}", error.message);
}

#[tokio::test]
async fn buckets_hold_up_their_channel_and_no_other() {
    let world = World::new().await;
    world.server.limit_sends(2, Duration::from_secs(30));
    for key in ["1", "2"] {
        world.channel.send(&text(DIRECT, key, key)).await.unwrap();
    }
    let error = world
        .channel
        .send(&text(DIRECT, "3", "3"))
        .await
        .unwrap_err();
    assert!(
        matches!(error.trouble, Trouble::Throttled { wait } if wait > Duration::from_secs(20)),
        "{error:?}"
    );
    // It was not even asked.
    let route = format!("POST /channels/{DIRECT}/messages");
    assert_eq!(world.server.calls_of(&route).len(), 2);
    world
        .channel
        .send(&text(GENERAL, "elsewhere", "4"))
        .await
        .unwrap();
    // A wait for everything holds up everything.
    world.server.fail("send", CallFault::ThrottleAll(9.0));
    world
        .channel
        .send(&text(GENERAL, "x", "5"))
        .await
        .unwrap_err();
    let error = world
        .channel
        .send(&text(THREAD, "x", "6"))
        .await
        .unwrap_err();
    assert!(
        matches!(error.trouble, Trouble::Throttled { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_there_once() {
    let world = World::new().await;
    let message = text(DIRECT, "the answer", "turn/1#0");
    world.server.fail("send", CallFault::DropAfter);
    let error = world.channel.send(&message).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Ambiguous);
    // Another process sends it again.
    let other = open_at(&world.server.url(), TOKEN, &json!({}));
    let id = other.send(&message).await.unwrap();
    let ours = world.server.ours(DIRECT);
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0]["id"], id.as_str());
    // Long after, it is found by what it says behind what it replies to.
    let question = world.say(DIRECT, "a question");
    let reply = Outgoing {
        replies_to: Some(MessageId::from(question)),
        ..text(DIRECT, "a **late** answer", "turn/2#0")
    };
    assert_eq!(other.find_sent(&reply).await.unwrap(), Arrival::Unknown);
    let id = other.send(&reply).await.unwrap();
    assert_eq!(other.find_sent(&reply).await.unwrap(), Arrival::Arrived(id));
}

#[tokio::test]
async fn nobody_is_called_by_what_a_model_writes() {
    let world = World::new().await;
    let words = format!("@everyone @here <@{ALICE}> look");
    let id = world
        .channel
        .send(&text(GENERAL, &words, "1"))
        .await
        .unwrap();
    world
        .channel
        .edit(&id, &text(GENERAL, &format!("{words} again"), "1"))
        .await
        .unwrap();
    assert_eq!(world.server.ours(GENERAL)[0]["mention_everyone"], false);
    for call in world
        .server
        .calls_of(&format!("/channels/{GENERAL}/messages"))
    {
        let closed = json!({"parse": [], "replied_user": false});
        assert_eq!(call.body["allowed_mentions"], closed, "{}", call.route);
    }
}

#[tokio::test]
async fn a_conversation_that_begins_with_our_name_gets_a_thread() {
    let mut world = World::new().await;
    world.connect().await;
    let id = world.server.say(GENERAL, mention("plan the trip\nplease"));
    let message = world.heard("plan the trip\nplease").await;
    assert!(message.mentions.us);
    let place = world.channel.place_for(&message).await.expect("a thread");
    assert_eq!(place.kind, ChatKind::Thread);
    assert_eq!(
        (place.id.as_str(), place.parent.as_deref()),
        (id.as_str(), Some(GENERAL))
    );
    assert_eq!(
        world.server.threads(GENERAL).last().unwrap().1,
        "plan the trip"
    );
    // After a crash it is the same one.
    let other = open_at(&world.server.url(), TOKEN, &json!({}));
    assert_eq!(other.place_for(&message).await, Some(place.clone()));
    // The message it hangs on is in the channel above: it is marked there, and not replied to.
    let to = Address::of("discord", &place);
    for reaction in [Some(Reaction::Seen), Some(Reaction::Done)] {
        world
            .channel
            .react(&to, &message.id, reaction)
            .await
            .unwrap();
    }
    assert_eq!(world.server.reactions(GENERAL, &id), ["✅"]);
    let answer = Outgoing {
        to,
        replies_to: Some(message.id),
        ..text(GENERAL, "gladly", "1")
    };
    world.channel.send(&answer).await.unwrap();
    assert_eq!(world.server.ours(&id).len(), 1);
    // There, nobody has to name us again; in threads of others they do.
    world.say(&id, "and then?");
    let next = world.heard("and then?").await;
    assert!(next.mentions.in_our_thread && !next.mentions.us);
    assert_eq!(world.channel.place_for(&next).await, None);
    world.say(THREAD, "among us");
    assert!(!world.heard("among us").await.mentions.in_our_thread);
    // Complaint 19: several bots in one thread, which answered each other for ever.
    let bot = json!({"id": "1000000000000007777", "username": "other", "bot": true});
    world.server.say_as(&id, &bot, json!({"content": "beep"}));
    let beep = world.heard("beep").await;
    assert!(beep.sender.is_bot && !beep.mentions.in_our_thread);
}

#[tokio::test]
async fn threads_are_not_opened_where_nobody_wants_them() {
    let settings = json!({"no_thread_channels": GENERAL, "thread_require_mention": true});
    let mut world = World::with(&settings).await;
    world.connect().await;
    world.server.say(GENERAL, mention("hello"));
    let message = world.heard("hello").await;
    assert_eq!(world.channel.place_for(&message).await, None);
    world.channel.send(&text(THREAD, "hi", "1")).await.unwrap();
    world.say(THREAD, "go on");
    assert!(!world.heard("go on").await.mentions.in_our_thread);
    // One that may not be opened is no reason to be silent.
    let other = open_at(&world.server.url(), TOKEN, &json!({}));
    let route = format!("POST /channels/{GENERAL}/messages/{}/threads", message.id);
    world.server.fail(
        &route,
        CallFault::Refuse(403, 50013, "Missing Permissions".to_owned()),
    );
    assert_eq!(other.place_for(&message).await, None);
}

#[tokio::test]
async fn a_forum_gets_a_post_and_the_rest_of_the_text_in_it() {
    let world = World::new().await;
    let first = world
        .channel
        .send(&text(FORUM, "# Weekly report\n\nAll well.", "job/1#0"))
        .await
        .unwrap();
    // As after `kill -9`: another process, which is told what came before.
    let more = Outgoing {
        follows: Some(first.clone()),
        ..text(FORUM, "More of it.", "job/1#1")
    };
    let world = World {
        channel: open_at(&world.server.url(), TOKEN, &json!({})),
        ..world
    };
    let (post, _) = first.as_str().split_once('.').unwrap();
    let route = format!("POST /channels/{post}/messages");
    world.server.fail(&route, CallFault::DropAfter);
    let error = world.channel.send(&more).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Ambiguous);
    let second = world.channel.send(&more).await.unwrap();
    let threads = world.server.threads(FORUM);
    assert_eq!(threads.len(), 1);
    let (post, name) = &threads[0];
    assert_eq!(name, "Weekly report");
    let written = |channel: &str| -> Vec<String> {
        let ours = world.server.ours(channel);
        ours.iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        written(post),
        ["# Weekly report\n\nAll well.", "More of it."]
    );
    // Both can still be changed by what they are called.
    world
        .channel
        .edit(&first, &text(FORUM, "changed", "job/1#0"))
        .await
        .unwrap();
    world
        .channel
        .delete(
            &Address::parse(&format!("discord:{FORUM}")).unwrap(),
            &second,
        )
        .await
        .unwrap();
    assert_eq!(written(post), ["changed"]);
    world
        .channel
        .send(&text(FORUM, "Another", "job/2#0"))
        .await
        .unwrap();
    assert_eq!(world.server.threads(FORUM).len(), 2);
}

#[tokio::test]
async fn a_post_that_may_have_been_opened_is_known_to_be_in_doubt() {
    let world = World::new().await;
    let to = |channel: &str| Address::parse(&format!("discord:{channel}")).unwrap();
    let route = format!("POST /channels/{FORUM}/threads");
    world.server.fail(&route, CallFault::DropAfter);
    let post = text(FORUM, "Weekly report", "job/1#0");
    let error = world.channel.send(&post).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Ambiguous);
    assert!(!world.channel.knows_keys(&to(FORUM)));
    assert!(world.channel.knows_keys(&to(GENERAL)));
    // Another process finds that out before it sends again.
    let other = open_at(&world.server.url(), TOKEN, &json!({}));
    assert_eq!(other.find_sent(&post).await.unwrap(), Arrival::Unknown);
    assert!(!other.knows_keys(&to(FORUM)));
}

#[tokio::test]
async fn a_thread_is_opened_below_a_channel_a_message_and_a_forum() {
    let world = World::new().await;
    let below = Address::parse(&format!("discord:{GENERAL}")).unwrap();
    let id = MessageId::from(world.say(GENERAL, "hello"));
    let at = world
        .channel
        .create_thread(&below, Some(&id), "Hermes — plans")
        .await
        .unwrap();
    assert_eq!(at.chat, id.as_str());
    let free = world
        .channel
        .create_thread(&below, None, "Hermes — plans")
        .await
        .unwrap();
    assert_ne!(free.chat, at.chat);
    let forum = Address::parse(&format!("discord:{FORUM}")).unwrap();
    let post = world
        .channel
        .create_thread(&forum, None, "A question")
        .await
        .unwrap();
    for to in [at, free, post] {
        let message = Outgoing {
            to: to.clone(),
            ..text(GENERAL, "hi", &to.chat)
        };
        world.channel.send(&message).await.unwrap();
    }
}

#[tokio::test]
async fn a_command_is_a_message_and_its_answer_takes_the_place_that_was_promised() {
    let mut world = World::new().await;
    world.connect().await;
    let token = world.server.command(GENERAL, "model", "gpt");
    let message = world.heard("/model gpt").await;
    assert_eq!(
        (message.chat.id.as_str(), message.chat.kind),
        (GENERAL, ChatKind::Group)
    );
    assert_eq!(message.sender.id, ALICE);
    assert_eq!(
        world.server.noticed(&token).map(|noticed| noticed.0),
        Some(5)
    );
    assert_eq!(
        world.channel.place_for(&message).await,
        None,
        "no thread hangs on a command"
    );
    let to = Address::of("discord", &message.chat);
    world
        .channel
        .react(&to, &message.id, Some(Reaction::Seen))
        .await
        .unwrap();
    // The gateway's own words name no message; those of a turn do.
    let id = world
        .channel
        .send(&text(GENERAL, "It is gpt.", "1"))
        .await
        .unwrap();
    assert_eq!(
        world.server.answer_of(&token).unwrap()["content"],
        "It is gpt."
    );
    world
        .channel
        .edit(&id, &text(GENERAL, "It is gpt now.", "1"))
        .await
        .unwrap();
    assert_eq!(
        world.server.answer_of(&token).unwrap()["content"],
        "It is gpt now."
    );
    world
        .channel
        .send(&text(GENERAL, "something else", "2"))
        .await
        .unwrap();
    assert_eq!(world.server.ours(GENERAL).len(), 2);

    // After a crash nothing is remembered but what the message is called.
    let token = world.server.command(DIRECT, "new", "");
    let message = world.heard("/new").await;
    let other = open_at(&world.server.url(), TOKEN, &json!({}));
    let answer = Outgoing {
        replies_to: Some(message.id),
        ..text(DIRECT, "A new one.", "3")
    };
    other.send(&answer).await.unwrap();
    assert_eq!(
        world.server.answer_of(&token).unwrap()["content"],
        "A new one."
    );
}

#[tokio::test]
async fn a_strangers_command_is_not_thought_about_for_minutes() {
    let mut world = World::new().await;
    world.connect().await;
    let token = world.server.command(GENERAL, "model", "gpt");
    let message = world.heard("/model gpt").await;
    assert!(world.server.answer_of(&token).is_some());
    let incoming = Incoming::Message(message);
    world.channel.turn_away(&incoming).await;
    assert!(world.server.answer_of(&token).is_none());
    // What is said next there is no answer to it.
    let next = text(GENERAL, "Good morning.", "1");
    world.channel.send(&next).await.unwrap();
    assert_eq!(world.server.ours(GENERAL).len(), 1);
}

#[tokio::test]
async fn a_press_is_noticed_at_once_and_answered_for_one_pair_of_eyes() {
    let mut world = World::new().await;
    world.connect().await;
    let mut question = text(GENERAL, "May I?", "1");
    question.buttons = vec![vec![Button {
        label: "Yes".to_owned(),
        data: "ea:once:1".to_owned(),
    }]];
    let id = world.channel.send(&question).await.unwrap();
    let token = world.server.press(GENERAL, id.as_str(), "ea:once:1");
    let kept = world
        .inlet
        .wait_for("a press", |kept| !kept.updates.is_empty())
        .await;
    let Incoming::Press(press) = &kept.updates[0].incoming else {
        panic!("a press");
    };
    assert_eq!(world.server.noticed(&token), Some((6, Vec::new())));
    world
        .channel
        .acknowledge(press, Some("Thank you."))
        .await
        .unwrap();
    assert_eq!(
        world.server.noticed(&token),
        Some((6, vec!["Thank you.".to_owned()]))
    );
}

#[tokio::test]
async fn commands_are_put_only_when_they_are_others() {
    let world = World::new().await;
    let command = |name: &str| ChatCommand {
        name: name.to_owned(),
        description: format!("Does {name}"),
    };
    let commands = [command("new"), command("reload-mcp")];
    for _ in 0..3 {
        world.channel.set_commands(&commands).await.unwrap();
    }
    let (names, count) = world.server.commands();
    assert_eq!(
        (names, count),
        (vec!["new".to_owned(), "reload-mcp".to_owned()], 1)
    );
    world.channel.set_commands(&commands[..1]).await.unwrap();
    assert_eq!(world.server.commands().1, 2);
    let quiet = open_at(
        &world.server.url(),
        TOKEN,
        &json!({"command_sync_policy": "off"}),
    );
    quiet.set_commands(&[]).await.unwrap();
    assert_eq!(world.server.commands().0, ["new"]);
}

#[tokio::test]
async fn files_are_taken_up_to_a_size_and_by_addresses_that_are_good_now() {
    let mut world = World::with(&json!({"max_attachment_bytes": 10})).await;
    world.connect().await;
    let small = world.server.add_file("a.txt", "text/plain", b"hello");
    let large = world
        .server
        .add_file("b.txt", "text/plain", b"hello, everybody");
    world.server.say(
        DIRECT,
        json!({"content": "files", "attachments": [small, large]}),
    );
    let message = world.heard("files").await;
    let [small, large] = message.attachments.as_slice() else {
        panic!("{message:?}");
    };
    let bytes: Vec<Vec<u8>> = world
        .channel
        .download(&small.file)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(bytes.concat(), b"hello");
    let Err(error) = world.channel.download(&large.file).await else {
        panic!("it is too large");
    };
    assert_eq!(error.trouble, Trouble::TooLong);
    assert!(error.hint.is_some());
}

#[tokio::test]
async fn what_is_said_in_channels_that_are_ignored_and_what_is_for_others_is_not_heard() {
    let mut world = World::with(&json!({"ignored_channels": [GENERAL]})).await;
    world.connect().await;
    world.server.say(GENERAL, mention("not here"));
    world.say(THREAD, "nor below");
    world.say(DIRECT, "but here");
    world.heard("but here").await;
    assert_eq!(world.inlet.kept().updates.len(), 1);
}

#[tokio::test]
async fn channels_can_be_listed() {
    let world = World::new().await;
    let chats = world.channel.chats().await.unwrap();
    let found: Vec<_> = chats
        .iter()
        .map(|chat| (chat.id.as_str(), chat.kind))
        .collect();
    assert_eq!(
        found,
        [(GENERAL, ChatKind::Group), (FORUM, ChatKind::Forum)]
    );
}

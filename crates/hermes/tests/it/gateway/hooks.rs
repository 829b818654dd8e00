//! Hooks: commands of the owner that hear of what happens, and have a say in commands.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use serde_json::Value;

use super::platform::{Bot, ends_with};

fn hook(home: &Path, name: &str, yaml: &str) {
    let folder = home.join("hooks").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("HOOK.yaml"), yaml).unwrap();
}

fn heard(home: &Path) -> Vec<Value> {
    let text = fs::read_to_string(home.join("heard")).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_hear_what_happens_and_decide_about_commands() {
    let script = Script::always(Answer::text("an answer"));
    let mut bot = Bot::new(script, &ALICE.to_string()).await;
    bot.kill();
    let home = bot.setting.hermes.home();
    let decide = |verdict: &str| format!("command: echo '{verdict}'\n");
    hook(
        &home,
        "a-listener",
        // In one write: several run at a time.
        "events: ['*']\ncommand: 'said=$(cat); printf \"%s\\n\" \"$said\" >> \"$HERMES_HOME/heard\"'\n",
    );
    hook(
        &home,
        "b-denies",
        &format!(
            "events: [command:model]\n{}",
            decide(r#"{"decision":"deny","message":"the model stays"}"#)
        ),
    );
    hook(
        &home,
        "c-rewrites",
        &format!(
            "events: command:usage\n{}",
            decide(r#"{"decision":"rewrite","command":"/version"}"#)
        ),
    );
    hook(
        &home,
        "d-hangs",
        "events: [command:whoami, agent:start]\ncommand: sleep 60\ntimeout: 1\n",
    );
    hook(&home, "e-fails", "events: ['*']\ncommand: exit 3\n");
    hook(&home, "f-nothing", "name: nothing\n");
    hook(&home, "g-handler", "events: [command:insights]\n");
    fs::write(
        home.join("hooks/g-handler/handler.py"),
        "async def handle(event, context):\n    return {'decision': 'handled', 'message': f\"{context['user_name']} asked {event}\"}\n",
    )
    .unwrap();
    bot.start();
    bot.say("hello");
    bot.expect_answers(&["an answer"]);
    let last = |bot: &Bot, words: &str| bot.expect(ALICE, words, |texts| ends_with(texts, words));
    bot.say("/model other");
    last(&bot, "the model stays");
    bot.say("/usage");
    last(&bot, env!("CARGO_PKG_VERSION"));
    bot.say("/insights");
    last(&bot, "Alice Example asked command:insights");
    // One that hangs holds up nothing for longer than it may.
    bot.say("/whoami");
    bot.expect(ALICE, "an answer of its own", |texts| texts.len() == 5);
    let deadline = Instant::now() + Duration::from_secs(20);
    let names = || -> Vec<String> {
        let name = |event: &Value| event["event"].as_str().unwrap_or_default().to_owned();
        heard(&home).iter().map(name).collect()
    };
    let wanted = [
        "gateway:startup",
        "session:start",
        "agent:start",
        "agent:end",
        "command:model",
    ];
    while !wanted
        .iter()
        .all(|name| names().contains(&(*name).to_owned()))
    {
        assert!(Instant::now() < deadline, "{:?}", names());
        std::thread::sleep(Duration::from_millis(20));
    }
    let heard = heard(&home);
    let of = |name: &str| {
        let found = heard.iter().find(|event| event["event"] == name);
        found.unwrap()["context"].clone()
    };
    let start = of("agent:start");
    assert_eq!(start["message"], "hello");
    assert_eq!(start["platform"], "telegram");
    assert_eq!(start["user_id"], "1001");
    assert_eq!(of("agent:end")["turn_id"], start["turn_id"]);
    assert_eq!(of("command:model")["args"], "other");
    assert_eq!(of("gateway:startup")["platforms"][0], "telegram");
}

//! What goes along to where commands run, and what comes back, through the whole binary.

use std::fs;
use std::time::Duration;

use hermes_testkit::daytona::{DaytonaServer, KEY};
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const SETTINGS: &str = "\
approvals:
  mode: 'off'
terminal:
  backend: daytona
  env_passthrough: [GREETING, OPENAI_API_KEY]
  credential_files: [{path: token.json}, ../outside.json]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skills_come_back_credentials_do_not_and_keys_never_leave() {
    let line = "echo $GREETING ${OPENAI_API_KEY-none}; cat ~/.hermes/token.json; ls -A ~/.hermes; \
                echo there >~/.hermes/skills/demo/SKILL.md";
    let setting = Setting::with(
        Script::new([
            Answer::call("c1", "terminal", json!({ "command": line })),
            Answer::text("done"),
        ]),
        SETTINGS,
    )
    .await;
    let home = setting.hermes.home();
    fs::create_dir_all(home.join("skills/demo")).unwrap();
    fs::write(home.join("skills/demo/SKILL.md"), "here").unwrap();
    fs::write(home.join("token.json"), "token\n").unwrap();
    let sandbox = tempfile::tempdir().unwrap();
    let cloud = DaytonaServer::start(sandbox.path());
    let hermes = setting.hermes.clone().deadline(Duration::from_secs(60));
    let output = hermes
        .env("DAYTONA_API_URL", cloud.address())
        .env("DAYTONA_API_KEY", KEY)
        .env("GREETING", "hello")
        .env("OPENAI_API_KEY", "sk-not-for-commands")
        .args(["chat", "-q", "go"])
        .run();
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = setting.server.requests();
    let asked = String::from_utf8_lossy(&requests.last().unwrap().body);
    let seen = r"hello none\ntoken\n.sync\nskills\ntoken.json\n";
    assert!(asked.contains(seen), "{asked}");
    assert!(!asked.contains("sk-not-for-commands"), "{asked}");
    for words in [
        "`terminal.env_passthrough` names `OPENAI_API_KEY`",
        "`../outside.json` is not the path of a file below the home",
        "skills that were changed there came back: skills/demo/SKILL.md",
    ] {
        assert!(output.stderr.contains(words), "{words} in {output:?}");
    }
    let skill = fs::read_to_string(home.join("skills/demo/SKILL.md"));
    assert_eq!(skill.unwrap(), "there\n");
    assert!(!sandbox.path().join(".hermes/token.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_skill_was_allowed_goes_along() {
    let line = "echo lengths ${#BOX_API_KEY} ${#OTHER_API_KEY}; cat ~/.hermes/box.json ~/.hermes/other.json";
    let setting = Setting::with(
        Script::new([
            Answer::call("c1", "terminal", json!({ "command": line })),
            Answer::text("done"),
        ]),
        "approvals: {mode: 'off'}\nterminal: {backend: daytona}\n",
    )
    .await;
    let home = setting.hermes.home();
    fs::create_dir_all(home.join("skills/box")).unwrap();
    let skill = "---\nname: box\nrequired_environment_variables: [BOX_API_KEY, OTHER_API_KEY]\n\
                 required_credential_files: [box.json, other.json]\n---\nDo.\n";
    fs::write(home.join("skills/box/SKILL.md"), skill).unwrap();
    fs::write(home.join("box.json"), "of the box\n").unwrap();
    fs::write(home.join("other.json"), "of another\n").unwrap();
    for needed in ["BOX_API_KEY", "box.json"] {
        let output = setting.run(&["skills", "allow", "box", needed, "--yes"]);
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    let sandbox = tempfile::tempdir().unwrap();
    let cloud = DaytonaServer::start(sandbox.path());
    let hermes = setting.hermes.clone().deadline(Duration::from_secs(60));
    let output = hermes
        .env("DAYTONA_API_URL", cloud.address())
        .env("DAYTONA_API_KEY", KEY)
        .env("BOX_API_KEY", "twelve-chars")
        .env("OTHER_API_KEY", "not-for-commands")
        .args(["chat", "-q", "go"])
        .run();
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = setting.server.requests();
    let asked = String::from_utf8_lossy(&requests.last().unwrap().body);
    assert!(asked.contains(r"lengths 12 0\nof the box\n"), "{asked}");
    assert!(!asked.contains("of another"), "{asked}");
    assert!(!sandbox.path().join(".hermes/box.json").exists());
}

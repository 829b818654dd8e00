//! Images: pasted as paths, from the clipboard, and found by tools.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_testkit::process::{Hermes, Terminal};
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::{PIXEL_BASE64, PIXEL_PNG};
use serde_json::{Value, json};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);
/// The first bytes of a PNG, which is all that is looked at, and how they are sent.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const PNG_SENT: &str = "data:image/png;base64,iVBORw0KGgo=";

fn open(hermes: &Hermes) -> Terminal {
    let terminal = hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.expect_screen("\n› \n", SOON);
    terminal
}

/// The message that was sent last.
fn sent(setting: &Setting) -> String {
    let requests = setting.server.requests();
    let messages = &requests.last().unwrap().json["messages"];
    messages.as_array().unwrap().last().unwrap().to_string()
}

/// A folder with a program that a shell script is.
fn program(setting: &Setting, name: &str, script: &str) -> PathBuf {
    let folder = setting.hermes.work_folder().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// The home with nothing on its `PATH` but a shell and what is in the folder.
fn with_only(setting: &Setting, folder: &Path) -> Hermes {
    let shell = folder.join("sh");
    if !shell.exists() {
        std::os::unix::fs::symlink("/bin/sh", shell).unwrap();
    }
    setting.hermes.clone().env("PATH", folder)
}

#[tokio::test]
async fn the_pasted_path_of_an_image_attaches_it() {
    let setting = Setting::new(Script::new([Answer::text("a cat")])).await;
    let image = setting.hermes.work_folder().join("my cat.png");
    fs::write(&image, PNG).unwrap();
    let terminal = open(&setting.hermes);
    let path = image.display().to_string().replace(' ', "\\ ");
    terminal.send(&format!("what is \x1b[200~{path}\x1b[201~?"));
    terminal.expect_screen("› what is [image my cat.png]?", SOON);
    terminal.send("\r");
    terminal.expect_screen("a cat\n\n──", SOON);
    let sent = sent(&setting);
    assert!(sent.contains(PNG_SENT), "{sent}");
    assert!(sent.contains("what is [image: "), "{sent}");
    // Typed by hand, the same words are words.
    terminal.send("[image: /etc/passwd]\r");
    terminal.expect_screen("› [image: /etc/passwd]", SOON);
}

#[tokio::test]
async fn an_image_that_is_gone_or_none_is_told_of_and_the_words_go_on_without_it() {
    let setting = Setting::new(Script::new([Answer::text("which one?")])).await;
    let image = setting.hermes.work_folder().join("fake.png");
    fs::write(&image, "no image").unwrap();
    let terminal = open(&setting.hermes);
    terminal.send(&format!("\x1b[200~{}\x1b[201~", image.display()));
    terminal.expect_screen("› [image fake.png]", SOON);
    terminal.send("\r");
    terminal.expect_screen("which one?", SOON);
    assert!(terminal.output().contains("cannot attach `"));
    assert!(!sent(&setting).contains("base64"));
}

#[tokio::test]
async fn ctrl_v_attaches_the_image_in_the_clipboard() {
    let setting = Setting::new(Script::new([Answer::text("a dog")])).await;
    let script = "[ \"$*\" = '-selection clipboard -target image/png -out' ] && printf '\\211PNG\\r\\n\\032\\n'";
    let folder = program(&setting, "xclip", script);
    let terminal = open(&with_only(&setting, &folder));
    terminal.send("look: \x16");
    terminal.expect_screen("› look: [image clipboard-1.png]", SOON);
    terminal.send("\r");
    terminal.expect_screen("a dog\n\n──", SOON);
    let sent = sent(&setting);
    assert!(sent.contains(PNG_SENT), "{sent}");
    let kept = setting.hermes.home().join("cache/media/clipboard-1.png");
    let mode = kept.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_clipboard_without_an_image_or_a_program_for_it_says_what_to_do() {
    let setting = Setting::new(Script::new([])).await;
    let folder = setting.hermes.work_folder().join("bin");
    fs::create_dir(&folder).unwrap();
    let terminal = open(&with_only(&setting, &folder));
    terminal.send("\x1bv");
    terminal.expect_screen("no program here that reads images", SOON);
    terminal.expect_screen("xclip (X11)", SOON);
    program(&setting, "wl-paste", "echo 'no such type' >&2; exit 1");
    terminal.send("\x16");
    terminal.expect_screen("there is no image in the clipboard", SOON);
    let media = setting.hermes.home().join("cache/media");
    assert_eq!(fs::read_dir(media).unwrap().count(), 0);
}

#[tokio::test]
async fn an_image_comes_back_with_its_message() {
    let slow = Answer::text("one two three four five six")
        .pieces(6)
        .chunk_delay(Duration::from_secs(2));
    let script = Script::new([slow, Answer::text("seen")]);
    let queue = "approvals:\n  mode: manual\ndisplay:\n  busy_input_mode: queue\n";
    let setting = Setting::with(script, queue).await;
    let image = setting.hermes.work_folder().join("a.png");
    fs::write(&image, PNG).unwrap();
    let terminal = open(&setting.hermes);
    terminal.send("go\r");
    terminal.expect_screen("one", SOON);
    terminal.send(&format!("\x1b[200~{}\x1b[201~", image.display()));
    terminal.expect_screen("› [image a.png]", SOON);
    terminal.send("\r");
    terminal.expect_screen("waits: [image: ", SOON);
    terminal.send("\x03");
    terminal.expect_screen("› [image a.png]\n──", SOON);
    terminal.send("\r");
    terminal.expect_screen("seen\n\n──", SOON);
    assert!(sent(&setting).contains(PNG_SENT));
}

/// A model that looks at `cat.png`, which is a picture of one pixel.
async fn looking(last: impl IntoIterator<Item = Answer>) -> Setting {
    let look = Answer::call("c1", "read_file", json!({"path": "cat.png"}));
    let setting = Setting::new(Script::new(std::iter::once(look).chain(last))).await;
    fs::write(setting.hermes.work_folder().join("cat.png"), PIXEL_PNG).unwrap();
    setting
}

#[tokio::test]
async fn a_picture_that_a_tool_reads_is_seen_by_the_model_and_counted_everywhere_else() {
    let setting = looking([Answer::text("a cat"), Answer::text("still one")]).await;
    let run = setting.run(&["--json", "-z", "what is in cat.png?"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let seen = setting.server.requests().remove(1).json["messages"].clone();
    let messages = seen.as_array().unwrap();
    let [.., result, pictures] = messages.as_slice() else {
        panic!("{seen}");
    };
    assert_eq!(result["role"], "tool");
    assert_eq!(result["content"], "cat.png: PNG image, 1×1, 70 bytes");
    let data = format!("data:image/png;base64,{PIXEL_BASE64}");
    assert_eq!(pictures["role"], "user");
    assert_eq!(pictures["content"][2]["image_url"]["url"], json!(data));

    // Its bytes are in the conversation and nowhere else.
    let finished = run
        .stdout
        .lines()
        .find(|line| line.contains("call_finished"));
    assert!(
        finished.unwrap().contains(r#""images":1"#),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains(PIXEL_BASE64));
    let sessions = |args: &[&str]| setting.run(&[&["sessions"], args].concat()).stdout;
    let list: Value = serde_json::from_str(&sessions(&["list", "--json"])).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    let shown = sessions(&["show", id]);
    assert!(
        shown.contains("cat.png: PNG image, 1×1, 70 bytes [1 picture]"),
        "{shown}"
    );
    let document = sessions(&["export", id, "--format", "md"]);
    assert!(document.contains("*(image, image/png)*"), "{document}");
    assert!(!shown.contains(PIXEL_BASE64) && !document.contains(PIXEL_BASE64));
    assert!(sessions(&["export", id, "--redact"]).contains(PIXEL_BASE64));

    // After a restart the model sees the same.
    let run = setting.run(&["chat", "-q", "sure?", "--resume", id]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let again = setting.server.requests().remove(2).json["messages"].clone();
    assert_eq!(again.as_array().unwrap()[..messages.len()], messages[..]);
}

#[tokio::test]
async fn a_model_that_cannot_see_goes_on_and_the_user_is_told() {
    let refusal = json!({"error": {"message": "No endpoints found that support image input"}});
    let setting = looking([
        Answer::status(404, refusal),
        Answer::text("I cannot see it"),
    ])
    .await;
    let run = setting.run(&["chat", "-q", "what is in cat.png?"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("I cannot see it"), "{run:?}");
    assert!(
        run.stderr.contains("✓") && run.stderr.contains(", 1 picture"),
        "{run:?}"
    );
    assert!(run.stderr.contains("does not take the pictures"), "{run:?}");
    assert!(sent(&setting).contains("is left out here: this model cannot see"));
}

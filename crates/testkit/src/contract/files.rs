//! What the file tools must do, wherever the files are.
//!
//! Files are prepared and looked at with commands of the terminal, so that the suite also runs where this machine cannot
//! look. It needs a POSIX shell there and what busybox has.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hermes_core::{
    CancellationToken, CommandExit, Media, MediaSource, Pass, Progress, ShellCommand, Terminal,
    Tool, ToolContext, ToolError, ToolOutput,
};
use serde_json::{Value, json};

use super::tool::context;
use crate::PIXEL_BASE64;

/// Long enough that a test which waits for it has failed.
const NEVER: Duration = Duration::from_secs(60);

/// Checks `read_file`, `write_file`, `patch` and `search_files` in a folder that is empty, and in which shells begin.
pub async fn check(tools: &[Arc<dyn Tool>], terminal: &dyn Terminal, root: &Path) {
    let place = Place {
        tools,
        terminal,
        root,
    };
    check_essentials(tools, terminal, root).await;
    reading(&place).await;
    what_is_no_text_is_described(&place).await;
    a_page_is_not_repeated_at_once(&place).await;
    a_missing_file_suggests_near_names(&place).await;
    writing(&place).await;
    what_cannot_be_a_file_is_refused(&place).await;
    what_others_changed_is_noticed(&place).await;
    a_patch_is_all_or_nothing(&place).await;
    patches_of_one_file_at_once_all_arrive(&place).await;
    guarded_files_stay_so(&place).await;
    searching(&place).await;
    finding_files(&place).await;
    odd_names_are_only_names(&place).await;
    new_files_have_the_usual_mode(&place).await;
    a_stopped_call_changes_nothing(&place).await;
}

/// Checks what may depend on how commands get there. All of the contract takes hundreds of them, which is too many for a
/// container on a busy machine.
pub async fn check_essentials(tools: &[Arc<dyn Tool>], terminal: &dyn Terminal, root: &Path) {
    let place = Place {
        tools,
        terminal,
        root,
    };
    every_byte_arrives(&place).await;
    a_picture_is_shown(&place).await;
    patching(&place).await;
    a_search_leaves_out(&place).await;
}

struct Place<'a> {
    tools: &'a [Arc<dyn Tool>],
    terminal: &'a dyn Terminal,
    root: &'a Path,
}

impl Place<'_> {
    /// Runs a command in a folder of its own below the root, and returns what it printed.
    async fn sh(&self, line: &str) -> String {
        let command = ShellCommand {
            session: "contract".into(),
            line: format!("cd '{}' && {{\n{line}\n}}", self.root.display()),
            cwd: self.root.to_owned(),
            workdir: None,
            stdin: Vec::new(),
            pty: false,
            timeout: NEVER,
            output_bytes_max: 1_000_000,
            pass: Pass::default(),
            mark: None,
            stop: CancellationToken::new(),
            progress: Progress::default(),
        };
        let output = match self.terminal.run(command).await {
            Ok(output) => output,
            Err(error) => panic!("{line}: {error}"),
        };
        assert_eq!(output.exit, CommandExit::Code(0), "{line}: {output:?}");
        output.text
    }

    fn context(&self) -> ToolContext {
        context(self.root)
    }

    async fn output(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        let tool = tool.unwrap_or_else(|| panic!("there is no `{name}`"));
        let cx = self.context();
        tool.run(arguments, &cx).await
    }

    async fn run(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        let result = self.output(name, arguments).await;
        result.map(|output| output.text)
    }

    async fn call(&self, name: &str, arguments: Value) -> String {
        match self.run(name, arguments.clone()).await {
            Ok(text) => text,
            Err(error) => panic!("{name} {arguments}: {error}"),
        }
    }

    /// Returns the answer to a call that must fail.
    async fn answer(&self, name: &str, arguments: Value) -> String {
        match self.run(name, arguments.clone()).await {
            Err(ToolError::Answer(answer)) => answer,
            other => panic!("{name} {arguments} is no answer: {other:?}"),
        }
    }

    async fn read(&self, path: &str) -> String {
        self.call("read_file", json!({ "path": path })).await
    }

    async fn write(&self, path: &str, content: &str) -> String {
        let arguments = json!({"path": path, "content": content});
        self.call("write_file", arguments).await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

fn has(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} in {text}");
}

async fn every_byte_arrives(place: &Place<'_>) {
    let odd = "it's \"$HOME\" `x` \\n é \u{1} \u{1b}[0m\r\nlast, without an end";
    place.write("odd name's.txt", odd).await;
    let stored = "od -An -v -tx1 \"odd name's.txt\" | tr -d ' \\n'";
    let hex: String = odd.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(place.sh(stored).await, hex);
    let large = "0123456789abcde\n".repeat(20_000);
    place.write("large.txt", &large).await;
    assert_eq!(place.sh("wc -c < large.txt").await.trim(), "320000");
    has(&place.read("large.txt").await, "[lines 1-500 of 20000;");
}

async fn reading(place: &Place<'_>) {
    place
        .sh("seq 1200 > long.txt; printf 'one\\ntwo' > 'it'\\''s a \"name\" $x'; : > empty")
        .await;
    assert_eq!(place.read("it's a \"name\" $x").await, "1|one\n2|two\n");
    assert_eq!(place.read("empty").await, "[the file is empty]");
    let text = place.read("long.txt").await;
    assert!(
        text.ends_with("500|500\n[lines 1-500 of 1200; continue with offset=501]"),
        "{text}"
    );
    let page = json!({"path": place.path("long.txt"), "offset": 1199, "limit": 10});
    assert_eq!(
        place.call("read_file", page).await,
        "1199|1199\n1200|1200\n[lines 1199-1200 of 1200; end of file]"
    );
    let beyond = json!({"path": "long.txt", "offset": 5000});
    let answer = place.answer("read_file", beyond).await;
    has(&answer, "has 1200 lines; offset 5000 is past its end");
    place
        .sh("printf '\\357\\273\\277bom\\r\\ncrlf\\r\\n' > odd; printf 'caf\\351\\n' > latin1")
        .await;
    assert_eq!(place.read("odd").await, "1|bom\n2|crlf\n");
    has(
        &place.read("latin1").await,
        "1|caf\u{fffd}\n[bytes that are not UTF-8",
    );
    place
        .sh("head -c 3000000 /dev/zero | tr '\\000' y > wide; echo >> wide; echo end >> wide")
        .await;
    let text = place.read("wide").await;
    has(&text, "… [line cut]\n");
    assert!(text.len() < 3000, "{} bytes", text.len());
    let notebook = r#"{"cells": [{"cell_type": "code", "source": ["x = 1"]}]}"#;
    place.sh(&format!("printf %s '{notebook}' > a.ipynb")).await;
    has(
        &place.read("a.ipynb").await,
        "1|# --- Code cell 1 ---\n2|x = 1\n",
    );
}

async fn what_is_no_text_is_described(place: &Place<'_>) {
    place.sh("printf '\\211PNG\\r\\n\\032\\n\\000\\000\\000' > image.png; mkdir -p folder; : > folder/inside.txt; mkfifo pipe").await;
    let answer = place
        .answer("read_file", json!({"path": "image.png"}))
        .await;
    has(&answer, "a PNG image of 11 bytes");
    let answer = place.answer("read_file", json!({"path": "folder"})).await;
    has(&answer, "is a folder; name a file in it: inside.txt");
    let answer = place.answer("read_file", json!({"path": "pipe"})).await;
    has(&answer, "a named pipe");
    let answer = place
        .answer("read_file", json!({"path": "/dev/zero"}))
        .await;
    has(&answer, "a device");
    place.sh("rm pipe; ln -s b a; ln -s a b").await;
    let answer = place.answer("read_file", json!({"path": "a"})).await;
    has(&answer, "symbolic links");
    place.sh("rm a b").await;
}

async fn a_picture_is_shown(place: &Place<'_>) {
    // Its bytes count, not its name.
    place
        .sh(&format!("printf %s {PIXEL_BASE64} | base64 -d > cat.txt"))
        .await;
    for _ in 0..2 {
        let output = place.output("read_file", json!({"path": "cat.txt"})).await;
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(output.text, "cat.txt: PNG image, 1×1, 70 bytes");
        let picture = Media {
            mime: "image/png".to_owned(),
            source: MediaSource::Base64(PIXEL_BASE64.to_owned()),
        };
        assert_eq!(output.images, [picture]);
    }
    place.sh("head -c 4000000 /dev/zero >> cat.txt").await;
    let answer = place.answer("read_file", json!({"path": "cat.txt"})).await;
    has(
        &answer,
        "is a PNG image of 3907 KB and is more than the 3840 KB",
    );
    place.sh("rm cat.txt").await;
}

async fn a_page_is_not_repeated_at_once(place: &Place<'_>) {
    place.sh("seq 400 > again.txt").await;
    let first = place.read("again.txt").await;
    has(
        &place.read("again.txt").await,
        "has not changed since you read it",
    );
    assert_eq!(place.read("again.txt").await, first);
    place.sh("echo 401 >> again.txt").await;
    has(&place.read("again.txt").await, "401|401\n");
}

async fn a_missing_file_suggests_near_names(place: &Place<'_>) {
    place.sh(": > config.toml").await;
    let answer = place
        .answer("read_file", json!({"path": "confg.toml"}))
        .await;
    has(&answer, "does not exist; similar names in");
    assert!(answer.ends_with(": config.toml"), "{answer}");
    let answer = place
        .answer("read_file", json!({"path": "no/such/file"}))
        .await;
    let root = place.sh("pwd -P").await;
    has(&answer, &format!("only as far as `{}`", root.trim()));
}

async fn writing(place: &Place<'_>) {
    let text = place.write("new/deep/c.txt", "one\ntwo\n").await;
    assert!(text.starts_with("created, with its folder"), "{text}");
    assert!(text.ends_with("8 bytes, 2 lines"), "{text}");
    assert_eq!(place.sh("cat new/deep/c.txt").await, "one\ntwo\n");
    place.write("nothing.txt", "").await;
    assert_eq!(place.sh("wc -c < nothing.txt").await.trim(), "0");

    place
        .sh("printf '\\357\\273\\277a\\r\\nb\\r\\n' > run.sh; chmod 750 run.sh")
        .await;
    let text = place.write("run.sh", "c\nd\n").await;
    assert!(text.starts_with("replaced"), "{text}");
    let bytes = place
        .sh("od -An -c run.sh | tr -d ' \\n'; stat -c ' %a' run.sh")
        .await;
    assert_eq!(bytes, "357273277c\\r\\nd\\r\\n 750\n");

    place.sh("mkdir -p real; echo old > real/target; ln -s real/target link; ln -s real/later dangling").await;
    place.write("link", "new").await;
    place.write("dangling", "made").await;
    assert_eq!(
        place.sh("cat real/target real/later; test -L link").await,
        "newmade"
    );
    let left = place.sh("find . -name '.hermes*'").await;
    assert_eq!(left, "");
}

async fn what_cannot_be_a_file_is_refused(place: &Place<'_>) {
    place.sh("mkdir -p taken; : > taken/inside; echo old > fixed; chmod 444 fixed; echo '{}' > a.json").await;
    for (path, content, expected) in [
        ("taken", "x", "is a folder"),
        ("taken/", "x", "names a folder"),
        ("taken/inside/x", "x", "not written"),
        ("fixed", "x", "is read-only (mode 444)"),
        ("a.json", "{\"a\": }", "not valid JSON"),
        ("shown.rs", "1|fn main() {\n2|}\n", "line numbers"),
        ("/etc/hermes-test", "x", "is not written:"),
    ] {
        let arguments = json!({"path": path, "content": content});
        has(&place.answer("write_file", arguments).await, expected);
    }
    let name = "x".repeat(300);
    let arguments = json!({"path": name, "content": "x"});
    let answer = place.answer("write_file", arguments).await;
    has(&answer, "was not written and is as it was before");
    assert_eq!(place.sh("cat fixed a.json").await, "old\n{}\n");
}

async fn what_others_changed_is_noticed(place: &Place<'_>) {
    place.sh("echo mine > shared.txt").await;
    place.read("shared.txt").await;
    place.sh("echo theirs, longer > shared.txt").await;
    let arguments = json!({"path": "shared.txt", "content": "new\n"});
    let answer = place.answer("write_file", arguments).await;
    has(&answer, "has changed on disk since");
    let replace = json!({"path": "shared.txt", "old_string": "theirs", "new_string": "ours"});
    has(
        &place.call("patch", replace).await,
        "had been changed on disk",
    );
    place.read("shared.txt").await;
    place.write("shared.txt", "new\n").await;
    place.write("shared.txt", "newer\n").await;
    assert_eq!(place.sh("cat shared.txt").await, "newer\n");
}

async fn patching(place: &Place<'_>) {
    place.sh("printf 'fn a() {}\\nfn b() {}\\n' > a.rs; echo x > gone; mkdir -p old; echo 'echo 1' > old/run; chmod 755 old/run").await;
    let replace = json!({"path": "a.rs", "old_string": "fn b() {}", "new_string": "fn c() {}"});
    assert_eq!(
        place.call("patch", replace).await,
        "changed `a.rs`\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n fn a() {}\n-fn b() {}\n+fn c() {}\n"
    );
    let patch = "*** Update File: a.rs\n fn a() {}\n-fn c() {}\n+fn d() {}\n*** Add File: made/b.txt\n+b\n\
                 *** Delete File: gone\n*** Update File: old/run\n*** Move to: made/run\n-echo 1\n+echo 2\n";
    let text = place
        .call("patch", json!({"mode": "patch", "patch": patch}))
        .await;
    let said =
        "changed `a.rs`\ncreated `made/b.txt`\ndeleted `gone`\nmoved `old/run` to `made/run`\n---";
    assert!(text.starts_with(said), "{text}");
    let now = place
        .sh("cat a.rs made/b.txt made/run; stat -c %a made/run; ls old; test ! -e gone")
        .await;
    assert_eq!(now, "fn a() {}\nfn d() {}\nb\necho 2\n755\n");
    place.sh("ln -s a.rs alias").await;
    let delete = json!({"mode": "patch", "patch": "*** Delete File: alias"});
    has(&place.answer("patch", delete).await, "is a link");
}

async fn a_patch_is_all_or_nothing(place: &Place<'_>) {
    place.sh("echo one > p.txt").await;
    let patch = "*** Add File: sub/new.txt\n+new\n*** Update File: p.txt\n-one\n+two\n*** Update File: p.txt\n-nine\n+x\n";
    let answer = place
        .answer("patch", json!({"mode": "patch", "patch": patch}))
        .await;
    assert!(answer.starts_with("nothing was changed: "), "{answer}");
    assert_eq!(place.sh("cat p.txt; test ! -e sub").await, "one\n");
}

async fn patches_of_one_file_at_once_all_arrive(place: &Place<'_>) {
    place
        .sh("printf 'line 1;\\nline 2;\\nline 3;\\n' > at-once.txt")
        .await;
    let calls = (1..=3).map(|n| {
        let arguments = json!({
            "path": "at-once.txt", "old_string": format!("line {n};"), "new_string": format!("done {n};"),
        });
        place.call("patch", arguments)
    });
    join_all(calls).await;
    assert_eq!(
        place.sh("cat at-once.txt").await,
        "done 1;\ndone 2;\ndone 3;\n"
    );
}

async fn guarded_files_stay_so(place: &Place<'_>) {
    place
        .sh("mkdir -p keys; echo KEY=hidden > keys/.env; ln -s keys/.env innocent.txt")
        .await;
    for path in ["keys/.env", "innocent.txt", "keys/../keys/.env"] {
        let answer = place.answer("read_file", json!({"path": path})).await;
        has(&answer, "is not read:");
    }
    let replace = json!({"path": "innocent.txt", "old_string": "KEZ", "new_string": "x"});
    let answer = place.answer("patch", replace).await;
    has(&answer, "is not read:");
    let search = json!({"pattern": "hidden", "path": "keys", "file_glob": ".env"});
    let text = place.call("search_files", search).await;
    has(&text, "[1 files that hold secrets also match");
    assert!(!text.contains("KEY"), "{text}");
    let secret = "~/.ssh/id_hermes_test";
    let answer = place
        .answer("write_file", json!({"path": secret, "content": "x"}))
        .await;
    has(&answer, "is not written:");
}

async fn searching(place: &Place<'_>) {
    place.sh("mkdir -p s/sub; printf 'alpha\\nbeta 12\\ngamma\\ndelta\\nbeta 3\\n' > s/a.txt; echo 'BETA 7' > s/sub/b.rs").await;
    let search = |arguments: Value| async move {
        let text = place.call("search_files", arguments).await;
        text.trim_end().to_owned()
    };
    assert_eq!(
        search(json!({"pattern": r"beta \d+", "path": "s"})).await,
        "s/a.txt\n  2: beta 12\n  5: beta 3"
    );
    assert_eq!(
        search(json!({"pattern": r"(?i)beta\s\d$", "path": "s"})).await,
        "s/a.txt\n  5: beta 3\ns/sub/b.rs\n  1: BETA 7"
    );
    assert_eq!(
        search(json!({"pattern": "12", "path": "s", "context": 1})).await,
        "s/a.txt\n  1- alpha\n  2: beta 12\n  3- gamma"
    );
    assert_eq!(
        search(json!({"pattern": "a", "path": "s", "output_mode": "count"})).await,
        "s/a.txt: 5"
    );
    assert_eq!(
        search(json!({"pattern": "(?i)beta", "path": "s", "output_mode": "files_only"})).await,
        "s/a.txt\ns/sub/b.rs"
    );
    assert_eq!(
        search(json!({"pattern": "(?i)beta", "path": "s", "file_glob": "*.rs"})).await,
        "s/sub/b.rs\n  1: BETA 7"
    );
    assert_eq!(
        search(json!({"pattern": "gamma", "path": "s/a.txt"})).await,
        "s/a.txt\n  3: gamma"
    );
    let page = json!({"pattern": "beta", "path": "s", "limit": 1});
    has(
        &search(page).await,
        "[matches 1-1 of 2 in 1 files; continue with offset=1]",
    );
    has(
        &search(json!({"pattern": "zzz", "path": "s"})).await,
        "no matches for `zzz`",
    );
    for (arguments, expected) in [
        (
            json!({"pattern": "x", "path": "no-such-folder"}),
            "does not exist",
        ),
        (json!({"pattern": "("}), "not a valid regular expression"),
        (
            json!({"pattern": "x", "file_glob": "["}),
            "not a valid glob",
        ),
        (
            json!({"pattern": "x", "path": "/dev/null"}),
            "neither a folder",
        ),
    ] {
        has(&place.answer("search_files", arguments).await, expected);
    }
}

async fn finding_files(place: &Place<'_>) {
    place.sh("mkdir -p f/src; touch -t 202001010000 f/src/old_main.rs; touch f/src/main.rs 'f/it'\\''s.txt'; : > f/.hidden").await;
    for pattern in ["main", "*main.rs", "src/*.rs", "f/src/nothing"] {
        let find = json!({"pattern": pattern, "target": "files", "path": "f"});
        let text = place.call("search_files", find).await;
        match pattern {
            "f/src/nothing" => has(&text, "no files for"),
            _ => assert_eq!(
                text.trim_end(),
                "f/src/main.rs\nf/src/old_main.rs",
                "{pattern}"
            ),
        }
    }
    let find = json!({"pattern": "it's*", "target": "files", "path": "f"});
    has(&place.call("search_files", find).await, "f/it's.txt");
    let find = json!({"pattern": ".hidden", "target": "files", "path": "f"});
    has(&place.call("search_files", find).await, "f/.hidden");
}

async fn odd_names_are_only_names(place: &Place<'_>) {
    let names = ["-n", "--help", "it's $(touch was-run) \"x\"", "*", "a b"];
    for name in names {
        let path = format!("strange/{name}");
        place.write(&path, "needle\n").await;
        has(&place.read(&path).await, "1|needle");
    }
    for arguments in [
        json!({"pattern": "needle", "path": "strange"}),
        json!({"pattern": "needle", "path": "strange", "output_mode": "count"}),
        json!({"pattern": "*", "path": "strange", "target": "files"}),
    ] {
        let text = place.call("search_files", arguments).await;
        for name in names {
            has(&text, &format!("strange/{name}"));
        }
    }
    let one = json!({"pattern": "needle", "path": "strange/--help"});
    has(&place.call("search_files", one).await, "1: needle");
    let none = json!({"pattern": "needle", "path": "strange", "file_glob": "*.nothing"});
    has(&place.call("search_files", none).await, "no matches");
    // A folder whose name ends with a line break is not the one without.
    place.sh("mkdir strange/folder 'strange/folder\n'").await;
    place.write("strange/folder\n/x", "there\n").await;
    has(&place.read("strange/folder\n/x").await, "1|there");
    assert_eq!(
        place.sh("ls strange/folder; find . -name was-run").await,
        ""
    );
}

async fn new_files_have_the_usual_mode(place: &Place<'_>) {
    place.write("mode/new", "x\n").await;
    place.sh("umask 077; echo x > mode/private").await;
    place.write("mode/private", "y\n").await;
    let modes = "umask 022; : > mode/usual; stat -c %a mode/new mode/usual mode/private";
    let modes = place.sh(modes).await;
    let [new, usual, private] = modes.lines().collect::<Vec<_>>()[..] else {
        panic!("three modes: {modes}");
    };
    assert_eq!((new, private), (usual, "600"));
}

async fn a_search_leaves_out(place: &Place<'_>) {
    place.sh("mkdir -p l/a; echo hit > l/.hidden.txt; printf 'hit\\000hit\\n' > l/binary.dat; echo hit > l/a/seen.txt; ln -s .. l/a/up; mkfifo l/pipe").await;
    let text = place
        .call("search_files", json!({"pattern": "hit", "path": "l"}))
        .await;
    assert_eq!(text.trim_end(), "l/a/seen.txt\n  1: hit");
    let search = json!({"pattern": "hit", "path": "l/binary.dat"});
    has(
        &place.call("search_files", search).await,
        "the file is binary",
    );
    place.sh("rm l/pipe").await;
}

async fn a_stopped_call_changes_nothing(place: &Place<'_>) {
    let tool = place
        .tools
        .iter()
        .find(|tool| tool.spec().name == "write_file");
    let tool = tool.unwrap_or_else(|| panic!("there is no `write_file`"));
    let cx = place.context();
    cx.stop.cancel();
    let arguments = json!({"path": "stopped.txt", "content": "x"});
    let stopped = tool.run(arguments, &cx).await;
    assert!(matches!(stopped, Err(ToolError::Stopped(_))), "{stopped:?}");
    place.sh("test ! -e stopped.txt").await;
}

//! Changes of files that somebody agrees to first: what is asked, what is shown, and what is written afterwards.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use hermes_core::{
    Agreement, CancellationToken, Consent, Preview, PreviewContext, Review, Tool, ToolContext,
    ToolError,
};
use hermes_testkit::contract::tool::{context, plan};
use hermes_tools::{EditReview, FilePlace, ToolPorts, built_in};
use serde_json::{Value, json};

use crate::Place;

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

fn patch(patch: &str) -> Value {
    json!({"mode": "patch", "patch": patch})
}

fn tool_of(ports: &ToolPorts, name: &str) -> Arc<dyn Tool> {
    let mut tools = built_in(ports).into_iter();
    tools.find(|tool| tool.spec().name == name).unwrap()
}

/// A call, from the question to its end.
struct Call<'a> {
    place: &'a Place,
    tool: Arc<dyn Tool>,
    arguments: Value,
}

impl<'a> Call<'a> {
    fn new(place: &'a Place, tool: &str, arguments: Value) -> Self {
        Self::with(place, &place.ports(), tool, arguments)
    }

    fn with(place: &'a Place, ports: &ToolPorts, tool: &str, arguments: Value) -> Self {
        Self {
            place,
            tool: tool_of(ports, tool),
            arguments,
        }
    }

    fn consent(&self) -> Consent {
        plan(&self.tool, &self.arguments, self.place.root()).consent
    }

    fn review(&self) -> Review {
        match self.consent() {
            Consent::Review(review) => review,
            other => panic!("not asked: {other:?} for {}", self.arguments),
        }
    }

    async fn preview(&self) -> Result<Preview, ToolError> {
        let cx = PreviewContext {
            session: &"session".into(),
            cwd: self.place.root(),
            stop: &CancellationToken::new(),
        };
        let preview = plan(&self.tool, &self.arguments, self.place.root())
            .action
            .preview(cx)
            .await?;
        Ok(preview.unwrap())
    }

    async fn run(&self, agreement: Agreement) -> Result<String, String> {
        let cx = ToolContext {
            agreement,
            ..context(self.place.root())
        };
        let result = self.tool.run(self.arguments.clone(), &cx).await;
        result
            .map(|output| output.text)
            .map_err(|error| error.to_string())
    }

    /// Runs with everything that a yes to the question gives.
    async fn run_agreed(&self) -> Result<String, String> {
        let basis = Some(self.preview().await.unwrap().basis);
        let covers = self.review().covers;
        self.run(Agreement {
            covers,
            basis,
            ..Agreement::default()
        })
        .await
    }
}

#[tokio::test]
async fn a_start_file_is_shown_and_then_written() {
    let place = Place::new();
    place.write(".bashrc", "export A=1\n");
    let call = Call::new(
        &place,
        "write_file",
        write("~/.bashrc", "export A=1\nalias ll='ls -l'\n"),
    );
    let review = call.review();
    assert_eq!(review.reason, "changes what runs when the user logs in");
    let file = place.root().canonicalize().unwrap().join(".bashrc");
    assert!(
        review.what.contains(&file.display().to_string()),
        "{review:?}"
    );
    assert_eq!(review.covers, [format!("write_file {}", file.display())]);
    let preview = call.preview().await.unwrap();
    assert!(preview.is_whole);
    assert!(
        preview.diff.contains(" export A=1\n+alias ll='ls -l'\n"),
        "{}",
        preview.diff
    );
    assert_eq!(
        place.read(".bashrc"),
        "export A=1\n",
        "nothing is written yet"
    );

    let refused = call.run(Agreement::default()).await.unwrap_err();
    assert!(refused.contains("nobody was asked"), "{refused}");
    assert_eq!(place.read(".bashrc"), "export A=1\n");

    let done = call.run_agreed().await.unwrap();
    assert!(done.starts_with("replaced"), "{done}");
    assert!(place.read(".bashrc").ends_with("alias ll='ls -l'\n"));
}

#[tokio::test]
async fn what_changes_between_the_question_and_the_write_is_not_overwritten() {
    let place = Place::new();
    for (tool, arguments) in [
        ("write_file", write("~/.bashrc", "new\n")),
        ("patch", replace("~/.bashrc", "old", "new")),
    ] {
        place.write(".bashrc", "old\n");
        let call = Call::new(&place, tool, arguments);
        let basis = Some(call.preview().await.unwrap().basis);
        place.write(".bashrc", "old\ntheirs\n");
        let covers = call.review().covers;
        let answer = call
            .run(Agreement {
                covers,
                basis,
                ..Agreement::default()
            })
            .await
            .unwrap_err();
        assert!(answer.contains("nothing was written"), "{answer}");
        assert!(answer.contains("read it again"), "{answer}");
        assert_eq!(place.read(".bashrc"), "old\ntheirs\n");
    }
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_after_the_question_is_not_followed() {
    let place = Place::new();
    place.write(".bashrc", "old\n");
    place.write(".zshrc", "old\n");
    symlink(place.path(".bashrc"), place.path("notes.txt")).unwrap();
    let call = Call::new(&place, "write_file", write("notes.txt", "new\n"));
    let review = call.review();
    assert!(review.what.contains("which leads to"), "{review:?}");
    std::fs::remove_file(place.path("notes.txt")).unwrap();
    symlink(place.path(".zshrc"), place.path("notes.txt")).unwrap();
    // Agreed to for the session, so that no change was shown.
    let (covers, basis) = (review.covers, None);
    let answer = call
        .run(Agreement {
            covers,
            basis,
            ..Agreement::default()
        })
        .await
        .unwrap_err();
    assert!(answer.contains("nobody was asked"), "{answer}");
    assert_eq!(place.read(".zshrc"), "old\n");
    assert_eq!(place.read(".bashrc"), "old\n");
}

#[tokio::test]
async fn every_file_of_a_patch_is_asked_about_and_shown() {
    let place = Place::new();
    place.write(".zshrc", "gone\n");
    place.write("hook", "echo hi\n");
    place.write("notes.md", "one\n");
    let text = "*** Delete File: .zshrc\n*** Move File: hook -> .git/hooks/pre-commit\n\
                *** Update File: notes.md\n@@\n-one\n+two\n";
    let call = Call::new(&place, "patch", patch(text));
    let review = call.review();
    assert_eq!(review.covers.len(), 2, "{review:?}");
    for name in [".zshrc", "hook", ".git/hooks/pre-commit", "notes.md"] {
        assert!(review.what.contains(name), "{name}: {review:?}");
    }
    assert!(review.reason.contains("git runs"), "{review:?}");
    let diff = call.preview().await.unwrap().diff;
    for part in [
        "+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
        "rename from hook\nrename to .git/hooks/pre-commit\n",
        // Nobody was asked when it was written where it was.
        "@@ -0,0 +1 @@\n+echo hi\n",
        "-one\n+two\n",
    ] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    let denied = call.run(Agreement::default()).await.unwrap_err();
    assert!(denied.contains("is not written"), "{denied}");
    assert!(place.path(".zshrc").exists());
    call.run_agreed().await.unwrap();
    assert!(!place.path(".zshrc").exists());
    assert_eq!(place.read(".git/hooks/pre-commit"), "echo hi\n");
}

#[tokio::test]
async fn a_file_that_is_moved_to_the_place_of_a_deleted_one_is_shown_as_gone() {
    let place = Place::new();
    place.write(".bashrc", "old\n");
    place.write(".zshrc", "mine\n");
    let text = "*** Delete File: .bashrc\n*** Move File: .zshrc -> .bashrc\n";
    let call = Call::new(&place, "patch", patch(text));
    let diff = call.preview().await.unwrap().diff;
    for part in ["-old\n+mine\n", "--- a/.zshrc\n+++ /dev/null\n"] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    let done = call.run_agreed().await.unwrap();
    assert!(done.contains("deleted `.zshrc`"), "{done}");
    assert_eq!(place.read(".bashrc"), "mine\n");
}

#[tokio::test]
async fn ordinary_files_ask_nobody_unless_every_change_is_to_be_shown() {
    let place = Place::new();
    let arguments = write("notes.md", "x\n");
    let free = Call::new(&place, "write_file", arguments.clone());
    assert_eq!(free.consent(), Consent::NotNeeded);

    let ports = ToolPorts {
        edit_review: EditReview::Every,
        ..place.ports()
    };
    let asked = Call::with(&place, &ports, "write_file", arguments);
    let review = asked.review();
    assert!(review.is_for_person, "no model decides");
    assert!(review.reason.contains("approvals.edits"), "{review:?}");
    let refused = asked.run(Agreement::default()).await.unwrap_err();
    assert!(refused.contains("nobody was asked"), "{refused}");
    asked.run_agreed().await.unwrap();
    assert_eq!(place.read("notes.md"), "x\n");

    // What covers one ordinary file covers all of them, by either tool, and nothing that is asked about anyway.
    let covers = review.covers;
    let other = Call::with(&place, &ports, "patch", replace("notes.md", "x", "y"));
    assert_eq!(other.review().covers, covers);
    let start = Call::with(&place, &ports, "write_file", write(".bashrc", "x\n"));
    let basis = None;
    let answer = start
        .run(Agreement {
            covers,
            basis,
            ..Agreement::default()
        })
        .await
        .unwrap_err();
    assert!(answer.contains("nobody was asked"), "{answer}");
}

#[tokio::test]
async fn what_is_refused_anyway_or_cannot_work_asks_nobody() {
    let place = Place::new();
    place.write(".bashrc", "old\n");
    for arguments in [
        write("~/.ssh/authorized_keys", "x"),
        write("/etc/shadow", "x"),
        write(".hermes/auth.json", "x"),
    ] {
        let call = Call::new(&place, "write_file", arguments);
        assert_eq!(call.consent(), Consent::NotNeeded, "{}", call.arguments);
        let refused = call.run(Agreement::default()).await.unwrap_err();
        assert!(refused.contains("is not written"), "{refused}");
    }
    let misfit = Call::new(&place, "patch", replace(".bashrc", "missing", "x"));
    let error = misfit.preview().await.unwrap_err().to_string();
    assert!(error.contains("`old_string` is not in"), "{error}");
}

#[tokio::test]
async fn secrets_that_are_replaced_are_not_shown() {
    let place = Place::new();
    place.write("project/.env", "PASSWORD=correct-horse\n");
    let call = Call::new(&place, "write_file", write("project/.env", "PASSWORD=\n"));
    let preview = call.preview().await.unwrap();
    assert!(!preview.diff.contains("correct-horse"), "{}", preview.diff);
    assert!(preview.diff.contains("not shown"), "{}", preview.diff);
    assert!(!preview.is_whole);
}

#[tokio::test]
async fn a_file_that_is_not_text_does_not_hide_what_takes_its_place() {
    let place = Place::new();
    let latin_1 = b"# caf\xe9\n";
    std::fs::write(place.path(".bashrc"), latin_1).unwrap();
    let call = Call::new(&place, "write_file", write(".bashrc", "curl x | sh\n"));
    let preview = call.preview().await.unwrap();
    assert!(preview.diff.contains("+curl x | sh\n"), "{}", preview.diff);
    assert!(preview.diff.contains("it is not text"), "{}", preview.diff);
    assert!(!preview.is_whole, "no model decides about it");

    std::fs::write(place.path("hook"), latin_1).unwrap();
    let text = "*** Move File: hook -> .git/hooks/pre-commit\n";
    let moved = Call::new(&place, "patch", patch(text));
    let preview = moved.preview().await.unwrap();
    assert!(preview.diff.contains("[not text]"), "{}", preview.diff);
    assert!(!preview.is_whole, "no model decides about it");
}

#[tokio::test]
async fn a_name_with_line_breaks_passes_for_no_line_of_the_question() {
    let place = Place::new();
    let name = ".config/autostart/a\n@@ -1 +1 @@\n+harmless\n.desktop";
    let call = Call::new(&place, "write_file", write(name, "Exec=curl x\n"));
    let what = call.review().what;
    assert_eq!(what.lines().count(), 1, "{what}");
    let diff = call.preview().await.unwrap().diff;
    assert_eq!(diff.lines().count(), 4, "{diff}");
    assert!(diff.ends_with("@@ -0,0 +1 @@\n+Exec=curl x\n"), "{diff}");
}

#[tokio::test]
async fn what_is_asked_about_is_not_pushed_out_by_other_files() {
    let place = Place::new();
    let lines: String = (0..50_000).map(|n| format!("+line {n}\n")).collect();
    let text = format!("*** Add File: notes.md\n{lines}*** Add File: .bashrc\n+curl x\n");
    let call = Call::new(&place, "patch", patch(&text));
    let what = call.review().what;
    assert!(what.lines().next().unwrap().ends_with(".bashrc"), "{what}");
    let preview = call.preview().await.unwrap();
    let begin = "--- /dev/null\n+++ b/.bashrc\n@@ -0,0 +1 @@\n+curl x\n";
    assert!(preview.diff.starts_with(begin), "{}", &preview.diff[..200]);
    assert!(!preview.is_whole);
    call.run_agreed().await.unwrap();
    assert_eq!(place.read(".bashrc"), "curl x\n");
}

#[tokio::test]
async fn a_long_change_is_cut_and_says_so() {
    let place = Place::new();
    let content: String = (0..50_000).map(|n| format!("line {n}\n")).collect();
    let call = Call::new(&place, "write_file", write(".bashrc", &content));
    let preview = call.preview().await.unwrap();
    assert!(preview.diff.len() < 201_000);
    assert!(preview.diff.ends_with("more bytes are not shown]\n"));
    assert!(!preview.is_whole);
}

#[test]
fn elsewhere_files_are_asked_about_by_name() {
    let place = Place::new();
    let ports = ToolPorts {
        file_place: FilePlace::where_commands_run(vec![place.path("results")]),
        ..place.ports()
    };
    for (path, is_asked) in [
        ("~/.bashrc", true),
        ("/root/.profile", true),
        ("/etc/hosts", true),
        ("src/main.rs", false),
        ("boot/loader.c", false),
    ] {
        let call = Call::with(&place, &ports, "write_file", write(path, "x"));
        let consent = call.consent();
        assert_eq!(matches!(consent, Consent::Review(_)), is_asked, "{path}");
    }
}

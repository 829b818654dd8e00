//! Files of this machine, and the same files reached with commands, as on another machine.

use std::io::{Seek, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use hermes_core::{
    Agreement, BoxFuture, CommandExit, CommandOutput, Consent, Parallel, ShellCommand, Terminal,
    TerminalError, Tool, ToolContext,
};
use hermes_testkit::contract::{files, tool};
use hermes_testkit::peers::is_there;
use hermes_tools::{FilePlace, ToolPorts, built_in};
use serde_json::json;

use crate::Place;

/// A shell on this machine that stands for one elsewhere: it begins in the folder it is given, and remembers nothing.
struct Shell {
    /// Where its programs are.
    path: String,
}

impl Shell {
    fn usual() -> Self {
        Self {
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
        }
    }

    /// A shell that has nothing but busybox.
    fn of_busybox(place: &Place) -> Self {
        let folder = place.path(".bin");
        std::fs::create_dir(&folder).unwrap();
        let applets = run("busybox", &["--list"], &[], "/bin:/usr/bin", "/".into()).text;
        for applet in applets.lines() {
            symlink("/usr/bin/busybox", folder.join(applet)).unwrap();
        }
        Self {
            path: folder.to_str().unwrap().to_owned(),
        }
    }
}

impl Terminal for Shell {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        let path = self.path.clone();
        let running = tokio::task::spawn_blocking(move || {
            let arguments = ["-c", &command.line];
            run("sh", &arguments, &command.stdin, &path, command.cwd)
        });
        Box::pin(async { Ok(running.await.unwrap()) })
    }
}

#[expect(clippy::disallowed_methods, reason = "stands for another machine")]
fn run(
    program: &str,
    arguments: &[&str],
    stdin: &[u8],
    path: &str,
    folder: PathBuf,
) -> CommandOutput {
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(stdin).unwrap();
    input.rewind().unwrap();
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("HOME", "/nobody")
        .current_dir(folder)
        .stdin(Stdio::from(input))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    CommandOutput {
        text: String::from_utf8_lossy(&said).into_owned(),
        omitted_bytes: 0,
        exit: CommandExit::Code(output.status.code().unwrap_or(-1)),
        elapsed: std::time::Duration::ZERO,
    }
}

fn tools_over(place: &Place, shell: Shell) -> Vec<Arc<dyn Tool>> {
    built_in(&ToolPorts {
        terminal: Arc::new(shell),
        fence: hermes_tools::ToolFence::Off,
        file_place: FilePlace::where_commands_run(vec![place.path("results")]),
        ..place.ports()
    })
}

fn root(place: &Place) -> PathBuf {
    let root = place.root().canonicalize().unwrap().join("work");
    std::fs::create_dir(&root).unwrap();
    root
}

#[tokio::test]
async fn files_of_this_machine_keep_the_contract() {
    let place = Place::new();
    let tools = built_in(&place.ports());
    files::check(&tools, &Shell::usual(), &root(&place)).await;
}

#[tokio::test]
async fn files_reached_with_commands_keep_the_contract() {
    let place = Place::new();
    let tools = tools_over(&place, Shell::usual());
    files::check(&tools, &Shell::usual(), &root(&place)).await;
}

#[tokio::test]
async fn busybox_is_enough_to_keep_the_contract() {
    if !is_there("busybox") {
        return;
    }
    let place = Place::new();
    let tools = tools_over(&place, Shell::of_busybox(&place));
    let shell = Shell {
        path: place.path(".bin").to_str().unwrap().to_owned(),
    };
    files::check(&tools, &shell, &root(&place)).await;
}

#[tokio::test]
async fn long_results_are_read_on_this_machine_wherever_files_are() {
    let place = Place::new();
    let result = place.write("results/session/call.txt", "kept here\n");
    let tools = tools_over(&place, Shell { path: "/".into() });
    let read = tools.iter().find(|tool| tool.spec().name == "read_file");
    let cx = tool::context(place.root());
    let text = read.unwrap().run(json!({"path": result}), &cx).await;
    assert_eq!(text.unwrap().text, "1|kept here\n");
    let search = tools.iter().find(|tool| tool.spec().name == "search_files");
    let arguments = json!({"pattern": "kept", "path": result});
    let text = search.unwrap().run(arguments, &cx).await.unwrap().text;
    assert!(text.contains("1: kept here"), "{text}");
}

#[tokio::test]
async fn files_elsewhere_concern_neither_checkpoints_nor_context_files_of_this_machine() {
    let place = Place::new();
    let tools = tools_over(&place, Shell::usual());
    let write = tools.iter().find(|tool| tool.spec().name == "write_file");
    let write = write.unwrap();
    let arguments = json!({"path": "a.txt", "content": "x"});
    let root = place.root();
    let plan = tool::plan(write, &arguments, root);
    assert!(plan.touched.is_empty() && plan.changes.is_empty());
    assert_eq!(plan.parallel, Parallel::Never);
    write
        .run(arguments.clone(), &tool::context(root))
        .await
        .unwrap();
    let known = root.canonicalize().unwrap().join("a.txt");
    assert_eq!(
        tool::plan(write, &arguments, root).parallel,
        Parallel::Writes(vec![known])
    );
}

#[tokio::test]
async fn a_folder_for_one_command_elsewhere_is_not_looked_for_in_the_one_here() {
    let place = Place::new();
    let tools = built_in(&ToolPorts {
        fence: hermes_tools::ToolFence::Off,
        file_place: FilePlace::where_commands_run(vec![place.path("results")]),
        ..place.ports()
    });
    let terminal = tools.iter().find(|tool| tool.spec().name == "terminal");
    let cx = tool::context(place.root());
    let arguments = json!({"command": "ls", "workdir": "src"});
    let text = terminal.unwrap().run(arguments, &cx).await.unwrap().text;
    assert!(text.starts_with("ls in src for"), "{text}");
}

#[tokio::test]
async fn elsewhere_a_name_that_leads_to_what_is_asked_about_is_not_written_unasked() {
    let place = Place::new();
    let root = root(&place);
    std::fs::create_dir(root.join(".git")).unwrap();
    std::fs::write(root.join(".git/config"), "old\n").unwrap();
    symlink(root.join(".git/config"), root.join("notes")).unwrap();
    let tools = tools_over(&place, Shell::usual());
    let write_file = tools.iter().find(|tool| tool.spec().name == "write_file");
    let write_file = write_file.unwrap();
    let consent = |path: &str| {
        let path = root.join(path);
        let arguments = json!({"path": path, "content": "new\n"});
        let consent = tool::plan(write_file, &arguments, &root).consent;
        (arguments, consent)
    };
    let (arguments, by_link) = consent("notes");
    assert_eq!(by_link, Consent::NotNeeded, "its name says nothing");
    let refused = write_file.run(arguments, &tool::context(&root)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("nobody was asked"), "{refused}");
    assert!(refused.contains(".git/config"), "{refused}");

    let (arguments, by_name) = consent(".git/config");
    let Consent::Review(review) = by_name else {
        panic!("{by_name:?}")
    };
    let cx = ToolContext {
        agreement: Agreement {
            covers: review.covers,
            ..Agreement::default()
        },
        ..tool::context(&root)
    };
    write_file.run(arguments, &cx).await.unwrap();
    let written = std::fs::read_to_string(root.join(".git/config")).unwrap();
    assert_eq!(written, "new\n");
}

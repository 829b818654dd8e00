//! Commands behind a fence, put up by the real kernel and by the real bubblewrap.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{ShellCommand, Terminal};
use hermes_exec::{
    Background, Fence, FenceMeans, FencePlaces, Local, Network, NotFenced, ProcessFolder,
};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{processes, terminal};

use crate::{command, environment};
use hermes_testkit::peers::is_there;

/// A home with a key in it and a project, outside of the folders for temporary files.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(lasting_folder()).unwrap();
        for name in ["project", "hermes/shells", "hermes/processes", "other"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["key", ".gitconfig", "other/file"] {
            std::fs::write(folder.path().join(name), format!("{name}\n")).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn places(&self) -> FencePlaces {
        FencePlaces {
            project: self.path("project"),
            user_home: Some(self.path("")),
            hermes_home: self.path("hermes"),
            own: vec![self.path("hermes/shells"), self.path("hermes/processes")],
            temporary: None,
        }
    }

    fn fenced(&self, network: Network) -> Local {
        let fence = Fence::around(&self.places(), network).unwrap();
        let local = Local::new(environment(), self.path("hermes/shells"));
        local.fenced(fence).unwrap()
    }

    fn command(&self, line: &str) -> ShellCommand {
        ShellCommand {
            cwd: self.path("project"),
            ..command(line)
        }
    }

    async fn text(&self, local: &Local, line: &str) -> String {
        Terminal::run(local, self.command(line)).await.unwrap().text
    }

    fn background(&self, network: Network) -> Background {
        Background::new(
            Arc::new(self.fenced(network)),
            ProcessFolder::Here(self.path("hermes/processes")),
            self.path("hermes/records"),
            Arc::new(TestClock::default()),
        )
    }
}

/// A folder that is none for temporary files, which are open to every command. A clone may well be in one.
fn lasting_folder() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let is_temporary = ["/tmp", "/var/tmp"]
        .iter()
        .any(|folder| target.starts_with(folder));
    match std::env::home_dir() {
        Some(home) if is_temporary => home,
        _ => target,
    }
}

/// The network that makes the fence one of Landlock, where the kernel has it.
const LANDLOCK: Network = Network::Open;

/// The network that only bubblewrap can close.
const BUBBLEWRAP: Network = Network::Closed;

#[expect(clippy::print_stderr, reason = "a skipped test must be heard")]
fn has_landlock() -> bool {
    let means = FenceMeans::of_this_machine(&environment());
    if let Err(why) = &means.landlock {
        eprintln!("SKIPPED: {why}");
    }
    means.landlock.is_ok()
}

fn has_bubblewrap() -> bool {
    is_there("bwrap")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_behind_landlock_keep_the_contract() {
    if has_landlock() {
        let home = Home::new();
        terminal::check(&home.fenced(LANDLOCK), home.path("project")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_behind_landlock_keep_the_contract() {
    if has_landlock() {
        let home = Home::new();
        processes::check(|| home.background(LANDLOCK), &home.path("project")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_behind_bubblewrap_keep_the_contract() {
    if has_bubblewrap() {
        let home = Home::new();
        terminal::check(&home.fenced(BUBBLEWRAP), home.path("project")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_behind_bubblewrap_keep_the_contract() {
    if has_bubblewrap() {
        let home = Home::new();
        processes::check(|| home.background(BUBBLEWRAP), &home.path("project")).await;
    }
}

#[tokio::test]
async fn landlock_keeps_commands_in_the_project() {
    if has_landlock() {
        let home = Home::new();
        nothing_outside_is_changed_or_read(&home, &home.fenced(LANDLOCK)).await;
    }
}

#[tokio::test]
async fn bubblewrap_keeps_commands_in_the_project() {
    if has_bubblewrap() {
        let home = Home::new();
        nothing_outside_is_changed_or_read(&home, &home.fenced(BUBBLEWRAP)).await;
    }
}

async fn nothing_outside_is_changed_or_read(home: &Home, local: &Local) {
    let inside = "echo a > file && mkdir d && mv file d && cat d/file && touch /tmp/x.$$ && rm /tmp/x.$$ && echo b";
    assert_eq!(home.text(local, inside).await, "a\nb\n");
    let tools =
        "git --version >/dev/null && cat ../.gitconfig && cat /etc/passwd >/dev/null && echo c";
    assert_eq!(home.text(local, tools).await, ".gitconfig\nc\n");
    for line in [
        "cat ../key",
        "ls ../other",
        "cat ../hermes/records/x ../other/file",
        "echo x > ../key",
        ": > ../other/file",
        "truncate -s 0 ../other/file",
        "rm ../other/file",
        "mv ../other/file .",
        "mv d ../other",
        "ln ../other/file mine",
        "echo x > ../.gitconfig",
        "touch /etc/hermes-fence /usr/hermes-fence",
        "ln -s ../key link && cat link",
        "(setsid cat ../key)",
        "bash -c 'exec 3<>../key'",
    ] {
        let output = Terminal::run(local, home.command(&format!("{{ {line}; }} 2>/dev/null")));
        let output = output.await.unwrap();
        let failed = format!("{:?}", output.exit) != "Code(0)";
        assert!(failed && output.text.is_empty(), "{line}: {output:?}");
    }
    for name in ["key", ".gitconfig", "other/file"] {
        let text = std::fs::read_to_string(home.path(name)).unwrap();
        assert_eq!(text, format!("{name}\n"));
    }
}

#[tokio::test]
async fn only_a_closed_network_is_out_of_reach() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let line = format!("(: </dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached || echo not");
    let home = Home::new();
    if has_landlock() {
        assert_eq!(
            home.text(&home.fenced(Network::Open), &line).await,
            "reached\n"
        );
    }
    if has_bubblewrap() {
        assert_eq!(
            home.text(&home.fenced(Network::Closed), &line).await,
            "not\n"
        );
    }
}

#[tokio::test]
async fn a_fence_does_not_stand_around_hermes_itself() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(Network::Open);
    home.text(&local, "true").await;
    assert_eq!(std::fs::read_to_string(home.path("key")).unwrap(), "key\n");
    let free = Local::new(environment(), home.path("free"));
    assert_eq!(home.text(&free, "cat ../key").await, "key\n");
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    let home = Home::new();
    let fence = Fence::around(&home.places(), Network::Closed).unwrap();
    let nowhere = vec![("PATH".into(), "/no/such/place".into())];
    let refused = Local::new(nowhere, home.path("hermes/shells")).fenced(fence);
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("only bubblewrap"), "{words}");
    let whole = FencePlaces {
        project: Path::new("/").into(),
        ..home.places()
    };
    let refused = Fence::around(&whole, Network::Open).unwrap_err();
    assert!(matches!(refused, NotFenced::TooWide { .. }), "{refused}");
}

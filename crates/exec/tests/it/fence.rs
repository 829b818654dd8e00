//! Commands behind a fence, put up by the real kernel and by the real bubblewrap.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{Pass, ShellCommand, Terminal};
use hermes_exec::{
    Background, FenceKind, FencePlaces, FenceSupport, Fences, Local, Network, ProcessFolder,
};
use hermes_testkit::TestClock;
use hermes_testkit::peers::is_there;

use crate::{command, environment};

mod guarded;
mod guests;
mod reach;
mod running;

/// A home with a key in it and a project, outside of the folders for temporary files.
struct Home {
    folder: tempfile::TempDir,
}

/// What commands never read.
const SECRETS: &[&str] = &[
    ".ssh/id",
    ".hermes/.env",
    ".bash_history",
    ".config/gh/hosts.yml",
];

/// What they read and never write.
const OTHERS: &[&str] = &[".gitconfig", "notes", "other/file"];

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(lasting_folder()).unwrap();
        for name in [
            "project",
            ".hermes/shells",
            ".hermes/processes",
            ".hermes/skills",
        ] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in SECRETS.iter().chain(OTHERS) {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{name}\n")).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn places(&self, kind: FenceKind) -> FencePlaces {
        FencePlaces {
            kind,
            user_home: Some(self.path("")),
            hermes_home: self.path(".hermes"),
            own: vec![self.path(".hermes/shells"), self.path(".hermes/processes")],
            apart: self.path(".hermes/apart"),
            shown: vec![self.path(".hermes/skills")],
            variables: environment(),
            guest: None,
        }
    }

    fn fences(&self, kind: FenceKind, network: Network) -> Arc<Fences> {
        std::fs::create_dir_all(self.path(".hermes/apart")).unwrap();
        let fences = Fences::new(self.places(kind), network, &environment());
        Arc::new(fences.unwrap())
    }

    fn fenced(&self, network: Network) -> Local {
        self.fenced_by(&self.fences(FenceKind::Project, network))
    }

    fn fenced_by(&self, fences: &Arc<Fences>) -> Local {
        let local = Local::new(environment(), self.path(".hermes/shells"));
        local.fenced(Arc::clone(fences))
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

    async fn text_with(&self, local: &Local, pass: Pass, line: &str) -> String {
        let command = ShellCommand {
            pass,
            ..self.command(line)
        };
        Terminal::run(local, command).await.unwrap().text
    }

    fn background(&self, network: Network) -> Background {
        self.background_on(self.fenced(network))
    }

    fn background_on(&self, terminal: impl Terminal + 'static) -> Background {
        let background = Background::new(
            Arc::new(terminal),
            ProcessFolder::Here(self.path(".hermes/processes")),
            self.path(".hermes/records"),
            Arc::new(TestClock::default()),
        );
        background.with_apart(self.path(".hermes/apart/processes"))
    }

    /// Everything outside is as it was.
    #[track_caller]
    fn is_untouched(&self) {
        for name in SECRETS.iter().chain(OTHERS) {
            let text = std::fs::read_to_string(self.path(name)).unwrap();
            assert_eq!(text, format!("{name}\n"));
        }
        assert!(!self.path("made").exists());
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
    let support = FenceSupport::of_this_machine(&environment());
    if let Err(why) = &support.landlock {
        eprintln!("SKIPPED: {why}");
    }
    support.landlock.is_ok()
}

fn has_bubblewrap() -> bool {
    is_there("bwrap")
}

fn reads(path: PathBuf) -> Pass {
    Pass {
        reads: vec![path],
        ..Pass::default()
    }
}

fn writes(path: PathBuf) -> Pass {
    Pass {
        writes: vec![path],
        ..Pass::default()
    }
}

async fn wait_until(is_so: impl Fn() -> bool) -> bool {
    for _ in 0..200 {
        if is_so() {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    false
}

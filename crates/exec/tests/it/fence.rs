//! Commands behind a fence, put up by the real kernel and by the real bubblewrap.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{
    BoxFuture, Checkout, Fencing, NotifyOn, Pass, ProcessName, Processes, ShellCommand, Terminal,
};
use hermes_exec::{
    Background, FenceKind, FencePlaces, FenceSupport, Fences, Local, Network, NotFenced,
    ProcessFolder,
};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{processes, terminal};
use tokio::sync::Notify;

use crate::{command, environment};
use hermes_testkit::peers::is_there;

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
    let tools = "git --version >/dev/null && cat ../.gitconfig ../other/file && cat /etc/passwd >/dev/null && echo c";
    assert_eq!(home.text(local, tools).await, ".gitconfig\nother/file\nc\n");
    let key = home.path(".ssh/id").display().to_string();
    let lines = [
        "cat ../.ssh/id",
        "cat ../.hermes/.env",
        "cat ../.bash_history",
        "cat ../.config/gh/hosts.yml",
        "cat ../.hermes/records/x",
        "echo x > ../notes",
        "echo x > ../made",
        "mkdir ../made",
        ": > ../other/file",
        "truncate -s 0 ../other/file",
        "rm ../other/file",
        "mv ../other/file .",
        "mv d ../other",
        "ln ../other/file mine && echo x > mine",
        "ln ../.ssh/id mine",
        "echo x > ../.gitconfig",
        "touch /etc/hermes-fence /usr/hermes-fence",
        "ln -s ../.ssh/id link && cat link",
        "ln -s ../made dangling && echo x > dangling",
        "(setsid cat ../.ssh/id)",
        "bash -c 'exec 3<>../.ssh/id'",
        &format!("cat /proc/self/root{key}"),
        &format!("cat /proc/$$/root{key}"),
        "cat /proc/self/cwd/../.ssh/id",
        &format!("cat /proc/{}/root{key}", std::process::id()),
        &format!("cat /proc/{}/cwd/Cargo.toml", std::process::id()),
        "cd / && cat \"$OLDPWD/../.ssh/id\"",
        "TMPDIR=$PWD/.. mktemp",
        "script -qec 'cat ../.ssh/id' /dev/null | grep -x .ssh/id.",
        "mount --bind .. /tmp && echo x > /tmp/made",
    ];
    for line in lines {
        let output = Terminal::run(local, home.command(&format!("({line}) 2>/dev/null")));
        let output = output.await.unwrap();
        let failed = format!("{:?}", output.exit) != "Code(0)";
        assert!(failed && output.text.is_empty(), "{line}: {output:?}");
    }
    let pty = ShellCommand {
        pty: true,
        ..home.command("echo x > ../made; cat ../.ssh/id")
    };
    let output = Terminal::run(local, pty).await.unwrap();
    assert!(!output.text.contains("ssh/id\r\n.ssh"), "{output:?}");
    home.is_untouched();
}

#[tokio::test]
async fn a_strict_fence_reads_no_home() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced_by(&home.fences(FenceKind::Strict, Network::Open));
    let line = "cat ../notes 2>/dev/null || cat ../.gitconfig && echo x > y && cat y";
    assert_eq!(home.text(&local, line).await, ".gitconfig\nx\n");
    home.is_untouched();
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

async fn what_was_agreed_to_and_no_more_is_open(home: &Home, local: &Local) {
    let line = "cat ../.ssh/id; cat ../.config/gh/hosts.yml; echo x > ../made; echo x > ../other/new; echo done";
    let quiet = format!("{{ {line}; }} 2>/dev/null");
    let inside = home.text(local, &quiet).await;
    assert_eq!(inside, "done\n");
    let key = home
        .text_with(local, reads(home.path(".ssh")), &quiet)
        .await;
    assert_eq!(key, ".ssh/id\ndone\n");
    home.is_untouched();
    let written = home
        .text_with(local, writes(home.path("other/new")), &quiet)
        .await;
    assert_eq!(written, "done\n");
    home.is_untouched();
    assert!(home.path("other/new").exists());
    let outside = home.text_with(local, Pass::outside(), &quiet).await;
    assert_eq!(outside, ".ssh/id\n.config/gh/hosts.yml\ndone\n");
    assert!(home.path("made").exists());
}

#[tokio::test]
async fn a_pass_opens_what_was_agreed_to_with_landlock() {
    if has_landlock() {
        let home = Home::new();
        what_was_agreed_to_and_no_more_is_open(&home, &home.fenced(LANDLOCK)).await;
    }
}

#[tokio::test]
async fn a_pass_opens_what_was_agreed_to_with_bubblewrap() {
    if has_bubblewrap() {
        let home = Home::new();
        what_was_agreed_to_and_no_more_is_open(&home, &home.fenced(BUBBLEWRAP)).await;
    }
}

#[tokio::test]
async fn what_a_fenced_command_leaves_in_its_shell_does_not_lead_another_outside() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    let trap = "git() { cat ../.ssh/id; }; ls() { echo trapped; }; export PATH=$PWD:$PATH X=1; mkdir sub; cd sub";
    home.text(&local, trap).await;
    let line = "git --version >/dev/null; ls; pwd; echo $X";
    let seen = home.text_with(&local, Pass::outside(), line).await;
    assert_eq!(seen, format!("{}\n\n", home.path("project/sub").display()));
    assert_eq!(home.text(&local, "ls; echo $X").await, "trapped\n1\n");
}

#[tokio::test]
async fn the_agent_is_for_commands_that_may_read_the_keys() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK).with_agent(Some("/run/agent".into()));
    let line = "echo \"[$SSH_AUTH_SOCK]\"";
    assert_eq!(home.text(&local, line).await, "[]\n");
    let keys = reads(home.path(".ssh"));
    assert_eq!(home.text_with(&local, keys, line).await, "[/run/agent]\n");
    let others = reads(home.path(".config/gh"));
    assert_eq!(home.text_with(&local, others, line).await, "[]\n");
    assert_eq!(home.text(&local, line).await, "[]\n");
}

#[tokio::test]
async fn what_appears_beside_a_secret_is_read_by_the_next_command() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    assert_eq!(home.text(&local, "cat ../new 2>/dev/null").await, "");
    std::fs::write(home.path("new"), "new\n").unwrap();
    assert_eq!(home.text(&local, "cat ../new").await, "new\n");
    std::fs::write(home.path(".netrc"), "secret\n").unwrap();
    assert_eq!(home.text(&local, "cat ../.netrc 2>/dev/null").await, "");
}

#[tokio::test]
async fn nobody_outside_is_signalled() {
    if !FenceSupport::of_this_machine(&environment())
        .landlock
        .is_ok_and(|version| version >= 6)
    {
        return;
    }
    let home = Home::new();
    let line = format!(
        "kill -0 {} 2>/dev/null && echo reached; kill -0 $$ && echo own",
        std::process::id()
    );
    assert_eq!(home.text(&home.fenced(LANDLOCK), &line).await, "own\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_and_what_is_typed_into_them_stay_inside() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let background = home.background(LANDLOCK);
    let start = |pass: Pass| ShellCommand {
        pass,
        ..home.command("while read -r line; do eval \"$line\"; done 2>&1")
    };
    let session = "session".into();
    let type_and_look = async |pass: Pass| {
        let started = background
            .start(start(pass), NotifyOn::default())
            .await
            .unwrap();
        let process = ProcessName {
            session: &session,
            id: &started.id,
        };
        let input = b"cat ../.ssh/id; echo x > ../made; echo typed\n".to_vec();
        background.write(process, input).await.unwrap();
        background.close(process).await.unwrap();
        let stop = hermes_core::CancellationToken::new();
        let wait = std::time::Duration::from_secs(20);
        background.wait(process, wait, stop).await.unwrap().tail
    };
    let inside = type_and_look(Pass::default()).await;
    assert!(
        inside.contains("typed") && !inside.contains(".ssh/id\n.ssh"),
        "{inside}"
    );
    home.is_untouched();
    let with_keys = type_and_look(reads(home.path(".ssh"))).await;
    assert!(with_keys.starts_with(".ssh/id\n"), "{with_keys}");
    home.is_untouched();
}

/// Runs commands, and never says how they ended: what a caller sees that is killed meanwhile.
struct Unanswered {
    local: Local,
    ended: Arc<Notify>,
}

impl Terminal for Unanswered {
    fn run(
        &self,
        command: ShellCommand,
    ) -> BoxFuture<'_, Result<hermes_core::CommandOutput, hermes_core::TerminalError>> {
        Box::pin(async {
            Terminal::run(&self.local, command).await?;
            self.ended.notify_one();
            std::future::pending().await
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_start_was_not_heard_of_is_ended_by_the_next_hermes() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let ended = Arc::new(Notify::new());
    let killed = home.background_on(Unanswered {
        local: home.fenced(LANDLOCK),
        ended: Arc::clone(&ended),
    });
    let line = "echo $BASHPID > pid; exec sleep 600";
    tokio::select! {
        started = killed.start(home.command(line), NotifyOn::default()) => panic!("{started:?}"),
        () = ended.notified() => {}
    }
    let pid_file = home.path("project/pid");
    let is_written = || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n'));
    assert!(wait_until(is_written).await);
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(lives());

    let next = home.background(LANDLOCK);
    let session = "session".into();
    assert_eq!(next.list(&session).await.unwrap().len(), 1);
    next.leave().await;
    assert!(wait_until(|| !lives()).await, "the process has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_folder_was_removed_leaves_nothing_running() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let background = home.background(LANDLOCK);
    let line = "until [ -e stop ]; do sleep 0.05; done";
    let started = background.start(home.command(line), NotifyOn::default());
    let id = started.await.unwrap().id;
    let project = home.path("project");
    let at_work = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let folders = processes.map(|entry| std::fs::read_link(entry.path().join("cwd")));
        folders.flatten().filter(|cwd| *cwd == project).count()
    };
    assert!(at_work() > 0);
    std::fs::remove_dir_all(home.path(".hermes/processes").join(&id)).unwrap();
    std::fs::write(project.join("stop"), "").unwrap();
    assert!(wait_until(|| at_work() == 0).await);
}

#[test]
fn work_that_is_no_command_is_held_too() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let fences = home.fences(FenceKind::Project, Network::Open);
    let project = home.path("project");
    let mut seen = Vec::new();
    let try_all = || {
        vec![
            std::fs::write(home.path("project/a"), "a").is_ok(),
            std::fs::read(home.path("notes")).is_ok(),
            std::fs::write(home.path("made"), "a").is_ok(),
            std::fs::read(home.path(".ssh/id")).is_ok(),
        ]
    };
    let inside = fences.inside(&project, &Pass::default(), Box::new(|| seen = try_all()));
    inside.unwrap();
    assert_eq!(seen, [true, true, false, false]);
    let keys = reads(home.path(".ssh"));
    fences
        .inside(&project, &keys, Box::new(|| seen = try_all()))
        .unwrap();
    assert_eq!(seen, [true, true, false, true]);
    assert_eq!(fences.means(), "landlock");
    home.is_untouched();
}

#[tokio::test]
async fn a_home_is_no_project_and_commands_run_in_it_all_the_same() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    let in_home = ShellCommand {
        cwd: home.path(""),
        ..home.command("cat notes; echo x > made; echo x > project/y; echo x > /tmp/hermes-$$ && rm /tmp/hermes-$$ && echo ok")
    };
    let output = Terminal::run(&local, in_home).await.unwrap();
    assert!(
        output.text.starts_with("notes\n") && output.text.ends_with("ok\n"),
        "{output:?}"
    );
    assert!(!home.path("project/y").exists());
    home.is_untouched();
}

/// A project with files that nobody changes unasked.
fn with_guarded(home: &Home) {
    for (name, text) in [
        (".git/config", "[core]\n\tbare = false\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/hooks/x.sample", ""),
        ("AGENTS.md", "be kind\n"),
    ] {
        let path = home.path("project").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[track_caller]
fn guarded_is_untouched(home: &Home) {
    let text = |name: &str| std::fs::read_to_string(home.path("project").join(name)).unwrap();
    assert_eq!(text(".git/config"), "[core]\n\tbare = false\n");
    assert_eq!(text("AGENTS.md"), "be kind\n");
    for name in [
        ".git/hooks/pre-commit",
        ".envrc",
        ".vscode",
        ".github/workflows",
        ".husky",
    ] {
        assert!(!home.path("project").join(name).exists(), "{name}");
    }
}

async fn guarded_files_stay_as_they_are(home: &Home, local: &Local) {
    with_guarded(home);
    for line in [
        "echo evil > .git/hooks/pre-commit",
        "echo '[core] fsmonitor=evil' >> .git/config",
        "git config core.fsmonitor evil",
        "sed -i s/kind/evil/ AGENTS.md",
        "rm AGENTS.md; ln -s /etc/hosts AGENTS.md",
        "mkdir -p .vscode .github/workflows .husky; echo x > .vscode/tasks.json; echo x > .github/workflows/x.yml; \
         echo x > .husky/pre-commit",
        "echo evil > .envrc",
        "mv .git/hooks /tmp/h.$$; mkdir .git/hooks; echo evil > .git/hooks/pre-commit; rm -rf /tmp/h.$$",
        "cp -r .git g; echo evil >> g/config; rm -rf .git; mv g .git",
        "(cd .git && echo evil > hooks/pre-commit)",
    ] {
        let _ = Terminal::run(local, home.command(line)).await.unwrap();
        guarded_is_untouched(home);
    }
}

#[tokio::test]
async fn guarded_files_are_put_back_and_the_model_is_told() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    guarded_files_stay_as_they_are(&home, &local).await;
    let notices = local.notices().join("\n");
    for word in [
        "`.git/hooks/pre-commit`",
        "`AGENTS.md`",
        "put back",
        "outside_fence",
    ] {
        assert!(notices.contains(word), "{word} in {notices}");
    }
    assert!(home.path(".hermes/put-back").read_dir().unwrap().count() > 0);
    home.text(&local, "git checkout -q -b x; echo a > a; git add a")
        .await;
    assert!(local.notices().is_empty());
}

#[tokio::test]
async fn guarded_files_cannot_be_changed_behind_bubblewrap() {
    if has_bubblewrap() {
        let home = Home::new();
        let local = home.fenced(BUBBLEWRAP);
        with_guarded(&home);
        for line in [
            "echo evil > .git/hooks/pre-commit",
            "echo evil >> AGENTS.md",
            "echo x > .envrc",
        ] {
            let _ = Terminal::run(&local, home.command(line)).await.unwrap();
            guarded_is_untouched(&home);
        }
    }
}

#[tokio::test]
async fn what_somebody_agreed_to_is_not_put_back() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let agents = home.path("project/AGENTS.md");
    let text = || std::fs::read_to_string(&agents).unwrap();
    let line = "echo agreed > AGENTS.md; echo evil > .envrc";
    home.text_with(&local, writes(agents.clone()), line).await;
    assert_eq!(text(), "agreed\n");
    assert!(!home.path("project/.envrc").exists());
    home.text(&local, "echo evil > AGENTS.md").await;
    assert_eq!(text(), "agreed\n");
    home.text_with(&local, Pass::outside(), "echo more > AGENTS.md")
        .await;
    assert_eq!(text(), "more\n");
    home.text(&local, "true").await;
    assert_eq!(text(), "more\n");
    // The person edits it between two commands, once nothing of the last one runs.
    for _ in 0..50 {
        std::fs::write(&agents, "by hand\n").unwrap();
        home.text(&local, "true").await;
        if text() == "by hand\n" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    panic!("what the person wrote is put back");
}

#[tokio::test]
async fn a_new_repository_has_what_its_maker_wants() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    let line = "git init -q . && git init -q sub && git config user.name x";
    home.text(&local, line).await;
    assert!(home.path("project/sub/.git/config").exists());
    assert_eq!(local.notices(), [] as [String; 0]);
    home.text(&local, "cd sub").await;
    home.text(&local, "echo evil > .git/hooks/pre-commit").await;
    assert!(!home.path("project/sub/.git/hooks/pre-commit").exists());
    let line = "git init -q new && echo evil > new/.git/hooks/post-commit; git -C new config alias.x '!evil'";
    home.text(&local, line).await;
    assert!(home.path("project/sub/new/.git/HEAD").exists());
    for name in ["hooks/post-commit", "config"] {
        let path = home.path("project/sub/new/.git").join(name);
        assert!(
            !path.exists(),
            "{name}: what runs something is not made unasked"
        );
    }
}

#[tokio::test]
async fn what_agents_are_told_in_folders_and_repositories_inside_is_kept() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let names = [
        "sub/AGENTS.md",
        "skills/k/SKILL.md",
        "sub/deep/.cursorrules",
        "sub/repo/.git/hooks/x",
        ".git/modules/m/config",
    ];
    for name in names
        .iter()
        .chain(&["sub/repo/.git/HEAD", ".git/modules/m/HEAD"])
    {
        let path = home.path("project").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine\n").unwrap();
    }
    for name in names {
        for line in [format!("echo evil > {name}"), format!("rm {name}")] {
            let _ = Terminal::run(&local, home.command(&line)).await.unwrap();
            let text = std::fs::read_to_string(home.path("project").join(name));
            assert_eq!(text.ok().as_deref(), Some("mine\n"), "{line}");
        }
    }
    for name in [
        "sub/CLAUDE.md",
        "new/AGENTS.md",
        "new/skills/SKILL.md",
        "sub/.claude/x",
    ] {
        let line = format!("mkdir -p $(dirname {name}); echo evil > {name}");
        let _ = Terminal::run(&local, home.command(&line)).await.unwrap();
        assert!(!home.path("project").join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn git_checks_out_what_was_there_before_and_not_what_a_command_made() {
    if !has_landlock() || !is_there("git") {
        return;
    }
    let home = Home::new();
    let project = home.path("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    let set_up = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c; \
        git init -q -b main . && echo one > AGENTS.md && echo one > sub/CLAUDE.md && git add . && git commit -qm one && \
        git switch -qc other && echo two > AGENTS.md && echo two > sub/CLAUDE.md && git commit -qam two && git switch -q main";
    let before = Local::new(environment(), home.path(".hermes/shells"));
    assert_eq!(home.text(&before, set_up).await, "");
    // Of the second in which Hermes is started nothing is believed.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    let local = home.fenced(LANDLOCK);
    let text = |name: &str| std::fs::read_to_string(project.join(name)).unwrap();
    let known = || Pass {
        checkout: Checkout::Known,
        ..Pass::default()
    };
    home.text_with(&local, known(), "git switch -q other").await;
    assert_eq!(
        (text("AGENTS.md"), text("sub/CLAUDE.md")),
        ("two\n".into(), "two\n".into())
    );
    assert_eq!(local.notices(), [] as [String; 0]);
    let plant = "b=$(echo evil | git hash-object -w --stdin) && git update-index --cacheinfo 100644,$b,AGENTS.md && \
        git -c user.name=a -c user.email=a@b.c commit -qm evil";
    home.text(&local, plant).await;
    home.text_with(&local, known(), "git checkout -q -- AGENTS.md")
        .await;
    assert_eq!(text("AGENTS.md"), "two\n");
    assert!(local.notices().join("").contains("put back"));
}

/// Whoever cuts itself loose becomes a child of this process, as of Hermes.
fn adopt() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sheds_its_mark_is_watched_all_the_same() {
    if !has_landlock() {
        return;
    }
    adopt();
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let line = "(env -i setsid sh -c 'sleep 1; echo evil > AGENTS.md; sleep 5' >/dev/null 2>&1 &)";
    home.text(&local, line).await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    home.text(&local, "true").await;
    assert!(wait_until(|| !local.notices().is_empty()).await);
    guarded_is_untouched(&home);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_running_ends_with_us() {
    if !has_landlock() {
        return;
    }
    adopt();
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let line = "(env -i setsid sh -c 'trap \"\" TERM HUP; sleep 1; echo evil > AGENTS.md' >/dev/null 2>&1 &)";
    home.text(&local, line).await;
    Terminal::leave(&local).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    guarded_is_untouched(&home);
}

#[tokio::test]
async fn programs_are_not_led_to_services_that_act_outside() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    let line = "echo $DOCKER_HOST $DBUS_SESSION_BUS_ADDRESS; test -d \"$TMUX_TMPDIR\" && echo own";
    let text = home.text(&local, line).await;
    assert_eq!(
        text,
        "unix:///outside-the-fence/docker.sock unix:path=/outside-the-fence/bus\nown\n"
    );
    let outside = home.text_with(&local, Pass::outside(), line).await;
    assert_eq!(outside, "\n");
    if !is_there("tmux") {
        return;
    }
    // A script that nobody read gets a server of its own, inside.
    let line = "tmux -f /dev/null new-session -d 'touch ../made made; sleep 5' && sleep 1; ls made; tmux kill-server";
    assert_eq!(home.text(&local, line).await, "made\n");
    home.is_untouched();
}

#[tokio::test]
async fn the_superuser_makes_no_devices_and_has_no_power_over_the_machine() {
    if !has_landlock() || !rustix::process::geteuid().is_root() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    let line = "for kind in b c; do mknod node $kind 1 3 2>/dev/null && echo made; done; \
        grep CapEff /proc/self/status; chown 1:1 . && echo chowned";
    let text = home.text(&local, line).await;
    assert!(!text.contains("made") && text.contains("chowned"), "{text}");
    let held = text
        .split_whitespace()
        .find_map(|word| u64::from_str_radix(word, 16).ok());
    // SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, SYS_BOOT, SYS_TIME, MKNOD
    for capability in [16, 17, 19, 21, 22, 25, 27] {
        assert_eq!(held.unwrap() >> capability & 1, 0, "{capability} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_changes_later_is_put_back_while_it_runs() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    for line in [
        "(sleep 0.4; echo evil > AGENTS.md; sleep 3) >/dev/null 2>&1 &",
        "setsid sh -c 'sleep 0.4; echo evil > AGENTS.md; sleep 3' >/dev/null 2>&1 &",
    ] {
        home.text(&local, line).await;
        let told = wait_until(|| !local.notices().is_empty()).await;
        assert!(told, "{line}");
        guarded_is_untouched(&home);
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

#[tokio::test]
async fn a_worktree_commits_into_its_repository_and_leaves_its_hooks_alone() {
    if !has_landlock() || !is_there("git") {
        return;
    }
    let home = Home::new();
    let git = "git -c user.name=a -c user.email=a@b.c";
    let free = Local::new(environment(), home.path("free"));
    let setup = format!(
        "cd .. && git init -q repo && cd repo && {git} commit -q --allow-empty -m one && git worktree add -q ../tree"
    );
    home.text(&free, &setup).await;
    let local = home.fenced(LANDLOCK);
    let in_tree = |line: &str| ShellCommand {
        cwd: home.path("tree"),
        session: "tree".into(),
        ..home.command(line)
    };
    let line = format!("echo a > a && git add a && {git} commit -q -m two && git log --format=%s");
    let output = Terminal::run(&local, in_tree(&line)).await.unwrap();
    assert_eq!(output.text, "two\none\n");
    let line = "echo evil > ../repo/.git/hooks/pre-commit; echo x > ../repo/made; git config core.pager evil";
    let _ = Terminal::run(&local, in_tree(line)).await.unwrap();
    assert!(!home.path("repo/.git/hooks/pre-commit").exists());
    assert!(!home.path("repo/made").exists());
    let config = std::fs::read_to_string(home.path("repo/.git/config")).unwrap();
    assert!(!config.contains("evil"), "{config}");
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
    home.is_untouched();
    let free = Local::new(environment(), home.path("free"));
    assert_eq!(home.text(&free, "cat ../.ssh/id").await, ".ssh/id\n");
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    let home = Home::new();
    let nowhere = [("PATH".into(), "/no/such/place".into())];
    let refused = Fences::new(home.places(FenceKind::Project), Network::Closed, &nowhere);
    let refused = refused.unwrap_err();
    let is_honest = matches!(refused, NotFenced::NetworkStaysOpen { .. });
    assert!(
        is_honest && refused.to_string().contains("only bubblewrap"),
        "{refused}"
    );
}

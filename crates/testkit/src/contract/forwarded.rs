//! What every place away from this machine must do with what goes along: variables, skills and credential files.
//!
//! Start at [`check`]. The place needs `~/.hermes` for itself.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{CancellationToken, CommandExit, Pass, Progress, ShellCommand, Terminal};

/// Long enough that a case which waits for it has failed.
const NEVER: Duration = Duration::from_secs(60);

/// The credential file of every case.
pub const CREDENTIAL: &str = "tokens/service.json";

/// The variable of every case, and its value.
pub const VARIABLE: (&str, &str) = ("GREETING", "it's \"$HOME\"");

/// Runs the whole suite. `open` reaches the place anew with what goes along from a home of Hermes, which is looked at before
/// every command; `cwd` is a folder there.
pub async fn check<T: Terminal>(open: impl Fn(&Path) -> T, cwd: impl Into<PathBuf>) {
    let cwd = cwd.into();
    check_alone(&open, cwd.clone()).await;
    let home = tempfile::tempdir().unwrap();
    let trip = Trip {
        home: home.path(),
        cwd,
    };
    trip.write(CREDENTIAL, "{\"token\": 1}");
    credentials_stay_for_whoever_is_still_there(&trip, &open(trip.home), &open(trip.home)).await;
}

/// The same for a place that each Hermes has for itself.
pub async fn check_alone<T: Terminal>(open: impl Fn(&Path) -> T, cwd: impl Into<PathBuf>) {
    let home = tempfile::tempdir().unwrap();
    let trip = Trip {
        home: home.path(),
        cwd: cwd.into(),
    };
    nothing_is_sent_when_there_is_nothing(&trip, &open(trip.home)).await;
    {
        let place = open(trip.home);
        files_and_variables_are_there_before_the_first_command(&trip, &place).await;
        changes_here_are_seen_by_the_next_command(&trip, &place).await;
        changes_there_come_back_and_credentials_go(&trip, &place).await;
    }
    a_second_start_sends_only_what_changed(&trip, &open(trip.home)).await;
    another_home_is_left_alone(&trip, &open(trip.home)).await;
}

struct Trip<'a> {
    home: &'a Path,
    cwd: PathBuf,
}

impl Trip<'_> {
    fn write(&self, name: &str, content: &str) {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.join(name)).unwrap_or_else(|_| "missing".to_owned())
    }

    async fn say(&self, place: &dyn Terminal, line: &str) -> String {
        let command = ShellCommand {
            session: format!("forwarded-{}", std::process::id()).into(),
            line: line.to_owned(),
            cwd: self.cwd.clone(),
            workdir: None,
            stdin: Vec::new(),
            pty: false,
            timeout: NEVER,
            output_bytes_max: 50_000,
            pass: Pass::default(),
            mark: None,
            stop: CancellationToken::new(),
            progress: Progress::default(),
        };
        let output = place.run(command).await.unwrap();
        assert_eq!(output.exit, CommandExit::Code(0), "`{line}`: {output:?}");
        output.text
    }
}

async fn nothing_is_sent_when_there_is_nothing(trip: &Trip<'_>, place: &dyn Terminal) {
    let seen = trip
        .say(place, "ls -d ~/.hermes 2>/dev/null || echo none")
        .await;
    assert_eq!(seen, "none\n");
    place.leave().await;
    assert!(place.notices().is_empty());
}

async fn files_and_variables_are_there_before_the_first_command(
    trip: &Trip<'_>,
    place: &dyn Terminal,
) {
    trip.write("skills/demo/run.sh", "#!/bin/sh\necho ran\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(trip.home.join("skills/demo/run.sh"), executable).unwrap();
    trip.write("skills/demo/a b/nötes.md", "one");
    trip.write("skills/demo/.env", "SECRET=1");
    trip.write("auth.json", "{}");
    trip.write(CREDENTIAL, "{\"token\": 1}");
    let line = format!(
        "cd ~/.hermes && skills/demo/run.sh && cat {CREDENTIAL} 'skills/demo/a b/nötes.md' && echo && \
         ls -l {CREDENTIAL} | cut -c 1-10; ls -A . skills/demo; echo \"$GREETING\""
    );
    let seen = trip.say(place, &line).await;
    let greeting = VARIABLE.1;
    assert_eq!(
        seen,
        format!(
            "ran\n{{\"token\": 1}}one\n-rw-------\n.:\n.sync\nskills\ntokens\n\nskills/demo:\na b\nrun.sh\n{greeting}\n"
        )
    );
    assert_eq!(place.notices(), Vec::<String>::new());
}

async fn changes_here_are_seen_by_the_next_command(trip: &Trip<'_>, place: &dyn Terminal) {
    trip.write("skills/demo/a b/nötes.md", "longer");
    trip.write("skills/demo/new", "new");
    trip.write("skills/gone/a", "a");
    let look = "cd ~/.hermes/skills; cat demo/*/n*.md demo/new; ls";
    assert_eq!(trip.say(place, look).await, "longernewdemo\ngone\n");
    fs::remove_dir_all(trip.home.join("skills/gone")).unwrap();
    assert_eq!(trip.say(place, look).await, "longernewdemo\n");
}

async fn changes_there_come_back_and_credentials_go(trip: &Trip<'_>, place: &dyn Terminal) {
    let change = format!(
        "cd ~/.hermes; echo stolen >{CREDENTIAL}; cd skills/demo; echo there >new; echo there >run.sh; \
         mkdir made __pycache__; printf '#!/bin/sh\\n' >made/tool; chmod 755 made/tool; echo x >__pycache__/x.pyc; \
         ln -s /etc/passwd link; echo x >../../outside"
    );
    trip.say(place, &change).await;
    trip.write("skills/demo/run.sh", "changed here\n");
    place.leave().await;
    assert_eq!(trip.read("skills/demo/new"), "there\n");
    assert_eq!(trip.read("skills/demo/made/tool"), "#!/bin/sh\n");
    assert_eq!(trip.read("skills/demo/run.sh"), "changed here\n");
    assert_eq!(trip.read("skills/demo/run.sh.remote-copy"), "there\n");
    assert_eq!(trip.read(CREDENTIAL), "{\"token\": 1}");
    for name in ["skills/demo/link", "skills/demo/__pycache__", "outside"] {
        assert!(!trip.home.join(name).exists(), "{name}");
    }
    let notices = place.notices().join("\n");
    for words in ["skills/demo/made/tool", "run.sh.remote-copy"] {
        assert!(notices.contains(words), "{words} in {notices}");
    }
    assert!(place.notices().is_empty(), "told once");
}

async fn a_second_start_sends_only_what_changed(trip: &Trip<'_>, place: &dyn Terminal) {
    // A command brings the credential file again; what it sees before is what the last start left.
    let stay = format!("cd ~/.hermes; cat {CREDENTIAL}; ls skills/demo");
    let first = trip.say(place, &stay).await;
    let listed = "a b\nlink\nmade\nnew\nrun.sh\n";
    assert!(first.contains("{\"token\": 1}"), "{first}");
    assert!(
        first.replace("__pycache__\n", "").ends_with(listed),
        "{first}"
    );
    place.leave().await;
    assert!(place.notices().is_empty(), "nothing was changed there");
    fs::remove_dir_all(trip.home.join("skills/demo/made")).unwrap();
    let second = trip
        .say(
            place,
            "cd ~/.hermes; ls skills/demo; cat skills/demo/run.sh",
        )
        .await;
    let expected = "a b\nlink\nnew\nrun.sh\nchanged here\n";
    assert_eq!(second.replace("__pycache__\n", ""), expected);
    place.leave().await;
    assert!(
        !trip.home.join("skills/demo/made").exists(),
        "what is gone here stays gone"
    );
}

async fn credentials_stay_for_whoever_is_still_there(
    trip: &Trip<'_>,
    first: &dyn Terminal,
    second: &dyn Terminal,
) {
    let look = format!("cat ~/.hermes/{CREDENTIAL} 2>/dev/null || echo none");
    for place in [first, second] {
        assert_eq!(trip.say(place, &look).await, "{\"token\": 1}");
    }
    first.leave().await;
    assert_eq!(trip.say(second, &look).await, "{\"token\": 1}");
    second.leave().await;
    // Without the file here, nobody brings it again.
    let aside = trip.home.join("aside");
    fs::rename(trip.home.join(CREDENTIAL), &aside).unwrap();
    assert_eq!(trip.say(second, &look).await, "none\n");
    second.leave().await;
}

async fn another_home_is_left_alone(trip: &Trip<'_>, place: &dyn Terminal) {
    trip.say(place, "rm -rf ~/.hermes/skills; touch ~/.hermes/SOUL.md")
        .await;
    place.leave().await;
    place.notices();
    let seen = trip
        .say(place, "ls ~/.hermes/skills 2>/dev/null || echo none")
        .await;
    assert_eq!(seen, "none\n");
    let notices = place.notices().join("\n");
    assert!(notices.contains("another Hermes"), "{notices}");
    assert!(notices.contains("Commands run without"), "{notices}");
    trip.say(place, "rm -rf ~/.hermes").await;
}

//! What a command leaves, and the next one of its session finds.

use hermes_core::{CommandExit, TerminalError};

use super::Place;

/// (case, what is said to one shell in turn: line, what it prints, its exit code)
type Dialogue = (&'static str, &'static [(&'static str, &'static str, i32)]);

const DIALOGUES: &[Dialogue] = &[
    (
        "folder",
        &[
            ("cd /usr", "", 0),
            ("pwd", "/usr\n", 0),
            ("cd -", CWD_ECHO, 0),
        ],
    ),
    (
        "exports",
        &[("export A='x y'", "", 0), ("env | grep ^A=", "A=x y\n", 0)],
    ),
    (
        "variables",
        &[
            ("A=1", "", 0),
            ("echo $A; env | grep ^A= || echo hidden", "1\nhidden\n", 0),
        ],
    ),
    (
        "odd_values",
        &[
            ("A=$'it\\'s\\n$(x) \"q\" \\\\ é'", "", 0),
            ("echo \"$A\"", "it's\n$(x) \"q\" \\ é\n", 0),
        ],
    ),
    (
        "unset",
        &[
            ("export A=1", "", 0),
            ("unset A", "", 0),
            ("echo ${A-gone}", "gone\n", 0),
        ],
    ),
    (
        "arrays",
        &[
            ("a=(x 'y z'); declare -A m=([k]=v)", "", 0),
            ("echo ${#a[@]} \"${a[1]}\" ${m[k]}", "2 y z v\n", 0),
        ],
    ),
    (
        "functions",
        &[
            ("greet() { echo \"hello $1\"; }", "", 0),
            ("greet you", "hello you\n", 0),
            ("true", "", 0),
            ("greet again", "hello again\n", 0),
        ],
    ),
    (
        "aliases",
        &[
            ("alias hi='echo hi there'", "", 0),
            ("hi", "hi there\n", 0),
            ("hi", "hi there\n", 0),
        ],
    ),
    (
        "options",
        &[
            ("shopt -s extglob; set -f", "", 0),
            ("echo *; [[ ab == +(a|b) ]] && echo yes", "*\nyes\n", 0),
        ],
    ),
    (
        "errexit",
        &[
            ("set -e", "", 0),
            ("false; echo not here", "", 1),
            ("set +e", "", 0),
            ("false; echo here", "here\n", 0),
        ],
    ),
    ("umask", &[("umask 077", "", 0), ("umask", "0077\n", 0)]),
    (
        "exit_keeps_all",
        &[
            (
                "f() { echo f; }; alias g='echo g'; export A=1; cd /usr; exit 3",
                "",
                3,
            ),
            ("f; echo $A; pwd", "f\n1\n/usr\n", 0),
            ("g", "g\n", 0),
        ],
    ),
    (
        "exit_in_a_function",
        &[("f() { A=1; exit 4; }; f", "", 4), ("echo $A", "1\n", 0)],
    ),
    (
        "a_trap_at_the_end",
        &[
            ("trap 'echo bye' EXIT; A=1", "bye\n", 0),
            ("echo $A", "1\n", 0),
        ],
    ),
    (
        "a_subshell_leaves_nothing",
        &[("(cd /usr; A=1)", "", 0), ("echo ${A-none}", "none\n", 0)],
    ),
    (
        "input_separator",
        &[("IFS=,", "", 0), ("x=a,b; echo $x", "a b\n", 0)],
    ),
    (
        "readonly",
        &[("readonly R=1", "", 0), ("echo $R", "1\n", 0)],
    ),
];

/// Stands for the folder of the suite in what is expected.
const CWD_ECHO: &str = "{cwd}\n";

pub(super) async fn check(place: &Place<'_>) {
    let cwd = format!("{}\n", place.cwd.display());
    for (case, lines) in DIALOGUES {
        let lines: Vec<_> = lines
            .iter()
            .map(|(line, text, code)| match *text {
                CWD_ECHO => (*line, cwd.as_str(), *code),
                text => (*line, text, *code),
            })
            .collect();
        place.dialogue(case, &lines).await;
    }
    a_new_shell_begins_in_its_folder(place).await;
    a_workdir_is_for_one_command(place).await;
    a_missing_workdir_is_named(place).await;
    a_folder_that_is_gone_is_told(place).await;
    sessions_do_not_share(place).await;
    commands_run_at_once(place).await;
    random_numbers_differ(place).await;
}

async fn a_new_shell_begins_in_its_folder(place: &Place<'_>) {
    let cwd = format!("{}\n", place.cwd.display());
    assert_eq!(place.say("begin", "pwd").await.text, cwd);
}

async fn a_workdir_is_for_one_command(place: &Place<'_>) {
    let mut command = place.command("workdir", "pwd; A=1");
    command.workdir = Some("/usr".into());
    assert_eq!(place.run(command).await.text, "/usr\n");
    let cwd = format!("{}\n1\n", place.cwd.display());
    assert_eq!(place.say("workdir", "pwd; echo $A").await.text, cwd);
}

async fn a_missing_workdir_is_named(place: &Place<'_>) {
    let mut command = place.command("missing", "touch made-by-mistake");
    command.workdir = Some("/no/such/folder".into());
    let error = place.try_run(command).await.unwrap_err();
    let path = "/no/such/folder".into();
    assert_eq!(error, TerminalError::NoSuchDirectory { path });
}

async fn a_folder_that_is_gone_is_told(place: &Place<'_>) {
    let line = "mkdir -p gone-$$ && cd gone-$$ && rmdir \"$PWD\"";
    place.dialogue("gone", &[(line, "", 0)]).await;
    let output = place.say("gone", "pwd").await;
    assert!(output.text.contains("is gone"), "{output:?}");
    let cwd = format!("{}\n", place.cwd.display());
    assert!(output.text.ends_with(&cwd), "{output:?}");
}

async fn sessions_do_not_share(place: &Place<'_>) {
    place.say("mine", "export A=mine; cd /usr").await;
    let cwd = format!("none {}\n", place.cwd.display());
    assert_eq!(place.say("yours", "echo ${A-none} $PWD").await.text, cwd);
}

async fn commands_run_at_once(place: &Place<'_>) {
    place.say("at_once", "A=1").await;
    let (a, b) = ("at_once.a", "at_once.b");
    // Each waits for the other: one after the other they would never end.
    let line = |mine: &str, other: &str| {
        format!(
            "rm -f {other}.seen; touch {mine}; while [ ! -e {other} ]; do sleep 0.02; done; touch {mine}.seen; \
                 while [ ! -e {other}.seen ]; do sleep 0.02; done; rm -f {mine}; echo $A"
        )
    };
    let (left, right) = (line(a, b), line(b, a));
    let (left, right) = tokio::join!(place.say("at_once", &left), place.say("at_once", &right));
    assert_eq!((left.text.as_str(), right.text.as_str()), ("1\n", "1\n"));
    let output = place.say("at_once", "rm -f at_once.*; echo $A").await;
    assert_eq!(
        (output.text.as_str(), output.exit),
        ("1\n", CommandExit::Code(0))
    );
}

async fn random_numbers_differ(place: &Place<'_>) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(place.say("random", "echo $RANDOM$RANDOM").await.text);
    }
    seen.dedup();
    assert!(seen.len() > 1, "{seen:?}");
}

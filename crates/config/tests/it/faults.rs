use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use hermes_config::{
    ChangeError, ConfigFile, DotEnv, LoadError, Position, ReadError, load_environment,
};
use serde_json::json;

use crate::world::World;

#[track_caller]
fn check_syntax_error(text: &str, line: usize, message: &str) {
    let world = World::with_config(text);
    let Err(LoadError::Syntax {
        at, message: found, ..
    }) = world.load()
    else {
        panic!("`{text}` should not load");
    };
    assert_eq!(at.line, line, "{found}");
    assert!(found.contains(message), "{found}");
    let refused = world.set("agent.max_turns", "5");
    assert!(matches!(refused, Err(ChangeError::Load(_))));
    assert_eq!(world.read("home/config.yaml"), text);
    assert!(!world.path("home/config.yaml.bak").exists());
}

#[test]
fn a_broken_file_is_named_with_its_place_and_never_overwritten() {
    check_syntax_error("model: gpt\nagent:\n  max_turns: [1,\nx: 2\n", 4, "");
    check_syntax_error("b: 1\na: 'open\n", 2, "");
    check_syntax_error("a: 1\n\tb: 2\n", 2, "tab");
    check_syntax_error("a:\n  b: 1\n\tc: 2\n", 3, "tab");
    check_syntax_error(
        "a: 1\nb: 2\na: 3\n",
        3,
        "`a` is here twice, first in line 1",
    );
    check_syntax_error("a: *nowhere\n", 1, "");
    check_syntax_error("a: 1\n---\nb: 2\n", 2, "second document");
    check_syntax_error("a: !secret x\n", 1, "tag");
    check_syntax_error("? [a]\n: 1\n", 1, "key");
}

#[test]
fn the_error_says_what_to_do_next() {
    let world = World::with_config("a: 1\nb: [\n");
    let error = world.load().err().unwrap();
    let path = world.path("home/config.yaml");
    assert!(
        error
            .to_string()
            .starts_with(&format!("`{}` is not valid YAML, line 3", path.display())),
        "{error}"
    );
    assert!(error.hint().contains("hermes config edit"));
}

#[test]
fn aliases_cannot_fill_the_memory() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    check_syntax_error(&text, 6, "aliases");
}

#[test]
fn deep_nesting_is_refused() {
    check_syntax_error(
        &format!("a: {}{}", "[".repeat(100), "]".repeat(100)),
        1,
        "levels deep",
    );
}

#[test]
fn a_file_that_holds_no_settings_is_refused() {
    for (text, found) in [("- a\n", "a list"), ("just words\n", "a single value")] {
        let world = World::with_config(text);
        assert!(matches!(world.load(), Err(LoadError::NotSettings { found: f, .. }) if f == found));
    }
    for text in ["", "# nothing\n", "---\n", "null\n"] {
        assert!(World::with_config(text).load().is_ok(), "{text}");
    }
}

#[test]
fn a_file_that_is_not_text_is_refused() {
    let world = World::new();
    fs::write(world.path("home/config.yaml"), b"a: 1\nb: \xff\n").unwrap();
    assert!(matches!(
        world.load(),
        Err(LoadError::Read(ReadError::NotText { offset: 8, .. }))
    ));
    fs::write(world.path("home/.env"), b"\xff\xfeA\x00").unwrap();
    assert!(matches!(
        DotEnv::open(&world.path("home/.env")),
        Err(ReadError::NotText { .. })
    ));
}

#[test]
fn a_directory_in_the_place_of_a_file_is_refused() {
    let world = World::new();
    fs::create_dir(world.path("home/config.yaml")).unwrap();
    assert!(matches!(
        world.load(),
        Err(LoadError::Read(ReadError::NotAFile {
            found: "a directory",
            ..
        }))
    ));
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let world = World::new();
    for name in ["home/config.yaml", "home/.env", "home/active_profile"] {
        make_pipe(&world.path(name));
    }
    let (sender, receiver) = mpsc::channel();
    let opening = thread::spawn(move || {
        let told = [
            world.load().err().unwrap().to_string(),
            load_environment(world.environment(), &world.home())
                .err()
                .unwrap()
                .to_string(),
        ];
        sender.send(told).unwrap();
    });
    // A thread that waits for somebody to write would never end.
    let told = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    opening.join().unwrap();
    for message in told {
        assert!(
            message.ends_with("is a named pipe where a file is expected"),
            "{message}"
        );
    }
}

#[test]
fn a_device_behind_a_link_is_refused() {
    let world = World::new();
    symlink("/dev/zero", world.path("home/.env")).unwrap();
    assert!(matches!(
        DotEnv::open(&world.path("home/.env")),
        Err(ReadError::NotAFile {
            found: "a device",
            ..
        })
    ));
}

#[expect(
    clippy::disallowed_methods,
    reason = "making a pipe is a program's work"
)]
fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_folder_that_cannot_be_written_leaves_everything_as_it_was() {
    let world = World::with_config("a: 1\n");
    fs::set_permissions(world.path("home"), Permissions::from_mode(0o500)).unwrap();
    let is_superuser = fs::write(world.path("home/probe"), "").is_ok();
    let refused = world.set("agent.max_turns", "5");
    fs::set_permissions(world.path("home"), Permissions::from_mode(0o700)).unwrap();
    if is_superuser {
        eprintln!("skipped: permissions do not bind the superuser");
        return;
    }
    assert!(matches!(refused, Err(ChangeError::Write(_))));
    assert_eq!(world.read("home/config.yaml"), "a: 1\n");
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let world = World::with_config("a: 1\n");
    fs::create_dir(world.path("home/config.yaml.bak")).unwrap();
    assert!(matches!(
        world.set("agent.max_turns", "5"),
        Err(ChangeError::Write(_))
    ));
    assert_eq!(world.read("home/config.yaml"), "a: 1\n");
    assert_eq!(fs::read_dir(world.path("home")).unwrap().count(), 2);
}

#[test]
fn a_value_of_a_megabyte_is_kept() {
    let world = World::with_config("a: 1 # c\n");
    let long = "é x".repeat(300_000);
    world.set("agent.environment_hint", &long).unwrap();
    assert_eq!(
        world.settings().string("agent.environment_hint").unwrap(),
        long
    );
    assert!(world.unset("agent.environment_hint").unwrap().is_some());
    assert_eq!(world.read("home/config.yaml"), "a: 1 # c\n");
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let world = World::with_config(&"# long\n".repeat(3_000_000));
    assert!(matches!(
        world.load(),
        Err(LoadError::Read(ReadError::TooLarge { .. }))
    ));
}

#[test]
fn a_shared_value_is_not_changed_behind_the_users_back() {
    let text = "base: &b {x: 1}\nuse: *b\n";
    let world = World::with_config(text);
    let mut file = ConfigFile::open(&world.path("home/config.yaml")).unwrap();
    let error = file.set(&"use.x".parse().unwrap(), &json!(2)).unwrap_err();
    assert!(matches!(
        error,
        ChangeError::Shared {
            at: Position { line: 2, column: 6 },
            ..
        }
    ));
    assert!(matches!(
        file.set(&"base.x".parse().unwrap(), &json!(2)),
        Err(ChangeError::Unsupported { .. })
    ));
    assert_eq!(file.text(), text);
}

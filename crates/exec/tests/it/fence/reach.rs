//! What commands, and work that is no command, reach behind a fence, and what a pass opens.

use hermes_core::{Fencing, Pass, ShellCommand, Terminal};
use hermes_exec::{FenceKind, Fences, Local, Network, NotFenced};
use hermes_testkit::contract::terminal;
use hermes_testkit::peers::is_there;

use super::{BUBBLEWRAP, Home, LANDLOCK, has_bubblewrap, has_landlock, reads, writes};
use crate::environment;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_behind_landlock_keep_the_contract() {
    if has_landlock() {
        let home = Home::new();
        terminal::check(&home.fenced(LANDLOCK), home.path("project")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_behind_bubblewrap_keep_the_contract() {
    if has_bubblewrap() {
        let home = Home::new();
        terminal::check(&home.fenced(BUBBLEWRAP), home.path("project")).await;
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

//! Lines that mean harm are asked about or refused and never count as reading; what people do every day is free.

use hermes_core::{CommandPolicy, Consent};
use hermes_policy::CommandLists;
use hermes_policy::{consent_for, is_read_only, named};
use serde::Deserialize;

/// What separates lines in the files beside this.
const END: &str = "\n----\n";

#[derive(Deserialize)]
struct Vector {
    id: String,
    command: String,
}

fn lines(text: &str) -> Vec<&str> {
    text.trim_end().split(END).collect()
}

/// Returns what is wrong with how a hostile line is judged.
fn fault(line: &str) -> Option<String> {
    let consent = consent_for(line);
    if matches!(consent, Consent::NotNeeded | Consent::Review(_)) {
        return Some(format!("runs without a question: {line:?}"));
    }
    is_read_only(line).then(|| format!("counts as reading: {line:?}"))
}

#[test]
fn every_known_hostile_line_is_asked_about_or_refused() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("policy_vectors.json")).unwrap();
    assert_eq!(vectors.len(), 46);
    let fault_of =
        |vector: &Vector| fault(&vector.command).map(|fault| format!("{}: {fault}", vector.id));
    let faults: Vec<String> = vectors.iter().filter_map(fault_of).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn hostile_lines_of_every_family_are_asked_about_or_refused() {
    let lines = lines(include_str!("hostile_lines.txt"));
    assert!(lines.len() >= 150, "{}", lines.len());
    let faults: Vec<String> = lines.into_iter().filter_map(fault).collect();
    assert!(
        faults.is_empty(),
        "{} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn everyday_lines_are_free() {
    let lines = lines(include_str!("everyday_lines.txt"));
    assert!(lines.len() >= 120, "{}", lines.len());
    let mut asked = Vec::new();
    for line in lines {
        if let consent @ (Consent::Needed(_) | Consent::Forbidden { .. } | Consent::Review(_)) =
            consent_for(line)
        {
            let why = named(line).err().unwrap_or_default();
            asked.push(format!("{line:?}\n    {consent:?} {why}"));
        }
    }
    assert!(asked.is_empty(), "{}", asked.join("\n"));
}

#[track_caller]
fn reason(line: &str) -> String {
    match consent_for(line) {
        Consent::Needed(need) => need.reason,
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn odd_characters_are_spelt_out_with_their_place() {
    for (line, expected) in [
        (
            "echo x\u{3000}# ; ls",
            "holds U+3000 IDEOGRAPHIC SPACE, which looks like a blank and is none, at column 7",
        ),
        (
            "echo \u{ff02} ; ls",
            "holds U+FF02 FULLWIDTH QUOTATION MARK, which looks like a character of the shell and is none, at column 6",
        ),
        (
            "ls\n\u{1b}[2K",
            "holds U+001B ESCAPE, a control character, which moves or hides what a terminal shows, at line 2, column 1",
        ),
        (
            "echo \"a\u{202e}b\"",
            "holds U+202E RIGHT-TO-LEFT OVERRIDE, a control character",
        ),
        (
            "echo a\u{200b}b",
            "holds U+200B ZERO WIDTH SPACE, which cannot be seen,",
        ),
    ] {
        let reason = reason(line);
        assert!(reason.starts_with(expected), "{line:?}: {reason}");
    }
}

fn need_of(line: &str) -> hermes_core::Need {
    match consent_for(line) {
        Consent::Needed(need) => need,
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn what_can_be_allowed_for_longer_is_as_narrow_as_the_line_is_dangerous() {
    for (line, patterns) in [
        (
            "git push --force origin main",
            vec!["git push --force origin main", "git push *"],
        ),
        ("docker stop web", vec!["docker stop web", "docker stop *"]),
        ("rm -rf build", vec!["rm -rf build"]),
        ("rm -rf build/*.o", vec![]),
        ("git push --force; ls", vec![]),
        (
            "git push --receive-pack=x --force",
            vec!["git push --receive-pack=x --force"],
        ),
        ("echo \u{ff03} x", vec![]),
        ("x=1 git push --force", vec![]),
        ("git push --force > log", vec![]),
    ] {
        assert_eq!(need_of(line).patterns, patterns, "{line}");
    }
}

#[track_caller]
fn check(lists: &CommandLists, line: &str, expected: &str) {
    let kind = match lists.consent_for(line) {
        Consent::NotNeeded => "free",
        Consent::Needed(_) | Consent::Review(_) => "needed",
        Consent::Forbidden { .. } => "forbidden",
    };
    assert_eq!(kind, expected, "{line}");
}

fn lists(deny: &[&str], allow: &[&str]) -> CommandLists {
    let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
    CommandLists::new(owned(deny), owned(allow), Vec::new())
}

#[test]
fn what_is_denied_is_found_wherever_global_options_stand() {
    let lists = lists(
        &[
            "git push*",
            "docker rm*",
            "kubectl delete *",
            "terraform apply",
        ],
        &[],
    );
    for line in [
        "git -C . push",
        "git --no-pager push origin main",
        "git -c user.name=x --git-dir .git push",
        "/usr/bin/git -C /srv push",
        "GIT push",
        "env FOO=1 git -C . push",
        "nice -n 5 git -P push",
        "ls | xargs -n1 git -C . push",
        "find . -maxdepth 0 -exec git -C {} push \\;",
        "docker --host x rm web",
        "docker -H tcp://x rm -f web",
        "kubectl -n a delete pod x",
        "kubectl --context=x delete pod x",
        "terraform -chdir=infra apply",
        "git \u{3000}push",
        "x=git; eval \"$x push\"; git status",
        "printf -v y x; git status",
        "timeout --signal KILL 5 git push",
        "bash -c 'git -C . push'",
    ] {
        check(&lists, line, "forbidden");
    }
    for line in [
        "git status",
        "git log --grep push",
        "docker ps",
        "kubectl get pods",
        "terraform plan",
    ] {
        check(&lists, line, "free");
    }
}

#[test]
fn an_allowed_pattern_allows_one_plain_command_word_by_word() {
    let lists = lists(&[], &["git push *", "rm -rf build/*", "docker exec web *"]);
    for line in [
        "git push --force",
        "git push -f origin main",
        "git push origin '+main'",
        "rm -rf build/x",
        "docker exec web ls -la",
    ] {
        check(&lists, line, "free");
    }
    for line in [
        "git -c core.sshCommand=x push --force",
        "git push --force; rm -rf x",
        "git push --force && rm -rf x",
        "git push --force $(rm -rf x)",
        "git push --force \"$x\"",
        "git push --force > /etc/hosts",
        "git push --receive-pack=x --force",
        "GIT_SSH_COMMAND=x git push --force",
        "rm -rf build/../src",
        "rm -rf build/x src",
        "rm -rf build/x\u{a0}src",
        "sudo git push --force",
        "docker exec other ls",
    ] {
        check(&lists, line, "needed");
    }
}

#[test]
fn keys_that_edit_a_typed_line_are_not_understood() {
    let lists = CommandLists::default();
    let kind = |line: &str, raw: &str| match lists.consent_for_typed(line, raw) {
        Consent::NotNeeded => "free",
        Consent::Needed(_) | Consent::Review(_) => "needed",
        Consent::Forbidden { .. } => "forbidden",
    };
    for key in [
        '\u{17}', '\u{15}', '\u{7f}', '\u{8}', '\u{1b}', '\u{16}', '\u{12}', '\u{1}', '\u{b}',
        '\u{19}', '\u{4}', '\u{10}',
    ] {
        assert_eq!(kind("ls", &format!("ls{key}\n")), "needed", "{key:?}");
    }
    for raw in ["!!\n", "!reb\n", "echo \"!reb\"\n", "^a^b^!x\n"] {
        assert_eq!(kind(raw, raw), "needed", "{raw:?}");
    }
    for raw in [
        "ls -la\n",
        "yes\r",
        "print(1)\n",
        "if [ ! -f x ]; then echo ok; fi\n",
    ] {
        assert_eq!(kind("ls", raw), "free", "{raw:?}");
    }
    assert_eq!(kind("reboot", "rebootx\u{8}"), "forbidden");
}

//! The shell of a session, as every backend runs it: one process per command, which takes up what the last one left.
//!
//! The script `shell.sh` prepares the shell where the command runs; here its arguments are put together. A shell that is
//! started anew for each command cannot be wedged or killed by one, and commands may run beside each other; what that
//! leaves out is the shell's own table of jobs and its open files.

use std::ffi::OsString;
use std::path::PathBuf;

use hermes_core::{Found, SessionId, ShellCommand, TerminalError};

use crate::environment::secret_name_patterns;
use crate::program::find;

/// Longest line given as an argument; systems allow about 128 KiB for one. A longer one goes through standard input.
const ARGUMENT_BYTES_MAX: usize = 64 * 1024;

/// What a new shell reads when the user named no files.
pub const START_FILES: &[&str] = &["~/.profile", "~/.bash_profile", "~/.bashrc"];

/// Size of the terminal a command sees when it asks for one.
const PTY_SIZE: &str = "rows 30 cols 120";

/// What the shell runs: first the script, its last argument. One line, so that a command counts its own lines from one, and
/// so that all of this is read before a command with an open quote has the shell lose its place.
const PREPARE_AND_RUN: &str = r#"eval "$9"; eval "$__hermes_line"; __hermes_end 2>/dev/null"#;

/// The arguments of a shell, and what it is given on standard input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Vec<u8>,
}

/// Whether something should have been left by a command before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Something,
}

/// Puts together what follows the name of the shell. `state` is the file in which shells leave what they have.
pub(crate) fn invocation(
    command: &ShellCommand,
    state: &str,
    left: Left,
    mark: &str,
    start_files: &[String],
) -> Result<Invocation, TerminalError> {
    let is_short = command.line.len() <= ARGUMENT_BYTES_MAX;
    if command.pty && !is_short {
        return Err(TerminalError::NotStarted {
            shell: "script".to_owned(),
            detail: format!(
                "a command with a terminal of its own has at most {ARGUMENT_BYTES_MAX} bytes"
            ),
        });
    }
    let left = match left {
        Left::Nothing => "new",
        Left::Something => "known",
    };
    let (line, line_bytes) = if is_short {
        (command.line.as_str(), String::new())
    } else {
        ("", command.line.len().to_string())
    };
    let mut args = vec![
        "-c".to_owned(),
        PREPARE_AND_RUN.to_owned(),
        "bash".to_owned(),
    ];
    args.extend([
        state.to_owned(),
        left.to_owned(),
        mark.to_owned(),
        command.cwd.to_string_lossy().into_owned(),
        command.workdir.as_ref().map_or(String::new(), |folder| {
            folder.to_string_lossy().into_owned()
        }),
        start_files.join("\n"),
        line.to_owned(),
        line_bytes,
        script(),
    ]);
    let mut stdin = if is_short {
        Vec::new()
    } else {
        command.line.clone().into_bytes()
    };
    stdin.extend_from_slice(&command.stdin);
    Ok(Invocation { args, stdin })
}

/// Wraps a shell and its arguments so that it has a terminal of its own.
pub(crate) fn with_pty(shell: &str, args: &[String]) -> Vec<String> {
    let quoted: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    let line = format!(
        "stty {PTY_SIZE} -echo 2>/dev/null; exec {shell} {}",
        quoted.join(" ")
    );
    ["script", "-qec", &line, "/dev/null"]
        .map(str::to_owned)
        .to_vec()
}

/// Quotes a word for any POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A file name for a session: ids are safe already unless somebody made them up.
pub(crate) fn file_name(session: &SessionId) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    session
        .as_str()
        .chars()
        .map(|c| if is_safe(c) { c } else { '_' })
        .collect()
}

/// Returns the folder a shell was left in, from what it wrote down: `declare -x PWD="/a b"`, or `export PWD='/a b'`.
pub(crate) fn folder_left(state: &str) -> Option<PathBuf> {
    let line = state.lines().find(|line| {
        let declared = line.split_once(" PWD=");
        declared.is_some_and(|(declares, _)| is_declared(declares))
    })?;
    value_of(line).map(PathBuf::from)
}

/// Reads the value of a variable as a shell writes it down, in one line.
fn value_of(line: &str) -> Option<String> {
    let (_, quoted) = line.split_once('=')?;
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quote == '"' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    Some(value)
}

/// Says what a program's name means to a shell that was left so: a function, an alias, or a file in its `PATH`.
pub(crate) fn found_by(state: &str, environment: &[(OsString, OsString)], program: &str) -> Found {
    let function = format!("{program} () ");
    let alias = format!("alias {program}=");
    let is_own = |line: &str| line == function || line.starts_with(&alias);
    if state.lines().any(is_own) {
        return Found::Shadowed;
    }
    let left = state.lines().find(|line| {
        line.split_once(" PATH=")
            .is_some_and(|(declares, _)| is_declared(declares))
    });
    let path = left.and_then(value_of).map(OsString::from);
    let variables = match path {
        Some(path) => vec![("PATH".into(), path)],
        // Written down in a way that we do not read.
        None if left.is_some() => return Found::Shadowed,
        None => environment.to_vec(),
    };
    find(program, &variables).map_or(Found::Nothing, Found::File)
}

fn is_declared(declares: &str) -> bool {
    declares.starts_with("declare -") || declares == "export"
}

/// What bash keeps by itself, and would say no to or take for nothing when it is read back, or what is set anew for each
/// command. Reading them costs a command more than a millisecond.
const KEPT_BY_BASH: &[&str] = &[
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_LINENO",
    "BASH_LOADABLES_PATH",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_VERSINFO",
    "BASH_VERSION",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HERMES_COMMAND",
    "HISTCMD",
    "HOSTTYPE",
    "LINENO",
    "MACHTYPE",
    "OSTYPE",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
    "_",
];

/// What a new shell has as well.
const AS_IN_A_NEW_SHELL: &[&str] = &[
    "declare -- COMP_WORDBREAKS=$' \\t\\n\"\\'@><=;|&(:'",
    "declare -- IFS=$' \\t\\n'",
    "declare -- OPTERR=\"1\"",
    "declare -i OPTIND=\"1\"",
    "declare -- PS4=\"+ \"",
    "declare -i SECONDS=\"0\"",
];

/// Leaves out of what a shell wrote down the variables that the next one has without it. Each is a line of its own, and
/// they come first: what looks like one further down is the text of a function.
pub(crate) fn without_own_variables(state: &[u8]) -> Vec<u8> {
    let mut lines = state.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut left = Vec::with_capacity(state.len());
    while let Some(line) = lines.next_if(|line| line.starts_with(b"declare -")) {
        if !is_own(line) {
            left.extend_from_slice(line);
        }
    }
    lines.for_each(|line| left.extend_from_slice(line));
    left
}

/// Such as `declare -ir UID="0"`.
fn is_own(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let name = line
        .splitn(3, ' ')
        .nth(2)
        .and_then(|variable| variable.split(['=', '\n']).next())
        .unwrap_or_default();
    KEPT_BY_BASH.contains(&name)
        || name.starts_with("__hermes_")
        || AS_IN_A_NEW_SHELL.contains(&line.trim_end())
}

/// Returns the folder that is not there, when that is what the shell said.
pub(crate) fn missing_folder(text: &str, mark: &str) -> Option<TerminalError> {
    let words = format!("{mark} no folder ");
    let line = text.lines().find(|line| line.starts_with(&words))?;
    Some(TerminalError::NoSuchDirectory {
        path: line[words.len()..].into(),
    })
}

fn script() -> String {
    include_str!("shell.sh").replace("@SECRET_NAMES@", &secret_name_patterns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_one_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn the_folder_a_shell_was_left_in_is_read() {
        for (state, folder) in [
            (
                "declare -x OLDPWD=\"/\"\ndeclare -x PWD=\"/a b\"\n",
                Some("/a b"),
            ),
            (
                r#"declare -- PWD="/with \"quotes\" and \$""#,
                Some(r#"/with "quotes" and $"#),
            ),
            ("export PWD='/plain'", Some("/plain")),
            (r"declare -x PWD=$'/new\nline'", None),
            ("PWD=/words", None),
            ("", None),
        ] {
            assert_eq!(folder_left(state), folder.map(PathBuf::from), "{state}");
        }
    }

    #[test]
    fn a_name_means_what_the_shell_was_taught() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("ls");
        std::fs::write(&program, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let usual = [("PATH".into(), "/usr/bin:/bin".into())];
        let found = |state: &str| found_by(state, &usual, "ls");
        assert!(matches!(found(""), Found::File(path) if path.starts_with("/usr/bin")));
        let planted = format!("declare -x PATH=\"{}:/bin\"\n", place.path().display());
        assert_eq!(found(&planted), Found::File(program));
        assert_eq!(found("ls () \n{ \n    evil\n}\n"), Found::Shadowed);
        assert_eq!(found("alias ls='evil'\n"), Found::Shadowed);
        assert_eq!(found("declare -x PATH=$'/a\\nb'\n"), Found::Shadowed);
        assert!(matches!(found("alias lsx='x'\n"), Found::File(_)));
        assert_eq!(found_by("", &usual, "no-such-program"), Found::Nothing);
    }

    #[test]
    fn what_a_new_shell_has_by_itself_is_left_out() {
        let state = "declare -ir UID=\"0\"\ndeclare -a FUNCNAME\ndeclare -x UIDS=\"1\"\ndeclare -- __hermes_line=\"x\"\n\
                     declare -- IFS=$' \\t\\n'\ndeclare -i OPTIND=\"2\"\n\
                     f () \n{ \n    cat <<X\ndeclare -r UID=1\nX\n\n}\n# complete\n";
        assert_eq!(
            String::from_utf8(without_own_variables(state.as_bytes())).unwrap(),
            "declare -x UIDS=\"1\"\ndeclare -i OPTIND=\"2\"\n\
             f () \n{ \n    cat <<X\ndeclare -r UID=1\nX\n\n}\n# complete\n"
        );
    }

    #[test]
    fn a_session_never_leads_out_of_the_folder() {
        assert_eq!(file_name(&SessionId::from("../a b")), "___a_b");
    }
}

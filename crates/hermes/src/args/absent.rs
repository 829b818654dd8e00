//! What Hermes Agent can be told on its command line and this version cannot: people type it from habit, and should hear
//! what to do instead rather than that the word is unknown.

use clap::CommandFactory as _;

use super::Cli;
use crate::failure::Failure;

/// Something that is not there, as it is typed, and what to do instead.
struct Absent {
    words: &'static str,
    instead: &'static str,
}

const fn absent(words: &'static str, instead: &'static str) -> Absent {
    Absent { words, instead }
}

const NO_GATEWAY: &str =
    "it is not in this version; `hermes gateway run` serves the chat platforms that are";
const NO_MEMORY: &str = "`hermes memory` and `hermes learning log` show what it keeps and learned";
const FIND_SKILLS: &str =
    "a bundle is a file `skill-bundles/NAME.yaml` of the home with a list `skills`; /NAME uses it";
const REPLACE_BINARY: &str =
    "it is one program: put a newer one in its place, or delete it; the home stays as it is";
const NOT_YET: &str = "it is not in this version";

#[rustfmt::skip]
const ABSENT: &[Absent] = &[
    absent("gateway enroll", NOT_YET),
    absent("gateway migrate-legacy", "nothing has to be migrated: files of Hermes Agent are read as they are"),
    absent("whatsapp", NO_GATEWAY),
    absent("whatsapp-cloud", NO_GATEWAY),
    absent("slack", NO_GATEWAY),
    absent("setup tts", "speech is not in this version yet"),
    absent("bundles", FIND_SKILLS),
    absent("curator", "`hermes skills curate` looks after skills"),
    absent("journey", NO_MEMORY),
    absent("memory-graph", NO_MEMORY),
    absent("fallback", "list them in `fallback_providers`, with `hermes config edit`; `hermes doctor` asks each"),
    absent("moa", "write presets into `moa.presets` with `hermes config edit`; `-m moa:NAME` asks one"),
    absent("portal", "`hermes login nous` logs in"),
    absent("secrets", "keep keys in `.env` of the home, or let your shell set them"),
    absent("plugins", "add tools with MCP servers: `hermes mcp add`"),
    absent("hooks", "a hook is a folder in `hooks` of the home with a `HOOK.yaml`; `docs/operations.md` says what stands in it"),
    absent("profile", "a profile is a folder in `profiles` of the home; `hermes -p NAME` uses it"),
    absent("backup", "copy the home while no hermes runs; `hermes config path` shows where it is"),
    absent("import", "copy the files into the home; `hermes config path` shows where it is"),
    absent("update", REPLACE_BINARY),
    absent("uninstall", REPLACE_BINARY),
    absent("postinstall", "nothing has to be done after installing; `hermes setup` asks for a model"),
    absent("dump", "`hermes status` and `hermes doctor` show how things are, `hermes config show` the settings"),
    absent("debug", "`hermes doctor` and `hermes logs` show what is wrong"),
    absent("security", "`hermes doctor` checks what it can"),
    absent("claw", NOT_YET),
    absent("migrate", "nothing has to be migrated: files of Hermes Agent are read as they are"),
    absent("acp", NOT_YET),
    absent("proxy", NOT_YET),
    absent("lsp", NOT_YET),
    absent("dashboard", "`hermes insights --html FILE` writes a page with charts"),
    absent("serve", "`hermes mcp serve` lets other programs look at conversations"),
    absent("desktop", "`hermes` alone talks in the terminal"),
    absent("gui", "`hermes` alone talks in the terminal"),
    absent("console", "`hermes` alone talks in the terminal"),
    absent("computer-use", NOT_YET),
    absent("pets", NOT_YET),
    absent("kanban", NOT_YET),
    absent("project", NOT_YET),
    absent("sessions prune", "`hermes sessions delete` takes one away"),
    absent("sessions archive", "`hermes sessions export` writes one to a file, `hermes sessions delete` takes it away"),
    absent("sessions optimize", "the database looks after itself; `hermes doctor` checks it"),
    absent("sessions repair", "`hermes sessions recover` mends the database and finishes turns, `hermes doctor` checks it"),
    absent("sessions browse", "`/resume` in a conversation lists them, with a preview"),
    absent("mcp picker", "`hermes mcp add` adds a server, `hermes mcp configure` chooses its tools"),
    absent("mcp catalog", "`hermes mcp add` adds a server by its address or its command"),
    absent("mcp install", "`hermes mcp add` adds a server by its address or its command"),
    absent("checkpoints status", "`hermes checkpoints list` shows them, `hermes doctor` what they take"),
    absent("checkpoints clear", "`hermes checkpoints prune` drops the old ones"),
    absent("tools post-setup", "nothing has to be set up after a tool was chosen"),
    absent("--dev", "leave it out"),
    absent("--pass-session-id", "leave it out; `hermes chat -q TEXT -Q` prints the session"),
    absent("-v", "`hermes logs` shows what happened; `logging.level` says how much"),
    absent("--verbose", "`hermes logs` shows what happened; `logging.level` says how much"),
    absent("--deep", "`hermes doctor` looks at everything"),
    absent("batch", "`hermes -z \"PROMPT\"` in a loop of your shell does it; `docs/scripts.md` says how"),
    absent("auth spotify", NOT_YET),
    absent("checkpoints clear-legacy", "`hermes checkpoints prune` drops the old ones"),
    absent("logs list", "`hermes logs` and `hermes logs errors` are the ones there are"),
    absent("logs gateway", "what it printed is in `logs/gateway.log` of the home, what happened in `hermes logs`"),
    absent("logs gui", "`hermes logs` and `hermes logs errors` are the ones there are"),
    absent("logs desktop", "`hermes logs` and `hermes logs errors` are the ones there are"),
    absent("header", "write the `headers` of the server into the settings, with `hermes config edit`"),
];

/// Flags of Hermes Agent's commands that those of the same name have not, and what to do instead.
#[rustfmt::skip]
const ABSENT_FLAGS: &[(&str, &[&str], &str)] = &[
    ("model", &["--refresh"], "lists of models are asked for whenever they are shown"),
    ("setup", &["--reconfigure"], "`hermes setup` asks everything, and Enter keeps what is set"),
    ("setup", &["--portal"], "`hermes login nous` logs in"),
    ("sessions", SESSION_FILTERS, "`hermes sessions search` finds conversations by their words"),
    ("sessions", &["--only", "--lineage", "--upload", "--delete-after-verified"], "`hermes sessions export --help` shows what there is"),
    ("insights", &["--source"], "they are about all conversations of this home"),
    ("prompt-size", &["--platform"], "there is only the terminal"),
    ("logs", &["--since", "--component"], "`-n` says how many lines, `--level` and `--session` which"),
    ("mcp", &["--preset"], "`hermes mcp add` adds a server by its address or its command"),
    ("mcp", &["--connect-timeout"], "write `connect_timeout` of the server into the settings, with `hermes config edit`"),
    ("doctor", &["--ack"], "a warning stays until its cause is gone"),
    ("status", &["--all"], "`hermes status` shows all there is, `hermes doctor` looks closer"),
    ("checkpoints", &["--keep"], "`hermes checkpoints prune --help` shows what there is"),
];

const SESSION_FILTERS: &[&str] = &[
    "--older-than",
    "--newer-than",
    "--before",
    "--after",
    "--title",
    "--end-reason",
    "--cwd",
    "--min-messages",
    "--max-messages",
    "--min-tokens",
    "--max-tokens",
    "--min-cost",
    "--max-cost",
    "--min-tool-calls",
    "--max-tool-calls",
    "--model",
    "--provider",
    "--user",
    "--chat-id",
    "--chat-type",
    "--branch",
    "--include-archived",
];

/// What to answer to a flag that a command of this name has there and not here.
fn told_of_flag(arguments: &[String], flag: &str) -> Option<Failure> {
    let is_given = |command: &str| arguments.iter().any(|argument| argument == command);
    let is_meant =
        |(command, flags, _): &&(&str, &[&str], &str)| flags.contains(&flag) && is_given(command);
    let (command, _, instead) = ABSENT_FLAGS.iter().find(is_meant)?;
    let failure = Failure::usage(format!(
        "`{flag}` of Hermes Agent's `{command}` is not here"
    ));
    Some(failure.hint(*instead))
}

/// What to answer to words that clap does not know, if Hermes Agent knows them.
pub fn told(arguments: &[String], unknown: &str) -> Option<Failure> {
    let typed = if unknown.starts_with('-') {
        unknown.to_owned()
    } else {
        words_up_to(arguments, unknown)?
    };
    let Some(absent) = ABSENT.iter().find(|absent| absent.words == typed) else {
        return told_of_flag(arguments, unknown);
    };
    let failure = Failure::usage(format!("`{typed}` of Hermes Agent is not here"));
    Some(failure.hint(absent.instead))
}

/// The unknown word, behind the command that it was given to.
fn words_up_to(arguments: &[String], unknown: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == unknown)?;
    let before = arguments[..at].last();
    let is_command = |word: &&String| Cli::command().find_subcommand(word).is_some();
    Some(match before.filter(is_command) {
        Some(command) => format!("{command} {unknown}"),
        None => unknown.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::unknown_word;

    fn said(line: &str) -> Option<String> {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&arguments).expect_err(line);
        let failure = told(&arguments, &unknown_word(&error)?)?;
        Some(failure.to_string())
    }

    #[test]
    fn everything_on_the_list_is_told_kindly() {
        for absent in ABSENT {
            let line = match absent.words {
                "-v" | "--verbose" => format!("hermes chat {}", absent.words),
                "--deep" => "hermes status --deep".to_owned(),
                "header" => "hermes mcp add x --url http://x --auth header".to_owned(),
                words => format!("hermes {words}"),
            };
            let said = said(&line).unwrap_or_else(|| panic!("`{line}` is told nothing"));
            assert!(
                said.contains(absent.words) && said.contains("hint: "),
                "{said}"
            );
        }
    }

    #[test]
    fn every_flag_on_the_list_is_told_kindly() {
        for (command, flags, _) in ABSENT_FLAGS {
            for flag in *flags {
                let inner = match (*command, *flag) {
                    (
                        "sessions",
                        "--only" | "--lineage" | "--upload" | "--delete-after-verified",
                    ) => "sessions export",
                    ("sessions", _) => "sessions list",
                    ("mcp", _) => "mcp add x --url http://x",
                    ("checkpoints", _) => "checkpoints prune",
                    (command, _) => command,
                };
                let line = format!("hermes {inner} {flag} x");
                let error = Cli::try_parse_from(line.split(' ')).expect_err(&line);
                assert!(
                    error.kind() == clap::error::ErrorKind::UnknownArgument,
                    "{line}"
                );
                let said = said(&line).unwrap_or_else(|| panic!("`{line}` is told nothing"));
                assert!(said.contains(flag) && said.contains("hint: "), "{said}");
            }
        }
    }

    #[test]
    fn flags_may_stand_before_and_mistypings_stay_mistypings() {
        assert!(said("hermes --yolo gateway enroll").is_some());
        assert!(said("hermes -m x kanban list").is_some());
        assert_eq!(said("hermes gatewy"), None);
        assert_eq!(said("hermes sessions cron"), None);
    }

    #[test]
    fn nothing_on_the_list_is_here() {
        let cli = Cli::command();
        let names = cli
            .get_subcommands()
            .map(|command| command.get_name().to_owned());
        let names: Vec<_> = names.collect();
        for absent in ABSENT {
            assert!(
                !names.iter().any(|name| name == absent.words),
                "{}",
                absent.words
            );
        }
    }
}

//! Nobody below Hermes steers Hermes: what was started from inside it, for a model, may look at it, but neither change it
//! nor start conversations that would do what was refused here.

use crate::ancestry;
use crate::args::{
    AuthCommand, CheckpointsCommand, Cli, Command, ConfigCommand, CronCommand, GatewayCommand,
    LearningCommand, McpCommand, MemoryCommand, ModelCommand, SessionsCommand, SkillsCommand,
    ToolsCommand, UserCommand, WebhookCommand,
};
use crate::failure::{Failure, Outcome};

/// Refuses a command that steers, when it was started from inside Hermes.
pub fn check(cli: &Cli) -> Outcome<()> {
    if cli.oneshot.is_none() && cli.command.as_ref().is_some_and(only_looks) {
        return Ok(());
    }
    match ancestry::hermes_above() {
        None => Ok(()),
        Some(process) => Err(Failure::usage(format!(
            "this was started from inside Hermes (process {process}), and what runs there may not change or drive Hermes"
        ))
        .hint("run it yourself, in a terminal of your own")),
    }
}

/// Whether a command changes nothing. Whatever is not listed steers.
fn only_looks(command: &Command) -> bool {
    match command {
        Command::Completion(_)
        | Command::Demo(_)
        | Command::Insights(_)
        | Command::Logs(_)
        | Command::PromptSize(_)
        | Command::Status(_)
        | Command::Version => true,
        Command::Doctor(args) => !args.fix,
        Command::Config(args) => matches!(
            args.command,
            Some(
                ConfigCommand::Show
                    | ConfigCommand::Get { .. }
                    | ConfigCommand::Path
                    | ConfigCommand::EnvPath
                    | ConfigCommand::Check
                    | ConfigCommand::Explain { .. }
            )
        ),
        Command::Auth(args) => matches!(
            args.command,
            Some(AuthCommand::List { .. } | AuthCommand::Status { .. })
        ),
        Command::Cron(args) => matches!(
            args.command,
            None | Some(
                CronCommand::List { .. }
                    | CronCommand::Show { .. }
                    | CronCommand::History { .. }
                    | CronCommand::Next { .. }
            )
        ),
        Command::Model(args) => matches!(args.command, Some(ModelCommand::List { .. })),
        Command::Skills(args) => matches!(
            args.command,
            Some(
                SkillsCommand::List { .. }
                    | SkillsCommand::Show { .. }
                    | SkillsCommand::Proposals { .. }
                    | SkillsCommand::History { .. }
                    | SkillsCommand::Diff { .. }
                    | SkillsCommand::Audit { .. }
            )
        ),
        Command::Gateway(args) => matches!(
            args.command,
            GatewayCommand::Status(_) | GatewayCommand::List(_)
        ),
        Command::Webhook(args) => matches!(args.command, WebhookCommand::List { .. }),
        Command::Tools(args) => matches!(args.command, Some(ToolsCommand::List { .. })),
        Command::Sessions(args) => matches!(
            args.command,
            Some(
                SessionsCommand::List { .. }
                    | SessionsCommand::Show { .. }
                    | SessionsCommand::Search { .. }
                    | SessionsCommand::Export { .. }
                    | SessionsCommand::Stats { .. }
            )
        ),
        Command::Memory(args) => !matches!(
            args.command,
            Some(MemoryCommand::Undo { .. } | MemoryCommand::Edit { .. })
        ),
        Command::User(args) => !matches!(
            args.command,
            Some(UserCommand::Forget { .. } | UserCommand::Edit { .. })
        ),
        Command::Learning(args) => !matches!(args.command, Some(LearningCommand::Undo { .. })),
        Command::Checkpoints(args) => matches!(
            args.command,
            Some(CheckpointsCommand::List { .. } | CheckpointsCommand::Diff { .. })
        ),
        // What is served there neither shows codes nor takes answers.
        Command::Mcp(args) => matches!(
            args.command,
            Some(
                McpCommand::List { .. }
                    | McpCommand::Status { .. }
                    | McpCommand::Test { .. }
                    | McpCommand::Doctor { .. }
                    | McpCommand::Serve { .. }
                    | McpCommand::ConformanceClient { .. }
            )
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn looks(line: &str) -> bool {
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        cli.oneshot.is_none() && cli.command.as_ref().is_some_and(only_looks)
    }

    #[test]
    fn what_changes_or_drives_hermes_steers() {
        for line in [
            "hermes",
            "hermes -z hi",
            "hermes --yolo -z hi",
            "hermes chat",
            "hermes chat -q hi",
            "hermes approvals",
            "hermes approvals list",
            "hermes approvals allow k7m2pq",
            "hermes config",
            "hermes config set a b",
            "hermes config edit",
            "hermes mcp add x --url http://x",
            "hermes mcp remove x",
            "hermes mcp login x",
            "hermes auth",
            "hermes login x",
            "hermes logout x",
            "hermes setup",
            "hermes model",
            "hermes model set x",
            "hermes tools enable x",
            "hermes sessions delete x",
            "hermes checkpoints restore 1",
            "hermes doctor --fix",
            // Complaint 7: a turn that restarts its own gateway would wait for itself.
            "hermes gateway restart",
            "hermes gateway stop",
        ] {
            assert!(!looks(line), "{line}");
        }
        for line in [
            "hermes version",
            "hermes status",
            "hermes gateway status",
            "hermes gateway list --json",
            "hermes doctor",
            "hermes config get a",
            "hermes sessions list",
            "hermes mcp serve",
            "hermes mcp list",
        ] {
            assert!(looks(line), "{line}");
        }
    }
}

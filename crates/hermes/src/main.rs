//! The `hermes` program: reads the command line, wires the parts, and prints the one error there may be.

#![expect(
    unreachable_pub,
    reason = "a binary has no outside; `pub` marks the interface of a module"
)]

mod args;
mod chat;
mod choose_session;
mod commands;
mod copy;
mod countdown;
mod demo;
mod editor;
mod failure;
mod keyboard;
mod oneshot;
mod output;
mod pager;
mod piped;
mod prepare;
mod render;
mod schedules;
mod signals;
mod steering;
mod tui_bridge;
mod turn;
mod usage_file;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use clap::error::ErrorKind;

use hermes_core::Audience;
use hermes_os::{ancestry, seclusion};
use hermes_runtime::base::{self, Base};
use hermes_runtime::{
    checkpoints, clipboard, former_home, image, logging, mcp, quick, shown, style, terminals,
};

use args::{ChatArgs, Cli, Command, DemoArgs, RunFlags};
use commands::setup::Ready;
use failure::{Failure, Outcome, code};
use oneshot::{Manner, ONE_SHOT_SOURCE, OneShot};

/// Where sessions come from that somebody talks in.
const TALK_SOURCE: &str = "cli";

fn main() -> ExitCode {
    seclusion::seclude();
    ancestry::take_name();
    let (profile, arguments) = hermes_config::take_profile(std::env::args_os().collect());
    let outcome = match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(profile, cli, None),
        Err(error) => match told_absent(&arguments, &error) {
            Some(failure) => Err(failure),
            None => match args::question(&arguments, &error) {
                Some((question, cli)) => run(profile, cli, Some(question)),
                None => match args::no_command(&arguments, &error) {
                    Some(failure) => Err(failure),
                    None => return usage_error(&error),
                },
            },
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                output::note(&failure.to_string());
            }
            ExitCode::from(failure.code)
        }
    }
}

/// What to say of something that Hermes Agent has and this version has not.
fn told_absent(arguments: &[OsString], error: &clap::Error) -> Option<Failure> {
    let unknown = args::unknown_word(error)?;
    let arguments = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned());
    args::told_absent(&arguments.collect::<Vec<_>>(), &unknown)
}

/// Help and version go to standard output and are no errors; the rest is.
fn usage_error(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(code::USAGE),
    }
}

fn run(profile: Option<String>, cli: Cli, question: Option<String>) -> Outcome<()> {
    if let Some(name) = &cli.profile {
        return Err(Failure::usage(format!("`{name}` is not a profile name"))
            .hint("profile names are lower-case letters, digits, `-` and `_`"));
    }
    if cli.oneshot.is_some() && cli.command.is_some() {
        return Err(
            Failure::usage("-z asks one thing and takes no command beside it")
                .hint("leave out -z, or the command"),
        );
    }
    steering::check(&cli)?;
    let (profile, flags) = (profile.as_deref(), cli.run);
    match cli.command {
        Some(Command::Version) => output::println(&format!("hermes {}", env!("CARGO_PKG_VERSION"))),
        Some(Command::Completion(args)) => commands::completion::run(&args),
        Some(Command::Config(args)) => commands::config::run(profile, &flags, args),
        Some(Command::Demo(args)) if args.serve => {
            let base = Arc::new(begin(profile, &flags)?);
            serve_many(demo::serve(base))
        }
        Some(Command::Demo(args)) => block_on(demo::run(&args)),
        Some(Command::Doctor(args)) => block_on(commands::doctor::run(profile, &flags, &args)),
        Some(Command::Chat(mut chat)) => {
            let flags = std::mem::take(&mut chat.run).over(flags);
            let base = begin(profile, &flags)?;
            block_on(chat_or_query(Arc::new(base), &flags, chat))
        }
        None => {
            let base = Arc::new(begin(profile, &flags)?);
            block_on(async {
                match cli.oneshot {
                    Some(prompt) => one_shot(base, &flags, prompt).await,
                    None => talk(base, &flags, TALK_SOURCE, question).await,
                }
            })
        }
        Some(Command::Setup(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::setup::run(&base, &args))
        }
        Some(Command::Model(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::model::run(&base, args))
        }
        Some(Command::Auth(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::auth::run(&base, args))
        }
        Some(Command::Login(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::auth::log_in_at(&base, args))
        }
        Some(Command::Logout(place)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::auth::log_out(&base, &place))
        }
        Some(Command::Insights(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::insights::run(&base, args))
        }
        Some(Command::Memory(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::memory::run(&base, args))
        }
        Some(Command::User(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::user::run(&base, args))
        }
        Some(Command::Learning(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::learning::run(&base, args))
        }
        Some(Command::Checkpoints(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::checkpoints::run(&base, args))
        }
        Some(Command::Skills(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::skills::run(&base, args))
        }
        Some(Command::Sessions(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::sessions::run(&Arc::new(base), &flags, args))
        }
        Some(Command::Tools(args)) => commands::tools::run(&begin(profile, &flags)?, args),
        Some(Command::Approvals(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::approvals::run(&base, args))
        }
        Some(Command::Cron(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::cron::run(&Arc::new(base), args))
        }
        Some(Command::Mcp(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::mcp::run(&base, args))
        }
        Some(Command::Pairing(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::pairing::run(&base, args))
        }
        Some(Command::Gateway(args)) => {
            let base = Arc::new(begin(profile, &flags)?);
            serve_many(commands::gateway::run(base, args))
        }
        Some(Command::Send(args)) => {
            let base = Arc::new(begin(profile, &flags)?);
            block_on(commands::send::run(base, args))
        }
        Some(Command::Webhook(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::webhook::run(&base, args))
        }
        Some(Command::Status(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::status::run(&base, &args))
        }
        Some(Command::PromptSize(args)) => {
            commands::prompt_size::run(&begin(profile, &flags)?, &flags, &args)
        }
        Some(Command::Logs(args)) => {
            let base = begin(profile, &flags)?;
            block_on(commands::logs::run(&base, &args))
        }
    }
}

/// Loads what most commands stand on, and starts the log.
fn begin(profile: Option<&str>, flags: &RunFlags) -> Outcome<Base> {
    let base = Base::load(profile, &flags.options())?;
    logging::start(&base);
    Ok(base)
}

async fn one_shot(base: Arc<Base>, flags: &RunFlags, prompt: String) -> Outcome<()> {
    if flags.provider.is_some() && flags.model.is_none() {
        return Err(Failure::usage("--provider needs a model with -z").hint("add -m MODEL"));
    }
    let base = choose_session::place(base, flags, ONE_SHOT_SOURCE).await?;
    let one_shot = OneShot {
        prompt,
        images: Vec::new(),
        source: ONE_SHOT_SOURCE.into(),
        audience: Audience::Nobody,
        manner: Manner::AnswerOnly,
    };
    oneshot::run(&base, flags, one_shot).await
}

async fn chat_or_query(base: Arc<Base>, flags: &RunFlags, args: ChatArgs) -> Outcome<()> {
    let source = |usual: &str| args.source.clone().unwrap_or_else(|| usual.to_owned());
    let Some(prompt) = args.query else {
        return talk(base, flags, &source(TALK_SOURCE), None).await;
    };
    let manner = if args.quiet {
        Manner::AnswerAndSession
    } else {
        Manner::Live
    };
    let source = source(ONE_SHOT_SOURCE);
    let base = choose_session::place(base, flags, &source).await?;
    let one_shot = OneShot {
        prompt,
        images: args.image,
        source,
        audience: Audience::Nobody,
        manner,
    };
    oneshot::run(&base, flags, one_shot).await
}

/// Chats; with nobody to answer yet, asks for a model first.
async fn talk(
    base: Arc<Base>,
    flags: &RunFlags,
    source: &str,
    question: Option<String>,
) -> Outcome<()> {
    let mut flags = flags.clone();
    let question = match flags.resume.take_if(|session| session.is_empty()) {
        // The list of conversations is the first that is shown.
        Some(_) => Some("/resume".to_owned()),
        None => question,
    };
    let flags = &flags;
    let base = choose_session::place(base, flags, source).await?;
    match commands::setup::before_first_chat(&base).await? {
        None => Box::pin(chat::run(base, flags, source, question)).await,
        Some(Ready::Chat) => {
            let base = Arc::new(base.with_options(&flags.options())?);
            Box::pin(chat::run(base, flags, source, question)).await
        }
        Some(Ready::Demo) => demo::run(&DemoArgs::default()).await,
    }
}

/// Runs a command to its end on one thread: the work of a terminal user fits on it, and it starts at once.
fn block_on(work: impl Future<Output = Outcome<()>>) -> Outcome<()> {
    run_on(&mut tokio::runtime::Builder::new_current_thread(), work)
}

/// Runs a command that serves many at a time on all cores, up to a few: more would only wait for the store.
fn serve_many(work: impl Future<Output = Outcome<()>>) -> Outcome<()> {
    const THREADS_MAX: usize = 4;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    run_on(builder.worker_threads(cores.min(THREADS_MAX)), work)
}

fn run_on(
    builder: &mut tokio::runtime::Builder,
    work: impl Future<Output = Outcome<()>>,
) -> Outcome<()> {
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    runtime.spawn(ancestry::adopt());
    let outcome = runtime.block_on(work);
    // A thread that waits for the keyboard must not keep the program alive.
    runtime.shutdown_background();
    outcome
}

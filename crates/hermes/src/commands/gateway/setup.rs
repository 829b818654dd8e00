//! `hermes gateway setup`: from a token to a first chat.
//!
//! What is asked comes from the platform's own list of settings; every answer is tried with the platform before it is
//! kept. The first person who writes is let in, if whoever sits at the terminal says that it is them.

mod writer;

use std::sync::Arc;
use std::time::Duration;

use hermes_channels::PLATFORMS;
use hermes_config::DotEnv;
use hermes_core::text::escaped;
use hermes_core::{
    Channel, ChannelError, ChannelPorts, Clock as _, PairedPerson, Pairings as _, Platform,
    PlatformSetting, PlatformSettings, Random, Trouble,
};
use hermes_gateway::chat::identity::IdentityLock;
use hermes_runtime::models::found::is_model_missing;
use hermes_runtime::{SystemClock, open_store};
use tokio::time::timeout;

use self::writer::{Waited, Writer};
use super::desk::this_process;
use super::{chats, lifecycle, service};
use crate::args::GatewayInstallArgs;
use crate::base::Base;
use crate::commands::interview::{Choice, Interview, options};
use crate::failure::{Failure, Outcome};
use crate::output::note;

/// A platform that says nothing for so long does not count as reached.
const TRY_PATIENCE: Duration = Duration::from_secs(30);
/// What pairing does instead is not asked for.
const PAIRED_INSTEAD: &str = "allow_from";

pub(in crate::commands) async fn run(base: &Base) -> Outcome<()> {
    let mut interview =
        Interview::begin(&base.environment, "hermes gateway setup").ok_or_else(nobody_there)?;
    if is_model_missing(base).await? {
        interview
            .bad("no model is chosen yet, and nobody could answer; `hermes setup` chooses one");
    }
    let platform = choose(&mut interview)?;
    let (channel, answers) = tried(base, &mut interview, platform).await?;
    keep(base, &answers)?;
    interview.good(&format!(
        "what {} needs is saved in `{}`",
        platform.label,
        base.home.dot_env().display()
    ));
    let base = &base.with_options(&hermes_core::SessionOptions::default())?;
    let is_in = let_in(base, &mut interview, platform, channel.as_ref()).await?;
    drop(channel);
    run_it(base, &mut interview).await?;
    if !is_in && platform.ignores_strangers {
        let variable = chats::variable_of(platform, "allowed_users");
        note(&format!(
            "nobody is heard yet: name who may write in `{variable}`"
        ));
    } else if !is_in {
        note("write to it then: it shows a code, which `hermes pairing approve` takes");
    }
    Ok(())
}

fn nobody_there() -> Failure {
    let needed = chats::needed_variables().join("`, `");
    Failure::usage("setup asks questions, and nobody is there to answer them").hint(format!(
        "put what a platform needs (`{needed}`) into `.env` of the home, run `hermes gateway start`, write to the bot, and approve the code it shows with `hermes pairing approve`"
    ))
}

fn choose(interview: &mut Interview) -> Outcome<&'static Platform> {
    if let [only] = PLATFORMS {
        return Ok(only);
    }
    interview.title("Where do you want to talk to it?");
    let platforms = PLATFORMS.iter().map(|platform| Choice {
        text: platform.label.to_owned(),
        value: platform,
    });
    interview.choose(platforms.collect())
}

/// Asks what a platform needs until the platform takes it. Returns what is to be kept.
async fn tried(
    base: &Base,
    interview: &mut Interview,
    platform: &'static Platform,
) -> Outcome<(Arc<dyn Channel>, Vec<(&'static str, String)>)> {
    interview.title(platform.label);
    note(platform.how_to);
    let known = chats::settings_of(base, platform);
    loop {
        let (settings, answers) = asked(interview, platform, known.clone())?;
        let ports = ChannelPorts {
            clock: Arc::new(SystemClock),
            random: Arc::new(Random::from_system()),
        };
        let channel = match (platform.open)(&settings, ports) {
            Ok(channel) => channel,
            Err(error) => {
                interview.bad(&format!("{error}; {}", error.hint));
                continue;
            }
        };
        note(&interview.style.dim(format!("asking {} …", platform.label)));
        let error = match timeout(TRY_PATIENCE, channel.probe()).await {
            Ok(Ok(())) => return Ok((channel, answers)),
            Ok(Err(error)) => error,
            Err(_) => ChannelError::new(Trouble::Passing, "it did not answer"),
        };
        interview.bad(&told(&error));
        if error.trouble == Trouble::NotAuthorised {
            continue;
        }
        let ways = options([
            (false, "try again"),
            (true, "save it anyway; the gateway goes on trying"),
        ]);
        if interview.choose(ways)? {
            return Ok((channel, answers));
        }
    }
}

fn told(error: &ChannelError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

type Answers = Vec<(&'static str, String)>;

fn asked(
    interview: &mut Interview,
    platform: &Platform,
    mut settings: PlatformSettings,
) -> Outcome<(PlatformSettings, Answers)> {
    let mut answers = Vec::new();
    let questions = platform.settings.iter();
    let questions = questions.filter(|one| !one.question.is_empty() && one.key != PAIRED_INSTEAD);
    for setting in questions {
        let now = settings.text(setting.key);
        let answer = answer(interview, setting, now.as_deref())?;
        if !answer.is_empty() && Some(&answer) != now.as_ref() {
            settings = settings.with(setting.key, answer.clone());
            answers.push((setting.variable, answer));
        }
    }
    Ok((settings, answers))
}

fn answer(
    interview: &mut Interview,
    setting: &PlatformSetting,
    now: Option<&str>,
) -> Outcome<String> {
    loop {
        let answer = match (setting.is_secret, now) {
            (true, Some(_)) => {
                interview.secret(&format!("{} (Enter keeps what is set)", setting.question))?
            }
            (true, None) => interview.secret(setting.question)?,
            (false, now) => interview.line(setting.question, now.unwrap_or_default())?,
        };
        if !answer.is_empty() || now.is_some() || !setting.is_needed {
            return Ok(answer);
        }
        interview.bad("it cannot do without");
    }
}

/// Writes variables into `.env`, which is its owner's alone.
fn keep(base: &Base, answers: &[(&str, String)]) -> Outcome<()> {
    if answers.is_empty() {
        return Ok(());
    }
    let mut file = DotEnv::open(&base.home.dot_env())?;
    for (variable, value) in answers {
        file.set(variable, value)
            .map_err(|error| Failure::new(format!("`{variable}` cannot be saved: {error}")))?;
    }
    Ok(file.save()?)
}

/// Waits for the first message, and lets its sender in. False: that is left to a code.
async fn let_in(
    base: &Base,
    interview: &mut Interview,
    platform: &'static Platform,
    channel: &dyn Channel,
) -> Outcome<bool> {
    if lifecycle::holder(base).await?.is_some() || channel.webhook().is_some() {
        // It receives already, or is to be called: what is said there is not ours to hear.
        return Ok(false);
    }
    let lock = IdentityLock::new(
        &chats::identity_locks(base),
        channel.facts(),
        this_process(None),
    );
    let _held = match lock.take() {
        Ok(held) => held,
        Err(error) => {
            interview.bad(&told(&error));
            return Ok(false);
        }
    };
    let mut declined = Vec::new();
    loop {
        let writer = match writer::wait(channel, platform.label, &declined).await {
            Waited::Wrote(writer) => writer,
            Waited::Left => {
                note("what was saved stays saved");
                return Ok(false);
            }
            Waited::Failed(error) => {
                interview.bad(&told(&error));
                return Ok(false);
            }
        };
        let name = escaped(&writer.name);
        interview.title(&format!(
            "{name} (id {}) wrote: {}",
            escaped(&writer.user),
            escaped(&writer.text)
        ));
        let ways = options([
            (true, "that is me: I am the owner of this Hermes"),
            (false, "that is somebody else; wait for me"),
        ]);
        if interview.choose(ways)? {
            let_writer_in(base, platform, &writer).await?;
            interview.good(&format!(
                "{name} may ask, and what has no other place comes to this chat"
            ));
            return Ok(true);
        }
        declined.push(writer.user);
    }
}

async fn let_writer_in(base: &Base, platform: &Platform, writer: &Writer) -> Outcome<()> {
    let store = open_store(base)?;
    let person = PairedPerson {
        platform: platform.name.to_owned(),
        user: writer.user.clone(),
        name: Some(writer.name.clone()),
        at: SystemClock.now(),
    };
    store.pair(person).await?;
    // Who was let in first is the owner; an owner with a second platform is named there.
    let paired = store.paired_people(None).await?;
    let is_first = paired
        .first()
        .is_some_and(|first| first.platform == platform.name && first.user == writer.user);
    if !is_first {
        let key = format!("platforms.{}.allow_admin_from", platform.name);
        if base.settings.get(&key).is_none() {
            let ids = format!("[\"{}\"]", writer.user);
            hermes_config::set(&base.home, &base.settings, &key, &ids)?;
        }
    }
    let settings = chats::settings_of(base, platform);
    if settings.text("home_channel").is_none() && settings.value("home_channel").is_none() {
        let variable = chats::variable_of(platform, "home_channel");
        keep(base, &[(variable.as_str(), writer.chat.clone())])?;
    }
    Ok(())
}

/// Lets it run from now on, if that is wanted.
async fn run_it(base: &Base, interview: &mut Interview) -> Outcome<()> {
    if lifecycle::reload(base).await? {
        interview.good("the gateway that runs reads its settings again");
        return Ok(());
    }
    interview.title("It talks as long as the gateway runs. Start it?");
    let mut ways = options([
        (Run::Start, "start it in the background now"),
        (Run::Later, "not now; `hermes gateway start` does it"),
    ]);
    if service::found(base).is_some() {
        let text = "have the system start it, now and always".to_owned();
        let value = Run::Install;
        ways.insert(0, Choice { value, text });
    }
    match interview.choose(ways)? {
        Run::Install => {
            let args = GatewayInstallArgs {
                print: false,
                system: false,
                run_as: None,
                manager: None,
            };
            service::install(base, &args).await
        }
        Run::Start => lifecycle::start(base).await,
        Run::Later => Ok(()),
    }
}

enum Run {
    Install,
    Start,
    Later,
}

//! `hermes gateway run`: serves until somebody ends it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_config::Environment;
use hermes_core::{Archive as _, SessionId, SessionOptions, Store as _};
use hermes_gateway::api::{self, ApiParts};
use hermes_gateway::chat::supervisor::{ChannelState, ChannelStatus};
use hermes_gateway::chat::{ChatChannel, ChatControl};
use hermes_gateway::deliver::{Deliver, ToLog};
use hermes_gateway::http_server::{HttpServer, ListenError};
use hermes_gateway::notify::ServiceManager;
use hermes_gateway::presence::{Holder, NotPresent, Presence};
use hermes_gateway::webhooks::{self, ScriptParts, WebhookParts};
use hermes_gateway::{Gateway, Shutdown};
use hermes_os::memory::Keeper;
use hermes_runtime::Runtime;
use hermes_runtime::schedules::settings::CronSettings;
use tokio::sync::Notify;

use super::chats::{Opened, SetUp};
use super::desk::{Desk, this_process};
use super::inventory::HomeInventory;
use super::settings::api::ApiServer;
use super::settings::webhook::WebhookServer;
use super::signals::{GatewaySignals, Wish};
use super::{chats, hooks, lifecycle, reload, restart_note, settings};
use crate::args::GatewayRunArgs;
use crate::base::Base;
use crate::failure::{Failure, Outcome, code};
use crate::output::{note, println};
use crate::schedules;

/// How long turns may go on when somebody ends the gateway, unless `agent.restart_drain_timeout` says otherwise: most
/// are done by then, and service managers wait 90 seconds before they kill.
const DRAIN_TIME: Duration = Duration::from_secs(30);
/// How often it is looked whether platforms are connected.
const STATE_LOOK: Duration = Duration::from_secs(1);
/// For a gateway that is just ending to let go of its home.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// Where nothing is lost by a second one, it need not wait.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);
/// For hooks that still run when all else has ended.
const HOOKS_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked how much is in memory: often enough that a burst is forgotten soon.
const MEMORY_LOOK: Duration = Duration::from_secs(3);
/// A store that does not answer for this long does not count as alive.
const WELL_PATIENCE: Duration = Duration::from_secs(10);

/// How it came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Stop,
    Restart,
}

/// Serves until somebody ends the program.
pub(crate) async fn serve(base: Arc<Base>, args: GatewayRunArgs) -> Outcome<()> {
    if args.detached {
        // Who leads its session already has nothing to leave.
        let _ = rustix::process::setsid();
    }
    // Before anybody puts a newer one in its place.
    let program = std::env::current_exe().ok();
    let mut signals = GatewaySignals::listen()?;
    let manager = service_manager(&base.environment);
    let wanted = Wanted::read(&base)?;
    for problem in chats::oddities(&base.settings).problems {
        note(&format!("gateway: {problem}"));
    }
    let drain = drain_time(&base)?;
    if args.replace {
        lifecycle::end_running(&base).await?;
    }
    let holder = holder(&args, manager.is_some());
    let presence = presence(&base, &holder, !wanted.platforms.is_empty()).await?;
    let (gateway, desk, known) = wanted.build(&base, holder, presence.is_some()).await?;
    tell_ready(&desk, &known, manager.as_ref()).await?;
    let reload = Notify::new();
    let mut ending = None;
    let end_wanted = async || {
        let is_first = ending.is_none();
        let wish = wanted_end(&mut signals, &desk, &reload, is_first).await;
        if is_first {
            tell_ending(wish, manager.as_ref());
        }
        ending = Some(wish);
    };
    let drained = tokio::select! {
        drained = gateway.run(end_wanted, drain) => drained,
        () = answer(presence.as_ref(), &desk) => unreachable!("it answers for ever"),
        () = watch_over(manager.as_ref(), &desk) => unreachable!("it looks for ever"),
        () = keep_small() => unreachable!("it looks for ever"),
        () = reload::whenever(&reload, &base, &desk, known, manager.as_ref()) => {
            unreachable!("it waits for ever")
        }
    };
    for notice in desk.runtime.stop().await {
        note(&notice);
    }
    desk.hooks.finish(HOOKS_PATIENCE).await;
    if !drained {
        note("gateway: what still ran was stopped");
    }
    drop(presence);
    match ending {
        Some(Ending::Restart) if desk.holder.service.is_some() => Err(Failure {
            code: code::RESTART,
            ..Failure::new("")
        }),
        Some(Ending::Restart) => Err(begin_again(program)),
        _ => Ok(()),
    }
}

/// What the settings want served.
struct Wanted {
    api: Option<ApiServer>,
    webhooks: Option<WebhookServer>,
    platforms: Vec<SetUp>,
}

impl Wanted {
    fn read(base: &Base) -> Outcome<Self> {
        Ok(Self {
            api: settings::api::read(base)?,
            webhooks: settings::webhook::read(base)?,
            platforms: chats::wanted(base),
        })
    }

    /// Makes the gateway of it, and says with which platforms; without chats where another process has them.
    async fn build(
        self,
        base: &Arc<Base>,
        holder: Holder,
        has_chats: bool,
    ) -> Outcome<(Gateway, Arc<Desk>, Vec<SetUp>)> {
        let runtime = Runtime::start(Arc::clone(base))?;
        // Before anybody opens a session.
        runtime.count_turns();
        let jobs = schedules::take_over(&runtime).await?;
        let is_nothing = self.api.is_none() && self.webhooks.is_none();
        if is_nothing && self.platforms.is_empty() && jobs == 0 {
            return Err(nothing_to_serve());
        }
        let mut gateway = Gateway::default();
        let shutdown = gateway.shutdown().clone();
        let desk = Arc::new(Desk::new(Arc::clone(&runtime), holder, shutdown));
        let mut opened = Opened::of(&desk, self.platforms);
        let is_nothing = is_nothing && opened.known.is_empty() && jobs == 0;
        if is_nothing && !opened.refused.is_empty() {
            return Err(opened.refused.swap_remove(0).1);
        }
        desk.refuses(opened.reports(desk.holder.started));
        let deliver = if has_chats {
            add_chats(&mut gateway, base, &desk, opened.channels)?
        } else {
            Arc::new(ToLog)
        };
        if let Some(api) = self.api {
            desk.serves(add_api(&mut gateway, &desk, api).await?);
        }
        if let Some(webhooks) = self.webhooks {
            let deliver = Arc::clone(&deliver);
            desk.serves(add_webhooks(&mut gateway, &runtime, webhooks, deliver).await?);
        }
        desk.serves(schedules::add(&mut gateway, &runtime, jobs, deliver).await?);
        Ok((gateway, desk, opened.known))
    }
}

/// Tells everybody who waits for it that it serves.
async fn tell_ready(
    desk: &Desk,
    platforms: &[SetUp],
    manager: Option<&ServiceManager>,
) -> Outcome<()> {
    let labels = platforms.iter().map(SetUp::label);
    let ready: Vec<String> = labels.chain(desk.served()).collect();
    let ready = ready.join(", ");
    println(&format!("gateway: ready, {ready}"))?;
    if let Some(manager) = manager {
        manager.ready(&ready);
    }
    hooks::tell_startup(desk, platforms);
    tell_that_it_is_back(desk).await;
    Ok(())
}

fn tell_ending(ending: Ending, manager: Option<&ServiceManager>) {
    if let Some(manager) = manager {
        manager.stopping();
    }
    note(match ending {
        Ending::Stop => "gateway: ending what runs; once more ends it at once",
        Ending::Restart => "gateway: ending what runs, and starting again",
    });
}

/// Waits for a wish to end; other wishes are passed on until one to end has come.
async fn wanted_end(
    signals: &mut GatewaySignals,
    desk: &Desk,
    reload: &Notify,
    is_first: bool,
) -> Ending {
    loop {
        let wish = tokio::select! {
            wish = signals.next() => wish,
            () = desk.restart_asked() => Wish::Restart,
        };
        match wish {
            Wish::End => return Ending::Stop,
            _ if !is_first => {}
            Wish::Restart => return Ending::Restart,
            Wish::Reload => reload.notify_one(),
        }
    }
}

/// Becomes the program anew, with the arguments of before. Returns only when that is impossible.
fn begin_again(program: Option<PathBuf>) -> Failure {
    let Some(program) = program else {
        return Failure::new("the gateway does not know its own program, and cannot start again")
            .hint("`hermes gateway start` starts it");
    };
    let arguments = std::env::args_os().skip(1);
    // Whoever wanted the one before to go has seen it go.
    let arguments = arguments.filter(|argument| argument != "--replace");
    let error = hermes_exec::become_program(&program, arguments);
    Failure::new(format!(
        "cannot start `{}` again: {error}",
        program.display()
    ))
    .hint("`hermes gateway start` starts it")
}

fn service_manager(environment: &Environment) -> Option<ServiceManager> {
    let address = environment.get("NOTIFY_SOCKET")?;
    match ServiceManager::of(address, environment.get("WATCHDOG_USEC")) {
        Ok(manager) => Some(manager),
        Err(error) => {
            tracing::warn!(%error, "the service manager cannot be told how things are");
            None
        }
    }
}

fn holder(args: &GatewayRunArgs, is_notifying: bool) -> Holder {
    let by_itself = || match std::process::id() {
        _ if is_notifying => Some("systemd".to_owned()),
        1 => Some("the container".to_owned()),
        _ => None,
    };
    this_process(args.service.clone().or_else(by_itself))
}

/// The right to serve this home: two gateways on the same platforms would answer everything twice. Without platforms a second
/// one does no harm.
async fn presence(base: &Base, holder: &Holder, has_platforms: bool) -> Outcome<Option<Presence>> {
    let patience = if has_platforms {
        LOCK_PATIENCE
    } else {
        SHORT_PATIENCE
    };
    match Presence::take(base.home.directory(), holder, patience).await {
        Ok(presence) => Ok(Some(presence)),
        Err(NotPresent::Held(_)) if !has_platforms => Ok(None),
        Err(error @ NotPresent::Held(_)) => Err(Failure::new(error.to_string()).hint(
            "end it with `hermes gateway stop`, take its place with `hermes gateway run --replace`, or use another profile with `hermes -p NAME`",
        )),
        Err(error) => Err(Failure::new(error.to_string()).hint("is the home writable?")),
    }
}

async fn answer(presence: Option<&Presence>, desk: &Arc<Desk>) {
    match presence {
        Some(presence) => presence.answer(|| desk.report()).await,
        None => std::future::pending().await,
    }
}

/// Tells the service manager that all is well, as often as it wants to hear it.
async fn watch_over(manager: Option<&ServiceManager>, desk: &Desk) {
    let interval = manager.and_then(ServiceManager::watchdog_interval);
    let (Some(manager), Some(interval)) = (manager, interval) else {
        return std::future::pending().await;
    };
    loop {
        let well = tokio::time::timeout(WELL_PATIENCE, desk.is_well()).await;
        if well.unwrap_or(false) {
            manager.alive();
        }
        tokio::time::sleep(interval).await;
    }
}

/// Gives memory back that only a burst needed, or the start.
async fn keep_small() {
    let mut keeper = Keeper::default();
    loop {
        tokio::time::sleep(MEMORY_LOOK).await;
        let looked = tokio::task::spawn_blocking(move || {
            keeper.look();
            keeper
        });
        keeper = looked.await.unwrap_or_default();
    }
}

/// Adds the chats, which may be none yet. Returns the way to them.
fn add_chats(
    gateway: &mut Gateway,
    base: &Base,
    desk: &Arc<Desk>,
    channels: Vec<ChatChannel>,
) -> Outcome<Arc<dyn Deliver>> {
    let shutdown = gateway.shutdown().clone();
    let chats = chats::gateway(base, desk, channels, shutdown)?;
    let deliver: Arc<dyn Deliver> = Arc::new(chats.outbound());
    desk.runtime.set_chats(Arc::clone(&deliver));
    chats::tell_platforms(&desk.runtime);
    let _ = desk.deliver.set(Arc::clone(&deliver));
    let control = chats.control();
    let _ = desk.chats.set(control.clone());
    gateway.add("status", tell_states(control, gateway.shutdown().clone()));
    gateway.add("chats", chats.run());
    Ok(deliver)
}

/// The chat that asked for a restart hears that it is done.
async fn tell_that_it_is_back(desk: &Desk) {
    let (home, now) = (desk.runtime.base().home.directory(), desk.holder.started);
    let (Some(deliver), Some(chat)) = (desk.deliver.get(), restart_note::take(home, now)) else {
        return;
    };
    let key = format!("restart/{}", now.as_millis());
    let words = "I am back.".to_owned();
    if let Err(error) = deliver.deliver(&key, &chat.to_string(), words).await {
        tracing::warn!(%error, "the chat that asked for a restart is not told");
    }
}

/// Tells of each platform when it is connected, and what is wrong when it is not.
async fn tell_states(chats: ChatControl, shutdown: Shutdown) {
    let mut told = Vec::new();
    loop {
        let now: Vec<String> = chats.status().iter().filter_map(state_told).collect();
        for line in now.iter().filter(|line| !told.contains(*line)) {
            note(line);
        }
        told = now;
        tokio::select! {
            () = tokio::time::sleep(STATE_LOOK) => {}
            () = shutdown.draining() => return,
        }
    }
}

fn state_told(status: &ChannelStatus) -> Option<String> {
    let platform = status.platform;
    let name = status
        .identity
        .as_ref()
        .map_or("", |identity| &identity.name);
    match (&status.state, &status.error) {
        (ChannelState::Connected, _) => Some(format!("gateway: {platform} is connected as {name}")),
        (_, Some(error)) => Some(format!("gateway: {platform} is not connected: {error}")),
        _ => None,
    }
}

async fn add_api(gateway: &mut Gateway, desk: &Arc<Desk>, api: ApiServer) -> Outcome<String> {
    let runtime = &desk.runtime;
    let server = HttpServer::bind(&api.host, api.port).await;
    let server = server.map_err(|error| not_listening(&error, "API_SERVER"))?;
    let told = format!("API on {}", server.url());
    let parts = ApiParts {
        sessions: Arc::clone(runtime) as _,
        archive: Arc::clone(runtime.store()) as _,
        records: Arc::clone(runtime.store()) as _,
        inventory: Arc::new(HomeInventory(Arc::clone(runtime.base()))),
        jobs: runtime.desk(),
        clock: Arc::clone(runtime.clock()),
        random: Arc::clone(runtime.random()),
        report: {
            let desk = Arc::clone(desk);
            Arc::new(move || desk.report())
        },
        turns: runtime.count_turns(),
    };
    let unfinished = unfinished(runtime, &api.settings.options.source).await?;
    let shutdown = gateway.shutdown().clone();
    let running = api::run(server, parts, api.settings, unfinished, shutdown);
    gateway.add("api", running);
    Ok(told)
}

/// Conversations of a surface with a turn that was cut short.
async fn unfinished(runtime: &Runtime, source: &str) -> Outcome<Vec<SessionId>> {
    let mut unfinished = Vec::new();
    for session in runtime.store().unfinished().await? {
        if runtime.store().record(&session).await?.source == source {
            unfinished.push(session);
        }
    }
    Ok(unfinished)
}

async fn add_webhooks(
    gateway: &mut Gateway,
    runtime: &Arc<Runtime>,
    webhooks: WebhookServer,
    deliver: Arc<dyn Deliver>,
) -> Outcome<String> {
    let server = match &webhooks.host {
        Some(host) => HttpServer::bind(host, webhooks.port).await,
        None => HttpServer::bind_everywhere(webhooks.port).await,
    };
    let server = server.map_err(|error| not_listening(&error, "WEBHOOK"))?;
    let routes = webhooks.settings.routes.count();
    let mut told = format!("webhooks on {} ({routes} routes", server.url());
    for left_out in &webhooks.left_out {
        note(&format!("gateway: {left_out}"));
        tracing::warn!("{left_out}");
        told.push_str(&format!("; `{}` is left out", left_out.name));
    }
    told.push(')');
    let settings = CronSettings::read(runtime.base())?;
    let options = SessionOptions {
        cwd: Some(settings.cwd.clone()),
        ..webhooks.settings.options.clone()
    };
    let scripts = ScriptParts {
        terminal: Arc::clone(runtime.set_up(&options).await?.terminal()),
        folder: settings.scripts_folder,
        cwd: settings.cwd,
    };
    let parts = WebhookParts {
        sessions: Arc::clone(runtime) as _,
        archive: Arc::clone(runtime.store()) as _,
        records: Arc::clone(runtime.store()) as _,
        deliver,
        clock: Arc::clone(runtime.clock()),
        random: Arc::clone(runtime.random()),
        scripts,
    };
    let shutdown = gateway.shutdown().clone();
    let running = webhooks::run(server, parts, webhooks.settings, shutdown);
    gateway.add("webhooks", running);
    Ok(told)
}

/// `agent.restart_drain_timeout`, in seconds; 0 takes ours.
pub(super) fn drain_time(base: &Base) -> Outcome<Duration> {
    let time = base.settings.seconds("agent.restart_drain_timeout")?;
    Ok(if time.is_zero() { DRAIN_TIME } else { time })
}

fn nothing_to_serve() -> Failure {
    let variables = chats::needed_variables().join("`, `");
    Failure {
        code: code::SETTINGS,
        ..Failure::new("the gateway has nothing to serve: no chat platform is set up, neither the API server nor webhooks are enabled, and there are no jobs")
    }
    .hint(format!(
        "`hermes gateway setup` sets up a chat platform; or put what one needs (`{variables}`), `API_SERVER_KEY` with a random key (`openssl rand -hex 32`), or `WEBHOOK_ENABLED=true` into `.env` of the home"
    ))
}

fn not_listening(error: &ListenError, variables: &str) -> Failure {
    let hint = match error {
        ListenError::Address { .. } => {
            "write the host as an address or a name of this machine, such as 127.0.0.1".to_owned()
        }
        ListenError::Busy { .. } => format!(
            "is another gateway running? end it, or choose another port with `{variables}_PORT`"
        ),
        ListenError::Listen { .. } => {
            format!("choose another address or port with `{variables}_HOST` and `{variables}_PORT`")
        }
    };
    Failure {
        code: code::SETTINGS,
        ..Failure::new(error.to_string())
    }
    .hint(hint)
}

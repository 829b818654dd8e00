//! `hermes webhook`: the addresses that other programs send events to.

use std::time::Duration;

use hermes_core::{Clock as _, Random};
use hermes_gateway::webhooks::{NO_AUTH, Route, check_name, read_file, signed, write_file};
use hermes_os::paths::within;
use hermes_runtime::SystemClock;
use hermes_runtime::style::Style;
use serde_json::{Map, Value, json};

use super::gateway::chats;
use super::gateway::settings::webhook::{self as settings, WebhookServer};
use super::layout::{OnTerminal as _, Table, print_json};
use crate::args::{SubscribeArgs, WebhookArgs, WebhookCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};

/// How long the gateway may take to answer an event: it only has to write it down.
const TEST_PATIENCE: Duration = Duration::from_secs(30);

pub async fn run(base: &Base, args: WebhookArgs) -> Outcome<()> {
    match args.command {
        WebhookCommand::Subscribe(args) => subscribe(base, args),
        WebhookCommand::List { json } => list(base, json.json),
        WebhookCommand::Remove { name } => remove(base, &name),
        WebhookCommand::Test { name, payload } => test(base, &name, &payload).await,
    }
}

fn written(base: &Base) -> Outcome<Map<String, Value>> {
    read_file(&settings::file(base))
        .map_err(|error| Failure::new(error).hint("correct the file, or move it aside"))
}

fn write(base: &Base, subscriptions: &Map<String, Value>) -> Outcome<()> {
    let file = settings::file(base);
    write_file(&file, subscriptions)
        .map_err(|error| Failure::new(format!("cannot write `{}`: {error}", file.display())))
}

fn address(server: &WebhookServer, name: &str) -> String {
    let host = match server.host.as_deref() {
        None | Some("::" | "0.0.0.0") => "localhost",
        Some(host) => host,
    };
    format!("http://{host}:{}/webhooks/{name}", server.port)
}

fn subscribe(base: &Base, args: SubscribeArgs) -> Outcome<()> {
    let server = settings::wanted(base)?;
    let name = args.name.trim().to_lowercase();
    check_name(&name).map_err(Failure::usage)?;
    let secret = args.secret.unwrap_or_else(new_secret);
    let mut subscription = json!({
        "description": args.description,
        "events": args.events,
        "secret": secret,
        "prompt": args.prompt,
        "skills": args.skills,
        "deliver": args.deliver,
        "deliver_only": args.deliver_only,
        "created_at": SystemClock.now().to_iso(),
    });
    if let Some(chat) = args.deliver_chat_id {
        subscription["deliver_extra"] = json!({"chat_id": chat});
    }
    if !args.filters.is_empty() {
        subscription["filters"] = filters(&args.filters)?;
    }
    if let Some(script) = args.script {
        check_script(base, &script)?;
        subscription["script"] = script.into();
    }
    let route = Route::read(&name, &subscription).map_err(Failure::usage)?;
    if !chats::is_reachable(base, &route.deliver) {
        let target = &route.deliver;
        note(&format!(
            "warning: `{target}` cannot be reached: its platform is not set up; `log` writes to the log"
        ));
    }
    let mut subscriptions = written(base)?;
    let was_there = subscriptions.insert(name.clone(), subscription).is_some();
    write(base, &subscriptions)?;
    let verb = if was_there { "changed" } else { "added" };
    println(&format!(
        "{verb} `{name}`\n  address: {}\n  secret:  {secret}",
        address(&server, &name)
    ))?;
    if settings::read(base)?.is_none() {
        note(
            "webhooks are switched off; put `WEBHOOK_ENABLED=true` into `.env` of the home, and start `hermes gateway run`",
        );
    }
    Ok(())
}

fn check_script(base: &Base, script: &str) -> Outcome<()> {
    let folder = base.home.directory().join("scripts");
    if within(&folder, script).is_some() {
        return Ok(());
    }
    let message = format!("there is no script `{script}` in `{}`", folder.display());
    Err(Failure::usage(message)
        .hint("put the file there, and name it by its path below that folder"))
}

fn filters(written: &[String]) -> Outcome<Value> {
    let mut filters = Map::new();
    for filter in written {
        let Some((field, value)) = filter.split_once('=') else {
            return Err(Failure::usage(format!("`{filter}` is not FIELD=VALUE")));
        };
        let values = filters.entry(field.to_owned()).or_insert_with(|| json!([]));
        if let Value::Array(values) = values {
            values.push(value.into());
        }
    }
    Ok(Value::Object(filters))
}

/// As many digits as nobody guesses.
fn new_secret() -> String {
    let random = Random::from_system();
    (0..4)
        .map(|_| format!("{:016x}", random.next_u64()))
        .collect()
}

fn list(base: &Base, as_json: bool) -> Outcome<()> {
    let server = settings::wanted(base)?;
    for left_out in &server.left_out {
        note(&format!("warning: {left_out}"));
    }
    let mut routes = server.settings.routes.fixed();
    let fixed = routes.len();
    for (name, subscription) in written(base)? {
        match Route::read(&name, &subscription) {
            Ok(route) if !routes[..fixed].iter().any(|known| known.name == name) => {
                routes.push(route);
            }
            Ok(_) => note(&format!("`{name}` stands in the settings too, which count")),
            Err(error) => note(&format!("warning: `{name}` cannot be used: {error}")),
        }
    }
    if as_json {
        let shown = routes.iter().map(|route| {
            json!({"name": route.name, "url": address(&server, &route.name), "description": route.description,
                "events": route.events, "deliver": route.deliver, "deliver_only": route.deliver_only, "enabled": route.enabled})
        });
        return print_json(&shown.collect());
    }
    if routes.is_empty() {
        return println("no addresses yet; `hermes webhook subscribe NAME --prompt TEXT` adds one");
    }
    let mut table = Table::new(["NAME", "EVENTS", "DELIVERS TO", "ADDRESS"]);
    for route in &routes {
        let events = if route.events.is_empty() {
            "all".to_owned()
        } else {
            route.events.join(", ")
        };
        let state = if route.enabled { "" } else { " (off)" };
        table.row([
            format!("{}{state}", route.name),
            events,
            route.deliver.clone(),
            address(&server, &route.name),
        ]);
    }
    table.print(Style::of(&std::io::stdout(), &base.environment))
}

fn remove(base: &Base, name: &str) -> Outcome<()> {
    let mut subscriptions = written(base)?;
    if subscriptions.remove(name).is_none() {
        return Err(Failure::usage(format!("there is no subscription `{name}`"))
            .hint("`hermes webhook list` shows them; those of `platforms.webhook.routes` are removed there"));
    }
    write(base, &subscriptions)?;
    println(&format!("removed `{name}`"))
}

async fn test(base: &Base, name: &str, payload: &str) -> Outcome<()> {
    let server = settings::wanted(base)?;
    let subscription = written(base)?.remove(name);
    let fixed = || {
        server
            .settings
            .routes
            .fixed()
            .into_iter()
            .find(|route| route.name == name)
    };
    let route = match subscription {
        Some(subscription) => Some(Route::read(name, &subscription).map_err(Failure::new)?),
        None => fixed(),
    };
    let route = route.ok_or_else(|| {
        Failure::usage(format!("there is no address `{name}`"))
            .hint("`hermes webhook list` shows them")
    })?;
    let secret = route.secret.or_else(|| settings::secret(base));
    let time = SystemClock.now().as_millis() / 1000;
    let url = address(&server, name);
    let client = hermes_os::http::client().timeout(TEST_PATIENCE).build();
    let client = client.map_err(|error| Failure::new(format!("cannot send: {error}")))?;
    let mut request = client.post(&url).header("content-type", "application/json");
    if let Some(secret) = secret.filter(|secret| secret.expose() != NO_AUTH) {
        request = request
            .header("x-webhook-timestamp", time.to_string())
            .header(
                "x-webhook-signature-v2",
                signed(secret.expose(), time, payload.as_bytes()),
            );
    }
    let request = request.header(
        "x-request-id",
        format!("test-{}", Random::from_system().next_u64()),
    );
    let answer = request
        .body(payload.to_owned())
        .send()
        .await
        .map_err(|error| {
            Failure::new(format!("`{url}` does not answer: {error}"))
                .hint("is `hermes gateway run` running, with webhooks on?")
        })?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    if !status.is_success() {
        return Err(Failure::new(format!(
            "the gateway answered {status}: {text}"
        )));
    }
    println(&format!("{status}: {text}"))
}

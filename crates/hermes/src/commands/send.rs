//! `hermes send`: words for a chat, without a model. The gateway delivers them, or this process does while none runs.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::deliver::{Arrival, Deliver as _, DeliverError, DeliveryId, Place};
use hermes_gateway::Shutdown;
use hermes_gateway::chat::ToChats;
use hermes_gateway::presence;
use hermes_runtime::Runtime;
use serde_json::json;
use tokio::time::Instant;

use super::gateway::chats;
use crate::args::SendArgs;
use crate::base::Base;
use crate::failure::{Failure, Outcome, code};
use crate::output::{note, println};

/// How long the platform's word is waited for. What has not arrived then is sent by the gateway.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// Text that is read from a file: more is an attachment.
const TEXT_BYTES_MAX: u64 = 1 << 20;

pub async fn run(base: Arc<Base>, args: SendArgs) -> Outcome<()> {
    let wanted = chats::wanted(&base);
    if wanted.is_empty() {
        return Err(Failure {
            code: code::SETTINGS,
            ..Failure::new("no chat platform is set up")
        }
        .hint("`hermes gateway setup` goes from a token to a first chat"));
    }
    let runtime = Runtime::start(Arc::clone(&base))?;
    let shutdown = Shutdown::default();
    let gateway = chats::sender(&base, &runtime, wanted, shutdown.clone())?;
    let chats = gateway.outbound();
    if args.list {
        return list(&chats, args.json.json).await;
    }
    let (target, text) = message(&args)?;
    chats.check(&target).map_err(failed)?;
    let key = format!("send/{:016x}", runtime.random().next_u64());
    // While no gateway runs, nobody else sends: this process does.
    let is_alone = presence::alone(base.home.directory()).ok().flatten();
    let id = chats.deliver(&key, &target, text).await.map_err(failed)?;
    let arrival = match &is_alone {
        Some(_) => tokio::select! {
            arrival = arrived(&chats, &id) => arrival,
            () = gateway.deliver() => Ok(Arrival::OnItsWay),
        },
        None => arrived(&chats, &id).await,
    };
    drop(is_alone);
    tell(&args, &target, arrival.map_err(failed)?)
}

async fn arrived(chats: &ToChats, id: &DeliveryId) -> Result<Arrival, DeliverError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let arrival = chats.status(id).await?;
        if arrival != Arrival::OnItsWay || Instant::now() > deadline {
            return Ok(arrival);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn tell(args: &SendArgs, target: &str, arrival: Arrival) -> Outcome<()> {
    let (state, message) = match arrival {
        Arrival::Arrived { message } => ("sent", message),
        Arrival::OnItsWay => {
            if !args.quiet {
                note(
                    "it has not arrived yet; the gateway goes on trying, `hermes gateway run` starts one",
                );
            }
            ("waiting", String::new())
        }
        Arrival::Unknown { why } => {
            note(&format!("it may have arrived: {why}"));
            ("unknown", String::new())
        }
        Arrival::Failed { error } => {
            return Err(Failure::new(format!(
                "it was not sent to {target}: {error}"
            )));
        }
    };
    match args.json.json {
        true => println(&json!({"target": target, "state": state, "message": message}).to_string()),
        false if args.quiet || state != "sent" => Ok(()),
        false => println(&format!("sent to {target} (message {message})")),
    }
}

async fn list(chats: &ToChats, is_json: bool) -> Outcome<()> {
    let places = chats.places().await.map_err(failed)?;
    if is_json {
        let shown = places.iter().map(|place| {
            json!({"target": place.target, "name": place.name, "kind": place.kind, "home": place.is_home})
        });
        return println(&json!(shown.collect::<Vec<_>>()).to_string());
    }
    if places.is_empty() {
        return println("no chats yet: whoever writes to the gateway is listed here");
    }
    let width = places.iter().map(|place| place.target.len()).max();
    for place in &places {
        println(&row(place, width.unwrap_or_default()))?;
    }
    Ok(())
}

fn row(place: &Place, width: usize) -> String {
    let home = if place.is_home { ", home" } else { "" };
    let name = hermes_core::text::escaped(&place.name);
    format!("{:width$}  {name} ({}{home})", place.target, place.kind)
}

/// The target and the words.
fn message(args: &SendArgs) -> Outcome<(String, String)> {
    let mut words = args.words.iter().map(String::as_str);
    let target = match &args.to {
        Some(to) => to.clone(),
        None => words
            .next()
            .ok_or_else(|| {
                Failure::usage("where to?").hint("`hermes send --list` shows the chats there are")
            })?
            .to_owned(),
    };
    let words: Vec<&str> = words.collect();
    let text = match &args.file {
        Some(path) => read(path)?,
        None if !words.is_empty() => words.join(" "),
        None if !std::io::stdin().is_terminal() => read(Path::new("-"))?,
        None if !args.attach.is_empty() => String::new(),
        None => {
            return Err(Failure::usage("what is to be said?")
                .hint(format!("`hermes send {target} WORDS`, or pipe them in")));
        }
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend(
        args.subject
            .iter()
            .map(|subject| format!("**{subject}**\n")),
    );
    lines.push(text);
    for path in &args.attach {
        let path = std::path::absolute(path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        lines.push(format!("MEDIA:\"{}\"", path.display()));
    }
    let text = lines.join("\n").trim().to_owned();
    if text.is_empty() {
        return Err(Failure::usage("the message is empty"));
    }
    Ok((target, text))
}

fn read(path: &Path) -> Outcome<String> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        let input = std::io::stdin().lock();
        input.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Failure::new("the message is longer than 1 MB")
            .hint("`--attach FILE` sends it as a file"));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::new("the message is no text").hint("`--attach FILE` sends it as a file")
    })
}

fn failed(error: DeliverError) -> Failure {
    Failure::new(error.message).hint(error.hint)
}

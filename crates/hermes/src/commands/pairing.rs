//! `hermes pairing`: who may talk to the gateway without being named in the settings.

use std::io;
use std::sync::Arc;

use hermes_core::text::escaped;
use hermes_core::{Clock, PairedPerson, Pairings};
use hermes_gateway::chat::owner;
use hermes_gateway::chat::pairing::{Approval, Pairing};
use hermes_runtime::{SystemClock, open_store};
use hermes_store::SqliteStore;
use serde_json::json;

use super::layout::{OnTerminal as _, Table, age, print_json};
use crate::args::{JsonFlag, PairingArgs, PairingCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use crate::style::Style;

pub(crate) async fn run(base: &Base, args: PairingArgs) -> Outcome<()> {
    let opened = Arc::new(open_store(base)?);
    let store: Arc<dyn Pairings> = opened.clone();
    let pairing = Pairing::new(Arc::clone(&store), Arc::new(SystemClock));
    let by_default = PairingCommand::List {
        json: JsonFlag { json: false },
    };
    match args.command.unwrap_or(by_default) {
        PairingCommand::List { json } => list(base, &*store, &pairing, &json).await,
        PairingCommand::Approve { platform, code } => approve(&pairing, &platform, &code).await,
        PairingCommand::Revoke { platform, user } => {
            if store.revoke_pairing(&platform, &user).await? {
                return println(&format!("{user} on {platform} has to ask again"));
            }
            Err(Failure::usage(format!(
                "nobody with the id `{user}` was let in on {platform}"
            ))
            .hint("`hermes pairing list` shows who was"))
        }
        PairingCommand::Owner { account } => owner(&opened, account).await,
        PairingCommand::ClearPending => {
            let cleared = store.clear_pairing_requests(None).await?;
            println(&format!("{cleared} requests forgotten"))
        }
    }
}

async fn list(
    base: &Base,
    store: &dyn Pairings,
    pairing: &Pairing,
    json: &JsonFlag,
) -> Outcome<()> {
    let (requests, paired) = (pairing.requests().await?, store.paired_people(None).await?);
    if json.json {
        // Of codes there are digests, which are nobody's business either.
        let requests: Vec<_> = requests
            .iter()
            .map(|one| json!({"platform": one.platform, "user": one.user, "name": one.name, "at": one.at}))
            .collect();
        return print_json(&json!({"pending": requests, "paired": paired}));
    }
    if requests.is_empty() && paired.is_empty() {
        return println(
            "nobody was let in, and nobody asks; who writes to the bot is shown a code",
        );
    }
    let now = SystemClock.now();
    let mut table = Table::new(["PLATFORM", "USER", "NAME", "STATE", "SINCE"]);
    let people = paired
        .iter()
        .map(|one| (&one.platform, &one.user, &one.name, "let in", one.at));
    let asking = requests
        .iter()
        .map(|one| (&one.platform, &one.user, &one.name, "asks", one.at));
    for (platform, user, name, state, at) in people.chain(asking) {
        table.row([
            platform.clone(),
            escaped(user),
            escaped(name.as_deref().unwrap_or("-")),
            state.to_owned(),
            age(at, now),
        ]);
    }
    table.print(Style::of(&io::stdout(), &base.environment))
}

/// Shows who the owner is among those who were let in, or says who it is to be.
async fn owner(store: &SqliteStore, account: Option<String>) -> Outcome<()> {
    let Some(account) = account else {
        return println(&match owner::owner(store, store, &SystemClock).await? {
            Some(account) => format!("{account} is the owner, unless the settings name others"),
            None => "nobody was let in yet: whoever is first will be the owner".to_owned(),
        });
    };
    let paired = store.paired_people(None).await?;
    let is_it = |one: &PairedPerson| format!("{}:{}", one.platform, one.user) == account;
    if !paired.iter().any(is_it) {
        let words = format!("`{account}` was not let in");
        return Err(Failure::usage(words)
            .hint("write it as PLATFORM:ID; `hermes pairing list` shows who was let in"));
    }
    owner::set_owner(store, &SystemClock, &account).await?;
    println(&format!("{account} is the owner from now on"))
}

async fn approve(pairing: &Pairing, platform: &str, code: &str) -> Outcome<()> {
    match pairing.approve(platform, code).await? {
        Approval::LetIn(person) => {
            let name = person.name.as_deref().map(escaped).unwrap_or_default();
            println(&format!("{} {name} on {platform} may talk to Hermes now", person.user))
        }
        Approval::Wrong { tries_left } => Err(Failure::usage(format!(
            "nobody on {platform} was given this code, or its hour is over; {tries_left} more tries"
        ))
        .hint("whoever asks gets a new code by writing to the bot again; `hermes pairing list` shows who asks")),
        Approval::Locked => Err(Failure::usage(format!(
            "too many wrong codes for {platform}: nobody is let in there for an hour"
        ))
        .hint("somebody may be guessing; ids can be named in the settings instead")),
    }
}

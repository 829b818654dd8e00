//! `hermes pairing`: who may talk to the gateway without being named in the settings.

use std::io;
use std::sync::Arc;

use hermes_core::text::escaped;
use hermes_core::{Chat, Clock, Mentions, Pairings, Sender};
use hermes_gateway::chat::access::Access;
use hermes_gateway::chat::owner::{self, Said};
use hermes_gateway::chat::pairing::{Approval, Pairing};
use hermes_runtime::{SystemClock, open_store};
use hermes_store::SqliteStore;
use serde_json::json;

use super::gateway::chats::{self, SetUp};
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
        PairingCommand::Owner { account: None } => show_owner(base, &opened).await,
        PairingCommand::Owner {
            account: Some(account),
        } => make_owner(base, &opened, &account).await,
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

/// Shows who the owner is where the settings leave that open, or that they do not.
async fn show_owner(base: &Base, store: &SqliteStore) -> Outcome<()> {
    let named = chats::named(base);
    let known = match named.is_empty() {
        true => owner::owner(store, store, &SystemClock).await?,
        false => owner::known_owner(store, &SystemClock).await?,
    };
    println(&match known {
        Some(account) if named.say_of(std::slice::from_ref(&account)) != Said::SomebodyElse => {
            format!("{account} is the owner")
        }
        _ if named.has_owner() => "the settings name the owner: admins (`allow_admin_from`), or the only id that may ask".to_owned(),
        _ => "nobody is the owner yet: whoever is let in first will be, unless ids are named in the settings; \
              `hermes pairing owner PLATFORM:ID` says who it is"
            .to_owned(),
    })
}

/// Makes somebody the owner who may ask.
async fn make_owner(base: &Base, store: &SqliteStore, account: &str) -> Outcome<()> {
    if !may_ask(base, store, account).await? {
        let words = format!("`{account}` may not ask: nobody let them in, and no list names them");
        return Err(Failure::usage(words).hint(
            "write it as PLATFORM:ID; `hermes pairing list` shows who was let in, `allowed_users` of a platform names others",
        ));
    }
    if chats::named(base).say_of(&[account.to_owned()]) == Said::SomebodyElse {
        let words = format!("the settings name another owner than `{account}`");
        return Err(Failure::usage(words).hint(
            "admins (`allow_admin_from`) are owners, and so is the only id that may ask; add this one to `allow_admin_from`",
        ));
    }
    owner::set_owner(store, &SystemClock, account).await?;
    println(&format!("{account} is the owner from now on"))
}

/// Whether somebody was let in, or a list names them.
async fn may_ask(base: &Base, store: &SqliteStore, account: &str) -> Outcome<bool> {
    let Some((platform, user)) = account.split_once(':') else {
        return Ok(false);
    };
    if store.is_paired(platform, user).await? {
        return Ok(true);
    }
    let sender = Sender {
        id: user.to_owned(),
        ..Sender::default()
    };
    let gateway = chats::gateway_access(base);
    let is_granted = |one: &SetUp| {
        let (access, chat) = (one.access(), Chat::direct(user));
        let access = Access::of(&access, &gateway, &chat, &sender, Mentions::default());
        one.name() == platform && access == Access::Granted
    };
    Ok(chats::wanted(base).iter().any(is_granted))
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

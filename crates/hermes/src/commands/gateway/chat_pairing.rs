//! `/pairing` in a chat of the owner: who asks to be let in, and who was.

use std::sync::Arc;

use hermes_core::text::escaped;
use hermes_core::{Clock, Pairings, StoreError};
use hermes_gateway::chat::pairing::{Approval, Pairing};

const USAGE: &str =
    "/pairing list, /pairing approve [PLATFORM] CODE, or /pairing revoke [PLATFORM] ID";

/// Does what the words behind `/pairing` say. Without a platform, the one of the chat is meant.
pub(super) async fn run(
    pairings: Arc<dyn Pairings>,
    clock: &Arc<dyn Clock>,
    arguments: &str,
    here: Option<&str>,
) -> Result<String, StoreError> {
    let pairing = Pairing::new(Arc::clone(&pairings), Arc::clone(clock));
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let here = here.unwrap_or_default();
    match words[..] {
        [] | ["list"] => list(pairings.as_ref(), &pairing).await,
        ["approve", code] => approve(&pairing, here, code).await,
        ["approve", platform, code] => approve(&pairing, platform, code).await,
        ["revoke", user] => revoke(pairings.as_ref(), here, user).await,
        ["revoke", platform, user] => revoke(pairings.as_ref(), platform, user).await,
        _ => Ok(USAGE.to_owned()),
    }
}

async fn list(pairings: &dyn Pairings, pairing: &Pairing) -> Result<String, StoreError> {
    let (asking, paired) = (
        pairing.requests().await?,
        pairings.paired_people(None).await?,
    );
    if asking.is_empty() && paired.is_empty() {
        return Ok("Nobody was let in, and nobody asks.".to_owned());
    }
    let line = |platform: &str, user: &str, name: &Option<String>, state: &str| {
        let name = name.as_deref().map(escaped).unwrap_or_default();
        format!("- {platform} {} {name}: {state}", escaped(user))
    };
    let paired = paired
        .iter()
        .map(|one| line(&one.platform, &one.user, &one.name, "let in"));
    let asking = asking
        .iter()
        .map(|one| line(&one.platform, &one.user, &one.name, "asks"));
    Ok(paired.chain(asking).collect::<Vec<_>>().join("\n"))
}

async fn approve(pairing: &Pairing, platform: &str, code: &str) -> Result<String, StoreError> {
    Ok(match pairing.approve(platform, code).await? {
        Approval::LetIn(person) => {
            let name = person.name.as_deref().map(escaped).unwrap_or_default();
            format!("{} {name} on {platform} may talk to me now.", person.user)
        }
        Approval::Wrong { tries_left } => format!(
            "Nobody on {platform} was given this code, or its hour is over; {tries_left} more tries. \
             For another platform, name it: /pairing approve PLATFORM CODE."
        ),
        Approval::Locked => {
            format!("Too many wrong codes for {platform}: nobody is let in there for an hour.")
        }
    })
}

async fn revoke(pairings: &dyn Pairings, platform: &str, user: &str) -> Result<String, StoreError> {
    Ok(if pairings.revoke_pairing(platform, user).await? {
        format!("{user} on {platform} has to ask again.")
    } else {
        format!("Nobody with the id {user} was let in on {platform}; /pairing list shows who was.")
    })
}

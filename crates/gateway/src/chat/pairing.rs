//! How strangers are let in: they get a code, which the owner approves where they are known already.
//!
//! A code is shown once, to the stranger alone, and kept as a salted digest. Who guesses is locked out.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    AskRules, Asked, Clock, PairedPerson, PairingRequest, Pairings, Sender, StoreError,
};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Without those that are mistaken for one another.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_LENGTH: usize = 8;
/// How long a code can be approved.
const VALID: Duration = Duration::from_secs(3600);
/// Requests of a platform that wait at a time: more is somebody who tries.
const PENDING_MAX: usize = 3;
/// How often one person may ask.
const ASKING: Duration = Duration::from_secs(600);
/// Wrong codes after which nobody is let in for a while.
const FAILURES_MAX: u64 = 5;
const LOCKED: Duration = Duration::from_secs(3600);

/// In place of a platform: codes that link accounts.
const LINKING: &str = "link";

/// Codes for strangers, and their approval.
#[derive(Clone)]
pub struct Pairing {
    pairings: Arc<dyn Pairings>,
    clock: Arc<dyn Clock>,
}

/// What a stranger is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invitation {
    /// Show this code to the owner.
    Code(String),
    /// Too many wait: come back later.
    Full,
    /// They asked a moment ago, or somebody guesses codes: nothing.
    Silence,
}

/// What became of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    LetIn(PairedPerson),
    /// No request has this code.
    Wrong {
        tries_left: u64,
    },
    /// Too many wrong codes.
    Locked,
}

impl Pairing {
    pub fn new(pairings: Arc<dyn Pairings>, clock: Arc<dyn Clock>) -> Self {
        Self { pairings, clock }
    }

    /// Gives a stranger a code, within limits.
    pub async fn invite(&self, platform: &str, sender: &Sender) -> Result<Invitation, StoreError> {
        if self.is_locked(platform).await? {
            return Ok(Invitation::Silence);
        }
        let (Some(code), Some(salt), Some(id)) = (code(), hex::<16>(), hex::<8>()) else {
            tracing::error!("the operating system gives no random numbers: nobody can be paired");
            return Ok(Invitation::Silence);
        };
        let now = self.clock.now();
        let request = PairingRequest {
            id,
            platform: platform.to_owned(),
            user: sender.id.clone(),
            name: sender.name.clone().or_else(|| sender.username.clone()),
            digest: digest_of(&salt, &code),
            salt,
            at: now,
        };
        let rules = AskRules {
            pending_max: PENDING_MAX,
            valid_since: now.minus(VALID),
            asked_since: now.minus(ASKING),
        };
        Ok(match self.pairings.ask_pairing(request, rules).await? {
            Asked::Kept => Invitation::Code(code),
            Asked::TooMany => Invitation::Full,
            Asked::TooSoon => Invitation::Silence,
        })
    }

    /// Lets in whoever was given this code.
    pub async fn approve(&self, platform: &str, code: &str) -> Result<Approval, StoreError> {
        if self.is_locked(platform).await? {
            return Ok(Approval::Locked);
        }
        let code: String = code.trim().to_uppercase();
        let now = self.clock.now();
        let waiting = self
            .pairings
            .pairing_requests(Some(platform), now.minus(VALID));
        for request in waiting.await? {
            if fits(&request, &code)
                && let Some(person) = self.pairings.approve_pairing(&request.id, now).await?
            {
                return Ok(Approval::LetIn(person));
            }
        }
        let since = now.minus(LOCKED);
        let failures = self
            .pairings
            .note_pairing_failure(platform, now, since)
            .await?;
        Ok(match FAILURES_MAX.saturating_sub(failures) {
            0 => Approval::Locked,
            tries_left => Approval::Wrong { tries_left },
        })
    }

    pub async fn requests(&self) -> Result<Vec<PairingRequest>, StoreError> {
        let since = self.clock.now().minus(VALID);
        let mut requests = self.pairings.pairing_requests(None, since).await?;
        requests.retain(|request| request.platform != LINKING);
        Ok(requests)
    }

    /// Gives somebody a code that another account of theirs can show, within the same limits.
    pub async fn invite_account(&self, account: &str) -> Result<Invitation, StoreError> {
        let sender = Sender {
            id: account.to_owned(),
            ..Sender::default()
        };
        self.invite(LINKING, &sender).await
    }

    /// The account that was given this code, which is used up by that.
    pub async fn redeem(&self, code: &str) -> Result<Approval, StoreError> {
        let approval = self.approve(LINKING, code).await?;
        if let Approval::LetIn(person) = &approval {
            // A code for an account lets nobody in.
            self.pairings.revoke_pairing(LINKING, &person.user).await?;
        }
        Ok(approval)
    }

    async fn is_locked(&self, platform: &str) -> Result<bool, StoreError> {
        let since = self.clock.now().minus(LOCKED);
        let failures = self.pairings.pairing_failures(platform, since).await?;
        Ok(failures >= FAILURES_MAX)
    }
}

/// Random bytes of the operating system: who can guess them is let in.
fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

fn code() -> Option<String> {
    let bytes = random::<CODE_LENGTH>()?;
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    Some(bytes.into_iter().map(letter).collect())
}

fn hex<const N: usize>() -> Option<String> {
    random::<N>().map(|bytes| to_hex(&bytes))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Twelve letters that stand for an id: the same for the same, and not to be read back.
pub(super) fn digest_of_id(id: &str) -> String {
    to_hex(&digest(&SHA256, id.as_bytes()).as_ref()[..6])
}

fn digest_of(salt: &str, code: &str) -> String {
    to_hex(digest(&SHA256, format!("{salt}{code}").as_bytes()).as_ref())
}

/// How long the comparison takes says something about digests, and nothing about codes.
fn fits(request: &PairingRequest, code: &str) -> bool {
    digest_of(&request.salt, code) == request.digest
}

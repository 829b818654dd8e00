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

/// What stands in place of a platform begins so where codes link accounts; the account follows, which has its own limits.
const LINKING: &str = "link";

/// Whether requests and people of this name are those of a platform.
pub(super) fn is_of_platform(name: &str) -> bool {
    name.split(':').next() != Some(LINKING)
}

fn linking(account: &str) -> String {
    format!("{LINKING}:{account}")
}

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
    /// They asked a moment ago.
    TooSoon,
    /// Somebody guesses codes.
    Locked,
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

/// What became of a code that links accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    /// This one was shown it.
    Account(String),
    Wrong,
    /// Too many codes of whoever enters it were wrong.
    Locked,
}

impl Pairing {
    pub fn new(pairings: Arc<dyn Pairings>, clock: Arc<dyn Clock>) -> Self {
        Self { pairings, clock }
    }

    /// Gives a stranger a code, within limits.
    pub async fn invite(&self, platform: &str, sender: &Sender) -> Result<Invitation, StoreError> {
        if self.is_locked(platform).await? {
            return Ok(Invitation::Locked);
        }
        let (Some(code), Some(salt), Some(id)) = (code(), hex::<16>(), hex::<8>()) else {
            tracing::error!("the operating system gives no random numbers: nobody can be paired");
            return Ok(Invitation::Locked);
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
            Asked::TooSoon => Invitation::TooSoon,
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
        self.note_failure(platform).await
    }

    async fn note_failure(&self, platform: &str) -> Result<Approval, StoreError> {
        let now = self.clock.now();
        let since = now.minus(LOCKED);
        let failures = self.pairings.note_pairing_failure(platform, now, since);
        Ok(match FAILURES_MAX.saturating_sub(failures.await?) {
            0 => Approval::Locked,
            tries_left => Approval::Wrong { tries_left },
        })
    }

    pub async fn requests(&self) -> Result<Vec<PairingRequest>, StoreError> {
        let since = self.clock.now().minus(VALID);
        let mut requests = self.pairings.pairing_requests(None, since).await?;
        requests.retain(|request| is_of_platform(&request.platform));
        Ok(requests)
    }

    /// Gives somebody a code that another account of theirs can show, within the same limits, which count for the account.
    pub async fn invite_account(&self, account: &str) -> Result<Invitation, StoreError> {
        let sender = Sender {
            id: account.to_owned(),
            ..Sender::default()
        };
        self.invite(&linking(account), &sender).await
    }

    /// The account that was given the code which this one enters. It is used up by that, with all that wait for that account.
    pub async fn redeem(&self, account: &str, code: &str) -> Result<Redeemed, StoreError> {
        let ours = linking(account);
        if self.is_locked(&ours).await? {
            return Ok(Redeemed::Locked);
        }
        let code = code.trim().to_uppercase();
        let since = self.clock.now().minus(VALID);
        let waiting = self.pairings.pairing_requests(None, since).await?;
        let linking = |request: &&PairingRequest| !is_of_platform(&request.platform);
        for request in waiting.iter().filter(linking) {
            if fits(request, &code) {
                let platform = Some(request.platform.as_str());
                // Somebody may have been quicker.
                if self.pairings.clear_pairing_requests(platform).await? > 0 {
                    return Ok(Redeemed::Account(request.user.clone()));
                }
            }
        }
        Ok(match self.note_failure(&ours).await? {
            Approval::Locked => Redeemed::Locked,
            _ => Redeemed::Wrong,
        })
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

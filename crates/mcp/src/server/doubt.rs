//! Decides whether words about a lost session are about ours.
//!
//! A tool that ran must not run again because of what it said. Where there is a session it is asked: one that answers a
//! ping is alive, so the words are the tool's own. Where there is none, the words of the first reports are believed once.
//! Either way the finding is remembered for the tool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::text::shorten;
use tokio::time::Instant;

use super::{Request, Server};
use crate::classify::{Class, SessionUse, classify, classify_beside_session};
use crate::failure::Failure;
use crate::supervisor::probe::{ProbeKind, probe};
use crate::view::Link;

/// A session that does not answer for so long is not there.
const PING_WAIT: Duration = Duration::from_secs(5);
/// For so long a session that was alive is taken to be, as far as the same words of the same tool go.
const FINDING_KEPT: Duration = Duration::from_secs(600);
/// More findings than a server has tools that speak of sessions; beyond it, we forget and ask again.
const FINDINGS_MAX: usize = 256;
const WORDS_CHARS_MAX: usize = 200;

/// What tools say of sessions of their own, by operation and words.
#[derive(Debug, Default)]
pub(super) struct Findings(Mutex<HashMap<(Arc<str>, String), Finding>>);

#[derive(Debug, Clone, Copy)]
enum Finding {
    /// They were said although this connection's session was alive.
    Alive { epoch: u64, since: Instant },
    /// A new connection was met with the same words.
    TheirOwn,
}

impl Findings {
    fn knows(&self, request: &Request, failure: &Failure, epoch: u64) -> bool {
        match self.lock().get(&key(request, failure)) {
            Some(Finding::Alive { epoch: of, since }) => {
                *of == epoch && since.elapsed() < FINDING_KEPT
            }
            Some(Finding::TheirOwn) => true,
            None => false,
        }
    }

    fn note(&self, request: &Request, failure: &Failure, finding: Finding) {
        let mut findings = self.lock();
        if findings.len() >= FINDINGS_MAX {
            findings.clear();
        }
        findings.insert(key(request, failure), finding);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(Arc<str>, String), Finding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(request: &Request, failure: &Failure) -> (Arc<str>, String) {
    let words = shorten(&failure.to_string(), WORDS_CHARS_MAX);
    (Arc::clone(&request.operation), words.to_string())
}

/// Returns whether a failure may be about our session because of its words alone.
fn is_by_words(failure: &Failure, class: Class) -> bool {
    match (class, failure) {
        (Class::SessionDoubted, _) => true,
        (Class::SessionLost, Failure::Rpc { .. } | Failure::Reported { .. }) => true,
        (Class::SessionLost, Failure::Http(answer)) => !answer.session_sent,
        _ => false,
    }
}

impl Server {
    /// Returns what a failure means, once its words have been put to the test.
    pub(super) async fn judge(&self, link: &Link, request: &Request, failure: &Failure) -> Class {
        let class = classify(failure, link.session);
        if is_by_words(failure, class) {
            Box::pin(self.test_words(link, request, failure)).await
        } else {
            class
        }
    }

    async fn test_words(&self, link: &Link, request: &Request, failure: &Failure) -> Class {
        let otherwise = classify_beside_session(failure);
        if self.findings.knows(request, failure, link.epoch) {
            return otherwise;
        }
        if link.session == SessionUse::Sessionless {
            // A new connection would be the end of a program, and of what else it works on.
            return if link.is_program() && link.is_busy() {
                otherwise
            } else {
                Class::SessionLost
            };
        }
        let kind = ProbeKind::of(&link.peer);
        let pinged = probe(link.peer.clone(), kind, PING_WAIT).await.result;
        let answer = pinged.map_err(|failure| classify(&failure, link.session));
        match answer {
            Ok(_) | Err(Class::Answered | Class::RateLimited { .. }) => {
                let server = &self.settings.name;
                tracing::debug!(server, %failure, "the session is alive: the words are the tool's own");
                let (epoch, since) = (link.epoch, Instant::now());
                let alive = Finding::Alive { epoch, since };
                self.findings.note(request, failure, alive);
                otherwise
            }
            Err(Class::Auth) => Class::Auth,
            Err(_) => Class::SessionLost,
        }
    }

    /// Returns what the failure of the second and last attempt means: on a session this young, words are not about it.
    pub(super) fn judge_last(&self, link: &Link, request: &Request, failure: &Failure) -> Class {
        let class = classify(failure, link.session);
        let is_by_words = is_by_words(failure, class);
        if is_by_words && link.session == SessionUse::Sessionless {
            self.findings.note(request, failure, Finding::TheirOwn);
            return classify_beside_session(failure);
        }
        match failure {
            Failure::Rpc { .. } | Failure::Reported { .. } if is_by_words => Class::Answered,
            // A new session did not help, so it is the credentials.
            Failure::Http(answer) if answer.status == 401 => Class::Auth,
            _ if class == Class::SessionDoubted => Class::SessionLost,
            _ => class,
        }
    }
}

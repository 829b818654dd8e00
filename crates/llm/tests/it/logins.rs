//! Logins: codes that people confirm, tokens that are renewed once, and what becomes of those that are refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use hermes_core::{Clock, LoginTokens, Message, ModelErrorKind, Secret, Timestamp};
use hermes_llm::login::{DeviceFlow, LockedTokens, Pace, TokenStore, revoke};
use hermes_llm::{
    Client, LoginError, LoginServer, Logins, ModelChoice, ModelSettings, providers, resolve,
};
use hermes_testkit::contract::model::{Told, tell};
use hermes_testkit::oauth::{AuthServer, CodeAnswer, TokenFault};
use hermes_testkit::server::{Answer, Request, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::world::BACKOFF;

const NOW: Timestamp = Timestamp::from_millis(1_794_777_845_000);
/// Asks as often as a test can afford.
const QUICK: Pace = Pace {
    interval_min: Duration::from_millis(1),
    slow_down: Duration::from_millis(1),
};

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }
}

/// A store in memory, as several processes would share it.
#[derive(Debug, Default, Clone)]
struct Shelf(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    tokens: Option<LoginTokens>,
    ended: Option<String>,
    is_locked: bool,
}

impl Shelf {
    /// Tokens that a server gave out, with this much time left.
    fn holding(grant: &Value, seconds_left: i64) -> Self {
        let text = |name: &str| grant[name].as_str().unwrap().to_owned();
        let expires_at = Timestamp::from_millis(NOW.as_millis() + seconds_left * 1000);
        let shelf = Self::default();
        shelf.0.lock().unwrap().tokens = Some(LoginTokens {
            access: Secret::new(text("access_token")),
            refresh: Some(Secret::new(text("refresh_token"))),
            expires_at: Some(expires_at),
            scope: text("scope"),
        });
        shelf
    }

    fn access(&self) -> String {
        let kept = self.0.lock().unwrap();
        kept.tokens.as_ref().unwrap().access.expose().to_owned()
    }

    fn ended(&self) -> Option<String> {
        self.0.lock().unwrap().ended.clone()
    }
}

fn read(kept: &Kept, provider: &'static str) -> Result<LoginTokens, LoginError> {
    match (&kept.ended, &kept.tokens) {
        (Some(reason), _) => Err(LoginError::Ended {
            provider,
            reason: reason.clone(),
        }),
        (None, Some(tokens)) => Ok(tokens.clone()),
        (None, None) => Err(LoginError::NotLoggedIn { provider }),
    }
}

impl TokenStore for Shelf {
    fn read(&self, provider: &'static str) -> Result<LoginTokens, LoginError> {
        read(&self.0.lock().unwrap(), provider)
    }

    fn try_lock(
        &self,
        provider: &'static str,
    ) -> Result<Option<Box<dyn LockedTokens>>, LoginError> {
        let mut kept = self.0.lock().unwrap();
        if kept.is_locked {
            return Ok(None);
        }
        kept.is_locked = true;
        Ok(Some(Box::new(Held(self.clone(), provider))))
    }
}

struct Held(Shelf, &'static str);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().is_locked = false;
    }
}

impl LockedTokens for Held {
    fn read(&self) -> Result<LoginTokens, LoginError> {
        read(&self.0.0.lock().unwrap(), self.1)
    }

    fn save(&mut self, tokens: &LoginTokens) -> Result<(), LoginError> {
        self.0.0.lock().unwrap().tokens = Some(tokens.clone());
        Ok(())
    }

    fn end(&mut self, reason: &str) -> Result<(), LoginError> {
        self.0.0.lock().unwrap().ended = Some(reason.to_owned());
        Ok(())
    }
}

fn logins(shelf: &Shelf) -> Logins {
    Logins::new(Arc::new(shelf.clone()), Arc::new(Still))
}

/// The login of a provider, at a server of the test's.
fn at(auth: &AuthServer, provider: &str) -> LoginServer {
    let provider = providers::find(provider).unwrap();
    LoginServer::new(provider.id, provider.login.unwrap(), auth.url())
}

fn scope_of(provider: &str) -> &'static str {
    providers::find(provider).unwrap().login.unwrap().scope
}

/// Logs in and returns how that ended, and what was told meanwhile.
async fn log_in(auth: &AuthServer) -> (Result<LoginTokens, LoginError>, Vec<String>) {
    let mut told = Vec::new();
    let flow = DeviceFlow::begin(at(auth, "nous"), QUICK).await.unwrap();
    let ended = flow
        .wait(&Still, |error| told.push(error.to_string()))
        .await;
    (ended, told)
}

#[tokio::test]
async fn a_confirmed_code_becomes_tokens_whatever_the_server_says_meanwhile() {
    let auth = AuthServer::start();
    auth.set_codes(0.001, 600.0);
    auth.answer_codes([
        CodeAnswer::Pending,
        CodeAnswer::SlowDown,
        CodeAnswer::Pending,
    ]);
    auth.confirm_codes();
    let flow = DeviceFlow::begin(at(&auth, "nous"), QUICK).await.unwrap();
    assert_eq!(flow.prompt().code, "WDJB-MJHT");
    assert!(flow.prompt().url.starts_with(&auth.url()));
    assert!(!format!("{flow:?}").contains("secret-"), "{flow:?}");
    auth.fail([TokenFault::Status(503)]);
    let mut told = Vec::new();
    let tokens = flow
        .wait(&Still, |error| told.push(error.to_string()))
        .await;
    let tokens = tokens.unwrap();
    assert_eq!(auth.code_requests(), 4);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("HTTP status 503"), "{told:?}");
    assert_eq!(tokens.scope, "inference:invoke");
    let end = Timestamp::from_millis(NOW.as_millis() + 3_600_000);
    assert_eq!(tokens.expires_at, Some(end));
    assert!(tokens.refresh.is_some());
}

#[tokio::test]
async fn a_code_that_is_declined_or_expires_ends_the_login() {
    let auth = AuthServer::start();
    auth.set_codes(0.001, 600.0);
    auth.answer_codes([CodeAnswer::Denied]);
    assert_eq!(log_in(&auth).await.0, Err(LoginError::Declined));
    auth.answer_codes([CodeAnswer::Expired]);
    let (ended, _) = log_in(&auth).await;
    assert!(
        matches!(ended, Err(LoginError::Expired { .. })),
        "{ended:?}"
    );
    auth.set_codes(0.001, 0.05);
    let (ended, _) = log_in(&auth).await;
    assert!(
        matches!(ended, Err(LoginError::Expired { .. })),
        "{ended:?}"
    );
}

#[tokio::test]
async fn tokens_are_renewed_early_and_once_for_all_who_need_them() {
    for provider in ["nous", "xai-oauth"] {
        let auth = AuthServer::start();
        let shelf = Shelf::holding(&auth.grant(scope_of(provider)), 100);
        let before = shelf.access();
        let server = at(&auth, provider);
        auth.fail([TokenFault::DelayMs(50)]);
        // Each is a process of its own: they have nothing in common but the store.
        let processes: Vec<Logins> = (0..8).map(|_| logins(&shelf)).collect();
        let tokens = join_all(processes.iter().map(|logins| logins.token(&server))).await;
        for token in tokens {
            assert_eq!(token.unwrap().expose(), shelf.access());
        }
        assert_ne!(shelf.access(), before);
        assert_eq!((auth.renewals(), auth.reuses()), (1, 0), "{provider}");
    }
}

#[tokio::test]
async fn a_token_with_time_left_is_used_as_it_is_even_if_it_cannot_be_renewed() {
    let auth = AuthServer::start();
    let server = at(&auth, "nous");
    let fresh = Shelf::holding(&auth.grant("inference:invoke"), 121);
    let token = logins(&fresh).token(&server).await.unwrap();
    assert_eq!(
        (token.expose(), auth.token_requests()),
        (fresh.access().as_str(), 0)
    );
    let due = Shelf::holding(&auth.grant("inference:invoke"), 100);
    auth.fail([TokenFault::Status(500)]);
    let token = logins(&due).token(&server).await.unwrap();
    assert_eq!(
        (token.expose(), auth.token_requests()),
        (due.access().as_str(), 1)
    );
    let over = Shelf::holding(&auth.grant("inference:invoke"), -1);
    auth.fail([TokenFault::Status(500)]);
    let error = logins(&over).token(&server).await.unwrap_err();
    assert!(error.to_string().contains("HTTP status 500"), "{error}");
    assert_eq!(over.ended(), None, "it may be renewed another time");
}

#[tokio::test]
async fn a_login_that_the_provider_ended_says_how_to_begin_another() {
    let auth = AuthServer::start();
    let shelf = Shelf::holding(&auth.grant("inference:invoke"), -1);
    auth.fail([TokenFault::InvalidGrant]);
    for _ in 0..2 {
        let error = logins(&shelf).token(&at(&auth, "nous")).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("the login at nous has ended"), "{text}");
        assert!(
            text.contains("invalid_grant") && !text.contains("secret-"),
            "{text}"
        );
        assert_eq!(error.hint(), "log in with `hermes auth add nous`");
    }
    assert_eq!(auth.token_requests(), 1, "a dead token is not tried again");
    assert!(shelf.ended().is_some());
}

#[tokio::test]
async fn a_login_without_the_right_to_ask_models_is_told_before_anybody_is_asked() {
    let auth = AuthServer::start();
    let shelf = Shelf::holding(&auth.grant("inference:mint_agent_key"), 3600);
    let error = logins(&shelf).token(&at(&auth, "nous")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("does not allow `inference:invoke`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_login_is_ended_at_the_provider_where_that_is_possible() {
    let auth = AuthServer::start();
    let grant = auth.grant(scope_of("xai-oauth"));
    let refresh = Secret::new(grant["refresh_token"].as_str().unwrap());
    assert_eq!(revoke(&at(&auth, "xai-oauth"), &refresh).await, Ok(true));
    assert_eq!(auth.revocations(), 1);
    assert_eq!(revoke(&at(&auth, "nous"), &refresh).await, Ok(false));
}

/// A client of a provider with a login, whose models are the script.
fn client(server: &ScriptedServer, auth: &AuthServer, shelf: &Shelf) -> Client {
    let settings = ModelSettings {
        choice: ModelChoice {
            provider: Some("nous".into()),
            ..ModelChoice::default()
        },
        logins: vec!["nous".into()],
        ..ModelSettings::default()
    };
    let (models, portal) = (server.url(), auth.url());
    let resolved = resolve(&settings, &|name| match name {
        "NOUS_BASE_URL" => Some(Secret::new(models.clone())),
        "HERMES_PORTAL_BASE_URL" => Some(Secret::new(portal.clone())),
        _ => None,
    });
    Client::new(resolved.unwrap())
        .with_backoff(BACKOFF)
        .with_logins(logins(shelf))
}

fn refusal(message: &str) -> Answer {
    Answer::status(401, json!({"error": {"message": message}}))
}

async fn serve(answers: impl IntoIterator<Item = Answer>) -> ScriptedServer {
    ScriptedServer::start(Script::new(answers).repeating_last()).await
}

fn tokens_used(server: &ScriptedServer) -> Vec<String> {
    let token = |request: &Request| {
        request
            .header("authorization")
            .unwrap()
            .replace("Bearer ", "")
    };
    server.requests().iter().map(token).collect()
}

async fn ask(client: &Client) -> Told {
    tell(client, &[Message::user("hello")]).await
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_the_request_asked_again() {
    let auth = AuthServer::start();
    let shelf = Shelf::holding(&auth.grant("inference:invoke"), 3600);
    let before = shelf.access();
    let server = serve([refusal(&format!("bad token {before}")), Answer::text("hi")]).await;
    let told = ask(&client(&server, &auth, &shelf)).await;
    assert!(told.end.is_ok(), "{told:?}");
    assert_eq!(tokens_used(&server), [before, shelf.access()]);
    assert_eq!(auth.renewals(), 1);
    assert!(!format!("{told:?}").contains("secret-"), "{told:?}");
}

#[tokio::test]
async fn a_token_that_stays_refused_is_renewed_no_second_time() {
    let auth = AuthServer::start();
    let shelf = Shelf::holding(&auth.grant("inference:invoke"), 3600);
    let server = serve([refusal("no")]).await;
    let error = ask(&client(&server, &auth, &shelf)).await.end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.hint, "log in again with `hermes auth add nous`");
    assert_eq!((server.requests().len(), auth.renewals()), (2, 1));
}

//! An authorisation server that counts, rotates and fails on command.
//!
//! [`AuthServer`] publishes metadata, registers clients, approves every login at once, and gives out tokens; an MCP
//! server that is [`crate::mcp::FaultyMcp::protect`]ed takes only these. Refresh tokens rotate: using one twice revokes everything
//! that came of it, as careful servers do, so a client that renews twice at once is found out.
//!
//! [`Browser`] is what a person would log in with. Logins with a code wait until [`AuthServer::confirm_codes`]; they are
//! at the addresses of the providers that have them.
//!
//! Left out on purpose: checking PKCE and client secrets. Real servers do that in the tests against them.

mod browser;
mod device;
mod grants;
mod routes;

use std::collections::VecDeque;
use std::net::{self, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::io::BufReader;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use browser::{Browser, Page};
pub use device::CodeAnswer;

use self::device::Codes;
use self::grants::Grants;
use crate::server::http;

/// What goes wrong with one request for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFault {
    /// This status, and nothing in it.
    Status(u16),
    InvalidGrant,
    InvalidClient,
    /// Answers after this time, as if nothing had happened.
    DelayMs(u64),
}

/// A running server; dropping it ends it. It lives on a thread of its own.
pub struct AuthServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    quit: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What the server and the MCP servers it protects have in common.
pub(crate) struct Shared {
    base: String,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) grants: Grants,
    codes: Codes,
    faults: VecDeque<TokenFault>,
    /// The MCP server that tokens are for.
    resource: String,
    /// What a call needs beside a good token.
    needed_scope: Option<String>,
    registrations: usize,
    token_requests: usize,
    revocations: usize,
}

impl AuthServer {
    /// Serves on a free port.
    ///
    /// # Panics
    /// If loopback gives no port.
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        listener
            .set_nonblocking(true)
            .expect("a socket without blocking");
        let shared = Arc::new(Shared {
            base: format!("http://{address}"),
            state: Mutex::default(),
        });
        let (quit, quitting) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a socket for the runtime");
                let serving = serve(listener, served);
                tokio::select! {
                    () = serving => {}
                    _ = quitting => {}
                }
            });
        });
        Self {
            address,
            shared,
            quit: Some(quit),
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Makes the next requests for tokens fail, in this order.
    pub fn fail(&self, faults: impl IntoIterator<Item = TokenFault>) {
        self.shared.state().faults.extend(faults);
    }

    /// Sets how long the tokens given out from now on live.
    pub fn set_lifetime(&self, seconds: u64) {
        self.shared.state().grants.lifetime = seconds;
    }

    /// Voids every access token, as if it had expired. Refresh tokens stay good.
    pub fn expire_access(&self) {
        self.shared.state().grants.expire_access();
    }

    /// Calls need this scope from now on; without it they get 403 and the name of it.
    pub fn need_scope(&self, scope: &str) {
        self.shared.state().needed_scope = Some(scope.to_owned());
    }

    /// Lets clients ask this often for a code to be confirmed, and the code live this long.
    pub fn set_codes(&self, interval_seconds: f64, lifetime_seconds: f64) {
        let codes = &mut self.shared.state().codes;
        codes.interval_seconds = interval_seconds;
        codes.lifetime_seconds = lifetime_seconds;
    }

    /// Answers the next questions for a code so, in this order.
    pub fn answer_codes(&self, answers: impl IntoIterator<Item = CodeAnswer>) {
        self.shared.state().codes.answers.extend(answers);
    }

    /// Confirms every code, as a person would in a browser.
    pub fn confirm_codes(&self) {
        self.shared.state().codes.is_confirmed = true;
    }

    /// Returns how often a client asked whether its code was confirmed.
    pub fn code_requests(&self) -> usize {
        self.shared.state().codes.asked
    }

    /// Returns how many logins were ended by those who had them.
    pub fn revocations(&self) -> usize {
        self.shared.state().revocations
    }

    /// Gives out a token without a login, and returns it as a token file has it.
    pub fn grant(&self, scope: &str) -> serde_json::Value {
        self.shared.state().grants.grant(scope)
    }

    /// Returns how often a token was renewed.
    pub fn renewals(&self) -> usize {
        self.shared.state().grants.renewals
    }

    /// Returns how often a refresh token was used that had been replaced.
    pub fn reuses(&self) -> usize {
        self.shared.state().grants.reuses
    }

    /// Returns how many requests for tokens there were, those that failed too.
    pub fn token_requests(&self) -> usize {
        self.shared.state().token_requests
    }

    pub fn registrations(&self) -> usize {
        self.shared.state().registrations
    }
}

impl Drop for AuthServer {
    fn drop(&mut self) {
        // A thread that has ended takes no orders.
        let _ = self.quit.take().map(|quit| quit.send(()));
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed by its thread; do not panic twice.
            thread.join().ok();
        }
    }
}

/// Whether a request may come in.
pub(crate) enum Admission {
    Welcome,
    /// 401 with this challenge.
    Unknown(String),
    /// 403 with this challenge.
    NotAllowed(String),
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn protects(&self, resource: &str) {
        self.state().resource = resource.to_owned();
    }

    /// Looks at the `Authorization` of a request; `is_call` if it is one that may need more than a good token.
    pub(crate) fn admit(&self, authorization: Option<&str>, is_call: bool) -> Admission {
        let state = self.state();
        let metadata = format!(
            "resource_metadata=\"{}/.well-known/oauth-protected-resource\"",
            self.base
        );
        let token = authorization.and_then(|header| header.strip_prefix("Bearer "));
        let Some(scope) = token.and_then(|token| state.grants.scope_of(token)) else {
            return Admission::Unknown(format!("Bearer error=\"invalid_token\", {metadata}"));
        };
        match &state.needed_scope {
            Some(needed) if is_call && !scope.split(' ').any(|scope| scope == needed) => {
                Admission::NotAllowed(format!(
                    "Bearer error=\"insufficient_scope\", scope=\"{needed}\", {metadata}"
                ))
            }
            _ => Admission::Welcome,
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let mut connection = BufReader::new(stream);
            // A client that leaves early ends the connection, and nothing else.
            while let Ok(Some(request)) = http::read_request(&mut connection).await {
                let responded = routes::respond(&shared, &mut connection, &request).await;
                if responded.is_err() || request.wants_close() {
                    return;
                }
            }
        });
    }
}

//! `hermes mcp login` and `reauth`: a browser on this machine, or a paste from any other.

use std::sync::Arc;

use hermes_core::Random;
use hermes_mcp::{
    Callback, CallbackError, Login, LoginError, McpPorts, ServerSettings, TransportSettings,
    forget_login,
};
use tokio::time::{Instant, sleep_until};

use super::{TEST_WAIT, known, one, test};
use crate::args::{JsonFlag, McpLoginArgs, McpReauthArgs};
use crate::base::Base;
use crate::commands::browser::open_browser;
use crate::commands::confirm::is_anybody_there;
use crate::failure::{Failure, Outcome, code};
use crate::keyboard::{Keyboard, Typed};
use crate::mcp::ports;
use crate::output::{note, println};
use crate::signals::Signals;

/// What becomes of an earlier login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Keep,
    Forget,
}

pub(super) async fn login(base: &Base, args: &McpLoginArgs, before: Before) -> Outcome<()> {
    let server = one(base, &args.name)?;
    if let TransportSettings::Stdio { command, .. } = &server.transport {
        return Err(nothing_to_log_in_at(&server.name, command));
    }
    if !is_anybody_there() {
        return Err(
            Failure::usage("logging in needs a person at a terminal").hint(format!(
                "run `hermes mcp login {}` in a terminal on this machine; whatever runs already finds the login by itself",
                args.name
            )),
        );
    }
    let ports = ports(base, Arc::new(Random::from_system()));
    if before == Before::Forget {
        forget_login(&server, &ports).await.map_err(failed)?;
    }
    let mut visit = Visit::begin(base, &server, &ports, args).await?;
    visit.wait().await?;
    println(&format!("logged in at `{}`", args.name))?;
    let name = Some(args.name.as_str());
    test::run(base, name, TEST_WAIT, &JsonFlag { json: false }).await
}

/// A server that is a program has no login of ours.
fn nothing_to_log_in_at(name: &str, command: &str) -> Failure {
    Failure::usage(format!(
        "there is nothing to log in at: MCP server `{name}` is a program on this machine (`{command}`)"
    ))
    .hint(format!(
        "what it needs to know, such as keys, goes into `mcp_servers.{name}.env` (`hermes config edit`); if it has a login of its own, its own documentation says how"
    ))
}

/// Forgets the login at one server, or at all of them one after the other, and logs in anew.
pub(super) async fn reauth(base: &Base, args: McpReauthArgs) -> Outcome<()> {
    let names = match args.name {
        Some(name) => vec![name],
        None => with_logins(base)?,
    };
    let mut refused = Vec::new();
    let is_one = names.len() == 1;
    for name in names {
        let args = McpLoginArgs {
            name,
            scope: args.scope.clone(),
            no_browser: args.no_browser,
        };
        match login(base, &args, Before::Forget).await {
            Ok(()) => {}
            // One that fails does not keep the others waiting; whoever presses Ctrl-C means all of them.
            Err(failure) if !is_one && failure.code == code::FAILED => {
                if !failure.message.is_empty() {
                    note(&failure.to_string());
                }
                refused.push(args.name);
            }
            Err(failure) => return Err(failure),
        }
    }
    if refused.is_empty() {
        Ok(())
    } else {
        Err(
            Failure::new(format!("not every login worked: {}", refused.join(", ")))
                .hint("`hermes mcp reauth NAME` tries one again"),
        )
    }
}

/// The names of the servers that one logs in at.
fn with_logins(base: &Base) -> Outcome<Vec<String>> {
    let servers = known(base).into_iter();
    let servers = servers.filter(|server| server.enabled && server.oauth.is_some());
    let names: Vec<_> = servers.map(|server| server.name).collect();
    if names.is_empty() {
        Err(
            Failure::usage("there is no MCP server that one logs in at").hint(
                "`hermes mcp add NAME --url URL --auth oauth` adds one; `hermes mcp list` shows what there is",
            ),
        )
    } else {
        Ok(names)
    }
}

/// A login that waits for its person.
struct Visit {
    login: Login,
    callback: Callback,
    keyboard: Keyboard,
    signals: Signals,
    deadline: Instant,
}

impl Visit {
    async fn begin(
        base: &Base,
        server: &ServerSettings,
        ports: &McpPorts,
        args: &McpLoginArgs,
    ) -> Outcome<Self> {
        let signals = Signals::listen()?;
        let callback = Callback::open(server, ports).await.map_err(closed)?;
        let login = Login::begin(server, ports, callback.redirect_uri(), &args.scope)
            .await
            .map_err(failed)?;
        let wait = server.oauth.as_ref().map(|oauth| oauth.login_timeout);
        println(&format!(
            "Log in with your browser at\n\n  {}\n\nIf the browser is on another machine, paste the address it ends up at here.",
            login.url()
        ))?;
        if !args.no_browser {
            open_browser(base, login.url());
        }
        Ok(Self {
            login,
            callback,
            keyboard: Keyboard::new(),
            signals,
            deadline: Instant::now() + wait.unwrap_or_default(),
        })
    }

    /// Waits until the person has logged in, here or elsewhere.
    async fn wait(&mut self) -> Outcome<()> {
        let mut may_type = true;
        loop {
            tokio::select! {
                returned = self.callback.returned() => {
                    let finished = self.login.finish(&returned.answer).await;
                    returned.show(&finished).await;
                    if let Some(outcome) = settled(finished) {
                        return outcome;
                    }
                }
                typed = self.keyboard.next(), if may_type => match typed {
                    Typed::Text(text) if text.trim().is_empty() => {}
                    Typed::Text(text) => {
                        if let Some(outcome) = settled(self.login.finish(&text).await) {
                            return outcome;
                        }
                    }
                    Typed::TooLong => note("the paste was too long for the terminal; paste only the `code`"),
                    Typed::End => may_type = false,
                },
                _ = self.signals.interrupted() => return Err(interrupted(&self.signals)),
                () = sleep_until(self.deadline) => return Err(Failure::new("nobody logged in in time")
                    .hint("start again; `oauth.timeout` in the server's settings gives more time")),
            }
        }
    }
}

/// Returns how the login ended, unless another answer may still end it.
fn settled(finished: Result<(), LoginError>) -> Option<Outcome<()>> {
    match finished {
        Ok(()) => Some(Ok(())),
        Err(error) if error.may_try_again() => {
            note(&error.to_string());
            None
        }
        Err(error) => Some(Err(failed(error))),
    }
}

fn failed(error: LoginError) -> Failure {
    let hint = match &error {
        LoginError::NotOAuth { server } => {
            format!("hermes config set mcp_servers.{server}.auth oauth")
        }
        LoginError::Undiscovered { .. } => {
            "check the server's `url`; a server without OAuth wants a header instead".to_owned()
        }
        LoginError::Unregistered { .. } => {
            "some servers want a client that was registered by hand".to_owned()
        }
        LoginError::Files { .. } => "check the folder and its permissions".to_owned(),
        LoginError::Refused { .. } | LoginError::NotTheAnswer | LoginError::NotExchanged { .. } => {
            "start again; `hermes mcp reauth NAME` begins from nothing".to_owned()
        }
    };
    Failure::new(error.to_string()).hint(hint)
}

fn closed(error: CallbackError) -> Failure {
    match error {
        CallbackError::Login(error) => failed(error),
        CallbackError::Port { .. } => Failure::new(error.to_string())
            .hint("choose another `oauth.redirect_port`, or none for any free one"),
    }
}

fn interrupted(signals: &Signals) -> Failure {
    let code = if signals.was_terminated() {
        code::TERMINATED
    } else {
        code::INTERRUPTED
    };
    Failure {
        code,
        ..Failure::new("the login was called off")
    }
}

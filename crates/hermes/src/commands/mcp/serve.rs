//! `hermes mcp serve`: the conversations of this home, for other programs.
//!
//! Standard output belongs to the protocol; everything else goes to the log.

use std::sync::Arc;

use hermes_core::{CancellationToken, Secret};
use hermes_mcp::{HttpServer, ServeError, Served, serve_streams};

use crate::ancestry;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;
use crate::signals::Signals;
use hermes_runtime::{SystemClock, open_store};

const TOKEN_VARIABLE: &str = "HERMES_MCP_SERVE_TOKEN";

const INSIDE: &str = "this server was started from inside Hermes, so a model could be answering its own questions: a person \
     answers them where they are shown";
const NO_TOKEN: &str = "this server has no token, so anybody on this machine could be asking: answer with `hermes \
     approvals`, or start it with HERMES_MCP_SERVE_TOKEN set";

/// Serves until the client leaves or somebody ends the program.
pub(super) async fn run(base: &Base, http: Option<&str>) -> Outcome<()> {
    let mut signals = Signals::listen()?;
    // For writing too: clients answer questions. Several processes may have it open.
    let store = Arc::new(open_store(base)?);
    let token = token(base)?;
    let served = Served {
        archive: store.clone(),
        approvals: store,
        clock: Arc::new(SystemClock),
        no_answers: no_answers(http, token.as_ref()),
    };
    let stop = CancellationToken::new();
    let serving = async {
        match http {
            Some(address) => {
                let server = HttpServer::bind(address, token).await.map_err(failure)?;
                note(&format!("serving on {}", server.url()));
                server.run(served, stop.clone()).await;
                Ok(())
            }
            None => {
                let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
                let served = serve_streams(served, input, output, stop.clone());
                served.await.map_err(failure)
            }
        }
    };
    tokio::pin!(serving);
    tokio::select! {
        outcome = &mut serving => return outcome,
        _ = signals.interrupted() => stop.cancel(),
    }
    // Being told to stop is how a server ends; it is no failure.
    serving.await
}

/// Why clients may not answer questions, if they may not.
fn no_answers(http: Option<&str>, token: Option<&Secret>) -> Option<&'static str> {
    match ancestry::hermes_above() {
        Some(_) => Some(INSIDE),
        None => (http.is_some() && token.is_none()).then_some(NO_TOKEN),
    }
}

fn token(base: &Base) -> Outcome<Option<Secret>> {
    if let Some(token) = base.variable(TOKEN_VARIABLE) {
        return Ok(Some(token));
    }
    let token = base.settings.string("mcp.serve.token")?;
    Ok((!token.is_empty()).then(|| Secret::new(token)))
}

fn failure(error: ServeError) -> Failure {
    let hint = match &error {
        ServeError::Address { .. } => "write it as HOST:PORT, such as 127.0.0.1:8765".to_owned(),
        ServeError::Listen { .. } => "choose another port; port 0 takes a free one".to_owned(),
        ServeError::Unprotected { .. } => format!(
            "set a long random token with `hermes config set {TOKEN_VARIABLE} TOKEN`, or listen on 127.0.0.1"
        ),
        ServeError::Handshake { .. } => {
            "this is for MCP clients; let one start `hermes mcp serve`".to_owned()
        }
    };
    match error {
        ServeError::Handshake { .. } => Failure::new(error.to_string()),
        _ => Failure::usage(error.to_string()),
    }
    .hint(hint)
}

//! Hermes as an MCP server: other programs look at its conversations and follow them.
//!
//! It reads through the [`Archive`] port, and answers what waits for consent through [`Approvals`]; both work beside any
//! number of chats. Start at `handler` for how a call is answered; `catalogue` says which calls there are.

mod answer;
mod arguments;
mod attachments;
mod catalogue;
mod conversations;
mod events;
mod handler;
mod http;
mod permissions;
mod platforms;

use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{Approvals, Archive, CancellationToken, Clock};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::failure::with_sources;
use handler::Handler;

pub use http::HttpServer;

/// The largest request: our tools take a few words.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
const CAUSE_CHARS_MAX: usize = 400;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("`{address}` is not an address to listen on: {cause}")]
    Address { address: String, cause: String },
    #[error("cannot listen on `{address}`: {cause}")]
    Listen { address: String, cause: String },
    #[error(
        "`{address}` can be reached from other machines, and there is no token to keep strangers out"
    )]
    Unprotected { address: String },
    #[error("the client did not begin as MCP demands: {cause}")]
    Handshake { cause: String },
}

/// What clients get to see.
#[derive(Clone)]
pub struct Served {
    pub archive: Arc<dyn Archive>,
    pub approvals: Arc<dyn Approvals>,
    pub clock: Arc<dyn Clock>,
    /// Why clients may not answer what waits for consent, nor see its codes, if they may not. Those may that were let in:
    /// whoever started this program over its streams, or who has the token.
    pub no_answers: Option<&'static str>,
}

/// Answers one client over a pair of byte streams, until it closes its side or `stop` is cancelled.
pub async fn serve_streams(
    served: Served,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let transport =
        AsyncRwTransport::new_server(reader, writer).with_max_line_length(REQUEST_BYTES_MAX);
    let service = match serve_server_with_ct(Handler::new(served), transport, stop).await {
        Ok(service) => service,
        // Somebody who leaves before saying hello has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            let cause = "its first message was not `initialize`".to_owned();
            return Err(ServeError::Handshake { cause });
        }
        Err(error) => {
            let cause = shorten(&with_sources(&error), CAUSE_CHARS_MAX);
            return Err(ServeError::Handshake { cause });
        }
    };
    match service.waiting().await {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => {}
        Ok(reason) => tracing::warn!(?reason, "the client's connection ended"),
        Err(error) => tracing::error!(%error, "the client's connection broke"),
    }
    Ok(())
}

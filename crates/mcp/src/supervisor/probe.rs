//! Asks a server for a sign of life, and for the list of what it offers.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, DiscoverRequest, DiscoverRequestParams, ErrorCode, ListToolsRequest,
    PaginatedRequestParams, PingRequest, ServerResult, Tool,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient};
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::listed::notes_of;
use crate::view::Offer;

/// For each page of a list.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A list that goes on for longer is a loop, or no list for a model.
const PAGES_MAX: usize = 50;

/// How to ask this connection for a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    Ping,
    /// For servers that do not know `ping`: the first page of the tools.
    List,
    /// For servers of the era that has no `ping`.
    Discover,
}

impl ProbeKind {
    pub(crate) fn of(peer: &Peer<RoleClient>) -> Self {
        match peer.peer_info() {
            Some(info) if !info.protocol_version.has_initialize() => Self::Discover,
            _ => Self::Ping,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Probed {
    /// What to ask next time.
    pub(crate) kind: ProbeKind,
    pub(crate) result: Result<Duration, Failure>,
}

/// Probes once. A server that refuses `ping` is asked for its list instead, now and from now on.
pub(crate) async fn probe(peer: Peer<RoleClient>, kind: ProbeKind, deadline: Duration) -> Probed {
    let started = Instant::now();
    let mut kind = kind;
    let mut result = ask(&peer, request(kind), deadline).await;
    if kind == ProbeKind::Ping && is_unknown_method(&result) {
        kind = ProbeKind::List;
        result = ask(&peer, request(kind), deadline).await;
    }
    // A server that knows neither has said so, which is a sign of life.
    let result = match result {
        Err(Failure::Rpc { code, .. }) if code == ErrorCode::METHOD_NOT_FOUND.0 => Ok(()),
        result => result.map(|_| ()),
    };
    Probed {
        kind,
        result: result.map(|()| started.elapsed()),
    }
}

fn request(kind: ProbeKind) -> ClientRequest {
    match kind {
        ProbeKind::Ping => ClientRequest::PingRequest(PingRequest::default()),
        ProbeKind::List => ClientRequest::ListToolsRequest(ListToolsRequest::default()),
        ProbeKind::Discover => {
            let parameters = DiscoverRequestParams::default();
            ClientRequest::DiscoverRequest(DiscoverRequest::new(parameters))
        }
    }
}

fn is_unknown_method(result: &Result<ServerResult, Failure>) -> bool {
    match result {
        Err(Failure::Rpc { code, message }) => {
            let message = message.to_lowercase();
            *code == ErrorCode::METHOD_NOT_FOUND.0
                || ["method not found", "unknown method", "not found: ping"]
                    .iter()
                    .any(|phrase| message.contains(phrase))
        }
        _ => false,
    }
}

/// Fetches everything the server offers, page by page.
pub(crate) async fn fetch_offer(peer: Peer<RoleClient>) -> Result<Offer, Failure> {
    let capabilities = peer.peer_info().map(|info| info.capabilities.clone());
    let capabilities = capabilities.unwrap_or_default();
    let mut listed = match capabilities.tools {
        Some(_) => fetch_tools(&peer).await?,
        None => Listed::default(),
    };
    listed.leave_out_doubles();
    Ok(Offer {
        tools: listed.tools,
        notes: listed.notes,
        has_resources: capabilities.resources.is_some(),
        has_prompts: capabilities.prompts.is_some(),
    })
}

/// What a server lists, and what is odd about it.
#[derive(Default)]
struct Listed {
    tools: Vec<Tool>,
    notes: Vec<String>,
}

impl Listed {
    /// Keeps the first of those that have the same name.
    fn leave_out_doubles(&mut self) {
        let (mut names, notes) = (HashSet::new(), &mut self.notes);
        self.tools.retain(|tool| {
            let is_new = names.insert(tool.name.clone());
            if !is_new {
                notes.push(format!(
                    "tool `{}` is listed twice; the first counts",
                    tool.name
                ));
            }
            is_new
        });
    }
}

async fn fetch_tools(peer: &Peer<RoleClient>) -> Result<Listed, Failure> {
    let mut listed = Listed::default();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let list = ListToolsRequest::with_param(page);
        let page = match ask(peer, ClientRequest::ListToolsRequest(list), PAGE_TIMEOUT).await {
            Ok(ServerResult::ListToolsResult(page)) => page,
            Ok(_) => {
                return Err(Failure::Unreadable {
                    cause: "its list of tools has the wrong shape".to_owned(),
                });
            }
            Err(failure) if listed.tools.is_empty() && is_unknown_method(&Err(failure.clone())) => {
                break;
            }
            Err(failure) => return Err(failure),
        };
        listed.notes.extend(notes_of(&page));
        listed.tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(listed)
}

async fn ask(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    deadline: Duration,
) -> Result<ServerResult, Failure> {
    // Not the library's own deadline: it ends only when a word about it has reached the server, which may be dead.
    let answer = timeout(deadline, async {
        let options = PeerRequestOptions::no_options();
        let handle = peer.send_request_with_option(request, options).await?;
        handle.await_response().await
    });
    match answer.await {
        Ok(answer) => answer.map_err(Failure::from_service),
        Err(_) => Err(Failure::Timeout { after: deadline }),
    }
}

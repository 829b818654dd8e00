//! Leaves out answers to nobody while a connection begins.
//!
//! The library takes the first answer that comes for that to its handshake, and gives up when it has another id. A bridge
//! that sends what is left of an earlier client, or a late answer to a question we no longer ask, is no reason to.

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::Transport;

pub(crate) struct Expected<T> {
    inner: T,
    handshake: Handshake,
}

enum Handshake {
    NotBegun,
    /// Its last request has this id.
    Asked {
        id: RequestId,
        is_initialize: bool,
    },
    /// From here on the library leaves out what answers nobody.
    Over,
}

impl<T> Expected<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self {
            inner,
            handshake: Handshake::NotBegun,
        }
    }

    fn note(&mut self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else {
            return;
        };
        let asked = |is_initialize| Handshake::Asked {
            id: request.id.clone(),
            is_initialize,
        };
        self.handshake = match request.request {
            ClientRequest::InitializeRequest(_) => asked(true),
            ClientRequest::DiscoverRequest(_) => asked(false),
            _ => Handshake::Over,
        };
    }

    fn is_stray(&self, message: &ServerJsonRpcMessage) -> bool {
        let Handshake::Asked {
            id: asked,
            is_initialize,
        } = &self.handshake
        else {
            return false;
        };
        let id = match message {
            // Ids of all clients begin alike, so an answer to another may have ours; what it says gives it away.
            JsonRpcMessage::Response(response)
                if *is_initialize
                    && !matches!(response.result, ServerResult::InitializeResult(_)) =>
            {
                return true;
            }
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        // Some servers make a text of an id.
        id.is_some_and(|id| id != asked && id.to_string() != asked.to_string())
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Expected<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_stray(&message) {
                return Some(message);
            }
            tracing::info!("left out an answer to nobody, before the handshake was over");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

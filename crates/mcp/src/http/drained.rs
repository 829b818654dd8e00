//! Ends a connection that the server keeps talking to.
//!
//! The library's worker hands over what a server says through a short queue, and its end is waited for without reading
//! that queue: a server that says more at that moment would keep the connection, and its tasks, for ever.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpClientWorker, StreamableHttpError};
use rmcp::transport::{Transport, WorkerTransport};

use super::{HttpClient, HttpFailure};

pub(crate) struct Drained(pub(crate) WorkerTransport<StreamableHttpClientWorker<HttpClient>>);

impl Transport<RoleClient> for Drained {
    type Error = StreamableHttpError<HttpFailure>;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<ServerJsonRpcMessage>> + Send {
        self.0.receive()
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.cancel_token().cancel();
        // Nobody wants to know any more. The worker ends the queue when it ends itself.
        while self.0.receive().await.is_some() {}
        self.0.close().await
    }
}

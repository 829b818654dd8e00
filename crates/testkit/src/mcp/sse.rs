//! The older HTTP+SSE transport: a GET opens the stream and names where messages go; they are answered on the stream.

use std::io;

use tokio::{pin, sync::mpsc};

use super::{host::Host, reply::Reply, rpc, stream};
use crate::server::{
    http::{Connection, Request},
    play::After,
};

pub(super) const STREAM: &str = "/sse";
pub(super) const MESSAGES: &str = "/messages";

impl Host {
    pub(super) async fn serve_sse(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> io::Result<After> {
        match (request.method.as_str(), request.route()) {
            ("GET", STREAM) => self.open_sse(connection, request).await,
            ("POST", MESSAGES) => self.take_message(connection, request).await,
            _ => {
                let reply = Reply::text(405, "Method Not Allowed");
                reply.send(connection).await
            }
        }
    }

    async fn open_sse(&self, connection: &mut Connection, request: &Request) -> io::Result<After> {
        if let Some(rule) = self.rule_for("GET") {
            return self.strike(request, &rule).await.send(connection).await;
        }
        let (outbox, notes) = mpsc::unbounded_channel();
        let session = self.open_session(vec![outbox]);
        let endpoint = format!("event: endpoint\ndata: {MESSAGES}?session={session}\n\n");
        stream::send_notes_after(connection, &endpoint, notes).await
    }

    /// Takes a message and answers it on the stream of its session. A fault strikes the POST.
    async fn take_message(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> io::Result<After> {
        let message = &request.json;
        if let Some(mut rule) = self.rule_for(rpc::method(message)) {
            if std::mem::take(&mut rule.executes) {
                let (outbox, _nobody) = mpsc::unbounded_channel();
                self.peer.answer(None, message, &outbox).await;
            }
            let reply = self.strike(request, &rule).await;
            return reply.send(connection).await;
        }
        let session = request.path.split_once("?session=").map(|(_, id)| id);
        let Some(session) = session.filter(|session| self.has_session(session)) else {
            let reply = Reply::text(404, "Could not find session");
            return reply.send(connection).await;
        };
        // Work goes on after the answer to the POST, so the client must take another connection.
        let taken = Reply::text(202, "Accepted").header("connection", "close");
        taken.send(connection).await?;
        if rpc::is_request(message) {
            self.answer_on_stream(session, request).await;
        } else {
            self.peer.note(Some(session), message);
        }
        Ok(After::Close)
    }

    async fn answer_on_stream(&self, session: &str, request: &Request) {
        let (outbox, mut notes) = mpsc::unbounded_channel();
        let answer = self.peer.answer(Some(session), &request.json, &outbox);
        pin!(answer);
        let answer = loop {
            tokio::select! {
                biased;
                Some(note) = notes.recv() => self.tell(session, &note),
                answer = &mut answer => break answer,
            }
        };
        if let Some(answer) = answer {
            self.tell(session, &answer);
        }
    }
}

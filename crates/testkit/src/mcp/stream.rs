//! Event streams that stay open: a slow answer with its notifications, and the GET stream.

use std::{collections::BTreeMap, io};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt},
    pin,
    sync::mpsc::UnboundedReceiver,
};

use super::reply::{EVENT_STREAM, event};
use crate::server::{
    http::{self, Connection},
    play::{self, After},
};

/// Streams what is said about a request and then its answer; no answer if it was cancelled.
pub(super) async fn send_answer(
    connection: &mut Connection,
    answer: impl Future<Output = Option<Value>>,
    mut notes: UnboundedReceiver<Value>,
) -> io::Result<After> {
    open(connection).await?;
    pin!(answer);
    let answer = loop {
        tokio::select! {
            biased;
            Some(note) = notes.recv() => send(connection, &note).await?,
            answer = &mut answer => break answer,
        }
    };
    while let Ok(note) = notes.try_recv() {
        send(connection, &note).await?;
    }
    if let Some(answer) = answer {
        send(connection, &answer).await?;
    }
    connection.write_all(play::LAST_CHUNK).await?;
    Ok(After::KeepAlive)
}

/// Streams notifications until the session is forgotten or the client leaves.
pub(super) async fn send_notes(
    connection: &mut Connection,
    notes: UnboundedReceiver<Value>,
) -> io::Result<After> {
    send_notes_after(connection, "", notes).await
}

/// As [`send_notes`], with an event before them.
pub(super) async fn send_notes_after(
    connection: &mut Connection,
    first_event: &str,
    mut notes: UnboundedReceiver<Value>,
) -> io::Result<After> {
    open(connection).await?;
    let mut chunk = Vec::new();
    play::push_http_chunk(&mut chunk, first_event.as_bytes());
    connection.write_all(&chunk).await?;
    loop {
        tokio::select! {
            note = notes.recv() => match note {
                Some(note) => send(connection, &note).await?,
                None => break,
            },
            // A client says nothing more on this connection: it can only leave.
            left = connection.fill_buf() => {
                left?;
                return Ok(After::Close);
            }
        }
    }
    connection.write_all(play::LAST_CHUNK).await?;
    Ok(After::KeepAlive)
}

async fn open(connection: &mut Connection) -> io::Result<()> {
    let headers = [
        ("content-type", EVENT_STREAM),
        ("transfer-encoding", "chunked"),
    ];
    let headers: BTreeMap<_, _> = headers
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    connection
        .write_all(http::head(200, &headers).as_bytes())
        .await
}

async fn send(connection: &mut Connection, message: &Value) -> io::Result<()> {
    let mut chunk = Vec::new();
    play::push_http_chunk(&mut chunk, event(message).as_bytes());
    connection.write_all(&chunk).await
}

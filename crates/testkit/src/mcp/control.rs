//! `/control`: the same orders as the Rust handle gives, for tests that run the program.
//! A GET tells what the server has seen and done.

use std::{collections::BTreeMap, io, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    fault::Fault, host::Host, listen::Orders, reply::Reply, rule::Rule, settings::Settings,
};
use crate::server::{
    http::{Connection, Request},
    play::After,
};

/// The body of a POST.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    Fail(Rule<Fault>),
    Clear,
    DropSessions,
    NotifyListChanged(usize),
    /// Replaces all settings; those not given take their defaults.
    Settings(Settings),
    /// Stops listening and drops every connection, for this time.
    DownMs(u64),
}

pub(super) async fn serve(
    host: &Host,
    orders: &Orders,
    connection: &mut Connection,
    request: &Request,
) -> io::Result<After> {
    if request.method == "GET" {
        return Reply::json(200, account(host)).send(connection).await;
    }
    let order = match serde_json::from_slice(&request.body) {
        Ok(order) => order,
        Err(error) => {
            let text = format!("this is not an order: {error}");
            return Reply::text(400, &text).send(connection).await;
        }
    };
    let mut answer = json!({});
    match order {
        Order::Fail(rule) => host.fail(rule),
        Order::Clear => host.clear(),
        Order::DropSessions => host.drop_sessions(),
        Order::NotifyListChanged(times) => {
            answer = json!({"streams": host.notify_list_changed(times)});
        }
        Order::Settings(new) => host.peer.change(|settings| *settings = new),
        Order::DownMs(ms) => {
            // Answered first, because this connection will be gone too.
            Reply::json(200, answer).send(connection).await?;
            orders.go_down_for(Duration::from_millis(ms));
            return Ok(After::Close);
        }
    }
    Reply::json(200, answer).send(connection).await
}

fn account(host: &Host) -> Value {
    let mut requests = BTreeMap::<String, usize>::new();
    for seen in host.seen() {
        *requests.entry(seen.method).or_default() += 1;
    }
    json!({
        "requests": requests,
        "executions": host.peer.executed_words(),
        "cancelled": host.peer.cancelled(),
        "sessions": host.session_count(),
    })
}

//! The `hermes-faulty-mcp` program over HTTP, told what to do at `/control`.

use std::{
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use hermes_testkit::process::{Hermes, Running};
use serde_json::{Value, json};

use crate::{
    client::{Response, request},
    mcp_client::{McpClient, wait_until},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hermes-faulty-mcp");

fn spawn(args: &[&str]) -> (Running, SocketAddr) {
    let mut server = Hermes::new(PROGRAM).args(args.iter().copied()).spawn();
    server.expect_stdout("\n", Duration::from_secs(10));
    let stdout = server.stdout();
    let address = stdout.trim_end().strip_prefix("listening on http://");
    let address = address.unwrap().strip_suffix("/mcp").unwrap();
    (server, address.parse().unwrap())
}

fn order(address: SocketAddr, order: &Value) -> Response {
    request(address, "POST", "/control", &order.to_string())
}

#[test]
fn it_takes_orders_and_gives_an_account() {
    let (_server, address) = spawn(&["--fault", r#"{"fault": "unauthorized", "on": "ping"}"#]);
    let client = McpClient::connect(address);
    assert_eq!(client.ask("ping", json!({})).status, 401);

    let fault = json!({"fail": {"fault": {"status": {"status": 503, "retry_after": "1"}},
        "on": "tools/call", "executes": true}});
    assert_eq!(order(address, &fault).status, 200);
    assert_eq!(client.call("append", json!({"word": "w"})).status, 503);
    assert_eq!(
        order(address, &json!({"settings": {"lost_session": "gone"}})).status,
        200
    );
    assert_eq!(
        order(address, &json!({"notify_list_changed": 1})).json()["streams"],
        0
    );
    order(address, &json!({"fail": {"fault": "hang", "times": null}}));
    order(address, &json!("clear"));
    order(address, &json!("drop_sessions"));
    assert_eq!(client.ask("ping", json!({})).status, 410);

    let account = request(address, "GET", "/control", "").json();
    assert_eq!(account["executions"], json!(["w"]));
    assert_eq!(account["requests"]["ping"], 2);
    assert_eq!(account["sessions"], 0);
    let wrong = order(address, &json!({"fail": "everything"}));
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.body().starts_with("this is not an order"),
        "{}",
        wrong.body()
    );
}

#[test]
fn it_can_be_down_for_a_while() {
    let (_server, address) = spawn(&[]);
    let client = McpClient::connect(address);
    assert_eq!(order(address, &json!({"down_ms": 1000})).status, 200);
    wait_until(|| TcpStream::connect(address).is_err());
    wait_until(|| TcpStream::connect(address).is_ok());
    assert_eq!(client.ask("ping", json!({})).status, 200);
}

#[test]
fn it_says_what_it_does_not_understand() {
    let output = Hermes::new(PROGRAM)
        .args(["--settings", r#"{"colour": 1}"#])
        .run();
    assert!(
        output.stderr.contains("is not settings"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("unknown field `colour`"),
        "{}",
        output.stderr
    );
}

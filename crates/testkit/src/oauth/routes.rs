//! The addresses of the server.

use std::{collections::BTreeMap, io, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Shared, State, TokenFault};
use crate::server::http::{Connection, Request, write_response};

type Headers = BTreeMap<String, String>;

pub(super) async fn respond(
    shared: &Shared,
    connection: &mut Connection,
    request: &Request,
) -> io::Result<()> {
    let (status, headers, body) = match request.route() {
        "/token" | "/api/oauth/token" | "/oauth2/token" => token(shared, request).await,
        "/api/oauth/device/code" | "/oauth2/device/code" => code(shared, request),
        "/oauth2/revoke" => revoke(shared, request),
        "/authorize" => authorize(shared, request),
        "/register" => register(shared, request),
        "/.well-known/oauth-authorization-server" => ok(metadata(shared)),
        "/.well-known/oauth-protected-resource" => ok(resource(shared)),
        _ => (404, Headers::new(), json!("no such route")),
    };
    write_response(connection, status, headers, &body).await
}

fn ok(body: Value) -> (u16, Headers, Value) {
    (200, Headers::new(), body)
}

fn refused(error: &str) -> (u16, Headers, Value) {
    let body = json!({ "error": error, "error_description": "as the test wants it" });
    (400, Headers::new(), body)
}

fn metadata(shared: &Shared) -> Value {
    let at = |path: &str| format!("{}{path}", shared.base);
    json!({
        "issuer": shared.base,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn resource(shared: &Shared) -> Value {
    json!({
        "resource": shared.state().resource,
        "authorization_servers": [shared.base],
        "scopes_supported": ["read"],
    })
}

fn register(shared: &Shared, request: &Request) -> (u16, Headers, Value) {
    let mut state = shared.state();
    state.registrations += 1;
    let mut body = request.json.clone();
    body["client_id"] = format!("client-{}", state.registrations).into();
    (201, Headers::new(), body)
}

/// Approves at once.
fn authorize(shared: &Shared, request: &Request) -> (u16, Headers, Value) {
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    let value = |name| form_value(query, name).unwrap_or_default();
    if value("code_challenge_method") != "S256" || value("code_challenge").is_empty() {
        return refused("invalid_request");
    }
    if value("resource") != shared.state().resource {
        return refused("invalid_target");
    }
    let code = shared.state().grants.code(&value("scope"));
    let issuer = shared.base.replace(':', "%3A").replace('/', "%2F");
    let location = format!(
        "{}?code={code}&state={}&iss={issuer}",
        value("redirect_uri"),
        value("state")
    );
    let headers = Headers::from([("location".to_owned(), location)]);
    (302, headers, json!(""))
}

fn code(shared: &Shared, request: &Request) -> (u16, Headers, Value) {
    let form = String::from_utf8_lossy(&request.body);
    let scope = form_value(&form, "scope").unwrap_or_default();
    if form_value(&form, "client_id").is_none() {
        return refused("invalid_client");
    }
    let page = format!("{}/device", shared.base);
    ok(shared.state().codes.give(&page, &scope))
}

fn revoke(shared: &Shared, request: &Request) -> (u16, Headers, Value) {
    let form = String::from_utf8_lossy(&request.body);
    let token = form_value(&form, "token").unwrap_or_default();
    let mut state = shared.state();
    state.revocations += usize::from(state.grants.forget(&token));
    ok(json!({}))
}

/// The refresh token of a request; one provider wants it in a header, the others in the form.
fn refresh_token(request: &Request, form: &str) -> String {
    match request.route() {
        "/api/oauth/token" => request
            .header("x-nous-refresh-token")
            .unwrap_or_default()
            .to_owned(),
        _ => form_value(form, "refresh_token").unwrap_or_default(),
    }
}

async fn token(shared: &Shared, request: &Request) -> (u16, Headers, Value) {
    let fault = {
        let mut state = shared.state();
        state.token_requests += 1;
        state.faults.pop_front()
    };
    match fault {
        Some(TokenFault::Status(status)) => return (status, Headers::new(), json!("")),
        Some(TokenFault::InvalidGrant) => return refused("invalid_grant"),
        Some(TokenFault::InvalidClient) => return refused("invalid_client"),
        Some(TokenFault::DelayMs(time)) => sleep(Duration::from_millis(time)).await,
        None => {}
    }
    let form = String::from_utf8_lossy(&request.body);
    let value = |name| form_value(&form, name).unwrap_or_default();
    let names_client = !value("client_id").is_empty() || request.header("authorization").is_some();
    if !names_client || value("resource") != shared.state().resource {
        return refused("invalid_request");
    }
    let State { grants, codes, .. } = &mut *shared.state();
    let granted = match value("grant_type").as_str() {
        "authorization_code" if !value("code_verifier").is_empty() => {
            grants.exchange(&value("code"))
        }
        "refresh_token" => grants.renew(&refresh_token(request, &form)),
        "urn:ietf:params:oauth:grant-type:device_code" => match codes.ask(&value("device_code")) {
            Ok(scope) => Some(grants.grant(&scope)),
            Err(answer) => return refused(answer.error()),
        },
        _ => None,
    };
    granted.map_or_else(|| refused("invalid_grant"), ok)
}

/// Returns the value of a name in a form or a query, as far as these need decoding.
fn form_value(form: &str, name: &str) -> Option<String> {
    let pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
    Some(decoded(value))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap_or_default();
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
                rest = after;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

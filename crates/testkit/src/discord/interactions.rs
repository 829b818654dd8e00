//! Commands and buttons: they are noticed within three seconds, once, and answered within a quarter of an hour.

use std::time::Duration;

use serde_json::{Value, json};

use super::messages;
use super::rest::{Answered, Call, Refusal, check_fields};
use super::world::{APPLICATION_ID, World, bot};

const NOTICE_MAX: Duration = Duration::from_secs(3);
const LOADING: u64 = 1 << 7;
const EPHEMERAL: u64 = 1 << 6;

fn unknown() -> Refusal {
    Refusal::new(404, 10062, "Unknown interaction")
}

pub(super) fn callback(world: &mut World, id: &str, token: &str, call: &Call) -> Answered {
    let body = &call.body;
    check_fields(body, &["type", "data"])?;
    let state = world.interactions.get(token).filter(|state| state.id == id);
    let state = state.filter(|state| state.made.elapsed() < NOTICE_MAX || state.answered.is_some());
    let state = state.ok_or_else(unknown)?;
    if state.answered.is_some() {
        return Err(Refusal::new(
            400,
            40060,
            "Interaction has already been acknowledged.",
        ));
    }
    let kind = body["type"].as_u64().unwrap_or(0);
    if ![4, 5, 6, 7].contains(&kind) {
        return Err(Refusal::field(
            "type",
            "BASE_TYPE_CHOICES",
            "Value must be one of {4, 5, 6, 7}.",
        ));
    }
    let channel = state.channel.clone();
    let answer = (kind == 5 || kind == 4).then(|| {
        let flags = if kind == 5 { LOADING } else { 0 };
        let content = json!({"content": body["data"]["content"].as_str().unwrap_or_default(), "flags": flags, "type": 20, "webhook_id": APPLICATION_ID, "application_id": APPLICATION_ID});
        let message = world.put(&channel, &bot(), &content);
        message["id"].as_str().unwrap_or_default().to_owned()
    });
    if let Some(state) = world.interactions.get_mut(token) {
        state.answered = Some(kind);
        state.answer = answer;
    }
    if matches!(call.parameter("with_response"), Some("1" | "true")) {
        return Ok(json!({"interaction": {"id": id, "type": 3}}));
    }
    Ok(Value::Null)
}

pub(super) fn webhook(
    world: &mut World,
    method: &str,
    token: &str,
    rest: &[&str],
    call: &Call,
) -> Answered {
    let state = world
        .interactions
        .get(token)
        .filter(|state| state.answered.is_some());
    let state = state.ok_or_else(|| Refusal::new(404, 10015, "Unknown Webhook"))?;
    let channel = state.channel.clone();
    match (method, rest) {
        ("POST", []) => {
            let content = messages::content(world, &channel, call, &call.body)?;
            if content["flags"].as_u64().unwrap_or(0) & EPHEMERAL != 0 {
                let text = content["content"].as_str().unwrap_or_default().to_owned();
                if let Some(state) = world.interactions.get_mut(token) {
                    state.whispers.push(text);
                }
                return Ok(world.unseen(&channel, &bot(), &content));
            }
            Ok(world.put(&channel, &bot(), &content))
        }
        ("PATCH", ["messages", "@original"]) => {
            let id = state
                .answer
                .clone()
                .ok_or_else(|| Refusal::new(404, 10008, "Unknown Message"))?;
            let content = messages::content(world, &channel, call, &call.body)?;
            messages::apply(world, &channel, &id, &content, true, !call.files.is_empty());
            if let Some(message) = world.message_mut(&channel, &id) {
                message["flags"] = 0.into();
            }
            world.message(&channel, &id).cloned().ok_or_else(unknown)
        }
        ("DELETE", ["messages", "@original"]) => {
            let id = state
                .answer
                .clone()
                .ok_or_else(|| Refusal::new(404, 10008, "Unknown Message"))?;
            if let Some(state) = world.interactions.get_mut(token) {
                state.answer = None;
            }
            messages::delete(world, &channel, &id)
        }
        ("GET", ["messages", "@original"]) => {
            let id = state.answer.clone().unwrap_or_default();
            messages::get(world, &channel, &id)
        }
        _ => Err(Refusal::new(405, 0, "405: Method Not Allowed")),
    }
}

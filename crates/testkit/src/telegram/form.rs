//! The parameters of a call, in any of the three ways that clients send them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::server::Request;

/// What a call was given.
#[derive(Debug, Clone, Default)]
pub(super) struct Form {
    pub(super) fields: Map<String, Value>,
    /// Uploaded files, by the name of their part.
    pub(super) files: BTreeMap<String, Upload>,
}

#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn read(request: &Request) -> Result<Form, String> {
    let content_type = request.header("content-type").unwrap_or_default();
    let mut form = Form::default();
    if let Some(query) = request.path.split_once('?').map(|(_, query)| query) {
        form.fields.extend(pairs(query));
    }
    if content_type.starts_with("application/json") {
        match &request.json {
            Value::Object(fields) => form.fields.extend(fields.clone()),
            _ => return Err("can't parse JSON object".to_owned()),
        }
    } else if content_type.starts_with("application/x-www-form-urlencoded") {
        form.fields
            .extend(pairs(&String::from_utf8_lossy(&request.body)));
    } else if let Some(boundary) = content_type.split("boundary=").nth(1) {
        parts(&request.body, boundary.trim_matches('"'), &mut form)?;
    }
    Ok(form)
}

fn pairs(text: &str) -> impl Iterator<Item = (String, Value)> {
    form_urlencoded::parse(text.as_bytes())
        .map(|(key, value)| (key.into_owned(), value_of(&value)))
        .collect::<Vec<_>>()
        .into_iter()
}

/// Everything but texts comes as JSON in such forms. A text that looks like a number stays one where it counts: see `text_of`.
fn value_of(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_))) => {
            value
        }
        _ => Value::String(text.to_owned()),
    }
}

fn parts(body: &[u8], boundary: &str, form: &mut Form) -> Result<(), String> {
    let mark = format!("--{boundary}").into_bytes();
    let mut rest = body;
    while let Some(at) = find(rest, &mark) {
        rest = &rest[at + mark.len()..];
        if rest.starts_with(b"--") {
            return Ok(());
        }
        let end = find(rest, &mark).ok_or("a part without an end")?;
        let part = &rest[..end];
        let head_end = find(part, b"\r\n\r\n").ok_or("a part without a head")?;
        let head = String::from_utf8_lossy(&part[..head_end]).into_owned();
        let content = part[head_end + 4..]
            .strip_suffix(b"\r\n")
            .ok_or("a part that is cut off")?;
        let name = parameter(&head, "name").ok_or("a part without a name")?;
        match parameter(&head, "filename") {
            Some(file) => {
                let bytes = content.to_vec();
                form.files.insert(name, Upload { name: file, bytes });
            }
            None => {
                let text = String::from_utf8_lossy(content);
                form.fields.insert(name, value_of(&text));
            }
        }
    }
    Err("a form without an end".to_owned())
}

fn parameter(head: &str, name: &str) -> Option<String> {
    let mark = format!("; {name}=\"");
    let rest = &head[head.find(&mark)? + mark.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

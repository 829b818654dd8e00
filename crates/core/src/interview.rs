//! An elicitation asked field by field, in lines: whatever surface shows them and reads the answers.

use crate::elicitation::{Elicitation, Field, FieldKind, FieldOption, Response, Wanted};
use crate::id::ElicitationId;
use crate::text::escaped;
use serde_json::{Map, Value};

/// An elicitation that is being answered.
#[derive(Debug)]
pub struct Interview {
    elicitation: Elicitation,
    values: Map<String, Value>,
    /// How many fields are done.
    done: usize,
    /// What is sent to leave a field out.
    nothing: &'static str,
}

/// What became of a line.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// It is not an answer, for this reason; the same is asked again.
    Refused(String),
    /// There is more to ask.
    Next,
    Done(Response),
}

impl Interview {
    pub fn new(elicitation: Elicitation) -> Self {
        Self {
            elicitation,
            values: Map::new(),
            done: 0,
            nothing: "empty",
        }
    }

    /// One whose answers come as messages, which are never empty: `/skip` stands for nothing.
    pub fn in_chat(elicitation: Elicitation) -> Self {
        Self {
            nothing: "/skip",
            ..Self::new(elicitation)
        }
    }

    /// Which field is asked for, from 0.
    pub fn step(&self) -> usize {
        self.done
    }

    /// The answers that are known beforehand: what each is called, and the line that gives it.
    pub fn options(&self) -> Vec<(String, String)> {
        let Some(field) = self.field() else {
            return yes_no();
        };
        let mut known = match &field.kind {
            FieldKind::Choice { options, .. } | FieldKind::Suggestions { options } => {
                let labels = options.iter().map(|option| escaped(option.label()));
                let labels = labels.map(|label| label.to_string());
                labels
                    .zip((1..).map(|number: usize| number.to_string()))
                    .collect()
            }
            FieldKind::Boolean { .. } => yes_no(),
            _ => return Vec::new(),
        };
        if !field.is_required {
            known.push(("Leave out".to_owned(), String::new()));
        }
        known
    }

    pub fn id(&self) -> &ElicitationId {
        &self.elicitation.id
    }

    pub fn elicitation(&self) -> &Elicitation {
        &self.elicitation
    }

    /// Says who asks what. What cannot be seen is spelt out, so that nothing can hide.
    pub fn introduction(&self) -> Vec<String> {
        let asker = escaped(&self.elicitation.asker);
        let mut lines = vec![format!(
            "  {asker} asks: {}",
            escaped(&self.elicitation.message)
        )];
        match &self.elicitation.wanted {
            Wanted::Visit { url } => {
                lines.push(format!("  it wants you to open {}", escaped(url)));
                if !url.starts_with("https://") {
                    lines.push("  the address is not encrypted (https)".to_owned());
                }
            }
            Wanted::Form { fields } if fields.iter().any(Field::seems_secret) => {
                lines.push(
                    "  this looks like a secret; it goes to the asker as you type it, so decline unless you trust it"
                        .to_owned(),
                );
            }
            Wanted::Form { .. } => {}
        }
        lines
    }

    /// Returns the prompt for the next line.
    pub fn prompt(&self) -> String {
        match self.field() {
            Some(field) => field_prompt(field, self.nothing),
            None => "  go on? [y]es, once you have opened it; [N]o: ".to_owned(),
        }
    }

    pub fn hear(&mut self, line: &str) -> Heard {
        let Some(field) = self.field() else {
            return Heard::Done(match line.trim().to_lowercase().as_str() {
                "y" | "yes" => self.accepted(),
                _ => Response::Declined { reason: None },
            });
        };
        let read = field.read(line);
        let name = field.name.clone();
        match read {
            Err(reason) => return Heard::Refused(reason),
            Ok(Some(value)) => _ = self.values.insert(name, value),
            Ok(None) => {}
        }
        self.done += 1;
        match self.field() {
            Some(_) => Heard::Next,
            None => Heard::Done(self.accepted()),
        }
    }

    fn accepted(&mut self) -> Response {
        Response::Accepted {
            values: std::mem::take(&mut self.values),
        }
    }

    fn field(&self) -> Option<&Field> {
        match &self.elicitation.wanted {
            Wanted::Form { fields } => fields.get(self.done),
            Wanted::Visit { .. } => None,
        }
    }
}

fn yes_no() -> Vec<(String, String)> {
    [("Yes", "yes"), ("No", "no")]
        .map(|(label, line)| (label.to_owned(), line.to_owned()))
        .into()
}

fn field_prompt(field: &Field, nothing: &str) -> String {
    let mut prompt = format!("  {}", escaped(field.label()));
    if let Some(description) = &field.description {
        prompt.push_str(&format!(" ({})", escaped(description)));
    }
    match &field.kind {
        FieldKind::Choice { options, .. } => prompt.push_str(&numbered(options)),
        FieldKind::Suggestions { options } => {
            prompt.push_str(&format!(
                "{}\n  a number, or your own words",
                numbered(options)
            ));
        }
        FieldKind::Choices { options, .. } => {
            prompt.push_str(&format!("{}\n  several with commas", numbered(options)));
        }
        FieldKind::Boolean { .. } => prompt.push_str(" [yes/no]"),
        FieldKind::Text {
            format: Some(format),
            ..
        } => prompt.push_str(&format!(" [such as {}]", format.example())),
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Integer { .. } => {}
    }
    match field.default() {
        Some(default) => {
            let shown = escaped(&shown(&default, options(field)));
            prompt.push_str(&format!(" [{nothing}: {shown}]"));
        }
        None if !field.is_required => prompt.push_str(&format!(" [{nothing}: leave out]")),
        None => {}
    }
    prompt.push_str(": ");
    prompt
}

fn numbered(options: &[FieldOption]) -> String {
    let line = |(position, option): (usize, &FieldOption)| {
        format!("\n    {}. {}", position + 1, escaped(option.label()))
    };
    options.iter().enumerate().map(line).collect()
}

fn options(field: &Field) -> &[FieldOption] {
    match &field.kind {
        FieldKind::Choice { options, .. } | FieldKind::Choices { options, .. } => options,
        _ => &[],
    }
}

/// A value as a person would write it: a choice by its title.
fn shown(value: &Value, options: &[FieldOption]) -> String {
    match value {
        Value::String(text) => {
            let option = options.iter().find(|option| option.value == *text);
            option.map_or(text.as_str(), FieldOption::label).to_owned()
        }
        Value::Array(values) => {
            let values = values.iter().map(|value| shown(value, options));
            values.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn interview(wanted: Value) -> Interview {
        Interview::new(Elicitation {
            id: "q1".into(),
            call: "c".into(),
            tool: "t".into(),
            asker: "the server".into(),
            message: "Who \u{1b}[2Kare you?".into(),
            wanted: serde_json::from_value(wanted).unwrap(),
            expires_in_ms: 1_000,
        })
    }

    fn field(name: &str, kind: Value) -> Value {
        let mut field =
            json!({ "name": name, "title": null, "description": null, "is_required": true });
        let kind = kind.as_object().unwrap().clone();
        field.as_object_mut().unwrap().extend(kind);
        field
    }

    #[test]
    fn fields_are_asked_one_by_one_and_again_until_they_fit() {
        let mut interview = interview(json!({ "kind": "form", "fields": [
            field("age", json!({ "type": "integer", "min": 0 })),
            field("colour", json!({ "type": "choice", "options": [{ "value": "r", "title": "Red" }], "default": "r" })),
        ] }));
        assert!(!interview.introduction().concat().contains('\u{1b}'));
        assert_eq!(interview.prompt(), "  age: ");
        assert!(matches!(interview.hear("old"), Heard::Refused(_)));
        assert_eq!(interview.hear("7"), Heard::Next);
        assert_eq!(interview.prompt(), "  colour\n    1. Red [empty: Red]: ");
        let Heard::Done(Response::Accepted { values }) = interview.hear("") else {
            panic!("not done");
        };
        assert_eq!(json!(values), json!({ "age": 7, "colour": "r" }));
    }

    #[test]
    fn a_suggestion_is_taken_by_number_or_by_words_and_so_is_anything_else() {
        let heard = |line: &str| {
            let options = json!([{ "value": "Red" }, { "value": "Blue" }]);
            let kind = json!({ "type": "suggestions", "options": options });
            let form = json!({ "kind": "form", "fields": [field("colour", kind)] });
            let mut interview = interview(form);
            assert!(
                interview
                    .prompt()
                    .contains("1. Red\n    2. Blue\n  a number")
            );
            match interview.hear(line) {
                Heard::Done(Response::Accepted { values }) => values["colour"].clone(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(heard("2"), "Blue");
        assert_eq!(heard("red"), "Red");
        assert_eq!(heard("a bit of both"), "a bit of both");
    }

    #[test]
    fn in_a_chat_choices_are_offered_and_nothing_has_a_name() {
        let options = json!([{ "value": "r", "title": "Red" }]);
        let mut colour = field("colour", json!({ "type": "choice", "options": options }));
        colour["is_required"] = json!(false);
        let sure = field("sure", json!({ "type": "boolean" }));
        let form = json!({ "kind": "form", "fields": [colour, sure] });
        let elicitation = interview(form).elicitation;
        let mut interview = Interview::in_chat(elicitation);
        assert!(interview.prompt().ends_with("[/skip: leave out]: "));
        let lines = |interview: &Interview| {
            let known = interview.options().into_iter();
            known
                .map(|(label, line)| format!("{label}={line}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&interview), ["Red=1", "Leave out="]);
        assert_eq!(interview.hear(""), Heard::Next);
        assert_eq!(
            (interview.step(), lines(&interview)),
            (1, vec!["Yes=yes".into(), "No=no".into()])
        );
    }

    #[test]
    fn an_address_needs_a_clear_yes_and_is_shown_as_it_is() {
        let visit = || interview(json!({ "kind": "visit", "url": "http://example.org/\u{202e}x" }));
        let shown = visit().introduction().join("\n");
        assert!(shown.contains("http://example.org/<U+202E>x") && shown.contains("not encrypted"));
        let declined = Heard::Done(Response::Declined { reason: None });
        assert_eq!(visit().hear("ok?"), declined);
        assert!(matches!(
            visit().hear("y"),
            Heard::Done(Response::Accepted { .. })
        ));
    }

    #[test]
    fn a_secret_is_warned_about() {
        let interview = interview(
            json!({ "kind": "form", "fields": [field("password", json!({ "type": "text" }))] }),
        );
        assert!(interview.introduction().concat().contains("secret"));
    }
}

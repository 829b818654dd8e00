//! Telegram's own reader of MarkdownV2, as a program beside the test.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::peers;

/// Reads one text after the other, each a line of JSON, and answers each with a line.
const PROGRAM: &str = r#"
import json, sys, tdjson
ask = lambda question: json.loads(tdjson.td_execute(json.dumps(question).encode()))
ask({"@type": "setLogVerbosityLevel", "new_verbosity_level": 0})
mode = {"@type": "textParseModeMarkdown", "version": 2}
for line in sys.stdin:
    answer = ask({"@type": "parseTextEntities", "text": json.loads(line), "parse_mode": mode})
    print(json.dumps(answer), flush=True)
"#;

/// TDLib, which is what Telegram's servers and apps are made of.
pub struct TdLib {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What TDLib found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedText {
    pub text: String,
    /// What kind, from where, how long, by UTF-16, and what belongs to it: an address, a language.
    pub entities: Vec<(String, u64, u64, String)>,
}

impl TdLib {
    /// Starts it; `None` where it is not installed.
    pub fn start() -> Option<Self> {
        let python = peers::installed("tdlib")?.join("bin/python");
        let mut process = peers::program(&python.to_string_lossy())
            .args(["-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Some(Self {
            process,
            questions,
            answers,
        })
    }

    /// Reads a text as MarkdownV2; the error is in Telegram's own words.
    pub fn parse(&mut self, text: &str) -> Result<ParsedText, String> {
        writeln!(self.questions, "{}", json!(text)).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        match answer["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(ParsedText {
                text: answer["text"].as_str().unwrap().to_owned(),
                entities: answer["entities"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(entity)
                    .collect(),
            }),
        }
    }
}

fn entity(entity: &Value) -> (String, u64, u64, String) {
    let kind = &entity["type"];
    let name = kind["@type"].as_str().unwrap();
    let detail = kind["url"].as_str().or(kind["language"].as_str());
    (
        name.trim_start_matches("textEntityType").to_owned(),
        entity["offset"].as_u64().unwrap(),
        entity["length"].as_u64().unwrap(),
        detail.unwrap_or_default().to_owned(),
    )
}

impl Drop for TdLib {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! What a turn does between its words, as a chat is shown it: a line for each call, or only that it is still at work.

use std::collections::VecDeque;
use std::time::Duration;

use hermes_core::{CallId, ResultStatus, redact::redact, text, wording};
use serde_json::Value;

/// Lines that are shown; older ones are counted.
const LINES_MAX: usize = 20;
/// Of what a call is given, where little is shown.
const PREVIEW_CHARS_MAX: usize = 40;
/// Why a call failed, at most.
const REASON_CHARS_MAX: usize = 80;

/// How much of the calls a chat is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShowsCalls {
    #[default]
    Nothing,
    /// A line where another tool is used than before.
    New,
    /// A line for each call.
    All,
    /// The same, with more of what each is given.
    Verbose,
}

impl ShowsCalls {
    /// As settings write it; `log` shows nothing in chats, and the log has all calls anyway.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "off" | "false" | "log" => Self::Nothing,
            "new" => Self::New,
            "all" | "true" | "on" => Self::All,
            "verbose" => Self::Verbose,
            _ => return None,
        })
    }
}

/// The calls of a turn since its last words.
#[derive(Debug, Default)]
pub(super) struct Work {
    lines: VecDeque<Line>,
    left_out: usize,
    /// How long it has been silent otherwise, where only that is told.
    note: Option<String>,
}

#[derive(Debug)]
struct Line {
    call: CallId,
    tool: String,
    words: String,
    times: usize,
    failed: Option<String>,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.note.is_none()
    }

    pub(super) fn started(
        &mut self,
        shows: ShowsCalls,
        call: CallId,
        tool: String,
        arguments: &Value,
    ) {
        if let Some(last) = self.lines.back_mut()
            && shows == ShowsCalls::New
            && last.tool == tool
        {
            (last.call, last.times) = (call, last.times + 1);
            return;
        }
        let words = redact(&wording::brief(arguments));
        let words = match shows {
            ShowsCalls::Verbose => words,
            _ => text::shorten(&words, PREVIEW_CHARS_MAX),
        };
        self.lines.push_back(Line {
            call,
            tool,
            words,
            times: 1,
            failed: None,
        });
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.left_out += 1;
        }
    }

    /// Returns whether there is something new to show.
    pub(super) fn finished(&mut self, call: &CallId, status: ResultStatus, result: &str) -> bool {
        let Some(line) = self.lines.iter_mut().find(|line| line.call == *call) else {
            return false;
        };
        if status == ResultStatus::Ok {
            return false;
        }
        let reason = redact(&wording::reason(result).join(" "));
        line.failed = Some(text::shorten(&reason, REASON_CHARS_MAX));
        true
    }

    /// Says how long it has been at work, and with what, instead of what it said of that before.
    pub(super) fn note(&mut self, elapsed: Duration, steps: u64, tool: Option<&str>) {
        let minutes = elapsed.as_secs() / 60;
        let with = tool.map_or_else(String::new, |tool| format!(", `{}` runs", plain(tool)));
        let steps = match steps {
            0 => String::new(),
            1 => ", 1 step done".to_owned(),
            steps => format!(", {steps} steps done"),
        };
        self.note = Some(format!("⏳ Still at work: {minutes} min{steps}{with}."));
    }

    pub(super) fn markdown(&self) -> String {
        let more = match self.left_out {
            0 => None,
            1 => Some("_1 call before_".to_owned()),
            many => Some(format!("_{many} calls before_")),
        };
        let lines = self.lines.iter().map(Line::markdown);
        let all: Vec<String> = more
            .into_iter()
            .chain(lines)
            .chain(self.note.clone())
            .collect();
        // Two spaces: a line of its own where markdown joins lines.
        all.join("  \n")
    }
}

impl Line {
    fn markdown(&self) -> String {
        let mut line = format!("⚙️ **{}**", plain(&self.tool).replace('_', "\\_"));
        let words = plain(&self.words);
        if !words.trim().is_empty() {
            line += &format!(" `{}`", words.trim());
        }
        if self.times > 1 {
            line += &format!(" ×{}", self.times);
        }
        if let Some(reason) = &self.failed {
            line += &match plain(reason).trim() {
                "" => " ✗".to_owned(),
                reason => format!(" ✗ `{reason}`"),
            };
        }
        line
    }
}

/// Text that ends no code and begins no line.
fn plain(words: &str) -> String {
    let words = text::escaped(words).replace('`', "'");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> CallId {
        CallId::from(id)
    }

    #[test]
    fn each_call_has_a_line_and_a_failure_says_why() {
        let mut work = Work::default();
        assert!(work.is_empty());
        let ls = json!({"command": "ls `pwd`\n# and more"});
        work.started(ShowsCalls::All, call("1"), "terminal".into(), &ls);
        work.started(ShowsCalls::All, call("2"), "read_file".into(), &json!({}));
        assert!(!work.finished(&call("1"), ResultStatus::Ok, "fine"));
        assert!(work.finished(&call("2"), ResultStatus::Failed, "no such file\n"));
        assert_eq!(
            work.markdown(),
            "⚙️ **terminal** `ls 'pwd'⏎# and more`  \n⚙️ **read\\_file** ✗ `no such file`"
        );
    }

    #[test]
    fn the_same_tool_again_is_counted_where_only_new_ones_are_shown() {
        let mut work = Work::default();
        for id in ["1", "2", "3"] {
            let path = json!({"path": id});
            work.started(ShowsCalls::New, call(id), "read_file".into(), &path);
        }
        assert_eq!(work.markdown(), "⚙️ **read\\_file** `1` ×3");
    }

    #[test]
    fn long_work_is_counted_and_keys_are_not_shown() {
        let mut work = Work::default();
        for id in 0..LINES_MAX + 2 {
            let key = json!({"command": "OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwx1234 run"});
            let id = call(&id.to_string());
            work.started(ShowsCalls::Verbose, id, "terminal".into(), &key);
        }
        let shown = work.markdown();
        assert!(shown.starts_with("_2 calls before_"), "{shown}");
        assert!(!shown.contains("abcdefgh"), "{shown}");
        work.note(Duration::from_secs(370), 4, Some("terminal"));
        assert!(
            work.markdown()
                .ends_with("⏳ Still at work: 6 min, 4 steps done, `terminal` runs.")
        );
    }
}

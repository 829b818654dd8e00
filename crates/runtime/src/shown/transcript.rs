//! A conversation as text: for the terminal, and as Markdown.

use hermes_core::text::shorten;
use hermes_core::{
    Arguments, Media, Message, Part, ResultStatus, Role, SessionRecord, ToolCall, ToolResult,
    TranscriptLine, wording,
};

use crate::layout::{count, one_line, printable};
use crate::style::Style;

/// Enough of a result to see what came of a call.
const RESULT_CHARS_MAX: usize = 120;

/// The conversation for a person at a terminal: every call and every result in one line.
pub fn readable(record: &SessionRecord, lines: &[TranscriptLine], style: Style) -> String {
    told(record, lines, style, |part| part_text(part, style))
}

/// The same with every result in full, for a pager.
pub fn whole(record: &SessionRecord, lines: &[TranscriptLine]) -> String {
    told(record, lines, Style::PLAIN, |part| match part {
        Part::ToolResult(result) => {
            let text = printable(result.text.trim_end());
            let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
            Some(lines.join("\n"))
        }
        part => part_text(part, Style::PLAIN),
    })
}

fn told(
    record: &SessionRecord,
    lines: &[TranscriptLine],
    style: Style,
    told_part: impl Fn(&Part) -> Option<String>,
) -> String {
    let mut text = format!("{}\n", style.bold(name(record)));
    text.push_str(&style.dim(facts(record)));
    text.push('\n');
    let mut speaker = None;
    for line in lines {
        let role = line.message.role;
        if role != Role::Tool && speaker != Some(role) {
            let heading = format!("── {} · {}", role_name(role), line.at.to_text());
            text.push_str(&format!("\n{}\n", style.cyan(heading)));
            speaker = Some(role);
        }
        for part in &line.message.parts {
            if let Some(shown) = told_part(part) {
                text.push_str(&shown);
                text.push('\n');
            }
        }
    }
    if record.has_open_turn {
        let note = "the last turn is still running or was cut short; `hermes sessions recover`";
        text.push_str(&format!("\n{}\n", style.yellow(note)));
    }
    text
}

/// The conversation as a Markdown document: results in full.
pub fn markdown(record: &SessionRecord, lines: &[TranscriptLine]) -> String {
    let mut text = format!("# {}\n\n{}\n", name(record), facts(record));
    for line in lines {
        if line.message.role != Role::Tool {
            let heading = format!(
                "## {} · {}",
                role_name(line.message.role),
                line.at.to_text()
            );
            text.push_str(&format!("\n{heading}\n"));
        }
        for block in markdown_blocks(&line.message) {
            text.push_str(&format!("\n{block}\n"));
        }
    }
    text
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "you",
        Role::Assistant => "hermes",
        Role::Tool => "tool",
    }
}

fn name(record: &SessionRecord) -> String {
    one_line(record.title.as_deref().unwrap_or(&record.preview))
}

fn facts(record: &SessionRecord) -> String {
    let mut facts = vec![
        record.id.to_string(),
        record.model.to_string(),
        record.created.to_text(),
        count(record.messages, "message"),
        count(record.usage.total(), "token"),
    ];
    facts.extend(record.cwd.as_ref().map(|cwd| cwd.display().to_string()));
    facts.join(" · ")
}

/// What a person sees of a part; thoughts are left out.
fn part_text(part: &Part, style: Style) -> Option<String> {
    match part {
        Part::Text { text } => Some(printable(text.trim_end())).filter(|text| !text.is_empty()),
        Part::Image(media) => Some(format!("[image, {}]", media.mime)),
        Part::Audio(media) => Some(format!("[audio, {}]", media.mime)),
        Part::Reasoning(_) => None,
        Part::ToolCall(call) => Some(format!(
            "  {} {}",
            style.cyan(format!("• {}", one_line(&call.name))),
            style.dim(one_line(&arguments(call)))
        )),
        Part::ToolResult(result) => Some(format!("    {}", result_line(result, style))),
    }
}

fn arguments(call: &ToolCall) -> String {
    match &call.arguments {
        Arguments::Json(value) => wording::brief(value),
        Arguments::Malformed(text) => shorten(text, RESULT_CHARS_MAX),
    }
}

fn result_line(result: &ToolResult, style: Style) -> String {
    let mut text = shorten(&one_line(&result.text), RESULT_CHARS_MAX);
    if let Some(pictures) = wording::pictures(result.images.len()) {
        text.push_str(&format!(" [{pictures}]"));
    }
    match result.status {
        ResultStatus::Ok => style.dim(format!("✓ {text}")),
        ResultStatus::Failed => style.red(format!("✗ {text}")),
        ResultStatus::NotRun => style.yellow(format!("– {text}")),
        ResultStatus::OutcomeUnknown => style.yellow(format!("? {text}")),
    }
}

fn markdown_blocks(message: &Message) -> Vec<String> {
    let block = |part: &Part| match part {
        Part::Text { text } => Some(text.trim_end().to_owned()).filter(|text| !text.is_empty()),
        Part::Image(media) => Some(named(media)),
        Part::Audio(media) => Some(format!("*(audio, {})*", media.mime)),
        Part::Reasoning(_) => None,
        Part::ToolCall(call) => Some(format!("**{}** `{}`", call.name, arguments(call))),
        Part::ToolResult(result) => {
            let images = result.images.iter().map(named);
            let blocks: Vec<String> = std::iter::once(fenced(&result.text))
                .chain(images)
                .collect();
            Some(blocks.join("\n\n"))
        }
    };
    message.parts.iter().filter_map(block).collect()
}

fn named(image: &Media) -> String {
    format!("*(image, {})*", image.mime)
}

/// Puts text between fences longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start().bytes().take_while(|b| *b == b'`').count())
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_the_fences_inside() {
        assert_eq!(fenced("plain\n"), "```\nplain\n```");
        assert_eq!(fenced("```sh\nls\n```"), "````\n```sh\nls\n```\n````");
    }
}

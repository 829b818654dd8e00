//! What waits for the person's answer in plain lines: a call for their consent, an elicitation for its fields. Owns which is
//! asked first and what a line says to it; knows nothing of what else a line may mean.

use std::collections::VecDeque;

use hermes_core::command::{self, ParsedLine, Surface, Verb};
use hermes_core::exact::{exact, parts};
use hermes_core::interview::{Heard, Interview};
use hermes_core::skill::SkillNames;
use hermes_core::text::escaped;
use hermes_core::{
    ApprovalAnswer, ApprovalRequest, Event, Response, SessionHandle, Verdict, wording,
};

use crate::failure::Outcome;
use crate::keyboard::Typed;
use crate::output::{note, print};
use crate::style::Style;

/// Lines of a change that are shown before a question: more would push it off the screen. The rest is a command away.
const SHOWN_CHANGE_LINES: usize = 60;

#[derive(Debug)]
pub(super) struct Asking {
    question: Option<Waiting>,
    /// Oldest first; the first one goes on.
    interviews: VecDeque<Interview>,
    style: Style,
    /// Standard output has events for a program, so that people are asked on standard error.
    is_beside_events: bool,
}

/// A question, and how many parts of what would run were shown.
#[derive(Debug)]
struct Waiting {
    question: ApprovalRequest,
    parts_shown: usize,
}

/// What a line says to a question.
#[derive(Debug, PartialEq)]
enum Said {
    /// Nothing: it is a command.
    Nothing,
    ReadOn,
    Answer(ApprovalAnswer),
}

impl Asking {
    pub(super) fn new(style: Style, is_beside_events: bool) -> Self {
        Self {
            question: None,
            interviews: VecDeque::new(),
            style,
            is_beside_events,
        }
    }

    /// Keeps in mind what an event asks for, and asks it unless something else is being asked.
    pub(super) fn heed(&mut self, event: Event) -> Outcome<()> {
        match event {
            Event::ApprovalRequested(asked) => {
                self.show_question(&asked)?;
                self.question = Some(Waiting {
                    question: asked,
                    parts_shown: 1,
                });
            }
            Event::ApprovalClosed { approval, how } => {
                self.question
                    .take_if(|waiting| waiting.question.approval == approval);
                if let Some(words) = wording::approval_closed(how) {
                    note(&self.style.yellow(format!("\n  {words}")));
                }
            }
            Event::ElicitationRequested(elicitation) => {
                self.interviews.push_back(Interview::new(elicitation));
                if self.interviews.len() == 1 {
                    self.ask_next()?;
                }
            }
            Event::ElicitationClosed { elicitation } => {
                return self.close_interviews(|interview| *interview.id() == elicitation);
            }
            Event::CallFinished { call, .. } => {
                self.question = None;
                return self.close_interviews(|interview| interview.elicitation().call == call);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a line for the interview that goes on. Returns it if there is none, or if it is a command.
    pub(super) async fn hear(
        &mut self,
        session: &dyn SessionHandle,
        typed: Typed,
    ) -> Outcome<Option<Typed>> {
        let (Typed::Text(line), Some(interview)) = (&typed, self.interviews.front_mut()) else {
            return Ok(Some(typed));
        };
        let heard = match command::read(line, Surface::Terminal, &SkillNames::NONE) {
            ParsedLine::Words(_)
            | ParsedLine::Skills { .. }
            | ParsedLine::Unknown { .. }
            | ParsedLine::Ambiguous { .. } => interview.hear(line),
            ParsedLine::Command { command, .. } if command.verb == Verb::Decline => {
                Heard::Done(Response::Declined { reason: None })
            }
            ParsedLine::Command { .. } => return Ok(Some(typed)),
        };
        let (id, prompt) = (interview.id().clone(), interview.prompt());
        match heard {
            Heard::Next => self.ask_for(&prompt)?,
            Heard::Refused(reason) => {
                note(&self.style.yellow(format!("  {}", escaped(&reason))));
                self.ask_for(&prompt)?;
            }
            Heard::Done(response) => {
                self.interviews.pop_front();
                session.respond(id, response).await;
                self.ask_next()?;
            }
        }
        Ok(None)
    }

    /// Takes a line for the question that waits. Says whether it was an answer.
    pub(super) async fn answered(&mut self, session: &dyn SessionHandle, line: &str) -> bool {
        let Some(waiting) = &self.question else {
            return false;
        };
        let (asked, parts_shown) = (&waiting.question, waiting.parts_shown);
        let has_more = parts_shown < parts(&exact(&asked.what)).len();
        match said(line, asked, has_more) {
            Said::Nothing => return false,
            Said::ReadOn => self.show_more(),
            Said::Answer(answer) if has_more && answer.verdict != Verdict::Deny => {
                note(
                    &self
                        .style
                        .yellow("  not all of it was shown yet: Enter shows more"),
                );
            }
            Said::Answer(answer) => {
                session.answer(asked.approval.clone(), answer).await;
                self.question = None;
            }
        }
        true
    }

    /// Shows the next part of what would run, and asks again.
    fn show_more(&mut self) {
        let Some(waiting) = &mut self.question else {
            return;
        };
        let what = exact(&waiting.question.what);
        let parts = parts(&what);
        let part = parts.get(waiting.parts_shown).copied().unwrap_or_default();
        waiting.parts_shown += 1;
        let shown = waiting.parts_shown;
        note(&self.style.yellow(format!("  {part}")));
        note(
            &self
                .style
                .yellow(format!("  part {shown} of {}", parts.len())),
        );
        let prompt = prompt(&waiting.question, shown < parts.len());
        // Who closed standard output is noticed where the next event is shown.
        let _ = self.ask_for(&prompt);
    }

    /// Forgets interviews that are over. The person may have been in the middle of one.
    fn close_interviews(&mut self, is_over: impl Fn(&Interview) -> bool) -> Outcome<()> {
        let was_asking = self.interviews.front().is_some_and(&is_over);
        self.interviews.retain(|interview| !is_over(interview));
        if was_asking {
            note(
                &self
                    .style
                    .yellow("\n  too late: this needs no answer any more"),
            );
            self.ask_next()?;
        }
        Ok(())
    }

    fn ask_next(&self) -> Outcome<()> {
        let Some(interview) = self.interviews.front() else {
            return Ok(());
        };
        for line in interview.introduction() {
            note(&self.style.yellow(line));
        }
        note(&self.style.yellow("  (/decline does not answer)"));
        self.ask_for(&interview.prompt())
    }

    /// Shows exactly what would run: what cannot be seen is spelt out, so that nothing can hide.
    fn show_question(&self, question: &ApprovalRequest) -> Outcome<()> {
        let (tool, what) = (escaped(&question.tool), exact(&question.what));
        let (wants, reason) = (wording::wants(question), escaped(&question.reason));
        let parts = parts(&what);
        let yellow = |text: String| note(&self.style.yellow(text));
        yellow(format!("  {tool} {wants}: {}", parts[0]));
        if parts.len() > 1 {
            yellow(format!("  part 1 of {}", parts.len()));
        }
        if let Some(folder) = &question.folder {
            yellow(format!("  in {}", exact(&folder.to_string_lossy())));
        }
        yellow(format!("  {reason}"));
        self.show_change(question);
        for (number, pattern) in offered_patterns(question) {
            yellow(format!("    {number}  {}", exact(pattern)));
        }
        let code = question.code.shown();
        note(
            &self
                .style
                .dim(format!("  elsewhere: hermes approvals allow {code}")),
        );
        self.ask_for(&prompt(question, parts.len() > 1))
    }

    /// Shows the change that a question is about, as far as a person reads it in passing.
    fn show_change(&self, question: &ApprovalRequest) {
        let Some(diff) = &question.diff else {
            return;
        };
        let (lines, more) = wording::change_lines(diff, SHOWN_CHANGE_LINES);
        for line in lines {
            note(&format!("  {}", self.style.change_line(&line)));
        }
        if more > 0 {
            let more = format!(
                "  … {more} more lines: `hermes approvals show {}`",
                question.approval
            );
            note(&self.style.yellow(more));
        }
    }

    /// Shows what a line is wanted for; beside the events, when those are for a program.
    fn ask_for(&self, prompt: &str) -> Outcome<()> {
        if self.is_beside_events {
            note(prompt);
            Ok(())
        } else {
            print(prompt)
        }
    }
}

/// The patterns that a yes for longer may cover, from 1.
fn offered_patterns(question: &ApprovalRequest) -> impl Iterator<Item = (usize, &str)> {
    let lasts = |verdict: &Verdict| matches!(verdict, Verdict::Session | Verdict::Always);
    let is_offered = question.choices.iter().any(lasts);
    let patterns = question.patterns.iter().filter(move |_| is_offered);
    patterns
        .enumerate()
        .map(|(at, pattern)| (at + 1, pattern.as_str()))
}

/// What the person is asked to type.
fn prompt(question: &ApprovalRequest, has_more: bool) -> String {
    if has_more {
        return "  Enter shows more of it, then it can be allowed; [N]o: ".to_owned();
    }
    let offered = |verdict, words| {
        if question.choices.contains(&verdict) {
            words
        } else {
            ""
        }
    };
    let session = offered(Verdict::Session, " for the [s]ession,");
    let always = offered(Verdict::Always, " [a]lways,");
    let patterns = match offered_patterns(question).next() {
        Some(_) => " (s1, a1: the pattern 1)",
        None => "",
    };
    format!("  allow? [y]es,{session}{always}{patterns} [N]o, or n and why: ")
}

/// What a line says about a command that waits for consent. Other commands than `/decline` say nothing.
fn said(line: &str, question: &ApprovalRequest, has_more: bool) -> Said {
    match command::read(line, Surface::Terminal, &SkillNames::NONE) {
        ParsedLine::Words(words) if has_more && words.trim().is_empty() => Said::ReadOn,
        ParsedLine::Words(words) => Said::Answer(answer(words, question)),
        ParsedLine::Command { command, .. } if command.verb == Verb::Decline => {
            Said::Answer(Verdict::Deny.into())
        }
        _ => Said::Nothing,
    }
}

/// Anything but a clear yes is a no, and so is a yes to more than was offered.
fn answer(line: &str, question: &ApprovalRequest) -> ApprovalAnswer {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (word, rest) = (word.to_lowercase(), rest.trim());
    if matches!(word.as_str(), "n" | "no") && !rest.is_empty() {
        return ApprovalAnswer {
            words: Some(rest.to_owned()),
            ..Verdict::Deny.into()
        };
    }
    let digits = word.trim_start_matches(|c: char| !c.is_ascii_digit());
    let verdict = match &word[..word.len() - digits.len()] {
        "y" | "yes" => Verdict::Once,
        "s" | "session" => Verdict::Session,
        "a" | "always" => Verdict::Always,
        _ => Verdict::Deny,
    };
    let number = match digits {
        "" => rest,
        digits if rest.is_empty() => digits,
        _ => "?",
    };
    let pattern = offered_patterns(question).find(|(one, _)| one.to_string() == number);
    let pattern = pattern.map(|(_, pattern)| pattern.to_owned());
    let lasts = matches!(verdict, Verdict::Session | Verdict::Always);
    let is_clear = number.is_empty() || (lasts && pattern.is_some());
    if is_clear && question.choices.contains(&verdict) {
        ApprovalAnswer {
            pattern,
            ..verdict.into()
        }
    } else {
        Verdict::Deny.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(choices: &[Verdict]) -> ApprovalRequest {
        ApprovalRequest {
            approval: "a1".into(),
            code: hermes_core::ApprovalCode::default(),
            call: "c".into(),
            tool: "terminal".into(),
            what: "git push origin main".into(),
            diff: None,
            folder: None,
            reason: "uploads".into(),
            patterns: vec!["git push origin *".into(), "git push *".into()],
            choices: choices.to_vec(),
            expires_in_ms: 1,
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let question = question(&Verdict::ALL);
        let said = |line| answer(line, &question);
        assert_eq!(said("y"), Verdict::Once.into());
        assert_eq!(said("S"), Verdict::Session.into());
        for no in [
            "",
            "ok?",
            "no",
            "yes please",
            "s3",
            "s0",
            "y1",
            "s 1 2",
            "1",
            "s1 2",
        ] {
            assert_eq!(said(no), Verdict::Deny.into(), "{no}");
        }
        let few = super::tests::question(&[Verdict::Once, Verdict::Deny]);
        assert_eq!(answer("s", &few), Verdict::Deny.into());
        assert_eq!(answer("s1", &few), Verdict::Deny.into());
    }

    #[test]
    fn a_pattern_is_picked_by_its_number() {
        let question = question(&Verdict::ALL);
        for (line, verdict, pattern) in [
            ("s1", Verdict::Session, "git push origin *"),
            ("a 2", Verdict::Always, "git push *"),
        ] {
            let answer = answer(line, &question);
            assert_eq!(
                (answer.verdict, answer.pattern.as_deref()),
                (verdict, Some(pattern))
            );
        }
    }

    #[test]
    fn a_no_can_carry_words() {
        let question = question(&Verdict::ALL);
        let no = answer("n use the staging host", &question);
        assert_eq!(no.verdict, Verdict::Deny);
        assert_eq!(no.words.as_deref(), Some("use the staging host"));
    }

    #[test]
    fn enter_reads_on_while_there_is_more() {
        let question = question(&Verdict::ALL);
        assert_eq!(said("", &question, true), Said::ReadOn);
        assert_eq!(
            said("", &question, false),
            Said::Answer(Verdict::Deny.into())
        );
    }
}

//! What waits for the person's answer in plain lines: a call for their consent, an enquiry for its fields. Owns which is
//! asked first and what a line says to it; knows nothing of what else a line may mean.

use std::collections::VecDeque;

use hermes_agent::Session;
use hermes_core::command::{self, Line, Surface, Verb};
use hermes_core::interview::{Heard, Interview};
use hermes_core::skill::SkillNames;
use hermes_core::text::escaped;
use hermes_core::{Event, Question, Response, Verdict, wording};

use crate::failure::Outcome;
use crate::keyboard::Typed;
use crate::output::{note, print};
use crate::style::Style;

/// Lines of a change that are shown before a question: more would push it off the screen. The rest is a command away.
const SHOWN_CHANGE_LINES: usize = 60;

#[derive(Debug)]
pub(super) struct Asking {
    question: Option<Question>,
    /// Oldest first; the first one goes on.
    interviews: VecDeque<Interview>,
    style: Style,
    /// Standard output has events for a program, so that people are asked on standard error.
    is_beside_events: bool,
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
            Event::Asked(asked) => {
                self.show_question(&asked)?;
                self.question = Some(asked);
            }
            Event::QuestionClosed { approval, how } => {
                self.question
                    .take_if(|question| question.approval == approval);
                if let Some(words) = wording::question_closed(how) {
                    note(&self.style.yellow(format!("\n  {words}")));
                }
            }
            Event::Enquired(enquiry) => {
                self.interviews.push_back(Interview::new(enquiry));
                if self.interviews.len() == 1 {
                    self.ask_next()?;
                }
            }
            Event::EnquiryClosed { enquiry } => {
                return self.close_interviews(|interview| *interview.id() == enquiry);
            }
            Event::CallFinished { call, .. } => {
                self.question = None;
                return self.close_interviews(|interview| interview.enquiry().call == call);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a line for the interview that goes on. Returns it if there is none, or if it is a command.
    pub(super) async fn hear(&mut self, session: &Session, typed: Typed) -> Outcome<Option<Typed>> {
        let (Typed::Text(line), Some(interview)) = (&typed, self.interviews.front_mut()) else {
            return Ok(Some(typed));
        };
        let heard = match command::read(line, Surface::Terminal, &SkillNames::NONE) {
            Line::Words(_)
            | Line::Skills { .. }
            | Line::Unknown { .. }
            | Line::Ambiguous { .. } => interview.hear(line),
            Line::Command { command, .. } if command.verb == Verb::Decline => {
                Heard::Done(Response::Declined { reason: None })
            }
            Line::Command { .. } => return Ok(Some(typed)),
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
    pub(super) async fn answered(&mut self, session: &Session, line: &str) -> bool {
        let Some(asked) = &self.question else {
            return false;
        };
        let Some(verdict) = verdict_in(line, &asked.choices) else {
            return false;
        };
        session.answer(asked.approval.clone(), verdict).await;
        self.question = None;
        true
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
    fn show_question(&self, question: &Question) -> Outcome<()> {
        let (tool, what) = (escaped(&question.tool), escaped(&question.what));
        let (wants, reason) = (wording::wants(question), escaped(&question.reason));
        note(&self.style.yellow(format!("  {tool} {wants}: {what}")));
        note(&self.style.yellow(format!("  {reason}")));
        self.show_change(question);
        let offered = |verdict, words| match question.choices.contains(&verdict) {
            true => words,
            false => "",
        };
        let session = offered(Verdict::Session, " for the [s]ession,");
        let always = offered(Verdict::Always, " [a]lways,");
        self.ask_for(&format!("  allow? [y]es,{session}{always} [N]o: "))
    }

    /// Shows the change that a question is about, as far as a person reads it in passing.
    fn show_change(&self, question: &Question) {
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
        match self.is_beside_events {
            true => {
                note(prompt);
                Ok(())
            }
            false => print(prompt),
        }
    }
}

/// What a line says about a command that waits for consent. Other commands than `/decline` say nothing.
fn verdict_in(line: &str, choices: &[Verdict]) -> Option<Verdict> {
    match command::read(line, Surface::Terminal, &SkillNames::NONE) {
        Line::Words(words) => Some(verdict(words, choices)),
        Line::Command { command, .. } if command.verb == Verb::Decline => Some(Verdict::Deny),
        _ => None,
    }
}

/// Anything but a clear yes is a no, and so is a yes to more than was offered.
fn verdict(line: &str, choices: &[Verdict]) -> Verdict {
    let verdict = match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Verdict::Once,
        "s" | "session" => Verdict::Session,
        "a" | "always" => Verdict::Always,
        _ => Verdict::Deny,
    };
    match choices.contains(&verdict) {
        true => verdict,
        false => Verdict::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let said = |line| verdict(line, &Verdict::ALL);
        assert_eq!(said("y"), Verdict::Once);
        assert_eq!(said("S"), Verdict::Session);
        assert_eq!([said(""), said("ok?"), said("no")], [Verdict::Deny; 3]);
        let few = [Verdict::Once, Verdict::Deny];
        assert_eq!(verdict("s", &few), Verdict::Deny);
    }
}

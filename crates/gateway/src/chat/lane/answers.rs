//! Questions of a turn and their answers: consent, and what running calls want to know.

use hermes_core::interview::{Heard, Interview};
use hermes_core::{
    ApprovalAnswer, ApprovalId, ApprovalRequest, Button, Closed, ElicitationId, InboxEntry, Press,
    Response, Sender, StoreError, Verdict, text,
};

use super::Lane;
use crate::chat::lanes::AskedQuestion;
use crate::chat::words;

const NOT_YOURS: &str = "Only who asked for it, or an admin, can answer this.";
const NOT_OFFERED: &str = "That is not one of the answers.";
const OVER: &str = "This was answered already, or its time is over.";
/// Buttons below one question: more are easier to write than to find.
const BUTTONS_MAX: usize = 12;
/// Of a choice, on its button: the question has all of it.
const LABEL_CHARS_MAX: usize = 60;
/// What a button of a question for words carries.
const CHOICE: &str = "eq:";

impl Lane {
    pub(super) async fn ask_approval(
        &mut self,
        request: ApprovalRequest,
    ) -> Result<(), StoreError> {
        let key = format!("approval/{}", request.approval);
        let place = self.place_of_turn();
        let has_buttons = place
            .as_ref()
            .is_some_and(|place| place.channel.facts().has_buttons);
        let text = words::approval(&request, has_buttons);
        let buttons = words::approval_buttons(&request);
        self.let_others_answer(&request);
        self.approvals.push(request);
        self.speak_at(place, key, text, buttons, Vec::new()).await
    }

    /// Whoever may answer may do so from any chat, with the code that the question shows or its button.
    fn let_others_answer(&self, request: &ApprovalRequest) {
        let (Some(session), Some(chat)) = (&self.session, &self.chat) else {
            return;
        };
        let asker = self.turn.as_ref().and_then(|turn| turn.asker.clone());
        let person = chat.person.clone().filter(|_| !self.is_shared());
        self.lanes.ask(AskedQuestion {
            request: request.clone(),
            handle: std::sync::Arc::clone(&session.handle),
            person: asker.or(person),
        });
    }

    pub(super) fn approval_closed(&mut self, approval: &ApprovalId) {
        self.lanes.asked_no_more(approval);
        self.approvals.retain(|one| one.approval != *approval);
    }

    /// No question of this lane is open any more.
    pub(super) fn forget_questions(&mut self) {
        for request in self.approvals.drain(..) {
            self.lanes.asked_no_more(&request.approval);
        }
        self.interviews.clear();
    }

    /// A running call wants to know something. One question is asked at a time.
    pub(super) async fn elicited(&mut self, interview: Interview) -> Result<(), StoreError> {
        self.interviews.push_back(interview);
        if self.interviews.len() == 1 {
            self.ask_elicitation().await?;
        }
        Ok(())
    }

    pub(super) async fn elicitation_closed(
        &mut self,
        id: &ElicitationId,
    ) -> Result<(), StoreError> {
        let was_first = self.interviews.front().is_some_and(|one| one.id() == id);
        self.interviews.retain(|one| one.id() != id);
        if was_first {
            self.ask_elicitation().await?;
        }
        Ok(())
    }

    /// Something is asked that words answer.
    pub(super) fn is_asked(&self) -> bool {
        !self.interviews.is_empty()
    }

    async fn ask_elicitation(&mut self) -> Result<(), StoreError> {
        let Some(interview) = self.interviews.front() else {
            return Ok(());
        };
        let mut lines = interview.introduction();
        lines.push(interview.prompt());
        let key = format!("elicitation/{}/{}", self.key, interview.id());
        let key = format!("{key}/{}", self.ports().clock.now().as_millis());
        let (place, buttons) = (self.place_of_turn(), choices(interview));
        self.speak_at(place, key, lines.join("\n"), buttons, Vec::new())
            .await
    }

    /// Whoever began the turn has a say in it, and answers its questions; admins do, too. It is asked of who was met last.
    pub(super) fn has_say(&self, sender: &Sender) -> bool {
        let (Some(parts), Some(here)) = (&self.parts, &self.chat) else {
            return false;
        };
        let (access, chat) = (&parts.access, &here.chat);
        match self.turn.as_ref().and_then(|turn| turn.asker.as_ref()) {
            // Where there is no list of admins, everybody is one: not for what somebody else asked for.
            Some(_) => self.is_askers() || access.is_named_admin(chat, sender),
            None => access.is_admin(chat, sender),
        }
    }

    /// Who was met last began the turn, with this account or another one.
    pub(super) fn is_askers(&self) -> bool {
        let asker = self.turn.as_ref().and_then(|turn| turn.asker.as_ref());
        let met = self.met.as_ref();
        asker.is_none_or(|asker| met.is_some_and(|met| met.person == *asker))
    }

    /// Answers the question with this code, whichever chat it was asked in; without one, those of this chat.
    pub(super) async fn answer_with(
        &mut self,
        entry: &InboxEntry,
        answer: ApprovalAnswer,
        all: bool,
        code: Option<&str>,
    ) -> Result<(), StoreError> {
        let Some(code) = code else {
            return self.answer(entry, answer, all).await;
        };
        let words = match self.lanes.asked_under(code) {
            Some(question) => {
                self.answer_elsewhere(&question, entry.incoming.sender(), answer)
                    .await
            }
            None => "Nothing waits for an answer under that code.",
        };
        self.speak(words, vec![entry.id]).await
    }

    /// Answers a question that may be another chat's.
    async fn answer_elsewhere(
        &mut self,
        question: &AskedQuestion,
        sender: &Sender,
        answer: ApprovalAnswer,
    ) -> &'static str {
        if !self.may_answer_for(question, sender) {
            return NOT_YOURS;
        }
        if !question.request.choices.contains(&answer.verdict) {
            return NOT_OFFERED;
        }
        let verdict = answer.verdict;
        let approval = question.request.approval.clone();
        self.approval_closed(&approval);
        question.handle.answer(approval, answer).await;
        match verdict {
            Verdict::Deny => "Refused.",
            _ => "Allowed.",
        }
    }

    fn may_answer_for(&self, question: &AskedQuestion, sender: &Sender) -> bool {
        let Some(parts) = &self.parts else {
            return false;
        };
        let person = self.met.as_ref().map(|met| &met.person);
        let is_asker = person.is_some() && person == question.person.as_ref();
        // An admin of groups answers what was asked in this one.
        let is_admin = parts.access.is_admin_everywhere(sender);
        let is_here = self
            .approvals
            .iter()
            .any(|one| one.approval == question.request.approval);
        is_asker || is_admin || (is_here && self.has_say(sender))
    }

    /// Answers the oldest question for consent, or all of them.
    pub(super) async fn answer(
        &mut self,
        entry: &InboxEntry,
        answer: ApprovalAnswer,
        all: bool,
    ) -> Result<(), StoreError> {
        let Some(first) = self.approvals.first() else {
            return self
                .speak("Nothing waits for an answer.", vec![entry.id])
                .await;
        };
        if !self.has_say(entry.incoming.sender()) {
            return self.speak(NOT_YOURS, vec![entry.id]).await;
        }
        let is_offered = |request: &ApprovalRequest| request.choices.contains(&answer.verdict);
        let is_any_offered = if all {
            self.approvals.iter().any(is_offered)
        } else {
            is_offered(first)
        };
        if !is_any_offered {
            let words = format!("{NOT_OFFERED} Answer with {}.", words::offered(first));
            return self.speak(words, vec![entry.id]).await;
        }
        let count = if all { self.approvals.len() } else { 1 };
        let asked = self.approvals.drain(..count);
        let (answered, left): (Vec<_>, Vec<_>) = asked.partition(is_offered);
        self.approvals.splice(..0, left);
        for request in &answered {
            self.tell(request.approval.clone(), answer.clone()).await;
        }
        self.close(entry, Closed::Handled).await
    }

    async fn tell(&self, approval: ApprovalId, answer: ApprovalAnswer) {
        self.lanes.asked_no_more(&approval);
        if let Some(session) = &self.session {
            session.handle.answer(approval, answer).await;
        }
    }

    pub(super) async fn close(&self, entry: &InboxEntry, how: Closed) -> Result<(), StoreError> {
        let ports = self.ports();
        let at = ports.clock.now();
        let closing = self.under_lease(vec![entry.id]);
        ports.inbox.close_entries(closing, how, at).await
    }

    /// A button was pressed.
    pub(super) async fn pressed(
        &mut self,
        entry: &InboxEntry,
        press: &Press,
    ) -> Result<(), StoreError> {
        if let Some(choice) = press.data.strip_prefix(CHOICE) {
            return self.chosen(entry, press, choice).await;
        }
        let words = self.press(press).await;
        self.acknowledge(press, words).await;
        self.close(entry, Closed::Handled).await
    }

    async fn acknowledge(&self, press: &Press, words: &str) {
        if let Some(parts) = &self.parts
            && let Err(error) = parts.channel.acknowledge(press, Some(words)).await
        {
            tracing::debug!(%error, "a press was not acknowledged");
        }
    }

    async fn press(&mut self, press: &Press) -> &'static str {
        let data = press
            .data
            .strip_prefix("ea:")
            .and_then(|rest| rest.split_once(':'));
        let known = data.and_then(|(verdict, id)| Some((words::verdict(verdict)?, id)));
        let Some((verdict, id)) = known else {
            return "This button is not known any more.";
        };
        match self.lanes.asked(&ApprovalId::from(id)) {
            Some(question) => {
                let answer = verdict.into();
                self.answer_elsewhere(&question, &press.sender, answer)
                    .await
            }
            None => OVER,
        }
    }

    /// A button below a question for words: `ID:FIELD:LINE`.
    async fn chosen(
        &mut self,
        entry: &InboxEntry,
        press: &Press,
        choice: &str,
    ) -> Result<(), StoreError> {
        let mut parts = choice.splitn(3, ':');
        let (id, field, line) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
        let is_open = self.interviews.front().is_some_and(|one| {
            Some(one.id().as_str()) == id && Some(one.step().to_string().as_str()) == field
        });
        if !is_open {
            self.acknowledge(press, OVER).await;
            return self.close(entry, Closed::Handled).await;
        }
        if !self.has_say(&press.sender) {
            self.acknowledge(press, NOT_YOURS).await;
            return self.close(entry, Closed::Handled).await;
        }
        self.acknowledge(press, "Noted.").await;
        self.tell_interview(entry, line).await
    }

    /// Words while something is asked: they may be the answer. Returns whether they were.
    pub(super) async fn is_answer(
        &mut self,
        entry: &InboxEntry,
        text: &str,
    ) -> Result<bool, StoreError> {
        if !self.approvals.is_empty()
            && let Some(verdict) = words::spoken_verdict(text)
        {
            self.answer(entry, verdict.into(), false).await?;
            return Ok(true);
        }
        if self.interviews.is_empty() || !self.has_say(entry.incoming.sender()) {
            return Ok(false);
        }
        self.tell_interview(entry, text).await?;
        Ok(true)
    }

    /// The question that is asked hears a line.
    async fn tell_interview(&mut self, entry: &InboxEntry, line: &str) -> Result<(), StoreError> {
        let Some(interview) = self.interviews.front_mut() else {
            return Ok(());
        };
        let words = match interview.hear(line) {
            Heard::Refused(reason) => format!("{reason}\n{}", interview.prompt()),
            Heard::Next => interview.prompt(),
            Heard::Done(response) => return self.respond(entry, response).await,
        };
        let buttons = choices(interview);
        let (place, key) = (self.place(None), format!("inbox/{}", entry.id.0));
        self.speak_at(place, key, words, buttons, vec![entry.id])
            .await
    }

    async fn respond(&mut self, entry: &InboxEntry, response: Response) -> Result<(), StoreError> {
        if let Some(interview) = self.interviews.pop_front()
            && let Some(session) = &self.session
        {
            let id = interview.id().clone();
            session.handle.respond(id, response).await;
        }
        self.close(entry, Closed::Handled).await?;
        self.ask_elicitation().await
    }

    /// `/skip`: an optional field is left out.
    pub(super) async fn skip(&mut self, entry: &InboxEntry) -> Result<(), StoreError> {
        if !self.has_say(entry.incoming.sender()) {
            return self.speak(NOT_YOURS, vec![entry.id]).await;
        }
        self.tell_interview(entry, "").await
    }

    /// `/decline [REASON]`: what is asked gets no answer.
    pub(super) async fn decline(
        &mut self,
        entry: &InboxEntry,
        reason: &str,
    ) -> Result<(), StoreError> {
        if self.interviews.is_empty() {
            let deny = ApprovalAnswer {
                words: (!reason.is_empty()).then(|| reason.to_owned()),
                ..Verdict::Deny.into()
            };
            return self.answer(entry, deny, false).await;
        }
        if !self.has_say(entry.incoming.sender()) {
            return self.speak(NOT_YOURS, vec![entry.id]).await;
        }
        let reason = (!reason.is_empty()).then(|| reason.to_owned());
        self.respond(entry, Response::Declined { reason }).await
    }
}

/// The answers that are known beforehand, as buttons.
fn choices(interview: &Interview) -> Vec<Vec<Button>> {
    let options = interview.options();
    if options.len() > BUTTONS_MAX {
        return Vec::new();
    }
    let data = |line: &str| format!("{CHOICE}{}:{}:{line}", interview.id(), interview.step());
    let button = |(label, line): (String, String)| Button {
        label: text::shorten(&label, LABEL_CHARS_MAX),
        data: data(&line),
    };
    options.into_iter().map(|one| vec![button(one)]).collect()
}

//! A turn as its chat sees it: marks, typing, the reply, the end.

use std::time::Duration;

use hermes_core::{
    ChatKind, InboxEntry, InboxId, Incoming, Origin, Reaction, Role, SessionId, StoreError,
    TurnEnd, TurnId, wording,
};
use tokio::time::{Instant, timeout};

use super::intake::account_of;
use super::working::Progress;
use super::{Lane, RunningTurn};
use crate::chat::lanes::LeftTurn;
use crate::chat::manner::ReplyTo;
use crate::chat::reply::{ReplyPlace, ReplyWriter};
use crate::chat::words;

/// Marks and typing are worth this long and no longer.
pub(super) const COURTESY: Duration = Duration::from_secs(2);
/// Where typing is not shown, nobody asks for it.
const NEVER: Duration = Duration::from_secs(24 * 3600);
/// Entries of one turn: more than an album has.
const ENTRIES_MAX: usize = 256;

impl Lane {
    pub(super) async fn turn_started(
        &mut self,
        turn: TurnId,
        origin: &Origin,
        was_queued: bool,
    ) -> Result<(), StoreError> {
        let Origin::Person {
            inbox, surface, id, ..
        } = origin
        else {
            return self.follow(turn, Vec::new(), None).await;
        };
        let is_ours = surface
            .as_ref()
            .is_some_and(|surface| self.lanes.channel(surface, "").is_some());
        let known = inbox
            .iter()
            .filter(|entry| self.said.remove(*entry))
            .count();
        self.follow(turn, inbox.clone(), id.as_deref()).await?;
        // What was told to another turn, and came too late for it, was counted then.
        let is_counted = was_queued && known == 0;
        if is_ours && !is_counted {
            let payer = self.turn.as_ref().and_then(|turn| turn.payer.clone());
            self.note_turn(payer.as_deref()).await?;
        }
        Ok(())
    }

    /// A turn that a crash cut short goes on; so does its answer.
    pub(super) async fn turn_resumed(&mut self, turn: TurnId) -> Result<(), StoreError> {
        let open = self.open_entries().await?;
        let is_of_turn = |entry: &&InboxEntry| {
            let taken = entry.taken.as_ref();
            taken.is_some_and(|taken| taken.turn == turn)
        };
        let entries = open.iter().filter(is_of_turn).map(|entry| entry.id);
        let entries = entries.collect();
        self.follow(turn, entries, None).await?;
        if let Some(turn) = &mut self.turn {
            // What was said before the crash is in the log alone.
            turn.is_incomplete = true;
        }
        Ok(())
    }

    pub(super) async fn open_entries(&self) -> Result<Vec<InboxEntry>, StoreError> {
        let ports = self.ports();
        ports.inbox.open_entries(&self.key, ENTRIES_MAX).await
    }

    /// Shows a turn from now on, where what began it was written: `speaker` is whose words those are, as their origin says it.
    async fn follow(
        &mut self,
        turn: TurnId,
        entries: Vec<InboxId>,
        speaker: Option<&str>,
    ) -> Result<(), StoreError> {
        let open = self.open_entries().await?;
        let first = open.iter().find(|entry| entries.contains(&entry.id));
        let asker = match first {
            Some(first) => {
                let met = self.meet(first).await?.then_some(self.met.as_ref());
                let person = met.flatten().map(|met| met.person.clone());
                Some(person.unwrap_or_else(|| account_of(first)))
            }
            None => None,
        };
        let payer = match &asker {
            Some(asker) => Some(asker.clone()),
            None => self.payer(speaker).await?,
        };
        let (asked_by, message) = match first.map(|entry| &entry.incoming) {
            Some(Incoming::Message(message) | Incoming::Edited(message)) => {
                (Some(message.sender.clone()), Some(message.id.clone()))
            }
            _ => (None, None),
        };
        let points = self.points_at_questions();
        let (Some(place), Some(session), Some(parts), Some(chat)) = (
            self.place(message.clone().filter(|_| points)),
            self.session.as_ref(),
            self.parts.clone(),
            self.chat.as_ref().map(|chat| chat.chat.clone()),
        ) else {
            return Ok(());
        };
        let mut reply = ReplyWriter::new(place, session.handle.id().as_str(), &turn);
        if entries.is_empty() {
            reply = reply.noting_ahead();
        }
        self.turn = Some(RunningTurn {
            reply,
            id: turn,
            entries,
            parts,
            chat,
            asked_by,
            asker,
            payer,
            message,
            next_typing: Instant::now(),
            heard: Instant::now(),
            progress: Progress::new(),
            micro_usd: 0,
            is_stopping: false,
            is_overruled: false,
            is_incomplete: false,
            seat: self.seat.take(),
        });
        let said = match first.map(|entry| &entry.incoming) {
            Some(Incoming::Message(message) | Incoming::Edited(message)) => message.words(),
            _ => String::new(),
        };
        if let (Some(turn), Some(session)) = (&self.turn, &self.session) {
            tracing::info!(lane = self.key, session = %session.handle.id(), turn = %turn.id, "a turn began");
        }
        self.tell_hooks("agent:start", &[("message", said.into())]);
        if let Some(turn) = &self.turn {
            turn.reply.begin(&self.ports()).await?;
            self.mark(turn, Some(Reaction::Seen)).await;
        }
        Ok(())
    }

    /// Whether replies point at what they answer: unless settings say otherwise, where several talk.
    fn points_at_questions(&self) -> bool {
        let (Some(chat), Some(parts)) = (&self.chat, &self.parts) else {
            return false;
        };
        match parts.manner.reply_to {
            ReplyTo::InGroups => chat.chat.kind != ChatKind::Dm,
            ReplyTo::Never => false,
            ReplyTo::First | ReplyTo::All => true,
        }
    }

    /// Goes on with what the last process left. Returns once nothing can be done for it now.
    pub(super) async fn go_on(&mut self) -> Result<(), StoreError> {
        let left = self.lanes.take_left(&self.key);
        self.left.extend(left);
        if self.left.is_empty() || (self.parts.is_none() && !self.meet_known().await?) {
            return Ok(());
        }
        if self.session.is_none() {
            let session = self.left[0].session.clone();
            if let Err(words) = self.open_session(Some(session)).await {
                tracing::warn!(lane = self.key, words, "a conversation cannot go on");
            }
        }
        if self.is_resuming() {
            // It says which turn it goes on with; the others are over.
            return Ok(());
        }
        while let Some(LeftTurn { session, turn }) = self.left.last().cloned() {
            let running = self.turn.as_ref().map(|turn| &turn.id);
            if let Some(turn) = turn.as_ref().filter(|turn| running != Some(*turn)) {
                let closing = Some(words::CUT_SHORT.to_owned());
                let place = self.place(None);
                self.settle_from_log(place, &session, turn, Vec::new(), closing)
                    .await?;
            }
            self.left.pop();
        }
        Ok(())
    }

    /// Knows the chat again without anything having come from it.
    async fn meet_known(&mut self) -> Result<bool, StoreError> {
        let Some(chat) = self.ports().chats.chat(&self.key).await? else {
            return Ok(false);
        };
        let parts = self.lanes.channel(&chat.address.platform, &chat.account);
        let Some(parts) = parts else {
            return Ok(false);
        };
        let person = chat.person.as_deref().unwrap_or_default();
        let linked = self.ports().people.linked_person(person).await?;
        let is_owner = self.owns_home(person, linked.as_deref()).await?;
        let is_shared = self.lanes.ports.settings.now().keys.is_shared(&chat.chat);
        self.is_guest = is_shared || !is_owner;
        self.parts = Some(parts);
        self.chat = Some(chat);
        Ok(true)
    }

    /// When a turn counts as dead; one that waits for somebody's answer does not, and one that is being stopped is dead already.
    pub(super) fn giving_up_at(&self, turn: &RunningTurn) -> Option<Instant> {
        let silence_max = self.lanes.ports.settings.now().silence_max?;
        (!self.awaits_answer() && !turn.is_stopping).then(|| turn.heard + silence_max)
    }

    async fn give_up_silent(&mut self) -> Result<(), StoreError> {
        let due = self.turn.as_ref().and_then(|turn| self.giving_up_at(turn));
        if due.is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        tracing::warn!(
            lane = self.key,
            "a turn of which nothing is heard is given up"
        );
        self.stop_turn().await;
        self.speak_of_turn(words::GIVEN_UP).await
    }

    /// Shows that something happens: typing, and what there is of the reply.
    pub(super) async fn show(&mut self) -> Result<(), StoreError> {
        self.show_compaction().await?;
        self.give_up_silent().await?;
        self.show_sign_of_life().await?;
        let (ports, awaits_answer) = (self.ports(), self.awaits_answer());
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        let now = Instant::now();
        if turn.next_typing <= now {
            let lasts = turn.parts.channel.facts().typing;
            let lasts = lasts.filter(|_| turn.parts.manner.shows_typing);
            turn.next_typing = now + lasts.unwrap_or(NEVER);
            if lasts.is_some() && !awaits_answer && !turn.is_stopping {
                let to = &turn.reply.place().to;
                _ = timeout(COURTESY, turn.parts.channel.typing(to)).await;
            }
        }
        if turn.preview_due(&ports).is_some_and(|due| due <= now) {
            turn.reply.show(&ports).await?;
            turn.progress.seen();
        }
        Ok(())
    }

    pub(super) async fn segment_over(&mut self) -> Result<(), StoreError> {
        let ports = self.ports();
        match &mut self.turn {
            // A turn that is being stopped says nothing more.
            Some(turn) if !turn.is_stopping && !turn.is_incomplete => {
                turn.reply.close_segment(&ports).await
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn turn_ended(
        &mut self,
        id: &TurnId,
        end: &TurnEnd,
    ) -> Result<(), StoreError> {
        if self.turn.as_ref().is_some_and(|turn| turn.id == *id) {
            let session = self.session.as_ref().map(|session| session.handle.id());
            let how = closing(end).unwrap_or_else(|| "answered".to_owned());
            tracing::info!(lane = self.key, ?session, turn = %id, how, "a turn ended");
            let end = serde_json::to_value(end).unwrap_or_default();
            self.tell_hooks("agent:end", &[("end", end)]);
        }
        let Some(mut turn) = self.turn.take_if(|turn| turn.id == *id) else {
            return Ok(());
        };
        self.forget_questions();
        self.note_cost(turn.payer.as_deref(), turn.micro_usd)
            .await?;
        let ports = self.ports();
        let answers = std::mem::take(&mut turn.entries);
        match end {
            TurnEnd::Interrupted if turn.is_overruled => {
                turn.reply.stop(&ports, Vec::new()).await?;
                let (place, key) = (turn.reply.place().clone(), self.next_key());
                let words = words::OVERRULED.to_owned();
                self.speak_at(Some(place), key, words, Vec::new(), answers)
                    .await?;
            }
            TurnEnd::Interrupted => turn.reply.stop(&ports, answers).await?,
            _ if turn.is_incomplete => {
                let session = self.session.as_ref();
                if let Some(session) = session.map(|session| session.handle.id().clone()) {
                    let (place, closing) = (turn.reply.place().clone(), closing(end));
                    self.settle_from_log(Some(place), &session, id, answers, closing)
                        .await?;
                }
            }
            end => turn.reply.finish(&ports, answers, closing(end)).await?,
        }
        self.mark(&turn, reaction(end)).await;
        self.keep_chat().await
    }

    /// Puts the answer of a turn into the outbox as the log has it: what is there already is not put again.
    pub(super) async fn settle_from_log(
        &mut self,
        place: Option<ReplyPlace>,
        session: &SessionId,
        turn: &TurnId,
        answers: Vec<InboxId>,
        closing: Option<String>,
    ) -> Result<(), StoreError> {
        let ports = self.ports();
        let Some(place) = place else {
            return Ok(());
        };
        let lines = ports.archive.transcript(session).await?;
        let texts: Vec<String> = lines
            .iter()
            .filter(|line| line.turn.as_ref() == Some(turn))
            .filter(|line| line.message.role == Role::Assistant)
            .map(|line| line.message.text())
            .filter(|text| !text.trim().is_empty())
            .collect();
        let mut reply = ReplyWriter::new(place, session.as_str(), turn);
        if answers.is_empty() {
            reply = reply.noting_ahead();
        }
        for (i, text) in texts.iter().enumerate() {
            reply.find_place_of(&ports, text).await?;
            reply.push(&ports, text).await?;
            if i + 1 < texts.len() {
                reply.close_segment(&ports).await?;
            }
        }
        let closing = closing.filter(|_| texts.is_empty());
        if let Some(closing) = &closing {
            reply.find_place_of(&ports, closing).await?;
        }
        reply.finish(&ports, answers, closing).await
    }

    async fn mark(&self, turn: &RunningTurn, reaction: Option<Reaction>) {
        let (channel, to) = (&turn.parts.channel, &turn.reply.place().to);
        if let Some(message) = &turn.message
            && channel.facts().has_reactions
        {
            let marked = channel.react(to, message, reaction);
            _ = timeout(COURTESY, marked).await;
        }
    }
}

fn reaction(end: &TurnEnd) -> Option<Reaction> {
    match end {
        TurnEnd::Finished => Some(Reaction::Done),
        TurnEnd::Interrupted => None,
        _ => Some(Reaction::Failed),
    }
}

fn closing(end: &TurnEnd) -> Option<String> {
    match end {
        TurnEnd::Finished | TurnEnd::Interrupted => None,
        end => wording::turn_end(end),
    }
}

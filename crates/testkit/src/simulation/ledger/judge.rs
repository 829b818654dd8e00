//! Whether every promise was kept, once the storm is over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hermes_core::{Closed, InboxId, OutboxEntry, OutboxId, Run, RunTrigger, Stage};

use super::{Book, Closing, Ledger, body_text, text};
use crate::simulation::people::People;
use crate::simulation::platform::{Posted, SimPlatform};
use crate::simulation::{WHOLE, lock, tokens};

/// How a message begins that may be there twice.
const MAY_BE_DOUBLE: &str = "(This may be a duplicate:";
const STOPPED: &str = "_(stopped)_";
/// What stands before a call that is shown.
const WORK: &str = "⚙️";
const STRANGER: &str = "I do not know you yet";
/// What the gateway says when a turn comes to no good end.
const TROUBLES: [&str; 6] = [
    "[No answer",
    STOPPED,
    // What `/stop` says: words for the turn that it stopped are forgotten with it.
    "Stopped.",
    "error: ",
    "given up: ",
    "A new conversation.",
];
/// Why something may not have been delivered.
const LOSSES: [&str; 3] = [
    "they blocked us",
    "it may have arrived, or not",
    "given up after a day",
];

/// What the ledger says of a world that has come to rest.
#[derive(Debug, Default, Clone)]
pub struct Verdict {
    pub accepted: usize,
    /// Messages that got their answer, and those that were closed otherwise, for all to see.
    pub answered: usize,
    pub closed: usize,
    pub delivered: usize,
    /// Messages that were marked as perhaps being there twice.
    pub marked: usize,
    pub runs: usize,
    /// What is not as it was promised.
    pub wrong: Vec<String>,
}

impl Ledger {
    /// Compares what was promised with what people see. `open` is what still waits in the store; `due` is how often each job
    /// was due.
    pub fn judge(
        &self,
        platforms: &[std::sync::Arc<SimPlatform>],
        open: &[InboxId],
        runs: &[Run],
        due: &HashMap<String, u64>,
    ) -> Verdict {
        let book = lock(&self.0);
        let mut verdict = Verdict {
            accepted: book.kept.len(),
            wrong: book.wrong.clone(),
            ..Verdict::default()
        };
        for id in open {
            let wrong = format!("{id:?} is still open: {:?}", book.kept.get(id));
            verdict.wrong.push(wrong);
        }
        let whole = book.whole();
        book.judge_answers(&whole, &mut verdict);
        for platform in platforms {
            book.judge_intake(platform, &mut verdict);
            book.judge_posted(platform, &mut verdict);
            book.judge_order(platform, &mut verdict);
        }
        book.judge_outbox(platforms, &mut verdict);
        judge_runs(runs, due, &mut verdict);
        verdict
    }
}

impl Book {
    /// The whole answers that each message got.
    fn whole(&self) -> HashMap<u64, Vec<OutboxId>> {
        let mut whole: HashMap<u64, Vec<OutboxId>> = HashMap::new();
        for entry in self.outbox.values() {
            let text = text(entry);
            if text.contains(WHOLE) {
                let named: BTreeSet<u64> = tokens(&text).into_iter().collect();
                for token in named {
                    whole.entry(token).or_default().push(entry.id);
                }
            }
        }
        whole
    }

    /// Every message was answered exactly once, or closed so that whoever wrote it sees why.
    fn judge_answers(&self, whole: &HashMap<u64, Vec<OutboxId>>, verdict: &mut Verdict) {
        let mut entries: BTreeMap<u64, Vec<InboxId>> = BTreeMap::new();
        for (id, kept) in &self.kept {
            for token in &kept.tokens {
                entries.entry(*token).or_default().push(*id);
            }
        }
        // An edit of words that never came, or came behind it, says nothing that anybody asked.
        entries.retain(|_, ids| ids.iter().any(|id| !self.kept[id].is_edit));
        for (token, ids) in &entries {
            match whole.get(token).map_or(&[][..], Vec::as_slice) {
                [_] => verdict.answered += 1,
                [] if ids.iter().any(|id| self.is_closed_visibly(*id)) => verdict.closed += 1,
                [] => {
                    let how: Vec<_> = ids.iter().map(|id| (id, self.closings.get(id))).collect();
                    verdict
                        .wrong
                        .push(format!("m{token} got no answer: {how:?}"));
                }
                several => {
                    let keys: Vec<&str> = several
                        .iter()
                        .map(|id| self.outbox[id].key.as_str())
                        .collect();
                    verdict
                        .wrong
                        .push(format!("m{token} was answered more than once: {keys:?}"));
                }
            }
        }
        for token in whole.keys().filter(|token| !entries.contains_key(token)) {
            verdict
                .wrong
                .push(format!("m{token} was answered and never accepted"));
        }
    }

    /// It has no answer of its own, and that is as it should be.
    fn is_closed_visibly(&self, id: InboxId) -> bool {
        let Some(closings) = self.closings.get(&id) else {
            // It was told to a running turn, and went down with it.
            return self.has_trouble_behind(id);
        };
        closings.iter().any(|closing| self.excuses(id, closing))
    }

    fn excuses(&self, id: InboxId, closing: &Closing) -> bool {
        match closing.by.and_then(|by| self.outbox.get(&by)) {
            // Words that say what went wrong; or what was stopped, by something that came behind it.
            Some(entry) => {
                let text = text(entry);
                match text.contains(STOPPED) || text.trim().is_empty() {
                    true => self.was_interrupted(id, closing),
                    false => !text.contains(WHOLE),
                }
            }
            None if closing.how == Closed::Answered => {
                self.was_interrupted(id, closing) || self.has_trouble_behind(id)
            }
            // It was a question's answer.
            None => closing.how == Closed::Handled,
        }
    }

    /// Something came behind it in its lane before it was closed.
    fn was_interrupted(&self, id: InboxId, closing: &Closing) -> bool {
        let Some(lane) = self.kept.get(&id).map(|kept| kept.lane.as_str()) else {
            return false;
        };
        let mut behind = self.kept.iter().filter(|(other, _)| **other > id);
        behind.any(|(_, other)| other.lane == lane && other.received <= closing.at)
    }

    /// Something else than an answer of the model was said there afterwards, or nothing at all.
    fn has_trouble_behind(&self, id: InboxId) -> bool {
        let Some(kept) = self.kept.get(&id) else {
            return false;
        };
        let there = self.outbox.values().filter(|entry| entry.to == kept.to);
        let mut later = there.filter(|entry| entry.updated >= kept.received);
        later.any(|entry| {
            let text = text(entry);
            TROUBLES.iter().any(|word| text.contains(word))
        })
    }

    /// What a platform was told to be kept was kept, and nothing of strangers was.
    fn judge_intake(&self, platform: &SimPlatform, verdict: &mut Verdict) {
        for (seq, told) in platform.updates().iter().enumerate() {
            let update = (platform.name().to_owned(), platform.update_id(seq));
            let is_kept = self.by_update.contains_key(&update);
            let is_stranger = People::is_stranger(told.incoming.sender());
            if is_stranger && is_kept {
                verdict
                    .wrong
                    .push(format!("{update:?} of a stranger was kept"));
            }
            if told.is_confirmed && !is_stranger && !is_kept {
                verdict
                    .wrong
                    .push(format!("{update:?} was confirmed and is lost"));
            }
            if !told.is_confirmed && !told.is_dropped && !is_stranger {
                verdict.wrong.push(format!("{update:?} was never taken"));
            }
        }
    }

    /// Everything that people see comes from the outbox, once, or says that it may be there twice.
    fn judge_posted(&self, platform: &SimPlatform, verdict: &mut Verdict) {
        let mut by_key: HashMap<&str, Vec<&Posted>> = HashMap::new();
        let posted = platform.posted();
        for message in posted.iter().filter(|message| !message.is_deleted) {
            by_key.entry(&message.key).or_default().push(message);
            // What tools return is for the model. What they are asked is shown while they work, and in questions for consent.
            let mut lines = message.text.lines();
            let holds_result = lines.any(|line| line.contains("looked") && !line.contains(WORK));
            if holds_result && !message.text.contains("May I run this?") {
                let wrong = format!("a result is in the chat: {}", message.text);
                verdict.wrong.push(wrong);
            }
            if message.chat.contains("stranger") && !message.text.contains(STRANGER) {
                let wrong = format!("a stranger was told: {}", message.text);
                verdict.wrong.push(wrong);
            }
        }
        for (key, messages) in by_key {
            let is_marked = |message: &Posted| message.text.starts_with(MAY_BE_DOUBLE);
            verdict.marked += messages.iter().filter(|message| is_marked(message)).count();
            let unmarked: Vec<_> = messages
                .iter()
                .filter(|message| !is_marked(message))
                .collect();
            if unmarked.len() > 1 {
                verdict
                    .wrong
                    .push(format!("{key} is there {} times", unmarked.len()));
            }
            let entry = key
                .rsplit_once('#')
                .and_then(|(key, _)| self.by_key.get(key));
            let Some(entry) = entry.and_then(|id| self.outbox.get(id)) else {
                verdict.wrong.push(format!("{key} is in no outbox"));
                continue;
            };
            // A preview that may have arrived, of a turn that was stopped: nobody knows its number.
            let is_doubtful = entry.parts.iter().any(|part| part.is_doubtful);
            if messages.len() == 1
                && !is_doubtful
                && entry.stage == Stage::Sent
                && !owns(entry, messages[0])
            {
                let wrong = format!("{key} is there, and the outbox does not know: {messages:?}");
                verdict.wrong.push(wrong);
            }
        }
    }

    /// Answers of a conversation came in its order.
    fn judge_order(&self, platform: &SimPlatform, verdict: &mut Verdict) {
        let mut newest: HashMap<&str, InboxId> = HashMap::new();
        // An edit takes the place of what it edits.
        let written = self.kept.iter().filter(|(_, kept)| !kept.is_edit);
        let lanes: HashMap<u64, (&InboxId, &str)> = written
            .flat_map(|(id, kept)| {
                let lane = kept.lane.as_str();
                kept.tokens.iter().map(move |token| (*token, (id, lane)))
            })
            .collect();
        for message in platform.posted() {
            if message.is_deleted || !message.text.contains(WHOLE) {
                continue;
            }
            let key = message.key.rsplit_once('#').map_or("", |(key, _)| key);
            let Some(entry) = self.by_key.get(key).and_then(|id| self.outbox.get(id)) else {
                continue;
            };
            if message.text.starts_with(MAY_BE_DOUBLE) {
                continue;
            }
            let all = text(entry);
            let named = tokens(&all).into_iter();
            let named: Vec<_> = named.filter_map(|token| lanes.get(&token)).collect();
            let Some((id, lane)) = named.iter().max_by_key(|(id, _)| **id) else {
                continue;
            };
            let before = newest.insert(lane, **id);
            if before.is_some_and(|before| before >= **id) {
                let wrong = format!("{}: {} came behind {before:?}", message.id, message.text);
                verdict.wrong.push(wrong);
            }
        }
    }

    /// What the outbox says was sent is there, word for word.
    fn judge_outbox(&self, platforms: &[std::sync::Arc<SimPlatform>], verdict: &mut Verdict) {
        let mut seen: HashMap<String, Posted> = HashMap::new();
        for platform in platforms {
            let posted = platform.posted().into_iter();
            seen.extend(posted.map(|posted| (posted.id.to_string(), posted)));
        }
        for entry in self.outbox.values() {
            match entry.stage {
                Stage::Sent => verdict.delivered += 1,
                Stage::Failed => {
                    let error = entry.error.clone().unwrap_or_default();
                    if !LOSSES.iter().any(|loss| error.contains(loss)) {
                        verdict
                            .wrong
                            .push(format!("{} was given up: {error}", entry.key));
                    }
                    continue;
                }
                stage => {
                    verdict
                        .wrong
                        .push(format!("{} is still {}", entry.key, stage.name()));
                    continue;
                }
            }
            for part in &entry.parts {
                let (Some(body), Some(id)) = (&part.body, &part.id) else {
                    continue;
                };
                let there = seen.get(id.as_str()).filter(|posted| !posted.is_deleted);
                let is_same = there.is_some_and(|posted| posted.text.ends_with(body_text(body)));
                if !is_same {
                    let wrong = format!("{} is to say {body:?}, and says {there:?}", entry.key);
                    verdict.wrong.push(wrong);
                }
            }
        }
    }
}

fn owns(entry: &OutboxEntry, message: &Posted) -> bool {
    let mut parts = entry.parts.iter();
    parts.any(|part| part.id.as_ref() == Some(&message.id))
}

/// Every time that was due has its run, and none has two.
fn judge_runs(runs: &[Run], due: &HashMap<String, u64>, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    let mut covered: HashMap<&str, u64> = HashMap::new();
    for run in runs {
        verdict.runs += 1;
        let name = run.job.as_str();
        if !seen.insert((name, run.scheduled)) && run.trigger == RunTrigger::Schedule {
            verdict
                .wrong
                .push(format!("{name} ran twice for {:?}", run.scheduled));
        }
        if !run.status.is_over() {
            verdict
                .wrong
                .push(format!("{name} is still {}", run.status.as_str()));
        }
        for delivery in &run.deliveries {
            if !delivery.status.is_settled() {
                verdict
                    .wrong
                    .push(format!("{name}: {delivery:?} is not settled"));
            }
        }
        *covered.entry(name).or_default() += 1 + u64::from(run.missed);
    }
    for (job, due) in due {
        let covered = covered.get(job.as_str()).copied().unwrap_or_default();
        if covered != *due {
            verdict
                .wrong
                .push(format!("{job} was due {due} times, and ran for {covered}"));
        }
    }
}

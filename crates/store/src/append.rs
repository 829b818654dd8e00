//! Writes entries into the step log and keeps what follows from them: messages, calls, counters, the open turn.
//!
//! The rules it holds, so that a stored conversation is always one a provider accepts:
//! - a session has at most one open turn, and entries belong to it; turns are taken back only when none is open;
//! - a result answers a call of the latest reply, and no call is answered twice;
//! - a compaction keeps no result without its call;
//! - words that wait are taken once;
//! - the next reply, and the end of the turn, come only when every call is answered.

use hermes_core::skill;
use hermes_core::text::shorten;
use hermes_core::{
    CallId, Closed, Cost, Effect, Entry, FinishReason, Message, ModelName, Origin, Prefix,
    QueuedMessage, SessionId, SummaryUse, Timestamp, ToolResult, TurnEnd, TurnId, Usage, WaitsFor,
};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use crate::compactions::NewView;
use crate::failure::Failure;
use crate::gateway::inbox;
use crate::sessions::{self, TokenColumns};
use crate::stored::{encode, role_name};
use crate::{compactions, prefixes, queued, records, reviews, tool_states, user_models};

/// Characters of the first message that stand for a session without a title: a line in a list.
const PREVIEW_CHARS_MAX: usize = 80;

pub(crate) fn append(
    conn: &Connection,
    session: &SessionId,
    at: Timestamp,
    entries: &[Entry],
) -> Result<(), Failure> {
    let mut log = Log::open(conn, session, at)?;
    for entry in entries {
        log.append(entry)?;
    }
    log.close()
}

/// A session's step log while one transaction appends to it.
struct Log<'conn> {
    conn: &'conn Connection,
    session: i64,
    model: ModelName,
    at: i64,
    open_turn: Option<OpenTurn>,
    /// As the session's row has it.
    open_turn_stored: Option<i64>,
    added: Added,
}

struct OpenTurn {
    number: i64,
    id: TurnId,
    /// The message whose calls are being answered.
    reply: Option<i64>,
    /// Steps it has so far.
    steps: i64,
}

/// What the session's counters grow by.
#[derive(Default)]
struct Added {
    messages: i64,
    calls: i64,
    requests: i64,
    usage: Usage,
    /// Costs that are known, and whether one is not.
    cost_micro_usd: u64,
    is_cost_unknown: bool,
    preview: String,
}

impl Added {
    fn use_up(&mut self, usage: Usage, cost: Cost) {
        self.usage += usage;
        match cost.micro_usd() {
            Some(micro_usd) => self.cost_micro_usd += micro_usd,
            None => self.is_cost_unknown = true,
        }
    }
}

impl<'conn> Log<'conn> {
    fn open(conn: &'conn Connection, session: &SessionId, at: Timestamp) -> Result<Self, Failure> {
        let mut statement = conn.prepare_cached(
            "SELECT s.number, t.number, t.id, t.reply,
                    (SELECT max(seq) FROM steps WHERE turn = t.number), s.provider, s.model
             FROM sessions s LEFT JOIN turns t ON t.number = s.open_turn
             WHERE s.id = ?1",
        )?;
        let found = statement
            .query_row([session.as_str()], |row| {
                let open_turn = match row.get::<_, Option<i64>>(1)? {
                    None => None,
                    Some(number) => Some(OpenTurn {
                        number,
                        id: row.get::<_, String>(2)?.into(),
                        reply: row.get(3)?,
                        steps: row.get(4)?,
                    }),
                };
                let model = ModelName {
                    provider: row.get(5)?,
                    model: row.get(6)?,
                };
                Ok((row.get(0)?, model, open_turn))
            })
            .optional()?;
        let (session, model, open_turn) =
            found.ok_or_else(|| Failure::not_found(session.as_str()))?;
        Ok(Self {
            conn,
            session,
            model,
            at: at.as_millis(),
            open_turn_stored: open_turn.as_ref().map(|turn| turn.number),
            open_turn,
            added: Added::default(),
        })
    }

    fn append(&mut self, entry: &Entry) -> Result<(), Failure> {
        match entry {
            Entry::TurnStarted { turn, message } => self.start_turn(turn, message),
            Entry::TurnResumed { turn } => {
                self.open_turn(turn)?;
                self.add_step("turn_resumed", None, None).map(drop)
            }
            Entry::ModelAsked { turn, model } => {
                self.open_turn(turn)?;
                let other = (*model != self.model).then(|| json(model)).transpose()?;
                self.add_step("model_asked", None, other.as_deref())
                    .map(drop)
            }
            Entry::Replied {
                turn,
                message,
                reason,
                usage,
                cost,
                model,
            } => {
                let request = Request {
                    model,
                    reason: *reason,
                    usage: *usage,
                    cost: *cost,
                };
                self.reply(turn, message, &request)
            }
            // The arguments are in the reply already.
            Entry::CallIntended {
                turn,
                call,
                tool,
                effect,
                arguments: _,
            } => self.intend(turn, call, tool, *effect),
            Entry::CallFinished { turn, result } => self.finish_call(turn, result),
            Entry::TurnEnded { turn, end, closing } => self.end_turn(turn, end, closing.as_ref()),
            Entry::ToolKept { turn, tool, state } => {
                tool_states::keep(self.conn, self.session, turn, tool, state)
            }
            Entry::Compacted {
                summary,
                kept,
                shortened,
                prefix,
                used,
            } => {
                let seen = NewView {
                    summary: summary.as_ref(),
                    kept: *kept,
                    shortened,
                    is_prefixed_anew: prefix.is_some(),
                };
                self.compact(&seen, prefix.as_ref(), *used)
            }
            Entry::Queued { queued } => {
                queued::add(self.conn, self.session, self.at, queued)?;
                self.join(queued)
            }
            Entry::Dequeued { queued } => queued::take(self.conn, self.session, queued),
            Entry::Rewound { turns } => self.rewind(*turns),
            Entry::Inherited { turn, messages } => self.inherit(turn, messages),
        }
    }

    /// Steering words get no answer of their own: from here on they are part of the turn that runs.
    fn join(&self, queued: &QueuedMessage) -> Result<(), Failure> {
        match (queued.waits_for, &queued.message.origin) {
            (WaitsFor::ToolResult, Origin::Person { inbox, .. }) => {
                let at = Timestamp::from_millis(self.at);
                inbox::close(self.conn, inbox, Closed::Joined, at)
            }
            _ => Ok(()),
        }
    }

    fn start_turn(&mut self, turn: &TurnId, message: &Message) -> Result<(), Failure> {
        let number = self.add_turn(turn)?;
        inbox::take(self.conn, message.inbox(), self.session, turn)?;
        if let Some(mirrored) = message.mirrored() {
            records::empty(self.conn, mirrored)?;
        }
        self.open_turn = Some(OpenTurn {
            number,
            id: turn.clone(),
            reply: None,
            steps: 0,
        });
        if self.added.preview.is_empty() {
            self.added.preview = preview(message);
        }
        let message = self.add_message(number, message)?;
        self.add_step("turn_started", Some(message), None).map(drop)
    }

    fn reply(
        &mut self,
        turn: &TurnId,
        message: &Message,
        request: &Request,
    ) -> Result<(), Failure> {
        let turn = self.open_turn(turn)?;
        self.require_all_answered(turn)?;
        let turn = turn.number;
        let reply = self.add_message(turn, message)?;
        self.add_step("replied", Some(reply), None)?;
        self.add_request(reply, request)?;
        let mut add_call = self
            .conn
            .prepare_cached("INSERT INTO calls (reply, id, tool) VALUES (?1, ?2, ?3)")?;
        for call in message.calls() {
            add_call.execute(params![reply, call.id.as_str(), call.name])?;
            self.added.calls += 1;
        }
        self.conn
            .prepare_cached("UPDATE turns SET reply = ?2 WHERE number = ?1")?
            .execute([turn, reply])?;
        if let Some(open) = &mut self.open_turn {
            open.reply = Some(reply);
        }
        Ok(())
    }

    /// Repeatable: a call that a crash cut short may run again.
    fn intend(
        &mut self,
        turn: &TurnId,
        call: &CallId,
        tool: &str,
        effect: Effect,
    ) -> Result<(), Failure> {
        let turn = self.open_turn(turn)?;
        self.require_unanswered(turn, call)?;
        let reply = turn.reply;
        let step = self.add_step("call_intended", None, None)?;
        self.conn
            .prepare_cached(
                "UPDATE calls SET tool = ?3, effect = ?4, intended = ?5 WHERE reply = ?1 AND id = ?2",
            )?
            .execute(params![reply, call.as_str(), tool, effect.as_str(), step])?;
        Ok(())
    }

    fn finish_call(&mut self, turn: &TurnId, result: &ToolResult) -> Result<(), Failure> {
        let turn = self.open_turn(turn)?;
        self.require_unanswered(turn, &result.call)?;
        let (turn, reply) = (turn.number, turn.reply);
        let message = self.add_message(turn, &Message::result(result.clone()))?;
        self.conn
            .prepare_cached("UPDATE calls SET result = ?3 WHERE reply = ?1 AND id = ?2")?
            .execute(params![reply, result.call.as_str(), message])?;
        self.add_step("call_finished", Some(message), None)
            .map(drop)
    }

    fn end_turn(
        &mut self,
        turn: &TurnId,
        end: &TurnEnd,
        closing: Option<&Message>,
    ) -> Result<(), Failure> {
        let turn = self.open_turn(turn)?;
        self.require_all_answered(turn)?;
        let turn = turn.number;
        let closing = closing
            .map(|message| self.add_message(turn, message))
            .transpose()?;
        self.add_step("turn_ended", closing, Some(&json(end)?))?;
        self.open_turn = None;
        Ok(())
    }

    fn rewind(&mut self, turns: u32) -> Result<(), Failure> {
        self.require_no_open_turn()?;
        let last_turns = "SELECT number FROM turns WHERE session = ?1 AND taken_back IS NULL
                          ORDER BY number DESC LIMIT ?2";
        let (messages, first): (i64, Option<i64>) = self
            .conn
            .prepare_cached(&format!(
                "SELECT count(*), min(number) FROM messages
                 WHERE session = ?1 AND turn IN ({last_turns})"
            ))?
            .query_row(params![self.session, turns], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let taken_back = self
            .conn
            .prepare_cached(&format!(
                "UPDATE turns SET taken_back = ?3 WHERE number IN ({last_turns})"
            ))?
            .execute(params![self.session, turns, self.at])?;
        if taken_back < turns as usize {
            return Err(Failure::Refused(format!(
                "{turns} turns cannot be taken back: there are {taken_back}"
            )));
        }
        self.added.messages -= messages;
        match first {
            Some(first) => compactions::revert(self.conn, self.session, self.at, first),
            None => Ok(()),
        }
    }

    fn compact(
        &mut self,
        seen: &NewView<'_>,
        prefix: Option<&Prefix>,
        used: Option<SummaryUse>,
    ) -> Result<(), Failure> {
        let epoch = compactions::compact(self.conn, self.session, self.at, seen)?;
        if let Some(prefix) = prefix {
            prefixes::put(self.conn, self.session, epoch, prefix)?;
        }
        if let Some(used) = used {
            reviews::book_summary(self.conn, self.session, self.at, used)?;
            self.added.use_up(used.usage, used.cost);
        }
        Ok(())
    }

    fn inherit(&mut self, turn: &TurnId, messages: &[Message]) -> Result<(), Failure> {
        let number = self.add_turn(turn)?;
        if self.added.preview.is_empty() {
            self.added.preview = messages.first().map(preview).unwrap_or_default();
        }
        let mut last = None;
        for message in messages {
            last = Some(self.add_message(number, message)?);
        }
        match last {
            // What was said in another session is heard there.
            Some(last) if self.is_branch()? => {
                user_models::hear_from(self.conn, self.session, last)
            }
            _ => Ok(()),
        }
    }

    fn is_branch(&self) -> Result<bool, Failure> {
        Ok(self
            .conn
            .prepare_cached("SELECT parent IS NOT NULL FROM sessions WHERE number = ?1")?
            .query_row([self.session], |row| row.get(0))?)
    }

    fn add_turn(&self, turn: &TurnId) -> Result<i64, Failure> {
        self.require_no_open_turn()?;
        self.conn
            .prepare_cached("INSERT INTO turns (session, id) VALUES (?1, ?2)")?
            .execute(params![self.session, turn.as_str()])?;
        Ok(self.conn.last_insert_rowid())
    }

    fn require_no_open_turn(&self) -> Result<(), Failure> {
        match &self.open_turn {
            None => Ok(()),
            Some(open) => Err(Failure::Refused(format!(
                "turn `{}` has not ended",
                open.id
            ))),
        }
    }

    fn open_turn(&self, turn: &TurnId) -> Result<&OpenTurn, Failure> {
        match &self.open_turn {
            Some(open) if open.id == *turn => Ok(open),
            _ => Err(Failure::Refused(format!("turn `{turn}` is not open"))),
        }
    }

    fn require_unanswered(&self, turn: &OpenTurn, call: &CallId) -> Result<(), Failure> {
        let is_answered = self
            .conn
            .prepare_cached("SELECT result IS NOT NULL FROM calls WHERE reply = ?1 AND id = ?2")?
            .query_row(params![turn.reply, call.as_str()], |row| row.get(0))
            .optional()?;
        match is_answered {
            Some(false) => Ok(()),
            Some(true) => Err(Failure::Refused(format!(
                "call `{call}` already has its result"
            ))),
            None => Err(Failure::Refused(format!(
                "the latest reply of turn `{}` has no call `{call}`",
                turn.id
            ))),
        }
    }

    fn require_all_answered(&self, turn: &OpenTurn) -> Result<(), Failure> {
        let unanswered: Option<String> = self
            .conn
            .prepare_cached("SELECT id FROM calls WHERE reply = ?1 AND result IS NULL LIMIT 1")?
            .query_row([turn.reply], |row| row.get(0))
            .optional()?;
        match unanswered {
            None => Ok(()),
            Some(call) => Err(Failure::Refused(format!(
                "call `{call}` of turn `{}` has no result yet",
                turn.id
            ))),
        }
    }

    fn add_message(&mut self, turn: i64, message: &Message) -> Result<i64, Failure> {
        let stored = encode(message)?;
        self.conn
            .prepare_cached(
                "INSERT INTO messages (session, turn, role, at, text, parts, origin)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                self.session,
                turn,
                role_name(message.role),
                self.at,
                stored.text,
                stored.parts,
                stored.origin
            ])?;
        self.added.messages += 1;
        Ok(self.conn.last_insert_rowid())
    }

    /// Adds a row to the log of the open turn and returns its place there.
    fn add_step(
        &mut self,
        kind: &str,
        message: Option<i64>,
        data: Option<&str>,
    ) -> Result<i64, Failure> {
        let Some(turn) = &mut self.open_turn else {
            return Err(Failure::Refused(format!("`{kind}` belongs to no turn")));
        };
        turn.steps += 1;
        self.conn
            .prepare_cached(
                "INSERT INTO steps (turn, seq, kind, at, message, data)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                turn.number,
                turn.steps,
                kind,
                self.at,
                message,
                data
            ])?;
        Ok(turn.steps)
    }

    fn add_request(&mut self, reply: i64, request: &Request) -> Result<(), Failure> {
        let tokens = TokenColumns::from(request.usage);
        self.conn
            .prepare_cached(
                "INSERT INTO requests (reply, provider, model, reason, input_tokens, output_tokens,
                                       cache_read_tokens, cache_write_tokens, reasoning_tokens,
                                       cost_micro_usd)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                reply,
                request.model.provider,
                request.model.model,
                json(&request.reason)?.trim_matches('"'),
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write,
                tokens.reasoning,
                request.cost.micro_usd().map(sessions::count),
            ])?;
        self.added.requests += 1;
        self.added.use_up(request.usage, request.cost);
        Ok(())
    }

    /// Brings the session's row up to date.
    fn close(self) -> Result<(), Failure> {
        self.store_open_turn()?;
        let added = self.added;
        let tokens = TokenColumns::from(added.usage);
        // NULL, once added, stays.
        let cost = (!added.is_cost_unknown).then(|| sessions::count(added.cost_micro_usd));
        self.conn
            .prepare_cached(
                "UPDATE sessions SET
                     updated = max(updated, ?2),
                     preview = iif(preview = '', ?3, preview),
                     messages = messages + ?4, calls = calls + ?5, requests = requests + ?6,
                     input_tokens = input_tokens + ?7, output_tokens = output_tokens + ?8,
                     cache_read_tokens = cache_read_tokens + ?9,
                     cache_write_tokens = cache_write_tokens + ?10,
                     reasoning_tokens = reasoning_tokens + ?11,
                     cost_micro_usd = cost_micro_usd + ?12
                 WHERE number = ?1",
            )?
            .execute(params![
                self.session,
                self.at,
                added.preview,
                added.messages,
                added.calls,
                added.requests,
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write,
                tokens.reasoning,
                cost
            ])?;
        Ok(())
    }

    /// Apart from the rest, and only when it changed: naming an indexed column in an update rewrites its index.
    fn store_open_turn(&self) -> Result<(), Failure> {
        let open_turn = self.open_turn.as_ref().map(|turn| turn.number);
        if open_turn != self.open_turn_stored {
            self.conn
                .prepare_cached("UPDATE sessions SET open_turn = ?2 WHERE number = ?1")?
                .execute(params![self.session, open_turn])?;
        }
        Ok(())
    }
}

/// What an answered request used.
struct Request<'a> {
    model: &'a ModelName,
    reason: FinishReason,
    usage: Usage,
    cost: Cost,
}

fn preview(message: &Message) -> String {
    let text = message.shown();
    let typed = skill::as_typed(&text);
    let words: Vec<&str> = typed.split_whitespace().take(PREVIEW_CHARS_MAX).collect();
    shorten(&words.join(" "), PREVIEW_CHARS_MAX)
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::Refused(format!("an entry cannot be written as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use hermes_core::{Part, reference};

    use super::*;

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(
            preview(&Message::user("  fix\n\tthe   bug ")),
            "fix the bug"
        );
        let long = preview(&Message::user("word ".repeat(100)));
        assert_eq!(long.chars().count(), PREVIEW_CHARS_MAX);
    }

    #[test]
    fn a_preview_is_what_the_person_typed() {
        let attached = format!("see @a.txt\n\n{}\n\n`a.txt`: one", reference::ATTACHED);
        let told = format!("hello{}", skill::news_behind_words("tools have come"));
        assert_eq!(preview(&Message::user(attached)), "see @a.txt");
        assert_eq!(preview(&Message::user(told)), "hello");
        let sent = |typed: &str| Message {
            parts: vec![
                Part::text(typed),
                Part::text("\n\n[document, saved as a.txt]"),
            ],
            ..Message::user("")
        };
        assert_eq!(preview(&sent("look")), "look");
        assert_eq!(preview(&sent("")), "[document, saved as a.txt]");
    }
}

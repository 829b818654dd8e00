//! `hermes approvals`: the questions that conversations wait with, seen and answered from another terminal.

use std::io::{self, IsTerminal as _};

use hermes_core::exact::exact;
use hermes_core::text::{escaped, shorten};
use hermes_core::{
    AnswerSource, Approval, ApprovalAnswer, ApprovalId, Approvals as _, Clock as _, Settled,
    Settlement, Settling, StoreError, Timestamp, Verdict, wording,
};
use serde_json::json;

use super::layout::{Table, age, print_json};
use super::sessions::open_archive;
use crate::args::{ApprovalsArgs, ApprovalsCommand, JsonFlag};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};
use crate::style::Style;
use crate::wiring::{SystemClock, open_store};

/// Enough of a command to recognise it in a list; `show` has all of it.
const WHAT_CHARS_MAX: usize = 60;

pub(crate) async fn run(base: &Base, args: ApprovalsArgs) -> Outcome<()> {
    let by_default = ApprovalsCommand::List {
        json: JsonFlag { json: false },
    };
    match args.command.unwrap_or(by_default) {
        ApprovalsCommand::List { json } => list(base, &json).await,
        ApprovalsCommand::Show { id, json } => show(base, &id, &json).await,
        ApprovalsCommand::Allow {
            code,
            session,
            always,
            pattern,
            json,
        } => {
            let verdict = match (session, always) {
                (_, true) => Verdict::Always,
                (true, false) => Verdict::Session,
                (false, false) => Verdict::Once,
            };
            let pattern = match pattern {
                None => None,
                Some(number) => Some(pattern_of(base, &code, number, verdict).await?),
            };
            let said = ApprovalAnswer {
                pattern,
                ..verdict.into()
            };
            answer(base, &code, said, &json).await
        }
        ApprovalsCommand::Deny { code, reason, json } => {
            let said = ApprovalAnswer {
                words: reason,
                ..Verdict::Deny.into()
            };
            answer(base, &code, said, &json).await
        }
    }
}

/// Codes are for a person's eyes: what is piped somewhere may be read by anybody.
fn shows_codes() -> bool {
    io::stdout().is_terminal()
}

async fn list(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let now = SystemClock.now();
    let open = match open_archive(base)? {
        Some(store) => store.open_approvals(now).await?,
        None => Vec::new(),
    };
    if json.json {
        return print_json(&json!(open));
    }
    if open.is_empty() {
        return println("nothing waits for an answer");
    }
    let mut table = Table::new(["CODE", "ID", "LEFT", "SESSION", "TOOL", "WHAT"]);
    for approval in &open {
        table.row([
            code(approval),
            approval.id.to_string(),
            format!("{} s", seconds_left(approval, now)),
            approval.session.to_string(),
            escaped(&approval.tool),
            in_list(approval),
        ]);
    }
    table.print(Style::of(&io::stdout(), &base.environment))?;
    if !shows_codes() {
        note("the codes that answer these are shown at a terminal");
    }
    Ok(())
}

/// The code of a question, where it may be seen.
fn code(approval: &Approval) -> String {
    if shows_codes() {
        approval.code.shown().to_owned()
    } else {
        "-".to_owned()
    }
}

async fn show(base: &Base, name: &str, json: &JsonFlag) -> Outcome<()> {
    let approval = find(base, name).await?;
    if json.json {
        return print_json(&json!(approval));
    }
    let now = SystemClock.now();
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("id", approval.id.to_string());
    if approval.is_open(now) {
        row("code", code(&approval));
    }
    row("session", approval.session.to_string());
    row("tool", escaped(&approval.tool));
    row("what", one_line(&approval.what));
    if let Some(folder) = &approval.folder {
        row("in", one_line(&folder.to_string_lossy()));
    }
    row("why", one_line(&approval.reason));
    for (at, pattern) in approval.patterns.iter().enumerate() {
        row(&format!("pattern {}", at + 1), one_line(pattern));
    }
    row("asked", age(approval.created, now));
    row("state", state(&approval, now));
    table.print(Style::PLAIN)?;
    let Some(preview) = &approval.preview else {
        return Ok(());
    };
    let style = Style::of(&io::stdout(), &base.environment);
    let (lines, _) = wording::change_lines(&preview.diff, usize::MAX);
    let lines: Vec<_> = lines.iter().map(|line| style.change_line(line)).collect();
    println(&format!("\n{}", lines.join("\n")))
}

async fn answer(base: &Base, code: &str, said: ApprovalAnswer, json: &JsonFlag) -> Outcome<()> {
    if open_archive(base)?.is_none() {
        return Err(StoreError::WrongCode.into());
    }
    let verdict = said.verdict;
    let settlement = Settlement::answered(SystemClock.now(), said, AnswerSource::Command);
    let store = open_store(base)?;
    let (id, settling) = store.settle_by_code(code, settlement).await?;
    let Settling {
        settlement,
        is_ours,
    } = settling;
    let approval = store.approval(&id).await?;
    if !is_ours {
        return Err(too_late(&approval, &settlement));
    }
    if json.json {
        return print_json(&json!(approval));
    }
    let words = wording::verdict(verdict);
    let covered = settlement.said.pattern.as_ref().unwrap_or(&approval.what);
    println(&format!("{words}: {}", one_line(covered)))
}

/// The pattern with this number of the question with this code.
async fn pattern_of(base: &Base, code: &str, number: usize, verdict: Verdict) -> Outcome<String> {
    if verdict == Verdict::Once {
        return Err(Failure::usage("a pattern is allowed for longer than once")
            .hint("add --session or --always"));
    }
    let open = match open_archive(base)? {
        Some(store) => store.open_approvals(SystemClock.now()).await?,
        None => Vec::new(),
    };
    let Some(approval) = open.into_iter().find(|approval| approval.code.is(code)) else {
        // Wrong codes are counted wherever they are tried.
        let said = Verdict::Deny.into();
        let settlement = Settlement::answered(SystemClock.now(), said, AnswerSource::Command);
        let counted = open_store(base)?.settle_by_code("", settlement).await;
        return Err(counted.err().unwrap_or(StoreError::WrongCode).into());
    };
    let at = number.checked_sub(1);
    let pattern = at.and_then(|at| approval.patterns.get(at)).cloned();
    pattern.ok_or_else(|| {
        Failure::usage(format!("the question has no pattern {number}")).hint(format!(
            "`hermes approvals show {}` lists its patterns",
            approval.id
        ))
    })
}

/// Finds an approval by its id, or an open one by a beginning of it that fits no other.
async fn find(base: &Base, name: &str) -> Outcome<Approval> {
    let id = ApprovalId::from(name.trim());
    let Some(store) = open_archive(base)? else {
        return Err(StoreError::NoApproval { id }.into());
    };
    match store.approval(&id).await {
        Err(StoreError::NoApproval { .. }) => {}
        found => return Ok(found?),
    }
    let mut near = store.open_approvals(SystemClock.now()).await?;
    near.retain(|approval| {
        !id.as_str().is_empty() && approval.id.as_str().starts_with(id.as_str())
    });
    match near.len() {
        1 => Ok(near.remove(0)),
        0 => Err(StoreError::NoApproval { id }.into()),
        count => Err(Failure::usage(format!("`{id}` fits {count} approvals"))
            .hint("write more of the id; `hermes approvals list` shows them")),
    }
}

fn too_late(approval: &Approval, settlement: &Settlement) -> Failure {
    let words = settled(settlement.how);
    Failure::new(format!("approval `{}` is over: {words}", approval.id))
        .hint("`hermes approvals list` shows what waits for an answer")
}

fn state(approval: &Approval, now: Timestamp) -> String {
    match &approval.settled {
        Some(settlement) => {
            let when = age(settlement.at, now);
            let words = settlement.said.words.as_deref().map(one_line);
            let words = words.map_or(String::new(), |words| format!(" (“{words}”)"));
            format!("{}{words}, {when}", settled(settlement.how))
        }
        None if approval.is_open(now) => {
            let answers: Vec<_> = approval.choices.iter().map(|&one| offer(one)).collect();
            let left = seconds_left(approval, now);
            format!("open for {left} s: {}", answers.join(", "))
        }
        None => settled(Settled::Expired),
    }
}

/// The command that gives an answer.
fn offer(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Once => "allow",
        Verdict::Session => "allow --session",
        Verdict::Always => "allow --always",
        Verdict::Deny => "deny",
    }
}

fn settled(how: Settled) -> String {
    match how {
        Settled::Answered { verdict, by } => {
            format!(
                "{} {}",
                wording::verdict(verdict),
                wording::answer_source(by)
            )
        }
        Settled::Expired => "nobody answered in time, which means no".to_owned(),
        Settled::Withdrawn => "taken back before anybody answered".to_owned(),
    }
}

fn seconds_left(approval: &Approval, now: Timestamp) -> i64 {
    (approval.expires.as_millis() - now.as_millis()).max(0) / 1000
}

/// What would be done, and how much of a change it is.
fn in_list(approval: &Approval) -> String {
    let what = shorten(&one_line(&approval.what), WHAT_CHARS_MAX);
    match &approval.preview {
        Some(preview) => format!("{what} ({})", wording::change_size(&preview.diff)),
        None => what,
    }
}

/// Exactly what it is, in one line: what cannot be seen is spelt out, so that nothing can hide.
fn one_line(text: &str) -> String {
    exact(text).replace('\n', "⏎")
}

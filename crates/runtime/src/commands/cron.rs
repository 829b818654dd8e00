//! `/cron`: jobs that run by themselves.

use hermes_core::command::Surface;
use hermes_core::{Address, JobDesk as _, JobDraft, JobReading, Misfire, text};

use super::{Conversation, Here};
use crate::error::{Error, Result};
use crate::layout::one_line;
use crate::schedules::{self, Desk, shown};

/// When something runs that is to begin now.
const AT_ONCE: &str = "in 1 second";
/// Of what is done in the background, as its name.
const NAME_CHARS_MAX: usize = 40;
/// Runs that `/cron history` shows.
const HISTORY: usize = 20;

const HINT: &str = "/cron, /cron add SCHEDULE PROMPT, /cron edit JOB WHAT VALUE, /cron show|pause|resume|run|remove JOB, \
                    /cron history or /cron next SCHEDULE";

const EDIT_HINT: &str = "/cron edit JOB WHAT VALUE, where WHAT is schedule, prompt, name, deliver, model, repeat, retries, \
                         silent (on or off) or misfire (once, skip or all): /cron edit mail schedule every day at 9";

impl Conversation {
    pub(super) async fn cron(&self, arguments: &str, here: &Here) -> Result<String> {
        let desk = self.runtime.desk();
        let imported = desk.import().await?;
        let (word, rest) = match arguments.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (arguments, ""),
        };
        let text = match (word, rest) {
            ("" | "list", "") => shown::listed(&desk.list().await?, false),
            ("list", "--all") => shown::listed(&desk.list().await?, true),
            ("history" | "runs", job) => {
                let job = Some(job).filter(|job| !job.is_empty());
                let runs = desk.history(job, HISTORY).await?;
                shown::history(&runs, self.runtime.clock().now())
            }
            (_, "") => return Err(unknown()),
            ("add" | "create", line) => self.add_job(&desk, line, here).await?,
            ("next", schedule) => {
                let (words, upcoming) = desk.read(unquoted(schedule))?;
                shown::read(&words, &upcoming)
            }
            ("edit" | "update", line) => shown::shown(&edit(&desk, line).await?),
            ("show", job) => shown::shown(&desk.find(job).await?),
            ("pause", job) => shown::shown(&desk.pause(job).await?),
            ("resume", job) => shown::shown(&desk.resume(job).await?),
            ("run", job) => shown::shown(&desk.run(job).await?),
            ("remove" | "rm" | "delete", job) => shown::removed(&desk.remove(job).await?),
            _ => return Err(unknown()),
        };
        let mut texts = vec![text];
        if !imported.added.is_empty() {
            texts.insert(0, imported.text());
        }
        let begins = matches!(word, "" | "list" | "add" | "create" | "resume" | "run");
        if begins && !schedules::are_run(self.runtime.base()) {
            texts.push(shown::NOT_RUN.to_owned());
        }
        Ok(texts.join("\n"))
    }

    async fn add_job(&self, desk: &Desk, line: &str, here: &Here) -> Result<String> {
        let Some((schedule, prompt)) = schedules::parted(desk, line) else {
            // Says what is wrong with it, with examples.
            desk.read(line)?;
            return Err(unknown());
        };
        let draft = JobDraft {
            schedule: Some(schedule.to_owned()),
            prompt: Some(prompt.to_owned()),
            // What is asked for in a terminal is not told to a chat, also when the conversation began there.
            created_in: (here.surface == Surface::Chat).then(|| here.session.clone()),
            ..JobDraft::default()
        };
        Ok(shown::shown(&desk.add(draft).await?))
    }
}

impl Conversation {
    /// `/background WORDS`: a job that runs at once, in a conversation of its own, and tells its result to a chat.
    pub async fn background(&self, words: &str, chat: &Address) -> Result<String> {
        if words.is_empty() {
            return Err(Error::asked("/background needs what is to be done")
                .with_hint("/background compare the three offers in offers.pdf"));
        }
        let draft = JobDraft {
            name: Some(text::shorten(&one_line(words), NAME_CHARS_MAX)),
            schedule: Some(AT_ONCE.to_owned()),
            prompt: Some(words.to_owned()),
            origin: Some(chat.to_string()),
            ..JobDraft::default()
        };
        let job = self.runtime.desk().add(draft).await?.job.id;
        Ok(format!(
            "I do that beside our conversation, and tell you here when it is done. It cannot ask you for consent. \
             `/cron show {job}` shows how it goes."
        ))
    }
}

/// `JOB schedule every day at 9`
async fn edit(desk: &Desk, line: &str) -> Result<JobReading> {
    let parts = match line.strip_prefix('"') {
        Some(rest) => rest.split_once('"'),
        None => line.split_once(char::is_whitespace),
    };
    let wrong = || {
        Error::asked("/cron edit takes a job, what is changed, and to what").with_hint(EDIT_HINT)
    };
    let (job, rest) = parts.ok_or_else(wrong)?;
    let (what, value) = rest
        .trim()
        .split_once(char::is_whitespace)
        .ok_or_else(wrong)?;
    let value = unquoted(value.trim());
    let draft = changed(&what.to_lowercase(), value).ok_or_else(wrong)?;
    Ok(desk.edit(job, draft).await?)
}

fn changed(what: &str, value: &str) -> Option<JobDraft> {
    let text = Some(value.to_owned());
    let blank = JobDraft::default();
    Some(match what {
        "schedule" => JobDraft {
            schedule: text,
            ..blank
        },
        "prompt" => JobDraft {
            prompt: text,
            ..blank
        },
        "name" => JobDraft {
            name: text,
            ..blank
        },
        "deliver" => JobDraft {
            deliver: text,
            ..blank
        },
        "model" => JobDraft {
            model: text,
            ..blank
        },
        "repeat" => JobDraft {
            repeat: Some(value.parse().ok()?),
            ..blank
        },
        "retries" => JobDraft {
            retries: Some(value.parse().ok()?),
            ..blank
        },
        "silent" => JobDraft {
            silent: Some(is_on(value)?),
            ..blank
        },
        "misfire" => JobDraft {
            misfire: Some(Misfire::named(value)?),
            ..blank
        },
        _ => return None,
    })
}

fn is_on(value: &str) -> Option<bool> {
    match value {
        "on" | "yes" | "true" => Some(true),
        "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn unquoted(text: &str) -> &str {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

fn unknown() -> Error {
    Error::asked("/cron does not know these words").with_hint(HINT)
}

//! What a session asked to be told of its processes: their end, and lines with certain words.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::text::tail;
use hermes_core::{ProcessName, ProcessState, SessionId};
use tokio::time::{Instant, sleep};

use super::record::Record;
use super::{Background, Seen};

/// How often processes are looked at.
const INTERVAL: Duration = Duration::from_secs(2);

/// The least time between two notices of one process's lines: a notice costs a turn.
const QUIET: Duration = Duration::from_secs(15);

/// So many quiet times in a row with lines in them, and the words are not worth watching for.
const BUSY_MAX: u32 = 3;

/// Most of the output a notice carries.
const OUTPUT_BYTES_MAX: usize = 2000;

/// Most lines a notice carries.
const LINES_MAX: usize = 20;

/// One process that is looked after.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    record: Record,
    /// Words whose lines are told.
    watch_for: Vec<String>,
    /// How far its output was read.
    position: (u64, u64),
    /// The beginning of a line whose end has not come yet.
    unfinished: String,
    quiet_until: Option<Instant>,
    /// Lines that matched in the quiet time and were not told.
    untold: usize,
    busy: u32,
}

impl Background {
    pub(super) fn watch(&self, record: &Record, watch_for: Vec<String>) {
        if !record.tell_end && watch_for.is_empty() {
            return;
        }
        self.watched().push(Watched::new(record.clone(), watch_for));
        self.started.notify_waiters();
    }

    pub(super) fn unwatch(&self, record: &Record) {
        let id = &record.id;
        self.watched().retain(|watched| watched.record.id != *id);
        self.note_end_told(record);
    }

    /// Sees to it that nobody tells the end of a process again.
    fn note_end_told(&self, record: &Record) {
        let process = ProcessName {
            session: &record.session,
            id: &record.id,
        };
        if let Ok(mut record) = self.records.find(process)
            && std::mem::take(&mut record.tell_end)
        {
            // What cannot be noted is told once more after a restart.
            let _ = self.records.write(&record);
        }
    }

    /// Watches for the ends that a Hermes before us was to tell.
    fn take_up(&self, session: &SessionId) {
        let records = self.records.all().into_iter();
        let mine = records.filter(|record| record.session == *session && record.tell_end);
        let mut watched = self.watched();
        for record in mine {
            if watched.iter().all(|other| other.record.id != record.id) {
                watched.push(Watched::new(record, Vec::new()));
            }
        }
    }

    pub(super) async fn next_notice(&self, session: &SessionId) -> String {
        self.take_up(session);
        loop {
            let started = self.started.notified();
            let mine: Vec<Watched> = self
                .watched()
                .iter()
                .filter(|watched| watched.record.session == *session)
                .cloned()
                .collect();
            if mine.is_empty() {
                started.await;
                continue;
            }
            for watched in mine {
                if let Some(notice) = self.look_after(watched).await {
                    return notice;
                }
            }
            sleep(INTERVAL).await;
        }
    }

    pub(super) fn watches(&self, session: &SessionId) -> bool {
        let watched = self.watched();
        watched.iter().any(|one| one.record.session == *session)
    }

    async fn look_after(&self, mut watched: Watched) -> Option<String> {
        let (file, byte) = watched.position;
        // A terminal that does not answer now is asked again.
        let since = format!("{file} {byte}");
        let seen = self.see(&watched.record, &since).await.ok()?;
        let was_to_tell_end = watched.record.tell_end;
        let (notice, is_over) = watched.hear(&seen, Instant::now());
        let record = watched.record.clone();
        {
            let mut all = self.watched();
            // Somebody may have stopped watching while we looked.
            let place = all.iter().position(|other| other.record.id == record.id)?;
            if is_over {
                drop(all.remove(place));
            } else {
                all[place] = watched;
            }
        }
        if is_over {
            self.note_end_told(&record);
        } else if record.tell_end != was_to_tell_end {
            // What cannot be noted is not told after a restart.
            let _ = self.records.write(&record);
        }
        notice
    }

    fn watched(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn new(record: Record, watch_for: Vec<String>) -> Self {
        Self {
            record,
            watch_for,
            position: (0, 0),
            unfinished: String::new(),
            quiet_until: None,
            untold: 0,
            busy: 0,
        }
    }

    /// Takes in what was seen. Returns what to tell, and whether there is nothing more to watch.
    fn hear(&mut self, seen: &Seen, now: Instant) -> (Option<String>, bool) {
        self.position = seen.position;
        let is_over = seen.state != ProcessState::Running;
        let matched = self.matching_lines(&seen.output, is_over);
        if is_over && self.record.tell_end {
            return (Some(self.end_notice(seen)), true);
        }
        (self.lines_notice(matched, now), is_over)
    }

    fn matching_lines(&mut self, output: &str, is_over: bool) -> Vec<String> {
        let text = std::mem::take(&mut self.unfinished) + output;
        let (lines, rest) = match text.rsplit_once('\n') {
            _ if is_over => (text.as_str(), ""),
            Some((lines, rest)) => (lines, rest),
            None => ("", text.as_str()),
        };
        self.unfinished = tail(rest, OUTPUT_BYTES_MAX).to_owned();
        let words = &self.watch_for;
        lines
            .lines()
            .filter(|line| words.iter().any(|word| line.contains(word)))
            .map(str::to_owned)
            .collect()
    }

    fn lines_notice(&mut self, mut matched: Vec<String>, now: Instant) -> Option<String> {
        if matched.is_empty() {
            return None;
        }
        if self.quiet_until.is_some_and(|until| now < until) {
            self.untold += matched.len();
            return None;
        }
        self.busy = if self.untold > 0 { self.busy + 1 } else { 0 };
        self.quiet_until = Some(now + QUIET);
        let untold = std::mem::take(&mut self.untold) + matched.len().saturating_sub(LINES_MAX);
        matched.truncate(LINES_MAX);
        let lines = matched.join("\n");
        let mut notice = format!(
            "[Background process {} printed a line you watch for (`{}`):\n{}",
            self.record.id,
            self.record.line,
            tail(&lines, OUTPUT_BYTES_MAX)
        );
        if untold > 0 {
            notice += &format!("\n{untold} more were not told");
        }
        if self.busy >= BUSY_MAX {
            self.watch_for.clear();
            self.record.tell_end = true;
            notice += "\nThey come too often: you will be told when it ends instead";
        }
        Some(notice + "]")
    }

    fn end_notice(&self, seen: &Seen) -> String {
        let how = match seen.state {
            ProcessState::Exited(code) => format!("ended with exit code {code}"),
            ProcessState::Killed => "was killed".to_owned(),
            ProcessState::Lost | ProcessState::Running => "is gone, nobody saw how".to_owned(),
        };
        let (id, line) = (&self.record.id, &self.record.line);
        match tail(seen.output.trim_end(), OUTPUT_BYTES_MAX) {
            "" => format!("[Background process {id} {how} (`{line}`)]"),
            output => {
                format!("[Background process {id} {how} (`{line}`); its last output:\n{output}]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(words: &[&str]) -> Watched {
        let record = Record {
            id: "proc_1".into(),
            session: "s".into(),
            line: "make".into(),
            cwd: "/".into(),
            started_at_ms: 0,
            pid: Some(1),
            tell_end: false,
            place: None,
            pass: hermes_core::Pass::default(),
            mark: None,
        };
        Watched::new(record, words.iter().map(ToString::to_string).collect())
    }

    fn running(output: &str) -> Seen {
        Seen {
            state: ProcessState::Running,
            position: (0, 0),
            output: output.into(),
        }
    }

    #[tokio::test]
    async fn a_watched_word_is_told_once_its_line_is_whole() {
        let mut watched = watched(&["error"]);
        let now = Instant::now();
        assert_eq!(watched.hear(&running("an err"), now).0, None);
        let notice = watched.hear(&running("or here\nmore\n"), now).0.unwrap();
        assert!(notice.contains("an error here"), "{notice}");
        assert!(!notice.contains("more"), "{notice}");
    }

    #[tokio::test]
    async fn a_chatty_process_is_told_about_rarely_and_then_no_more() {
        let mut watched = watched(&["x"]);
        let mut now = Instant::now();
        let mut notices = Vec::new();
        for _ in 0..200 {
            notices.extend(watched.hear(&running("x\n"), now).0);
            now += INTERVAL;
        }
        assert_eq!(notices.len() as u32, 1 + BUSY_MAX, "{notices:?}");
        assert!(notices.last().unwrap().contains("when it ends instead"));
        assert!(watched.record.tell_end);
    }
}

//! The log file: what happened, for `hermes logs` and for bug reports. Where it goes is decided here, once.

pub mod reader;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Mutex;

use hermes_core::{Event, Notice, SessionId, TurnEnd, wording};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use crate::base::Base;

/// A log that grew beyond this at the start of a run becomes `agent.log.1`, and so on.
const LOG_BYTES_MAX: u64 = 5 * 1024 * 1024;
const OLD_LOGS_MAX: u32 = 3;

/// Starts logging. A log that cannot be written is no reason not to work.
pub fn start(base: &Base) {
    let file = base.home.logs().join("agent.log");
    rotate(&file);
    let Ok(log) = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&file)
    else {
        return;
    };
    let level = match base
        .settings
        .string("logging.level")
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "debug" => Level::DEBUG,
        "warning" | "warn" => Level::WARN,
        "error" => Level::ERROR,
        _ => Level::INFO,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_timer(UtcTime)
        .with_writer(Redacted {
            log: Mutex::new(log),
        })
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes down what went wrong in a session: what providers refused, and how turns failed.
pub fn log(session: &SessionId, event: &Event) {
    match event {
        Event::Notice {
            notice: notice @ Notice::Model { .. },
        } => tracing::warn!(%session, "{}", wording::notice(notice)),
        Event::TurnEnded {
            turn,
            end: TurnEnd::Failed { error },
        } => tracing::error!(%session, %turn, kind = ?error.kind, "{error}; {}", error.hint),
        Event::TurnEnded {
            turn,
            end: TurnEnd::Broken { error, .. },
        } => tracing::error!(%session, %turn, "{error}"),
        _ => {}
    }
}

fn rotate(file: &Path) {
    if !file
        .metadata()
        .is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX)
    {
        return;
    }
    let numbered = |number: u32| file.with_extension(format!("log.{number}"));
    for number in (1..OLD_LOGS_MAX).rev() {
        let _ = std::fs::rename(numbered(number), numbered(number + 1));
    }
    let _ = std::fs::rename(file, numbered(1));
}

struct UtcTime;

impl tracing_subscriber::fmt::time::FormatTime for UtcTime {
    fn format_time(
        &self,
        writer: &mut tracing_subscriber::fmt::format::Writer<'_>,
    ) -> std::fmt::Result {
        use hermes_core::Clock as _;
        let now = crate::SystemClock.now();
        let (_, time) = now.civil();
        let millis = now.as_millis().rem_euclid(1000);
        write!(
            writer,
            "{}T{:02}:{:02}:{:02}.{millis:03}Z",
            now.date_text(),
            time.hour,
            time.minute,
            time.second
        )
    }
}

/// Writes whole lines, secrets taken out.
struct Redacted {
    log: Mutex<File>,
}

struct Line<'a>(&'a Redacted);

impl<'a> MakeWriter<'a> for Redacted {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(self)
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let clean = hermes_core::redact::redact(&String::from_utf8_lossy(bytes));
        let mut log = self
            .0
            .log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        log.write_all(clean.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

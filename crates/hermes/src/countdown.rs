//! The wait before a model is asked again, counted down where somebody can see it: on standard error, as one line that is
//! drawn over at a terminal, and as a single line elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use hermes_core::text::printable;
use hermes_core::{Event, ModelNotice, Notice, wording};
use tokio::time::{Instant, sleep_until};

use crate::output::note;
use crate::render::Renderer;

/// A shorter wait is over before it is read.
const WORTH_TELLING: Duration = Duration::from_secs(1);

pub struct Countdown {
    manner: Manner,
    /// Standard error is a terminal.
    is_drawn: bool,
    until: Option<Instant>,
    /// Something of ours stands in the line.
    is_shown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Nobody else tells of the wait.
    Alone,
    /// The wait is told as any notice.
    BesideNotices,
    /// A program reads events.
    Never,
}

impl Countdown {
    pub fn beside(renderer: &Renderer) -> Self {
        Self {
            manner: match renderer {
                Renderer::Quiet => Manner::Alone,
                Renderer::Live(_) => Manner::BesideNotices,
                Renderer::Json(_) => Manner::Never,
            },
            is_drawn: std::io::stderr().is_terminal(),
            until: None,
            is_shown: false,
        }
    }

    /// Makes room for what is shown next; the wait is over, whatever it is.
    pub fn clear(&mut self) {
        self.until = None;
        if std::mem::take(&mut self.is_shown) {
            write("\r\x1b[K");
        }
    }

    /// Begins to count when an event says that the model is waited for.
    pub fn heed(&mut self, event: &Event) {
        let Event::Notice {
            notice:
                notice @ Notice::Model {
                    notice: ModelNotice::Retrying { wait_ms, .. },
                },
        } = event
        else {
            return;
        };
        let wait = Duration::from_millis(*wait_ms);
        if wait < WORTH_TELLING || self.manner == Manner::Never {
            return;
        }
        if self.manner == Manner::Alone {
            let words = printable(&wording::notice(notice)).into_owned();
            note(&format!("{words}; Ctrl-C ends the wait"));
        }
        self.until = Some(Instant::now() + wait);
        self.draw();
    }

    /// Draws the seconds that are left, each once. Waits for ever when nothing is waited for. Cancel-safe.
    pub async fn tick(&mut self) {
        let Some(until) = self.until.filter(|_| self.is_drawn) else {
            return std::future::pending().await;
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.clear();
            return std::future::pending().await;
        }
        // The next moment at which a whole number of seconds is left.
        let whole = Duration::from_secs((left.as_secs_f64() - 0.001).max(0.0) as u64);
        sleep_until(until - whole).await;
        self.draw();
    }

    fn draw(&mut self) {
        if let Some(until) = self.until.filter(|_| self.is_drawn) {
            let left = until.saturating_duration_since(Instant::now());
            let left = left.as_secs_f64().ceil();
            write(&format!("\r\x1b[K  asking again in {left} s"));
            self.is_shown = true;
        }
    }
}

/// When this is lost, so is nothing that matters.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

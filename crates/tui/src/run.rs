//! The event loop: reads keys and what the host tells, feeds both to the [`App`], and carries out its effects.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use futures_util::StreamExt as _;
use ratatui_core::text::Line;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::app::{App, Effect, Input};
use crate::host::{FromHost, Leave, Settings, ToHost};
use crate::screen::{Screen, Size, View};
use crate::terminal::{PanicGuard, RawTerminal};
use crate::unsent::Unsent;
use crate::{files, history, images};

/// At most 60 frames a second: more nobody sees.
const FRAME: Duration = Duration::from_millis(16);
/// A key is shown sooner, whatever else is drawn: whoever types sees every wait. Not at once, since a terminal may send
/// what was pasted as keys.
const KEY_FRAME: Duration = Duration::from_millis(4);
/// Nothing is drawn for this long after the terminal's size changed: tmux tells of a second change only 250 ms after the
/// first, and what is drawn for a size that is no longer the terminal's stays ugly for good.
const SETTLED: Duration = Duration::from_millis(300);
/// How often things that move by themselves are drawn.
const TICK: Duration = Duration::from_millis(100);
/// How much later than it is typed something is kept, for the case that the program is killed.
const KEEP_AFTER: Duration = Duration::from_millis(300);
/// Words of the program that are taken before the next frame, so that keys are not kept waiting.
const BATCH_MAX: usize = 512;

#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("cannot take over the terminal")]
    Terminal(#[source] io::Error),
}

impl TuiError {
    pub fn hint(&self) -> &'static str {
        "`hermes --plain` talks in plain lines, which every terminal can do"
    }
}

/// Runs the interface until the person or the program leaves. Dropping the future gives the terminal back.
pub async fn run(
    settings: Settings,
    mut from_host: mpsc::Receiver<FromHost>,
    to_host: mpsc::Sender<ToHost>,
) -> Result<Leave, TuiError> {
    let _guard = PanicGuard::install();
    let mut event_loop = EventLoop::new(settings, to_host).map_err(TuiError::Terminal)?;
    Ok(event_loop.follow(&mut from_host).await)
}

struct EventLoop {
    app: App,
    settings: Settings,
    to_host: mpsc::Sender<ToHost>,
    /// What the program has no room for yet. Waiting for it would keep the program waiting for us.
    outbox: VecDeque<ToHost>,
    /// None while the terminal is somebody else's.
    terminal: Option<(RawTerminal, EventStream)>,
    screen: Screen,
    /// The terminal's size when it was last looked at, and when it was last seen to change.
    size: Size,
    resized: Option<Instant>,
    listing: JoinSet<Vec<String>>,
    unsent: Option<Unsent>,
    /// When what is typed is kept next.
    keep_at: Option<Instant>,
    started: Instant,
    drawn: Instant,
    is_dirty: bool,
    /// A key was pressed that is not on the screen yet.
    is_urgent: bool,
}

impl EventLoop {
    fn new(settings: Settings, to_host: mpsc::Sender<ToHost>) -> io::Result<Self> {
        let terminal = RawTerminal::enter()?;
        let size = terminal.size();
        let history = settings.history_file.as_deref().map(history::load);
        let unsent = settings.history_file.as_deref().map(Unsent::beside);
        let mut app = App::new(settings.clone(), history.unwrap_or_default());
        app.restore(unsent.iter().flat_map(Unsent::left).collect());
        let now = Instant::now();
        Ok(Self {
            app,
            screen: Screen::new(settings.is_coloured, settings.narrowing, size),
            size,
            resized: None,
            settings,
            to_host,
            outbox: VecDeque::new(),
            terminal: Some((terminal, EventStream::new())),
            listing: JoinSet::new(),
            unsent,
            keep_at: None,
            started: now,
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            is_dirty: true,
            is_urgent: false,
        })
    }

    async fn follow(&mut self, from_host: &mut mpsc::Receiver<FromHost>) -> Leave {
        let mut told = Vec::new();
        loop {
            let frame = self.next_frame();
            let inputs: Vec<Input> = tokio::select! {
                biased;
                event = next_event(&mut self.terminal) => match event {
                    Some(event) => input_of(event).into_iter().collect(),
                    None => return Leave::Closed,
                },
                room = self.to_host.reserve(), if !self.outbox.is_empty() => match (room, self.outbox.pop_front()) {
                    (Ok(room), Some(told)) => {
                        room.send(told);
                        continue;
                    }
                    _ => return Leave::Asked,
                },
                Some(listed) = self.listing.join_next() => listed.ok().map(Input::Files).into_iter().collect(),
                () = sleep_until(self.keep_at.unwrap_or(self.drawn)), if self.keep_at.is_some() => Vec::new(),
                () = sleep_until(frame.unwrap_or(self.drawn)), if frame.is_some() => if self.is_dirty {
                    Vec::new()
                } else {
                    vec![Input::Tick]
                },
                count = from_host.recv_many(&mut told, BATCH_MAX) => match count {
                    0 => return Leave::Asked,
                    _ => told.drain(..).map(Input::Host).collect(),
                },
            };
            if self.keep_at.is_some_and(|at| at <= Instant::now()) {
                self.keep();
            }
            for input in inputs {
                if let Some(leave) = self.take(input) {
                    return leave;
                }
            }
            if self.draw_if_due().is_err() {
                return Leave::Closed;
            }
        }
    }

    /// Keeps what is typed and not sent.
    fn keep(&mut self) {
        self.keep_at = None;
        let draft = self.app.draft();
        self.unsent
            .iter_mut()
            .for_each(|unsent| unsent.keep(&draft));
    }

    /// When to draw next, if there is anything to draw.
    fn next_frame(&self) -> Option<Instant> {
        self.terminal.as_ref()?;
        match (self.is_dirty, self.app.is_moving()) {
            (true, _) => Some(self.due()),
            (false, true) => Some(self.drawn + TICK),
            (false, false) => None,
        }
    }

    /// When the next frame may be drawn at the soonest.
    fn due(&self) -> Instant {
        let pause = if self.is_urgent { KEY_FRAME } else { FRAME };
        let paced = self.drawn + pause;
        self.resized.map_or(paced, |at| paced.max(at + SETTLED))
    }

    fn take(&mut self, input: Input) -> Option<Leave> {
        self.is_dirty = true;
        self.is_urgent |= matches!(input, Input::Key(_) | Input::Paste(_));
        if matches!(input, Input::Resized) {
            self.resized = Some(Instant::now());
        }
        let input = self.recognised(input);
        if matches!(input, Input::Host(FromHost::Edited(_) | FromHost::Paged(_)))
            && self.retake().is_err()
        {
            return Some(Leave::Closed);
        }
        let may_type = !matches!(
            input,
            Input::Tick | Input::Resized | Input::Host(FromHost::Event(_))
        );
        let effects = self.app.update(input, self.started.elapsed());
        if may_type && self.keep_at.is_none() {
            let draft = self.app.draft();
            let is_kept = self
                .unsent
                .as_ref()
                .is_none_or(|unsent| unsent.is_kept(&draft));
            self.keep_at = (!is_kept).then(|| Instant::now() + KEEP_AFTER);
        }
        for effect in effects {
            if let Some(leave) = self.act(effect) {
                return Some(leave);
            }
        }
        None
    }

    /// A paste that names images is one of images.
    fn recognised(&self, input: Input) -> Input {
        let Input::Paste(text) = input else {
            return input;
        };
        let home = self.settings.user_home.as_deref();
        let images = images::pasted(&text, home, Path::is_file);
        if images.is_empty() {
            Input::Paste(text)
        } else {
            Input::PastedImages { text, images }
        }
    }

    fn act(&mut self, effect: Effect) -> Option<Leave> {
        match effect {
            Effect::Send(told) => {
                if matches!(told, ToHost::Edit(_) | ToHost::Page) {
                    self.release();
                }
                self.outbox.push_back(told);
            }
            Effect::Remember(text) => self.remember(&text),
            Effect::ListFiles(folder) => {
                self.listing.spawn_blocking(move || files::list(&folder));
            }
            Effect::Ring => self.write("\x07"),
            Effect::Signal(sequence) => self.write(&sequence),
            Effect::ClearScreen => {
                let clear = self.screen.clear();
                self.write(&clear);
            }
            Effect::Suspend => {
                self.release();
                suspend();
                if self.retake().is_err() {
                    return Some(Leave::Closed);
                }
            }
            Effect::Leave => return Some(Leave::Asked),
        }
        None
    }

    /// Nothing depends on the history: a full disk must not stop the conversation.
    fn remember(&self, text: &str) {
        if let Some(path) = &self.settings.history_file {
            let _ = history::append(path, text);
        }
    }

    /// A terminal that cannot be written to is found out by the next frame.
    fn write(&self, text: &str) {
        if let Some((terminal, _)) = &self.terminal {
            let _ = terminal.write(text);
        }
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        if self.is_dirty && self.due() <= Instant::now() {
            self.draw()
        } else {
            Ok(())
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let Some((terminal, _)) = &self.terminal else {
            return Ok(());
        };
        let size = terminal.size();
        if std::mem::replace(&mut self.size, size) != size {
            // Its signal is still on its way.
            self.resized = Some(Instant::now());
            return Ok(());
        }
        let finished = self.app.take_finished(size);
        let view = self.app.view(size.columns, size.rows);
        let frame = self.screen.draw(&finished, view, size);
        self.drawn = Instant::now();
        self.is_dirty = false;
        self.is_urgent = false;
        if frame.is_empty() {
            Ok(())
        } else {
            terminal.write(&frame)
        }
    }

    /// Gives the terminal to somebody else for a while.
    fn release(&mut self) {
        let erase = self.screen.erase();
        self.write(&erase);
        self.terminal = None;
    }

    fn retake(&mut self) -> io::Result<()> {
        if self.terminal.is_none() {
            self.terminal = Some((RawTerminal::enter()?, EventStream::new()));
        }
        Ok(())
    }
}

impl Drop for EventLoop {
    /// Prints what is still to be printed and removes the rest, however it ends. What was typed and not sent can be
    /// found in the history.
    fn drop(&mut self) {
        let draft = self.app.draft();
        if !draft.trim().is_empty() {
            self.remember(&draft);
        }
        self.unsent.iter_mut().for_each(|unsent| unsent.keep(""));
        let Some((terminal, _)) = &self.terminal else {
            return;
        };
        let size = terminal.size();
        let mut finished = self.app.take_finished(size);
        finished.push(Line::default());
        let mut last = self.screen.draw(&finished, View::default(), size);
        last.push_str(&self.screen.erase());
        let _ = terminal.write(&last);
    }
}

/// Waits for the terminal; for ever while it is somebody else's.
async fn next_event(terminal: &mut Option<(RawTerminal, EventStream)>) -> Option<TerminalEvent> {
    match terminal {
        Some((_, events)) => events.next().await?.ok(),
        None => std::future::pending().await,
    }
}

fn input_of(event: TerminalEvent) -> Option<Input> {
    match event {
        TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(key)),
        TerminalEvent::Paste(text) => Some(Input::Paste(text)),
        TerminalEvent::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}

/// Stops the program, as Ctrl-Z does everywhere, until the shell lets it go on.
fn suspend() {
    let _ = rustix::process::kill_process_group(
        rustix::process::getpgrp(),
        rustix::process::Signal::TSTP,
    );
}

//! The whole interface as one state: [`App::update`] takes what happens and says what to do about it, [`App::view`] says
//! what it looks like. Neither touches the terminal, the disk or the clock.

mod send;
#[cfg(test)]
mod tests;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::KeyEvent;
use hermes_core::command::{self, Surface, Verb};
use hermes_core::{ApprovalAnswer, Event, Op, Response, wording};
use ratatui_core::text::Line;

use crate::approval_dialog::{ApprovalDialog, Heard};
use crate::composer::{Composed, Composer, PasteLimits};
use crate::conversation::Conversation;
use crate::editor::Edit;
use crate::form::Filled;
use crate::host::{Around, BusyInput, FromHost, Settings, ToHost};
use crate::item::Item;
use crate::keymap::{self, Key};
use crate::keys;
use crate::picker::{Picked, Picker};
use crate::screen::Size;
use crate::status::shorten_home;
use crate::theme;
use crate::vi::Mode;

/// A second Ctrl-C within this time leaves.
const AGAIN: Duration = Duration::from_secs(2);
/// Who typed so shortly before a question came up did not mean to answer it.
const TYPING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum Input {
    Key(KeyEvent),
    Paste(String),
    /// A paste that names nothing but images.
    PastedImages {
        text: String,
        images: Vec<PathBuf>,
    },
    Host(FromHost),
    /// The files of the conversation's folder.
    Files(Vec<String>),
    /// The terminal has another size.
    Resized,
    /// Time has passed.
    Tick,
}

/// What the rim has to do.
#[derive(Debug)]
pub(crate) enum Effect {
    Send(ToHost),
    /// Keep this in the history file.
    Remember(String),
    ListFiles(PathBuf),
    Ring,
    /// Write this to the terminal as it is.
    Signal(String),
    ClearScreen,
    Suspend,
    /// Give the terminal back and end, whatever the program still does.
    Leave,
}

#[derive(Debug)]
pub(crate) struct App {
    settings: Settings,
    conversation: Conversation,
    composer: Composer,
    picker: Option<Picker>,
    around: Around,
    busy_input: BusyInput,
    /// A short word below the input, and until when.
    hint: Option<(String, Duration)>,
    /// When Ctrl-C was pressed last.
    interrupted: Option<Duration>,
    /// When Esc was pressed last, with nothing to send away.
    escaped: Option<Duration>,
    /// When the last character was typed.
    typed: Option<Duration>,
    is_leaving: bool,
    now: Duration,
    /// The last item that was printed: it decides whether a blank line follows.
    last_printed: Option<Item>,
}

impl App {
    pub(crate) fn new(settings: Settings, history: Vec<String>) -> Self {
        let limits = PasteLimits {
            lines_max: settings.paste_lines_max,
            chars_max: settings.paste_chars_max,
        };
        Self {
            conversation: Conversation::new(settings.reasoning),
            composer: Composer::new(history, limits, settings.quick_commands.clone())
                .edited_with(settings.edit_mode),
            picker: None,
            around: Around::default(),
            busy_input: settings.busy_input,
            hint: None,
            interrupted: None,
            escaped: None,
            typed: None,
            is_leaving: false,
            now: Duration::ZERO,
            last_printed: None,
            settings,
        }
    }

    /// Takes what happened at `now`, counted from the start.
    pub(crate) fn update(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        self.now = now;
        let mut effects = match input {
            Input::Key(key) => self.key(keymap::read(key)),
            Input::Paste(text) | Input::PastedImages { text, .. }
                if !self.was_typing() && !self.conversation.forms.is_empty() =>
            {
                let form = self.conversation.forms.front_mut();
                form.into_iter().for_each(|form| form.paste(&text));
                Vec::new()
            }
            Input::Paste(text) | Input::PastedImages { text, .. }
                if self
                    .conversation
                    .approvals
                    .front()
                    .is_some_and(ApprovalDialog::is_typed_to) =>
            {
                let asked = self.conversation.approvals.front_mut();
                asked.into_iter().for_each(|asked| asked.paste(&text));
                Vec::new()
            }
            Input::PastedImages { images, .. } => {
                images.iter().for_each(|image| self.composer.attach(image));
                Vec::new()
            }
            Input::Paste(text) => {
                let composed = self.composer.paste(&text);
                self.composed(composed)
            }
            Input::Host(told) => self.told(told),
            Input::Files(files) => {
                self.composer.files(files);
                Vec::new()
            }
            Input::Resized | Input::Tick => Vec::new(),
        };
        for text in self.conversation.take_given_back() {
            self.composer.give_back(&text);
        }
        if self.hint.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.hint = None;
        }
        effects.retain(|effect| !matches!(effect, Effect::Ring) || self.settings.rings_bell);
        effects
    }

    /// Whether something moves by itself, and ticks are wanted.
    pub(crate) fn is_moving(&self) -> bool {
        self.conversation.is_busy() || self.hint.is_some()
    }

    /// What is typed and not sent.
    pub(crate) fn draft(&self) -> String {
        self.composer.editor.expanded()
    }

    /// Puts texts into the input that were typed before the program was killed.
    pub(crate) fn restore(&mut self, texts: Vec<String>) {
        for text in texts {
            self.composer.give_back(&text);
            self.hint("this was typed before, and not sent");
        }
    }

    /// What is finished since the last call, for a terminal of this size.
    pub(crate) fn take_finished(&mut self, size: Size) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for item in self.conversation.take_printed() {
            let before = self.last_printed.as_ref();
            if before.is_some_and(|before| item.stands_apart_from(before)) {
                lines.push(Line::default());
            }
            lines.extend(item.rows(size));
            self.last_printed = Some(item);
        }
        lines
    }

    fn told(&mut self, told: FromHost) -> Vec<Effect> {
        match told {
            FromHost::Opened(opened) => {
                let cwd = shorten_home(&opened.cwd, self.settings.user_home.as_deref());
                self.conversation.open(opened, cwd);
            }
            FromHost::Event(event) => {
                let was_busy = self.conversation.is_busy();
                let is_question = matches!(
                    event,
                    Event::ApprovalRequested(_) | Event::ElicitationRequested(_)
                );
                self.conversation.apply(event, self.now);
                let has_ended = was_busy && !self.conversation.is_busy();
                if has_ended || is_question {
                    return vec![Effect::Ring];
                }
            }
            FromHost::Told(text) => self.conversation.print(Item::Told(text)),
            FromHost::Warned(text) => {
                let note = Item::note(theme::WARNING, text);
                self.conversation.print(note);
            }
            FromHost::Signal(sequence) => return vec![Effect::Signal(sequence)],
            FromHost::Fill(text) => self.composer.give_back(&text),
            FromHost::Choose(choice) => {
                self.picker = Some(Picker::new(choice));
                return self.look();
            }
            FromHost::Looked { value, text } => {
                let picker = self.picker.iter_mut();
                picker.for_each(|picker| picker.looked(&value, &text));
            }
            FromHost::Found { words, items } => {
                let picker = self.picker.iter_mut();
                picker.for_each(|picker| picker.found(&words, &items));
                return self.look();
            }
            FromHost::Around(around) => self.around = around,
            FromHost::Edited(Ok(text)) => self.composer.replace(text.trim_end_matches('\n')),
            FromHost::Edited(Err(why)) => self.complain(why),
            FromHost::Image(image) => {
                self.hint = None;
                match image {
                    Ok(path) => self.composer.attach(&path),
                    Err(why) => self.complain(why),
                }
            }
            FromHost::Skills(skills) => self.composer.know_skills(skills),
            FromHost::Listed { list, items } => self.composer.listed(list, items),
            FromHost::BusyInput(mode) => self.busy_input = mode,
            FromHost::Reasoning(shown) => self.conversation.reasoning = shown,
            FromHost::Say(text) => {
                self.composer.replace(&text);
                return self.send();
            }
            FromHost::Titled(title) => self.conversation.title(title),
            FromHost::Diff(diff) => self.conversation.print(Item::Diff(diff)),
            FromHost::Mode { mode, is_usual } => {
                self.conversation.mode(mode, is_usual);
                self.hint(mode_hint(mode));
            }
            FromHost::Paged(paged) => {
                if let Err(why) = paged {
                    self.complain(why);
                }
            }
            FromHost::Leave => return vec![Effect::Leave],
        }
        Vec::new()
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        if let Some(picker) = &mut self.picker {
            let picked = picker.key(key);
            return self.picked(picked);
        }
        if let Some(effects) = self.ask(key) {
            return effects;
        }
        if !self.was_typing()
            && let Some(effects) = self.fill(key)
        {
            return effects;
        }
        if key == Key::Edit(Edit::Insert('?')) && self.composer.is_resting() && self.may_type() {
            self.conversation.print(Item::Told(keys::TABLE.to_owned()));
            return Vec::new();
        }
        if matches!(key, Key::Edit(Edit::Insert(_))) {
            self.typed = Some(self.now);
        }
        match self.composer.key(key) {
            Composed::Passed => self.other_key(key),
            composed => self.composed(composed),
        }
    }

    fn picked(&mut self, picked: Picked) -> Vec<Effect> {
        if picked == Picked::Nothing {
            return self.look();
        }
        match (self.picker.take(), picked) {
            (Some(picker), Picked::Chosen(arguments)) => {
                let command = picker.command();
                vec![Effect::Send(ToHost::Command { command, arguments })]
            }
            _ => Vec::new(),
        }
    }

    /// Asks for what the picker does not know yet.
    fn look(&mut self) -> Vec<Effect> {
        let requests = self.picker.as_mut().map(Picker::requests);
        let requests = requests.into_iter().flatten();
        requests.map(Effect::Send).collect()
    }

    /// Gives a key to the question on the screen. Returns nothing if there is none, or if it is not for it.
    fn ask(&mut self, key: Key) -> Option<Vec<Effect>> {
        let was_typing = self.was_typing();
        let asked = self.conversation.approvals.front_mut()?;
        if was_typing && key != Key::Cancel && !asked.is_typed_to() {
            return None;
        }
        match asked.key(key) {
            Heard::Passed => return None,
            Heard::Nothing => {}
            Heard::Shown(item) => self.conversation.print(item),
            Heard::NotYet(why) => self.hint(why),
            Heard::Answered(answer) => return Some(self.answer(answer)),
        }
        Some(Vec::new())
    }

    /// Whether the person is in the middle of a message.
    fn was_typing(&self) -> bool {
        let is_recent = |typed| self.now.saturating_sub(typed) < TYPING;
        !self.composer.is_empty() && self.typed.is_some_and(is_recent)
    }

    /// Gives a key to the form on the screen. Returns nothing if there is none, or if it is not for it.
    fn fill(&mut self, key: Key) -> Option<Vec<Effect>> {
        let form = self.conversation.forms.front_mut()?;
        let response = match form.key(key) {
            Filled::Passed => return None,
            Filled::Nothing => return Some(Vec::new()),
            Filled::Done(response) => response,
        };
        let words = match response {
            Response::Accepted { .. } => "answered",
            Response::Declined { .. } | Response::Cancelled => "declined",
        };
        let elicitation = self.conversation.filled()?.id().clone();
        self.conversation.print(Item::note(theme::DIM, words));
        let op = Op::Respond {
            elicitation,
            response,
        };
        Some(vec![Effect::Send(ToHost::Op(op))])
    }

    fn answer(&mut self, answer: ApprovalAnswer) -> Vec<Effect> {
        let Some(question) = self.conversation.answered() else {
            return Vec::new();
        };
        let words = wording::answer(&answer);
        self.conversation.print(Item::note(theme::DIM, words));
        let approval = question.approval;
        vec![Effect::Send(ToHost::Op(Op::Answer { approval, answer }))]
    }

    fn composed(&mut self, composed: Composed) -> Vec<Effect> {
        match composed {
            Composed::Done | Composed::Passed => Vec::new(),
            Composed::Send => self.send(),
            Composed::WantsFiles => {
                let opened = self.conversation.opened.as_ref();
                let folder = opened.map(|opened| opened.cwd.clone());
                folder.map(Effect::ListFiles).into_iter().collect()
            }
            Composed::Wants(list) => vec![Effect::Send(ToHost::List(list))],
        }
    }

    fn other_key(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Interrupt => return self.ctrl_c(),
            Key::Cancel if self.conversation.is_busy() => return self.interrupt(),
            Key::End if self.composer.is_empty() => return self.leave(),
            Key::End => {
                self.composer.key(Key::Edit(Edit::Delete));
            }
            Key::Cancel if self.composer.is_empty() => return self.escape(),
            Key::NextMode => return vec![Effect::Send(ToHost::NextMode)],
            Key::Page => return vec![Effect::Send(ToHost::Page)],
            Key::OpenEditor => return vec![Effect::Send(ToHost::Edit(self.draft()))],
            Key::PasteImage => return self.paste_image(),
            Key::Redraw => return vec![Effect::ClearScreen],
            Key::Suspend => return vec![Effect::Suspend],
            Key::ToggleDetails => {
                let shows = !self.conversation.shows_output;
                self.conversation.shows_output = shows;
                self.hint(if shows {
                    "the output of tools is shown"
                } else {
                    "the output of tools is hidden"
                });
            }
            _ => {}
        }
        Vec::new()
    }

    /// Whether letters are letters: not the keys of vi.
    fn may_type(&self) -> bool {
        self.composer.mode() != Some(Mode::Normal)
    }

    /// Esc where nothing runs and nothing is typed; the second one goes back to an earlier message.
    fn escape(&mut self) -> Vec<Effect> {
        let last = self.escaped.replace(self.now);
        if last.is_none_or(|last| self.now.saturating_sub(last) >= AGAIN) {
            self.hint("Esc again goes back to an earlier message");
            return Vec::new();
        }
        (self.escaped, self.hint) = (None, None);
        let mut commands = command::of(Surface::Terminal);
        let rewind = commands.find(|command| command.verb == Verb::Rewind);
        let request = |command| ToHost::Command {
            command,
            arguments: String::new(),
        };
        rewind.map(request).map(Effect::Send).into_iter().collect()
    }

    fn paste_image(&mut self) -> Vec<Effect> {
        self.hint("reading the clipboard");
        vec![Effect::Send(ToHost::Clipboard)]
    }

    fn ctrl_c(&mut self) -> Vec<Effect> {
        let last = self.interrupted.replace(self.now);
        let is_again = last.is_some_and(|last| self.now.saturating_sub(last) < AGAIN);
        if self.is_leaving {
            return vec![Effect::Leave];
        }
        if self.conversation.is_busy() {
            if is_again {
                return self.leave();
            }
            self.hint("Ctrl-C again leaves");
            return self.interrupt();
        }
        if !self.composer.is_empty() {
            // What was typed can still be found with the arrow up.
            self.interrupted = None;
            return self
                .composer
                .take()
                .map(Effect::Remember)
                .into_iter()
                .collect();
        }
        if is_again {
            return self.leave();
        }
        self.hint("Ctrl-C again leaves");
        Vec::new()
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        vec![Effect::Send(ToHost::Op(Op::Interrupt))]
    }

    fn leave(&mut self) -> Vec<Effect> {
        self.is_leaving = true;
        vec![Effect::Send(ToHost::Leave)]
    }

    fn hint(&mut self, text: impl Into<String>) {
        self.hint = Some((text.into(), self.now + AGAIN));
    }

    fn complain(&mut self, text: impl Into<String>) {
        let note = Item::note(theme::WARNING, text);
        self.conversation.print(note);
    }
}

fn mode_hint(mode: hermes_core::Mode) -> &'static str {
    match mode {
        hermes_core::Mode::Ask => "ask: every change of a file is shown first",
        hermes_core::Mode::AcceptEdits => {
            "accept edits: files are changed, other things asked as usual"
        }
        hermes_core::Mode::Plan => "plan: it reads and plans, and changes nothing",
    }
}

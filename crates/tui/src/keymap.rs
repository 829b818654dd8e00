//! Which key does what. Emacs keys, as in every shell; those of vi are made of them in `vi.rs`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::Edit;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Edit(Edit),
    Send,
    Up,
    Down,
    Complete,
    /// Shift-Tab: act more or less freely.
    NextMode,
    /// Ctrl-T: read all of it.
    Page,
    Cancel,
    /// Ctrl-C: stop it, or leave.
    Interrupt,
    /// Ctrl-D: delete, or leave.
    End,
    SearchHistory,
    OpenEditor,
    /// Ctrl-V, or Alt-V where the terminal keeps the other for itself.
    PasteImage,
    Redraw,
    ToggleDetails,
    Suspend,
    Other,
}

pub(crate) fn read(key: KeyEvent) -> Key {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Char(c) if control => with_control(c),
        KeyCode::Char(c) if alt => with_alt(c),
        KeyCode::Char(c) => Key::Edit(Edit::Insert(c)),
        KeyCode::Enter if key.modifiers.is_empty() => Key::Send,
        KeyCode::Enter => Key::Edit(Edit::Newline),
        KeyCode::BackTab => Key::NextMode,
        KeyCode::Tab if key.modifiers.contains(KeyModifiers::SHIFT) => Key::NextMode,
        KeyCode::Tab => Key::Complete,
        KeyCode::Esc => Key::Cancel,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left if control || alt => Key::Edit(Edit::WordLeft),
        KeyCode::Right if control || alt => Key::Edit(Edit::WordRight),
        KeyCode::Left => Key::Edit(Edit::Left),
        KeyCode::Right => Key::Edit(Edit::Right),
        KeyCode::Home if control => Key::Edit(Edit::TextStart),
        KeyCode::End if control => Key::Edit(Edit::TextEnd),
        KeyCode::Home => Key::Edit(Edit::LineStart),
        KeyCode::End => Key::Edit(Edit::LineEnd),
        KeyCode::Backspace if control || alt => Key::Edit(Edit::KillWordBack),
        KeyCode::Backspace => Key::Edit(Edit::Backspace),
        KeyCode::Delete if control || alt => Key::Edit(Edit::KillWord),
        KeyCode::Delete => Key::Edit(Edit::Delete),
        _ => Key::Other,
    }
}

fn with_control(c: char) -> Key {
    Key::Edit(match c.to_ascii_lowercase() {
        'a' => Edit::LineStart,
        'e' => Edit::LineEnd,
        'b' => Edit::Left,
        'f' => Edit::Right,
        'h' => Edit::Backspace,
        'j' => Edit::Newline,
        'k' => Edit::KillToLineEnd,
        'u' => Edit::KillToLineStart,
        'w' => Edit::KillWordBack,
        'y' => Edit::Yank,
        // Terminals send Ctrl-_ and Ctrl-/ as the same byte, which is also Ctrl-7.
        '_' | '/' | '7' => Edit::Undo,
        'c' => return Key::Interrupt,
        'd' => return Key::End,
        'g' => return Key::OpenEditor,
        'l' => return Key::Redraw,
        'n' => return Key::Down,
        'o' => return Key::ToggleDetails,
        'p' => return Key::Up,
        'r' => return Key::SearchHistory,
        't' => return Key::Page,
        'v' => return Key::PasteImage,
        'z' => return Key::Suspend,
        _ => return Key::Other,
    })
}

fn with_alt(c: char) -> Key {
    Key::Edit(match c.to_ascii_lowercase() {
        'b' => Edit::WordLeft,
        'f' => Edit::WordRight,
        'd' => Edit::KillWord,
        'v' => return Key::PasteImage,
        '<' => Edit::TextStart,
        '>' => Edit::TextEnd,
        _ => return Key::Other,
    })
}

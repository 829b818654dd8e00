//! What things look like. Only the sixteen colours of the terminal's own palette, so that every choice of background and
//! every old terminal is served; without colour, weight and dimness remain.

use ratatui_core::style::{Color, Modifier, Style};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const ITALIC: Style = Style::new().add_modifier(Modifier::ITALIC);
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const STRUCK: Style = Style::new().add_modifier(Modifier::CROSSED_OUT);
pub(crate) const CURSOR: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(crate) const ACCENT: Style = Style::new().fg(Color::Cyan);
pub(crate) const HEADING: Style = ACCENT.add_modifier(Modifier::BOLD);
pub(crate) const LINK: Style = Style::new()
    .fg(Color::Blue)
    .add_modifier(Modifier::UNDERLINED);
pub(crate) const CODE: Style = Style::new().fg(Color::Cyan);
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
pub(crate) const WARNING: Style = Style::new().fg(Color::Yellow);

/// Parts of highlighted code.
pub(crate) const KEYWORD: Style = Style::new().fg(Color::Magenta);
pub(crate) const LITERAL: Style = Style::new().fg(Color::Green);
pub(crate) const NUMBER: Style = Style::new().fg(Color::Cyan);
pub(crate) const TYPE: Style = Style::new().fg(Color::Blue);
pub(crate) const COMMENT: Style = DIM.add_modifier(Modifier::ITALIC);

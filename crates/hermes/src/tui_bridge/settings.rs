//! What the settings and the terminal say about the interface.

use hermes_config::Environment;
use hermes_tui::{BusyInput, EditMode, Narrowing, Settings, ShowReasoning};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::host::WhenBusy;
use crate::quick;
use crate::style::Style;

/// How the interface looks and listens here.
pub(super) fn of(base: &Base) -> Outcome<Settings> {
    let settings = &base.settings;
    let count = |key: &str| settings.u64(key).map(|value| value as usize);
    Ok(Settings {
        is_coloured: Style::of(&std::io::stdout(), &base.environment).is_coloured(),
        narrowing: narrowing(&base.environment),
        busy_input: busy_input(WhenBusy::of(base)?),
        edit_mode: edit_mode(base)?,
        reasoning: reasoning(base, settings.bool("display.show_reasoning")?)?,
        shows_cost: settings.bool("display.show_cost")?,
        rings_bell: settings.bool("display.bell_on_complete")?,
        quick_commands: quick::commands(base),
        paste_lines_max: count("paste_collapse_threshold")?,
        paste_chars_max: count("paste_collapse_char_threshold")?,
        history_file: Some(base.home.input_history()),
        user_home: base.environment.user_home(),
    })
}

pub(super) fn reasoning(base: &Base, is_shown: bool) -> Outcome<ShowReasoning> {
    let is_full = base.settings.bool("display.reasoning_full")?;
    Ok(match (is_shown, is_full) {
        (false, _) => ShowReasoning::Hidden,
        (true, false) => ShowReasoning::Collapsed,
        (true, true) => ShowReasoning::Full,
    })
}

pub(super) fn busy_input(when_busy: WhenBusy) -> BusyInput {
    match when_busy {
        WhenBusy::Queue => BusyInput::Queue,
        WhenBusy::Steer => BusyInput::Steer,
        WhenBusy::Interrupt => BusyInput::Interrupt,
    }
}

fn edit_mode(base: &Base) -> Outcome<EditMode> {
    match base.settings.string("display.edit_mode")?.as_str() {
        "emacs" => Ok(EditMode::Emacs),
        "vi" => Ok(EditMode::Vi),
        other => Err(Failure::usage(format!(
            "`display.edit_mode` is `{other}`, which are no keys to edit with"
        ))
        .hint("known: emacs, vi")),
    }
}

/// xterm, GNU screen and st cut rows off where the others break them anew; what runs inside tmux sees tmux.
fn narrowing(environment: &Environment) -> Narrowing {
    let has = |name: &str| environment.get(name).is_some();
    let is_st = environment
        .get("TERM")
        .is_some_and(|term| term == "st" || term.starts_with("st-"));
    if (has("XTERM_VERSION") || has("STY") || is_st) && !has("TMUX") {
        Narrowing::Cuts
    } else {
        Narrowing::Breaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_that_cut_rows_off_are_known_by_what_they_set() {
        let of =
            |pairs: &[(&str, &str)]| narrowing(&Environment::from_pairs(pairs.iter().copied()));
        assert_eq!(of(&[("TERM", "xterm-256color")]), Narrowing::Breaks);
        assert_eq!(of(&[("XTERM_VERSION", "XTerm(390)")]), Narrowing::Cuts);
        assert_eq!(of(&[("STY", "12.pts-0")]), Narrowing::Cuts);
        assert_eq!(of(&[("TERM", "st-256color")]), Narrowing::Cuts);
        let inside = [("XTERM_VERSION", "XTerm(390)"), ("TMUX", "/tmp/t")];
        assert_eq!(of(&inside), Narrowing::Breaks);
    }
}

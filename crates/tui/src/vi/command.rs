//! The letters of normal mode as commands: `2dw`, `fx`, `dd`, `3p`.

use super::motion::Motion;

/// A larger count is a slip of the finger.
const COUNT_MAX: usize = 999;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Move(Motion),
    Operate(Verb, Motion),
    /// An operator twice: on whole lines.
    Lines(Verb),
    Insert(InsertAt),
    Replace(char),
    /// Below: behind the cursor. Above: before it.
    Put(InsertAt),
    Undo,
    /// Look for words in the history.
    Search,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Delete,
    Change,
    Yank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertAt {
    Here,
    After,
    LineStart,
    LineEnd,
    Above,
    Below,
}

/// A letter to find in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) letter: char,
    pub(super) is_forward: bool,
    /// Stop beside it.
    pub(super) is_till: bool,
}

impl Find {
    pub(super) fn turned(self) -> Self {
        Self {
            is_forward: !self.is_forward,
            ..self
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// More letters are needed.
    Unfinished,
    /// No command begins so.
    Nothing,
    Whole {
        count: Option<usize>,
        command: Command,
    },
}

/// Reads the letters typed so far.
pub(super) fn parse(typed: &str) -> Parsed {
    let (count, rest) = split_count(typed);
    let Some(first) = rest.chars().next() else {
        return Parsed::Unfinished;
    };
    let after = &rest[first.len_utf8()..];
    if let Some(verb) = verb(first) {
        return parse_operation(verb, first, count, after);
    }
    let command = match (first, after.chars().next()) {
        ('r', None) => return Parsed::Unfinished,
        ('r', Some(letter)) => Command::Replace(letter),
        _ => match simple(first) {
            Some(command) => command,
            None => return parse_motion(rest, count, Command::Move),
        },
    };
    Parsed::Whole { count, command }
}

fn parse_operation(verb: Verb, letter: char, count: Option<usize>, after: &str) -> Parsed {
    let (more, rest) = split_count(after);
    let count = match (count, more) {
        (None, None) => None,
        (first, second) => Some((first.unwrap_or(1) * second.unwrap_or(1)).min(COUNT_MAX)),
    };
    match rest.chars().next() {
        None => Parsed::Unfinished,
        Some(again) if again == letter => Parsed::Whole {
            count,
            command: Command::Lines(verb),
        },
        Some(_) => parse_motion(rest, count, |motion| Command::Operate(verb, motion)),
    }
}

fn parse_motion(
    letters: &str,
    count: Option<usize>,
    command: impl Fn(Motion) -> Command,
) -> Parsed {
    let mut letters = letters.chars();
    let (first, second) = (letters.next(), letters.next());
    let motion = match (first, second) {
        (Some('f' | 'F' | 't' | 'T' | 'g'), None) => return Parsed::Unfinished,
        (Some('g'), Some('g')) => Some(Motion::FirstLine),
        (Some(how @ ('f' | 'F' | 't' | 'T')), Some(letter)) => Some(Motion::Find(Find {
            letter,
            is_forward: how.is_ascii_lowercase(),
            is_till: how.eq_ignore_ascii_case(&'t'),
        })),
        (Some(letter), None) => motion(letter),
        _ => None,
    };
    match motion.map(command) {
        Some(command) => Parsed::Whole { count, command },
        None => Parsed::Nothing,
    }
}

/// A count does not begin with 0: that is a motion.
fn split_count(typed: &str) -> (Option<usize>, &str) {
    if typed.starts_with('0') {
        return (None, typed);
    }
    let digits = typed.len() - typed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (digits, rest) = typed.split_at(digits);
    let count = match digits {
        "" => None,
        digits => Some(digits.parse().unwrap_or(COUNT_MAX).min(COUNT_MAX)),
    };
    (count, rest)
}

fn verb(letter: char) -> Option<Verb> {
    Some(match letter {
        'd' => Verb::Delete,
        'c' => Verb::Change,
        'y' => Verb::Yank,
        _ => return None,
    })
}

/// Commands of one letter.
fn simple(letter: char) -> Option<Command> {
    Some(match letter {
        'x' => Command::Operate(Verb::Delete, Motion::Right),
        'X' => Command::Operate(Verb::Delete, Motion::Left),
        's' => Command::Operate(Verb::Change, Motion::Right),
        'S' => Command::Lines(Verb::Change),
        'D' => Command::Operate(Verb::Delete, Motion::LineEnd),
        'C' => Command::Operate(Verb::Change, Motion::LineEnd),
        'Y' => Command::Lines(Verb::Yank),
        'i' => Command::Insert(InsertAt::Here),
        'a' => Command::Insert(InsertAt::After),
        'I' => Command::Insert(InsertAt::LineStart),
        'A' => Command::Insert(InsertAt::LineEnd),
        'o' => Command::Insert(InsertAt::Below),
        'O' => Command::Insert(InsertAt::Above),
        'p' => Command::Put(InsertAt::Below),
        'P' => Command::Put(InsertAt::Above),
        'u' => Command::Undo,
        '/' => Command::Search,
        _ => return None,
    })
}

fn motion(letter: char) -> Option<Motion> {
    Some(match letter {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'j' => Motion::Down,
        'k' => Motion::Up,
        'w' => Motion::Word,
        'b' => Motion::WordBack,
        'e' => Motion::WordEnd,
        '0' => Motion::LineStart,
        '^' => Motion::LineText,
        '$' => Motion::LineEnd,
        'G' => Motion::LastLine,
        ';' => Motion::Again,
        ',' => Motion::AgainBack,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(typed: &str) -> Option<(Option<usize>, Command)> {
        match parse(typed) {
            Parsed::Whole { count, command } => Some((count, command)),
            _ => None,
        }
    }

    #[test]
    fn counts_multiply_and_end_somewhere() {
        let operate = |motion| Command::Operate(Verb::Delete, motion);
        assert_eq!(whole("2d3w"), Some((Some(6), operate(Motion::Word))));
        assert_eq!(whole("d0"), Some((None, operate(Motion::LineStart))));
        assert_eq!(whole("d10l"), Some((Some(10), operate(Motion::Right))));
        assert_eq!(whole("0"), Some((None, Command::Move(Motion::LineStart))));
        let endless = format!("{}x", "9".repeat(40));
        assert_eq!(
            whole(&endless),
            Some((Some(COUNT_MAX), operate(Motion::Right)))
        );
    }

    #[test]
    fn letters_are_a_command_not_yet_one_or_none() {
        for unfinished in ["", "2", "d", "2d3", "f", "dt", "g", "dg", "r"] {
            assert_eq!(parse(unfinished), Parsed::Unfinished, "{unfinished}");
        }
        for nothing in ["z", "dz", "gx", "dc", "é", "Q"] {
            assert_eq!(parse(nothing), Parsed::Nothing, "{nothing}");
        }
        assert_eq!(whole("rx"), Some((None, Command::Replace('x'))));
        assert_eq!(whole("yy"), Some((None, Command::Lines(Verb::Yank))));
    }
}

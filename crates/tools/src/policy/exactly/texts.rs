//! Programs in the small languages of `sed` and `awk`, in the forms that run no program and write no file.

use crate::shell::exact::{Arg, Origin, Piece};

use super::options::Options;

/// Returns a text in which numbers that are not known are `1`.
fn text_of(arg: &Arg) -> Option<String> {
    let mut text = String::new();
    for piece in &arg.pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Any(Origin::Number) => text.push('1'),
            _ => return None,
        }
    }
    Some(text)
}

/// Says why a call of sed is asked about, if so.
pub(super) fn why_sed_asked(args: &[Arg]) -> Option<String> {
    let unknown = |what: &str| Some(format!("gives sed {what}, which is not understood"));
    let options = Options {
        flags: "nErsuzb",
        values: "efl",
        attached: "i",
        long_flags: &[
            "quiet",
            "silent",
            "regexp-extended",
            "separate",
            "unbuffered",
            "null-data",
            "posix",
            "debug",
            "sandbox",
            "version",
            "help",
        ],
        long_values: &["expression", "file", "line-length"],
    };
    let mut rest = args;
    let (mut scripts, mut has_script, mut operands) = (Vec::new(), false, Vec::new());
    while !rest.is_empty() {
        // `--in-place` is the only one whose value is optional.
        if let Some(first) = rest[0].literal()
            && (first == "--in-place" || first.starts_with("--in-place="))
        {
            rest = &rest[1..];
            continue;
        }
        let given = match options.read(rest) {
            Ok(given) => given,
            Err(what) => return unknown(&what),
        };
        for (name, value) in given.options {
            match name.as_str() {
                "e" | "expression" => scripts.extend(value),
                "f" | "file" => has_script = true,
                _ => {}
            }
        }
        let Some((first, after)) = given.rest.split_first() else {
            break;
        };
        operands.push(first.clone());
        rest = after;
    }
    if scripts.is_empty() && !has_script && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    for script in &scripts {
        let text = text_of(script);
        if !text.is_some_and(|text| is_plain_sed(&text)) {
            return unknown("a script that may run programs or write files");
        }
    }
    None
}

/// Returns whether a script of sed is made of commands that only change text.
pub(super) fn is_plain_sed(script: &str) -> bool {
    let chars: Vec<char> = script.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            ' ' | '\t' | '\n' | ';' | '{' | '}' => at += 1,
            '#' => at = line_end(&chars, at),
            _ => match plain_command(&chars, at) {
                Some(end) => at = end,
                None => return false,
            },
        }
    }
    true
}

/// Skips one command with its addresses; None where it is not known.
fn plain_command(chars: &[char], start: usize) -> Option<usize> {
    let mut at = address(chars, start)?;
    at = blanks(chars, at);
    if chars.get(at) == Some(&',') {
        at = address(chars, blanks(chars, at + 1))?;
        at = blanks(chars, at);
    }
    while matches!(chars.get(at), Some('!' | ' ')) {
        at += 1;
    }
    let command = chars.get(at)?;
    at += 1;
    match command {
        '{' | '}' => Some(at),
        'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z' | 'F' => {
            ended(chars, at)
        }
        'q' | 'Q' | 'l' | 'L' => {
            let digits = chars[at..]
                .iter()
                .take_while(|c| c.is_ascii_digit() || **c == ' ')
                .count();
            ended(chars, at + digits)
        }
        's' => {
            let end = sections(chars, at)?;
            let is_flag = |c: &&char| c.is_ascii_digit() || "gpIiMm".contains(**c);
            let flags = chars[end..].iter().take_while(is_flag).count();
            ended(chars, end + flags)
        }
        'y' => ended(chars, sections(chars, at)?),
        'a' | 'i' | 'c' => {
            let mut end = line_end(chars, at);
            while end > at && end < chars.len() && chars[end - 1] == '\\' {
                end = line_end(chars, end + 1);
            }
            Some(end)
        }
        ':' | 'b' | 't' | 'T' => {
            let label = chars[at..]
                .iter()
                .take_while(|c| c.is_ascii_alphanumeric() || **c == ' ')
                .count();
            ended(chars, at + label)
        }
        'r' => Some(line_end(chars, at)),
        _ => None,
    }
}

/// A command ends where another may begin.
fn ended(chars: &[char], at: usize) -> Option<usize> {
    let at = blanks(chars, at);
    matches!(chars.get(at), None | Some(';' | '\n' | '}' | '#')).then_some(at)
}

fn blanks(chars: &[char], at: usize) -> usize {
    at + chars[at.min(chars.len())..]
        .iter()
        .take_while(|c| **c == ' ')
        .count()
}

fn line_end(chars: &[char], at: usize) -> usize {
    let rest = &chars[at.min(chars.len())..];
    at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
}

/// Skips an address, if there is one.
fn address(chars: &[char], at: usize) -> Option<usize> {
    match chars.get(at) {
        Some('/') => {
            let end = section(chars, at + 1, '/')?;
            let flags = chars[end..]
                .iter()
                .take_while(|c| matches!(c, 'I' | 'M'))
                .count();
            Some(end + flags)
        }
        Some('\\') => None,
        Some(c) if c.is_ascii_digit() || matches!(c, '$' | '+' | '~') => {
            let is_part = |c: &&char| c.is_ascii_digit() || matches!(c, '$' | '+' | '~');
            Some(at + chars[at..].iter().take_while(is_part).count())
        }
        _ => Some(at),
    }
}

/// Skips `/one/other/`, with whatever stands for the slash.
fn sections(chars: &[char], at: usize) -> Option<usize> {
    let mark = *chars.get(at)?;
    if mark.is_alphanumeric() || matches!(mark, '\\' | '\n' | ' ' | ';') {
        return None;
    }
    section(chars, section(chars, at + 1, mark)?, mark)
}

fn section(chars: &[char], start: usize, mark: char) -> Option<usize> {
    let mut at = start;
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            // Where a bracket is open, versions differ on where the section ends.
            c if *c == mark => {
                let part: String = chars[start..at].iter().collect();
                let is_open = part
                    .rfind('[')
                    .is_some_and(|open| !part[open..].contains(']'));
                return (!is_open).then_some(at + 1);
            }
            _ => at += 1,
        }
    }
    None
}

/// Says why a call of awk is asked about, if so.
pub(super) fn why_awk_asked(args: &[Arg]) -> Option<String> {
    let options = Options {
        flags: "",
        values: "Fvf",
        ..Options::default()
    };
    let given = match options.read(args) {
        Ok(given) => given,
        Err(what) => return Some(format!("gives awk {what}, which is not understood")),
    };
    if given.has("f") {
        return None;
    }
    let program = given.rest.first()?;
    let text = text_of(program);
    if text.is_some_and(|text| is_plain_awk(&text)) {
        None
    } else {
        Some("gives awk a program that may run others or write files".to_owned())
    }
}

/// Returns whether a program of awk only reads and prints.
pub(super) fn is_plain_awk(program: &str) -> bool {
    let words = ["system", "getline", "close", "fflush", "ENVIRON"];
    let joined = program.replace("||", "  ");
    !words.iter().any(|word| program.contains(word))
        && !joined.contains(['|', '@'])
        && is_escaped_plainly(program)
        && !prints_to_file(program)
}

/// Only the escapes that everybody uses: a number may stand for any letter.
fn is_escaped_plainly(program: &str) -> bool {
    let mut chars = program.chars();
    while let Some(c) = chars.next() {
        if c == '\\'
            && !chars
                .next()
                .is_some_and(|c| "nt\\\"/.[](){}+*?^$-dsw".contains(c))
        {
            return false;
        }
    }
    true
}

/// Returns whether `>` follows a `print` in the same statement.
fn prints_to_file(program: &str) -> bool {
    let mut rest = program;
    while let Some(at) = rest.find("print") {
        rest = &rest[at + "print".len()..];
        let (mut in_text, mut is_escaped, mut has_slash) = (false, false, false);
        for c in rest.chars() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_text = !in_text,
                _ if in_text => {}
                '/' => has_slash = true,
                '>' => return true,
                ';' | '\n' | '}' if !has_slash => break,
                _ => {}
            }
        }
    }
    false
}

//! What a program prints, when its words and its input say so: payloads are written as text, or encoded.

use std::collections::{HashMap, HashSet};
use std::iter::repeat;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{Budget, Command, TooComplex};

/// Padding may be missing: decoders take it either way.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Words before a program that do not change what it prints.
const BEFORE_PROGRAM: &[&str] = &[
    "{", "if", "then", "elif", "else", "while", "until", "do", "!", "time", "command", "builtin",
];

/// Returns what a command prints, when that is plain to see.
pub(super) fn printed(command: &Command, budget: &Budget) -> Result<Option<String>, TooComplex> {
    budget.spend_on(&command.words)?;
    // Read, and written again.
    budget.spend(2 * command.input.as_ref().map_or(0, String::len))?;
    let skipped = |word: &&String| BEFORE_PROGRAM.contains(&word.as_str());
    let words: Vec<&str> = command
        .words
        .iter()
        .skip_while(skipped)
        .map(String::as_str)
        .collect();
    let Some((path, args)) = words.split_first() else {
        return Ok(None);
    };
    match path.rsplit('/').next().unwrap_or(path) {
        "printf" => printf(args, budget),
        program => Ok(printed_by(program, args, command)),
    }
}

/// Returns what a program prints that prints little more than it is given.
fn printed_by(program: &str, args: &[&str], command: &Command) -> Option<String> {
    let input = command.input.as_deref();
    match program {
        "echo" => Some(echo(args)),
        "cat" | "tee" if args.iter().all(|arg| arg.starts_with('-')) => Some(input?.to_owned()),
        "cat" if args == ["/dev/fd/63"] => command.files.first().cloned(),
        "base64" if has(args, &["-d", "-D", "--decode", "-di", "-id"]) => base64(input?),
        "openssl" if has(args, &["base64", "-base64", "-a"]) && has(args, &["-d"]) => {
            base64(input?)
        }
        "base32" if has(args, &["-d", "--decode"]) => base32(input?),
        "xxd" if args.iter().any(|arg| arg.starts_with("-r")) => hex(input?),
        "rev" => Some(input?.lines().map(reversed).collect::<Vec<_>>().join("\n")),
        "tr" => translated(input?, args),
        _ => None,
    }
}

/// Returns what commands print, when that is plain to see. Of a pipe, its last command prints.
pub(super) fn all_printed(
    commands: &[Command],
    budget: &Budget,
) -> Result<Option<String>, TooComplex> {
    let mut texts = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let is_piped_on = commands.get(at + 1).is_some_and(|next| next.reads_pipe);
        if !is_piped_on {
            let Some(text) = printed(command, budget)? else {
                return Ok(None);
            };
            texts.push(text);
        }
    }
    Ok((!texts.is_empty()).then(|| texts.join("\n")))
}

fn has(args: &[&str], wanted: &[&str]) -> bool {
    args.iter().any(|arg| wanted.contains(arg))
}

fn echo(args: &[&str]) -> String {
    let is_flag = |arg: &&&str| {
        arg.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|c| "neE".contains(c))
        })
    };
    let flags = args.iter().take_while(is_flag).count();
    let text = args[flags..].join(" ");
    if args[..flags].iter().any(|flag| flag.contains('e')) {
        unescaped(&text)
    } else {
        text
    }
}

fn printf(args: &[&str], budget: &Budget) -> Result<Option<String>, TooComplex> {
    let (format, mut values) = match args {
        // The result goes into a variable.
        [] | ["--"] | ["-v", ..] => return Ok(None),
        ["--", format, values @ ..] | [format, values @ ..] => (format, values),
    };
    let format = unescaped(format);
    let mut text = String::new();
    loop {
        budget.spend(format.len())?;
        let before = values.len();
        let mut pieces = format.split('%');
        text.push_str(pieces.next().unwrap_or_default());
        let mut is_escaped = false;
        for piece in pieces {
            if std::mem::take(&mut is_escaped) {
                text.push_str(piece);
                continue;
            }
            let Some(conversion) = piece.chars().next() else {
                text.push('%');
                is_escaped = true;
                continue;
            };
            if let Some((value, rest)) = values.split_first() {
                values = rest;
                match conversion {
                    'b' => text.push_str(&unescaped(value)),
                    _ => text.push_str(value),
                }
            }
            text.push_str(&piece[conversion.len_utf8()..]);
        }
        // The format is used again as long as values are left.
        if values.is_empty() || values.len() == before {
            return Ok(Some(text));
        }
    }
}

/// Undoes `\x41`, `\101`, `\u0041`, `\n` and their like.
pub(super) fn unescaped(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.extend(escaped(&mut chars)),
            c => plain.push(c),
        }
    }
    plain
}

/// Reads what follows a backslash.
pub(super) fn escaped(chars: &mut std::iter::Peekable<impl Iterator<Item = char>>) -> Option<char> {
    let (radix, digits_max) = match chars.peek()? {
        'x' => (16, 2),
        'u' => (16, 4),
        'U' => (16, 8),
        '0' => (8, 4),
        '1'..='7' => (8, 3),
        _ => {
            return chars.next().map(|c| match c {
                'n' => '\n',
                't' => '\t',
                c => c,
            });
        }
    };
    if radix == 16 {
        chars.next();
    }
    let mut code: u32 = 0;
    for _ in 0..digits_max {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        code = code.wrapping_mul(radix).wrapping_add(digit);
        chars.next();
    }
    char::from_u32(code)
}

fn base64(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    readable(BASE64.decode(text).ok()?)
}

fn base32(text: &str) -> Option<String> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        let value = match c {
            'A'..='Z' => u32::from(c) - u32::from('A'),
            '2'..='7' => u32::from(c) - u32::from('2') + 26,
            _ => return None,
        };
        bits = (bits << 5 | value) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    readable(bytes)
}

fn hex(text: &str) -> Option<String> {
    let digits: Option<Vec<u32>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16))
        .collect();
    let bytes = digits?
        .chunks_exact(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect();
    readable(bytes)
}

fn readable(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok()
}

fn reversed(line: &str) -> String {
    line.chars().rev().collect()
}

/// `tr` with sets of letters and ranges.
fn translated(text: &str, args: &[&str]) -> Option<String> {
    match args {
        ["-d", unwanted] => {
            let unwanted: HashSet<char> = set(unwanted).into_iter().collect();
            Some(text.chars().filter(|c| !unwanted.contains(c)).collect())
        }
        [from, to] if !from.starts_with('-') => {
            let to = set(to);
            let last = *to.last()?;
            let pairs = set(from)
                .into_iter()
                .zip(to.into_iter().chain(repeat(last)));
            let pairs: HashMap<char, char> = pairs.collect();
            let translate = |c: char| pairs.get(&c).copied().unwrap_or(c);
            Some(text.chars().map(translate).collect())
        }
        _ => None,
    }
}

/// More than the characters a set can name once each.
const SET_CHARS_MAX: usize = 256;

/// Returns the characters of a set such as `a-z_`.
fn set(text: &str) -> Vec<char> {
    let chars: Vec<char> = unescaped(text).chars().collect();
    let mut members = Vec::new();
    let mut at = 0;
    while at < chars.len() && members.len() < SET_CHARS_MAX {
        match chars[at..] {
            [first, '-', last, ..] if first.is_ascii() && last.is_ascii() && first <= last => {
                members.extend(first..=last);
                at += 3;
            }
            _ => {
                members.push(chars[at]);
                at += 1;
            }
        }
    }
    members
}

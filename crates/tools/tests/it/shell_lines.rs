//! Makes up shell lines: by a grammar, and by changing lines that there are.

use std::fmt::Write as _;

/// Numbers that are the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count.max(1) as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn choice<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const PROGRAMS: &[&str] = &[
    "zap", "boom", "no", "grab", "zap", "echo", "printf", "true", "false", ":", "test", "[", "cd",
    "read", "export", "unset", "command", "exec", "type", "wait", "set", "local", "return", "pwd",
    "g", "f", "b/c", "break", "continue",
];
const NAMES: &[&str] = &["x", "y", "z", "i", "n", "FOO"];
const PLAIN: &[&str] = &[
    "w",
    "-rf",
    "a.b",
    "b/c",
    "1",
    "0",
    "7",
    "-n",
    "--",
    "=",
    "x=1",
    "a=b",
    "]",
    "[",
    "!",
    "}",
    "{",
    "{}",
    "in",
    "do",
    "done",
    "if",
    "then",
    "fi",
    "zap",
    "boom",
    "-v",
    "-eq",
    "-lt",
    "==",
    "!=",
    "-f",
    "-z",
    "+e",
    "-e",
    "-r",
    "a#b",
    "%s",
    "@",
    "^",
    "%1",
    "a,b",
    "a..b",
    "$",
    "x[0]",
    "i=5",
    "EOF",
    "esac",
    "*",
    "f*",
    "?1",
    "[ab]*",
    "d/*",
    "{a,b}",
    "{1..3}",
    "{a,b}{c,d}",
    "x{,y}",
    "{a..c}",
    "{1..2}z",
    "{a}",
    "{{q}}",
    "{x,'y z'}",
    "{$x,w}",
    "~",
    "~/q",
    "a~",
    "x~1",
    "\\;",
    "\\$x",
    "\\a",
    "\\ ",
    "\\\\",
    "a\\\n b",
    "\\\"",
    "'s q'",
    "''",
    "\"\"",
    "'\n'",
    "\"d q\"",
    "\"a\\$b\"",
    "\"a\\\nb\"",
    "\"\\q\"",
    "$'a\\nb'",
    "$'it\\'s'",
    "\"`echo q`\"",
    "`echo zap`",
    "`zap 1`",
    "#c",
    "é",
    "✓",
    "2",
    "3",
    "\"!\"",
    "a'b'\"c\"d",
];
const EXPANSIONS: &[&str] = &[
    "$@", "$*", "$?", "$#", "$$", "$1", "$0", "$!", "$-", "$_", "${@}", "${1}", "${1:-w}", "${#@}",
];
const FILES: &[&str] = &[
    "f1", "new", "d/new", "n1", "n2", "\"$x\"", "$i", "~/n3", "n{4}", "n\\ 5", "'n 6'", "$FOO",
];

/// What is put into lines to see whether it is taken for what bash takes it for.
const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "`",
    "$",
    "(",
    ")",
    "{",
    "}",
    ";",
    "&",
    "|",
    "<",
    ">",
    "#",
    "!",
    "*",
    "?",
    "[",
    "]",
    "~",
    "=",
    " ",
    "\n",
    "\t",
    "\\\n",
    "$(",
    "))",
    "((",
    "$((",
    "${",
    "<<",
    "<<<",
    "<<-",
    ">>",
    ">|",
    "&>",
    "2>",
    ">&",
    "&&",
    "||",
    ";;",
    "[[",
    "]]",
    "<(",
    ">(",
    "zap",
    "$x",
    "EOF",
    "\nEOF\n",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    "case ",
    "esac",
    "in ",
    "x=",
    "x+=",
    "a=(",
    "{a,b}",
    "..",
    ",",
    "''",
    "\"\"",
    "$'",
    "$\"",
    "\\'",
    "1",
    "-",
    ":",
    "+",
    "%",
    "^",
    "@",
    "f()",
    "time ",
    "! ",
    "coproc ",
    "function ",
    "eval ",
    "\u{a0}",
    "\u{3000}",
    "\u{ff03}",
    "\u{ff1b}",
    "\u{2028}",
    "\r",
    "\u{1}",
    "\u{7f}",
    "\u{0b}",
    "é",
    "\u{200b}",
    "\u{301}",
    "set -- ",
    "IFS=",
    "select ",
    "until ",
    "while ",
    "for ",
    "; zap;",
    " # ",
    "\\\n#",
    "\u{85}",
    "|&",
    ";&",
    "$[",
    "{x}>",
    "10>",
    "<>",
    "<&",
    "\"$@\"",
    "${!x}",
    "${x@P}",
    "x[0]=",
    "[0]",
];

/// Makes up a line.
pub(crate) fn line(dice: &mut Dice) -> String {
    let line = script(dice, 3);
    if line.len() > 400 {
        return line.chars().take(400).collect();
    }
    line
}

/// Changes a line here and there, with pieces of another.
pub(crate) fn changed(dice: &mut Dice, line: &str, other: &str) -> String {
    let mut chars: Vec<char> = line.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(chars.len() + 1);
        match dice.below(6) {
            0 | 1 => {
                let piece: Vec<char> = dice.choice(PIECES).chars().collect();
                chars.splice(at..at, piece);
            }
            2 => {
                let end = (at + 1 + dice.below(3)).min(chars.len());
                chars.drain(at..end);
            }
            3 => {
                let end = (at + 1 + dice.below(8)).min(chars.len());
                let copy: Vec<char> = chars[at..end].to_vec();
                let to = dice.below(chars.len() + 1);
                chars.splice(to..to, copy);
            }
            4 => {
                let others: Vec<char> = other.chars().collect();
                let from = dice.below(others.len() + 1);
                let end = (from + dice.below(12)).min(others.len());
                chars.splice(at..at, others[from..end].to_vec());
            }
            _ => {
                let blanks: Vec<usize> = (0..chars.len())
                    .filter(|at| " \n;".contains(chars[*at]))
                    .collect();
                if !blanks.is_empty() {
                    let at = *dice.choice(&blanks);
                    chars[at] = *dice.choice(&[' ', '\n', ';', '\t', '|', '&']);
                }
            }
        }
    }
    chars.into_iter().take(500).collect()
}

fn script(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    for number in 0..=dice.below(3) {
        if number > 0 {
            text += *dice.choice(&[
                "; ",
                "\n",
                " && ",
                " || ",
                " & ",
                "; ",
                " ;\n",
                " # c ' \"\n",
            ]);
        }
        text += &pipeline(dice, depth);
    }
    text
}

fn pipeline(dice: &mut Dice, depth: usize) -> String {
    let mut text = command(dice, depth);
    while dice.one_in(5) {
        text += *dice.choice(&[" | ", " |\n", "|"]);
        text += &command(dice, depth);
    }
    match dice.below(20) {
        0 => format!("! {text}"),
        1 => format!("time {text}"),
        _ => text,
    }
}

fn command(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || !dice.one_in(3) {
        return simple(dice, depth);
    }
    let inner = depth - 1;
    let name = *dice.choice(NAMES);
    let body = script(dice, inner);
    let compound = match dice.below(13) {
        0 => format!("({body})"),
        1 => format!("{{ {body}; }}"),
        2 => format!("if {}; then {body}; fi", script(dice, inner)),
        3 => format!(
            "if {}\nthen {body}\nelse {}\nfi",
            simple(dice, inner),
            simple(dice, inner)
        ),
        4 => format!("for {name} in {}; do {body}; done", words(dice, inner)),
        5 => format!("for {name} in 1 2 3; do {body}; done"),
        6 => format!("while no; do {body}; done"),
        7 => format!("until {}; true; do {body}; done", simple(dice, inner)),
        8 => format!(
            "case {} in {}) {body};; *) zap;; esac",
            word(dice, inner),
            word(dice, inner)
        ),
        9 => format!("f() {{ {body}; }}; f {}", words(dice, inner)),
        10 => format!(
            "[[ {} {} {} ]]",
            word(dice, inner),
            dice.choice(&["==", "!=", "-eq", "=~", "<"]),
            word(dice, inner)
        ),
        11 => format!("(( {} ))", arithmetic(dice)),
        _ => format!("for (({name}=0; {name}<2; {name}++)); do {body}; done"),
    };
    if dice.one_in(5) {
        format!("{compound} {}", redirect(dice, inner))
    } else {
        compound
    }
}

fn simple(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    while dice.one_in(5) {
        let _ = write!(text, "{} ", assignment(dice, depth));
    }
    if dice.one_in(8) {
        return text + &assignment(dice, depth);
    }
    if dice.one_in(20) {
        text += &redirect(dice, depth);
        text.push(' ');
    }
    let mut program = (*dice.choice(PROGRAMS)).to_owned();
    if dice.one_in(12) {
        program = word(dice, depth);
    }
    text += &program;
    if !dice.one_in(5) {
        let _ = write!(text, " {}", words(dice, depth));
    }
    if program == "[" {
        text += " ]";
    }
    while dice.one_in(6) {
        let _ = write!(text, " {}", redirect(dice, depth));
    }
    if dice.one_in(25) {
        let end = dice.choice(&["EOF", "'EOF'", "\"EOF\"", "\\EOF", "E"]);
        let bare: String = end.chars().filter(char::is_ascii_alphabetic).collect();
        let _ = write!(
            text,
            " <<{end}\nb $x \\$y \" ' {}\n{bare}\n",
            words(dice, depth.min(1))
        );
    }
    text
}

fn assignment(dice: &mut Dice, depth: usize) -> String {
    let name = *dice.choice(NAMES);
    match dice.below(8) {
        0 => format!("{name}=5"),
        1 => format!("{name}=$(({}))", arithmetic(dice)),
        2 => format!("{name}+={}", word(dice, depth)),
        3 => format!("{name}=({})", words(dice, depth)),
        4 => format!("{name}=zap"),
        _ => format!("{name}={}", word(dice, depth)),
    }
}

fn arithmetic(dice: &mut Dice) -> String {
    let term = |dice: &mut Dice| match dice.below(7) {
        0 | 1 => dice.below(9).to_string(),
        2 => format!("${}", dice.choice(NAMES)),
        3 => format!("${{#{}}}", dice.choice(NAMES)),
        4 => "$#".to_owned(),
        5 if dice.one_in(4) => "1/0".to_owned(),
        _ => (*dice.choice(NAMES)).to_owned(),
    };
    let first = term(dice);
    let operator = *dice.choice(&["+", "-", "*", "=", "==", "<", "&&", "?1:", "+=", ",", "<<"]);
    let second = term(dice);
    match dice.below(6) {
        0 => first,
        1 => format!("{first}++"),
        _ => format!("{first} {operator} {second}"),
    }
}

fn redirect(dice: &mut Dice, depth: usize) -> String {
    let file = if dice.one_in(6) {
        word(dice, depth)
    } else {
        (*dice.choice(FILES)).to_owned()
    };
    match dice.below(12) {
        0 => format!("< {file}"),
        1 => format!(">> {file}"),
        2 => format!(">|{file}"),
        3 => format!("&> {file}"),
        4 => format!("2>{file}"),
        5 => "2>&1".to_owned(),
        6 => ">&2".to_owned(),
        7 => format!("<<< {}", word(dice, depth)),
        8 => format!("3>{file}"),
        _ => format!("> {file}"),
    }
}

fn words(dice: &mut Dice, depth: usize) -> String {
    let words: Vec<String> = (0..=dice.below(3)).map(|_| word(dice, depth)).collect();
    words.join(" ")
}

fn word(dice: &mut Dice, depth: usize) -> String {
    let name = *dice.choice(NAMES);
    let inner = depth.saturating_sub(1);
    match dice.below(26) {
        0 => format!("${name}"),
        1 => format!("\"${name}\""),
        2 => format!("${{{name}}}"),
        3 => format!("${{{name}:-{}}}", dice.choice(PLAIN)),
        4 => format!(
            "\"${{{name}{}{}}}\"",
            dice.choice(&[
                "%", "##", "/", "//", ":-", ":+", ":=", "^^", ":1:", "#", "@"
            ]),
            dice.choice(&["a", "*.", "z", "$y", ""])
        ),
        5 => (*dice.choice(EXPANSIONS)).to_owned(),
        6 => format!("\"{}\"", dice.choice(EXPANSIONS)),
        7 => format!("$(({}))", arithmetic(dice)),
        8 if depth > 0 => format!("$({})", script(dice, inner)),
        9 if depth > 0 => format!("\"$({})\"", simple(dice, inner)),
        10 if depth > 0 => format!("<({})", simple(dice, inner)),
        11 => format!("{}{}", word(dice, inner), dice.choice(PLAIN)),
        12 => format!("\"{} ${name}\"", dice.choice(&["w", "\\\\", "\\$", "a'b"])),
        13 => format!("${{{name}[@]}}"),
        14 => format!(
            "\"${{{name}[{}]}}\"",
            dice.choice(&["0", "1", "@", "*", "i"])
        ),
        15 => format!("${{#{name}}}"),
        _ => (*dice.choice(PLAIN)).to_owned(),
    }
}

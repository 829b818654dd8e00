//! Goes through what was read as bash goes through it, and takes note of every program and every file.

use std::collections::BTreeSet;

use super::builtins::{self, is_builtin};
use super::names::{OLD_PATH, why_decides};
use super::reading::{Arg, Input, Origin, Piece, Reading, Run};
use super::tree::{
    Arithmetic, Assignment, Document, Expansion, Item, Kind, Node, Part, Pipeline, Redirect,
    RedirectKind, Script, Value, Word,
};
use super::values::{Known, Values, is_relative, join, value_of};
use super::words::bare;
use super::{Outcome, not_understood};

/// Steps of a walk. Loops are walked until nothing new is learnt, so loops in loops take many.
const STEPS_MAX: usize = 100_000;

/// Walks of a loop before its values count as unknown.
const ROUNDS_MAX: usize = 5;

/// Programs that print nothing but names, numbers and dates.
const PLAIN_PRINTERS: &[&str] = &[
    "date", "mktemp", "basename", "nproc", "whoami", "hostname", "uname", "wc", "id", "pwd",
];

pub(super) fn walk(script: &Script, documents: &[Document]) -> Outcome<Reading> {
    let mut walker = Walker {
        documents,
        values: Values::default(),
        reading: Reading::default(),
        input: Input::Inherited,
        steps: 0,
    };
    walker.script(script)?;
    let Walker {
        mut reading,
        values,
        ..
    } = walker;
    reading.is_one_command = is_one_command(script);
    reading.sets = values.set;
    Ok(reading)
}

fn is_one_command(script: &Script) -> bool {
    let [item] = script.items.as_slice() else {
        return false;
    };
    let [node] = item.first.commands.as_slice() else {
        return false;
    };
    let is_plain = |assignments: &[Assignment]| assignments.is_empty() && node.redirects.is_empty();
    let is_simple = matches!(&node.kind, Kind::Simple { assignments, .. } if is_plain(assignments));
    item.rest.is_empty() && !item.is_background && is_simple
}

struct Walker<'a> {
    documents: &'a [Document],
    values: Values,
    reading: Reading,
    input: Input,
    steps: usize,
}

impl Walker<'_> {
    fn script(&mut self, script: &Script) -> Outcome<()> {
        script.items.iter().try_for_each(|item| self.item(item))
    }

    fn item(&mut self, item: &Item) -> Outcome<()> {
        let before = item.is_background.then(|| self.values.clone());
        self.pipeline(&item.first)?;
        for pipeline in &item.rest {
            let without = self.values.clone();
            self.pipeline(pipeline)?;
            self.values = self.values.joined(&without);
        }
        if let Some(before) = before {
            self.values.back_to(before);
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Outcome<()> {
        if let [node] = pipeline.commands.as_slice() {
            return self.node(node);
        }
        let (values, input) = (self.values.clone(), self.input.clone());
        for (at, node) in pipeline.commands.iter().enumerate() {
            if at > 0 {
                self.input = Input::Pipe;
            }
            self.node(node)?;
            self.values.back_to(values.clone());
        }
        self.input = input;
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Outcome<()> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return not_understood("has loops in loops that take too long to follow");
        }
        let input = self.input.clone();
        let before = (!node.redirects.is_empty()).then(|| self.values.clone());
        match &node.kind {
            Kind::Simple { assignments, words } => {
                self.simple(assignments, words, &node.redirects)?;
            }
            kind => {
                self.redirects(&node.redirects)?;
                self.compound(kind)?;
            }
        }
        self.input = input;
        // Where a file cannot be opened, nothing of it happens.
        if let Some(before) = before {
            self.values = self.values.joined(&before);
        }
        Ok(())
    }

    /// Takes note of where streams lead; what is read becomes the input.
    fn redirects(&mut self, redirects: &[Redirect]) -> Outcome<(Vec<Arg>, Vec<Arg>)> {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for Redirect { kind, stream } in redirects {
            let is_input = stream.is_none_or(|stream| stream == '0');
            let input = match kind {
                RedirectKind::Read(word) => {
                    let file = self.arg(word)?;
                    reads.push(file.clone());
                    Input::File(file)
                }
                RedirectKind::Write(word) => {
                    let file = self.arg(word)?;
                    self.reading.writes.push(file.clone());
                    writes.push(file);
                    continue;
                }
                RedirectKind::Text(word) => {
                    let mut text = self.arg(word)?;
                    text.is_many = false;
                    Input::Text(text.literal())
                }
                RedirectKind::Document(number) => {
                    let parts = self.documents[*number].parts.clone();
                    Input::Text(self.arg(&parts)?.literal())
                }
                RedirectKind::CopyInput => Input::Stream,
                RedirectKind::Copy => continue,
            };
            if is_input {
                self.input = input;
            } else if !matches!(input, Input::File(_)) {
                // A text on another stream is for somebody who reads from there.
                return not_understood("gives a text to a stream by its number");
            }
        }
        Ok((reads, writes))
    }

    fn simple(
        &mut self,
        assignments: &[Assignment],
        words: &[Word],
        redirects: &[Redirect],
    ) -> Outcome<()> {
        let mut args = Vec::new();
        for word in words {
            let arg = self.arg(word)?;
            // Nothing is left of it.
            if arg.pieces.is_empty() {
                continue;
            }
            args.push(arg);
        }
        let program = match args.first() {
            Some(first) => Some(program_of(first)?),
            None if words.is_empty() => None,
            None => return not_understood("runs a program whose name is only known when it runs"),
        };
        let assigned = self.assignments(assignments, program.as_deref())?;
        let (reads, writes) = self.redirects(redirects)?;
        if program.as_deref() == Some("export") {
            without_harmless_path(words, &mut args);
        }
        let Some(program) = program else {
            return Ok(());
        };
        if program == "exec" && !redirects.is_empty() {
            return not_understood("leads the shell's own streams elsewhere");
        }
        let run = Run {
            words: args,
            assignments: assigned,
            input: self.input.clone(),
            reads,
            writes,
        };
        self.run(&program, run)
    }

    fn run(&mut self, program: &str, run: Run) -> Outcome<()> {
        if !self.reading.functions.contains(program) {
            if is_builtin(program) {
                builtins::check(program, &run.words[1..], &mut self.values)?;
            }
            if matches!(program, "command" | "exec")
                && let Some(inner) = builtins::run_by(program, &run.words[1..])?
            {
                let inner = Run {
                    words: inner.to_vec(),
                    ..run.clone()
                };
                let program = program_of(&inner.words[0])?;
                self.run(&program, inner)?;
            }
        }
        self.reading.runs.push(run);
        Ok(())
    }

    /// Sets variables, for good where there is no program. Returns what is set for the program.
    fn assignments(
        &mut self,
        assignments: &[Assignment],
        program: Option<&str>,
    ) -> Outcome<Vec<(String, Arg)>> {
        let mut assigned = Vec::new();
        for Assignment {
            name,
            appends,
            value,
        } in assignments
        {
            let arg = match value {
                Value::Word(word) => {
                    let mut arg = self.arg(word)?;
                    arg.is_many = false;
                    arg
                }
                Value::Array(words) => {
                    for word in words {
                        self.arg(word)?;
                    }
                    Arg::unknown_word()
                }
            };
            let literal = match (name.as_str(), value) {
                ("PATH", Value::Word(word)) => path_of(word),
                _ => arg.literal().filter(|_| !appends),
            };
            let splits_input = name == "IFS" && program == Some("read") && literal.is_some();
            let why = why_decides(name, literal.as_deref()).filter(|_| !splits_input);
            if let Some(why) = why {
                return not_understood(why);
            }
            let known = value_of(&arg).filter(|_| program.is_none() && !appends);
            let is_list = matches!(value, Value::Array(_));
            self.values.set(name, known.filter(|_| !is_list));
            assigned.push((name.clone(), arg));
        }
        Ok(assigned)
    }

    fn compound(&mut self, kind: &Kind) -> Outcome<()> {
        match kind {
            Kind::Simple { .. } => Ok(()),
            Kind::Subshell(script) => self.apart(script),
            Kind::Group(script) => self.script(script),
            Kind::If(branches) => self.branches(branches),
            Kind::While(condition, body) => self.rounds(|walker| {
                walker.script(condition)?;
                let without = walker.values.clone();
                walker.script(body)?;
                walker.values = walker.values.joined(&without);
                Ok(())
            }),
            Kind::For { name, words, body } => self.each(name, words.as_deref(), body),
            Kind::Count { parts, body } => {
                self.arithmetic(&parts[0])?;
                self.rounds(|walker| {
                    walker.arithmetic(&parts[1])?;
                    walker.script(body)?;
                    walker.arithmetic(&parts[2])
                })
            }
            Kind::Case { word, arms } => self.case(word, arms),
            Kind::Function { name, body } => self.function(name, body),
            Kind::Condition(words) => self.condition(words),
            Kind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
        }
    }

    /// Walks a script whose variables nobody sees afterwards.
    fn apart(&mut self, script: &Script) -> Outcome<()> {
        let values = self.values.clone();
        self.script(script)?;
        self.values.back_to(values);
        Ok(())
    }

    fn branches(&mut self, branches: &[(Option<Script>, Script)]) -> Outcome<()> {
        let mut ends: Vec<Values> = Vec::new();
        let mut is_complete = false;
        for (condition, body) in branches {
            match condition {
                Some(condition) => self.script(condition)?,
                None => is_complete = true,
            }
            let not_taken = self.values.clone();
            self.script(body)?;
            ends.push(std::mem::replace(&mut self.values, not_taken));
        }
        if is_complete && let Some(end) = ends.pop() {
            self.values = end;
        }
        self.values = ends
            .iter()
            .fold(self.values.clone(), |all, end| all.joined(end));
        Ok(())
    }

    fn case(&mut self, word: &Word, arms: &[(Vec<Word>, Script)]) -> Outcome<()> {
        self.arg(word)?;
        let before = self.values.clone();
        let mut all = before.clone();
        for (patterns, body) in arms {
            for pattern in patterns {
                self.arg(pattern)?;
            }
            self.script(body)?;
            all = all.joined(&self.values);
            self.values = all.clone();
        }
        Ok(())
    }

    fn each(&mut self, name: &str, words: Option<&[Word]>, body: &Script) -> Outcome<()> {
        if let Some(why) = why_decides(name, None) {
            return not_understood(why);
        }
        let mut value: Option<Option<Known>> = None;
        for word in words.unwrap_or_default() {
            let arg = self.arg(word)?;
            let known = value_of(&Arg {
                is_many: false,
                ..arg.clone()
            });
            let known = known.filter(|_| !(arg.is_many && arg.is_unknown()));
            value = Some(match value {
                None => known,
                Some(before) => before
                    .zip(known)
                    .and_then(|(one, other)| join(&one, &other)),
            });
        }
        let value = value.flatten();
        let before = self.values.clone();
        self.rounds(|walker| {
            walker.values.set(name, value.clone());
            walker.script(body)
        })?;
        // With no words it never ran.
        self.values = self.values.joined(&before);
        Ok(())
    }

    /// Walks a loop until nothing new is learnt of the values.
    fn rounds(&mut self, mut round: impl FnMut(&mut Self) -> Outcome<()>) -> Outcome<()> {
        let (runs, writes) = (self.reading.runs.len(), self.reading.writes.len());
        let mark = self.values.mark();
        for number in 0.. {
            let before = self.values.clone();
            self.reading.runs.truncate(runs);
            self.reading.writes.truncate(writes);
            round(self)?;
            let joined = before.with_any_since(mark, &self.values);
            if joined.is_as(&before) {
                self.values = joined;
                break;
            }
            self.values = joined;
            if number == ROUNDS_MAX {
                let set = self.values.set.clone();
                self.values.distrust(set);
            }
            if number > ROUNDS_MAX + 2 {
                return not_understood("has a loop that cannot be followed");
            }
        }
        Ok(())
    }

    fn function(&mut self, name: &str, body: &Node) -> Outcome<()> {
        let is_plain = builtins::is_name(name)
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        if !is_plain || is_builtin(name) {
            return not_understood(format!("defines `{name}` anew"));
        }
        let within = self.values.in_function();
        let outside = std::mem::replace(&mut self.values, within);
        let input = std::mem::replace(&mut self.input, Input::Inherited);
        self.reading.functions.insert(name.to_owned());
        self.node(body)?;
        let within = std::mem::replace(&mut self.values, outside);
        self.input = input;
        self.values.set.extend(within.set.iter().cloned());
        self.values.distrust(within.set);
        Ok(())
    }

    fn condition(&mut self, words: &[Word]) -> Outcome<()> {
        const COMPARE: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        for (at, word) in words.iter().enumerate() {
            self.arg(word)?;
            match bare(word) {
                Some("-v" | "-R") => {
                    return not_understood(
                        "tests whether a variable is set, which may compute its name",
                    );
                }
                Some(operator) if COMPARE.contains(&operator) => {
                    let sides = [
                        at.checked_sub(1).and_then(|at| words.get(at)),
                        words.get(at + 1),
                    ];
                    if !sides
                        .into_iter()
                        .all(|side| side.is_some_and(|side| self.is_number(side)))
                    {
                        return not_understood("compares as numbers what may be more than that");
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_number(&self, word: &Word) -> bool {
        match word.as_slice() {
            [Part::Bare(text) | Part::Quoted(text)] => super::values::is_number(text),
            [Part::Expansion { expansion, .. }]
            | [Part::Quoted(_), Part::Expansion { expansion, .. }] => {
                let is_empty = word.len() == 1 || word[0] == Part::Quoted(String::new());
                is_empty
                    && match expansion {
                        Expansion::Number | Expansion::Arithmetic(_) => true,
                        Expansion::Variable(name) => self.values.is_number(name),
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    /// Every name must hold a number before; what is set holds one afterwards.
    fn arithmetic(&mut self, arithmetic: &Arithmetic) -> Outcome<()> {
        let mut set = BTreeSet::new();
        for used in &arithmetic.names {
            if used.is_set {
                set.insert(used.name.clone());
            } else if !self.values.is_number(&used.name) {
                return not_understood(format!(
                    "computes with `{}`, which may be more than a number,",
                    used.name
                ));
            } else {
                // It may be `name++` or `name += …`.
                self.values.set(&used.name, Some(Known::Number));
            }
        }
        for name in set {
            if let Some(why) = why_decides(&name, None) {
                return not_understood(why);
            }
            // In `a && (b = 1)` it is not certain that it is set.
            let is_certain = arithmetic
                .names
                .first()
                .is_some_and(|first| first.is_set && first.name == name);
            let is_known = is_certain || self.values.is_number(&name);
            self.values.set(&name, is_known.then_some(Known::Number));
        }
        Ok(())
    }

    fn arg(&mut self, word: &Word) -> Outcome<Arg> {
        let mut arg = Arg::default();
        for part in word {
            match part {
                Part::Bare(text) | Part::Quoted(text) => push_text(&mut arg, text),
                Part::Glob(c) => {
                    arg.pieces.push(Piece::Glob(*c));
                    arg.is_many = true;
                }
                Part::Brace(c) => push_text(&mut arg, &c.to_string()),
                Part::Home => arg.pieces.push(Piece::Home),
                Part::Expansion {
                    expansion,
                    is_quoted,
                } => self.expansion(&mut arg, expansion, *is_quoted)?,
                Part::Substitution { script, is_quoted } => {
                    self.apart(script)?;
                    let origin = if prints_plainly(script) {
                        Origin::Plain
                    } else {
                        Origin::Unknown
                    };
                    push_any(&mut arg, origin, *is_quoted);
                }
                Part::Process(script) => {
                    self.apart(script)?;
                    push_any(&mut arg, Origin::Process, true);
                }
            }
        }
        Ok(arg)
    }

    fn expansion(&mut self, arg: &mut Arg, expansion: &Expansion, is_quoted: bool) -> Outcome<()> {
        match expansion {
            Expansion::Number => push_any(arg, Origin::Number, is_quoted),
            Expansion::Positional | Expansion::Changed => push_any(arg, Origin::Unknown, is_quoted),
            Expansion::Several => push_any(arg, Origin::Unknown, false),
            Expansion::Arithmetic(arithmetic) => {
                self.arithmetic(arithmetic)?;
                push_any(arg, Origin::Number, is_quoted);
            }
            Expansion::Default { name, word, sets } => {
                self.arg(word)?;
                if let Some(name) = name.as_deref().filter(|_| *sets) {
                    if let Some(why) = why_decides(name, None) {
                        return not_understood(why);
                    }
                    self.values.set(name, None);
                }
                push_any(arg, Origin::Unknown, is_quoted);
            }
            Expansion::Shortened(name) => {
                let origin = match self.values.get(name) {
                    Some(Known::Relative | Known::Number) => Origin::Relative,
                    Some(Known::Plain) => Origin::Plain,
                    Some(Known::Text(text)) if is_relative(text) => Origin::Relative,
                    _ => Origin::Unknown,
                };
                push_any(arg, origin, is_quoted);
            }
            Expansion::Variable(name) => match self.values.get(name) {
                Some(Known::Text(text)) if is_quoted || is_unsplit(text) => {
                    let text = text.clone();
                    push_text(arg, &text);
                }
                Some(Known::BelowHome(behind)) if is_quoted => {
                    let behind = behind.clone();
                    arg.pieces.push(Piece::Home);
                    push_text(arg, &behind);
                }
                Some(Known::Number) => push_any(arg, Origin::Number, is_quoted),
                Some(Known::Relative) => push_any(arg, Origin::Relative, is_quoted),
                Some(Known::Plain) => push_any(arg, Origin::Plain, is_quoted),
                _ => push_any(arg, Origin::Unknown, is_quoted),
            },
        }
        Ok(())
    }
}

/// Makes `PATH=…` in the words of `export` a name only, where the new value adds nothing but known folders.
fn without_harmless_path(words: &[Word], args: &mut [Arg]) {
    for (word, arg) in words.iter().zip(args) {
        let Some((Part::Bare(first), rest)) = word.split_first() else {
            continue;
        };
        let Some(value) = first.strip_prefix("PATH=") else {
            continue;
        };
        let mut value = vec![Part::Bare(value.to_owned())];
        value.extend(rest.iter().cloned());
        let path = path_of(&value);
        if path.is_some_and(|path| why_decides("PATH", Some(&path)).is_none()) {
            *arg = Arg::text("PATH");
        }
    }
}

/// Returns the name of a program, which must be known.
fn program_of(arg: &Arg) -> Outcome<String> {
    let program = arg.literal().filter(|program| !program.is_empty());
    match program {
        Some(program) if program.is_ascii() => Ok(program),
        _ => not_understood("runs a program whose name is only known when it runs"),
    }
}

/// Returns whether a value stays one word, without quotes.
fn is_unsplit(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,=-".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

fn push_text(arg: &mut Arg, text: &str) {
    match arg.pieces.last_mut() {
        Some(Piece::Text(before)) => before.push_str(text),
        _ => arg.pieces.push(Piece::Text(text.to_owned())),
    }
}

fn push_any(arg: &mut Arg, origin: Origin, is_quoted: bool) {
    if let Some(Piece::Text(text)) = arg.pieces.last()
        && text.is_empty()
    {
        arg.pieces.pop();
    }
    arg.pieces.push(Piece::Any(origin));
    arg.is_many |= !is_quoted;
}

/// Returns whether a script is one harmless program that prints a name or a number.
fn prints_plainly(script: &Script) -> bool {
    let [item] = script.items.as_slice() else {
        return false;
    };
    let Some(Kind::Simple { words, .. }) = item.first.commands.last().map(|node| &node.kind) else {
        return false;
    };
    let program = words.first().and_then(bare);
    item.rest.is_empty() && program.is_some_and(|program| PLAIN_PRINTERS.contains(&program))
}

/// Returns a new value of `PATH` as it is written, if it is plain.
fn path_of(word: &Word) -> Option<String> {
    let mut path = String::new();
    for part in word {
        match part {
            Part::Bare(text) | Part::Quoted(text) => path.push_str(text),
            Part::Home => path.push('~'),
            Part::Expansion {
                expansion: Expansion::Variable(name),
                ..
            } => match name.as_str() {
                "PATH" => path.push_str(OLD_PATH),
                "HOME" => path.push('~'),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(path)
}

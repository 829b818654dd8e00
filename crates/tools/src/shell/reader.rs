//! Goes through a line character by character.

use super::draft::{Compound, Draft, Function, Quoting, Word};
use super::parameter::{self, Parameter};
use super::printed::{escaped, printed};
use super::{Command, Scope, TooComplex, UNKNOWN, scope};

/// Substitutions and parentheses inside each other. People need three; more is meant to confuse.
const DEPTH_MAX: usize = 32;

/// What expansions may add to a line. Ten times the longest line there is.
const EXPANDED_BYTES_MAX: usize = 1024 * 1024;

/// Calls of functions in a line that are followed.
const CALLS_MAX: usize = 256;

/// Builtins that take assignments as arguments.
const DECLARING: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

pub(super) struct Reader {
    chars: Vec<char>,
    at: usize,
    scope: Scope,
    depth: usize,
    expanded_bytes: usize,
    calls: usize,
    /// Here-documents whose text is still to come, at the end of this line.
    pending: Vec<Pending>,
    bodies: Vec<Body>,
}

struct Pending {
    delimiter: Word,
    strips_tabs: bool,
    body: usize,
}

/// The text of a here-document.
#[derive(Default)]
struct Body {
    text: String,
    substitutions: Vec<Command>,
}

impl Reader {
    pub(super) fn new(text: &str, scope: Scope) -> Self {
        Self {
            chars: text.chars().filter_map(plain).collect(),
            at: 0,
            scope,
            depth: 0,
            expanded_bytes: 0,
            calls: 0,
            pending: Vec::new(),
            bodies: Vec::new(),
        }
    }

    pub(super) fn into_scope(self) -> Scope {
        self.scope
    }

    /// Lets a reader of its own go through another text, with the names and the limits of this one.
    fn inside<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Self) -> Result<T, TooComplex>,
    ) -> Result<T, TooComplex> {
        self.charge(text.len())?;
        let mut inner = Self::new(text, std::mem::take(&mut self.scope));
        inner.depth = self.depth;
        inner.expanded_bytes = self.expanded_bytes;
        inner.calls = self.calls;
        let read = read(&mut inner)?;
        self.expanded_bytes = inner.expanded_bytes;
        self.calls = inner.calls;
        self.scope = inner.scope;
        Ok(read)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), TooComplex> {
        self.expanded_bytes += bytes;
        match self.expanded_bytes > EXPANDED_BYTES_MAX {
            true => Err(TooComplex),
            false => Ok(()),
        }
    }

    /// Reads commands up to the end, or to the closing character.
    pub(super) fn commands(&mut self, end: Option<char>) -> Result<Vec<Command>, TooComplex> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooComplex);
        }
        let mut draft = Draft::default();
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => {
                    draft.end_word()?;
                    if !draft.is_in_case() {
                        break;
                    }
                    self.end_command(&mut draft)?;
                }
                ' ' | '\t' | '\r' => draft.end_word()?,
                '\n' => {
                    self.end_command(&mut draft)?;
                    self.read_here_documents()?;
                }
                ';' | ')' => self.end_command(&mut draft)?,
                '&' if self.peek() == Some('>') => draft.end_word()?,
                '&' => {
                    self.skip_if('&');
                    self.end_command(&mut draft)?;
                }
                '|' => {
                    self.end_command(&mut draft)?;
                    draft.command.reads_pipe = !self.skip_if('|');
                    self.skip_if('&');
                }
                '(' if draft.begins_array() => self.array(&mut draft)?,
                '(' => self.parenthesis(&mut draft)?,
                '{' if draft.names_function() => self.function_with_keyword(&mut draft)?,
                '#' if !draft.has_word() => self.skip_comment(),
                '<' | '>' => self.redirect(c, &mut draft)?,
                c => self.part_of_word(c, &mut draft)?,
            }
        }
        self.end_command(&mut draft)?;
        self.close(&mut draft)?;
        self.depth -= 1;
        self.fill_in_input(draft)
    }

    /// Reads a subshell, a function's `()` or an arithmetic command.
    fn parenthesis(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        if self.peek() == Some('(') && !draft.has_word() && self.arithmetic(draft)? {
            return Ok(());
        }
        draft.end_word()?;
        if let Some(name) = self.function_name(draft) {
            return self.begin_function(name, draft);
        }
        let reads_pipe = draft.reads_pipe();
        if !draft.is_empty() {
            self.end_command(draft)?;
        }
        let start = self.at;
        let mut commands = self.commands(Some(')'))?;
        for command in &mut commands {
            command.reads_pipe |= reads_pipe;
        }
        if let Some(function) = draft.open.pop_if(|compound| compound.end == ")") {
            let name = function.function.map(|function| function.name);
            let body: String = self.chars[start..self.at].iter().collect();
            self.scope
                .set_function(&name.unwrap_or_default(), format!("({body}"));
        }
        draft.command.reads_pipe = false;
        draft.done.append(&mut commands);
        Ok(())
    }

    /// Returns the name before `()`, and skips the `)`.
    fn function_name(&mut self, draft: &mut Draft) -> Option<String> {
        let rest = &self.chars[self.at..];
        let spaces = rest.iter().take_while(|c| matches!(c, ' ' | '\t')).count();
        let (name, before) = draft.words.split_last()?;
        if name.is_quoted || rest.get(spaces) != Some(&')') || before.iter().any(|w| w.is_quoted) {
            return None;
        }
        let name = name.text.clone();
        self.at += spaces + 1;
        draft.words.pop();
        draft.words.retain(|word| word.text != "function");
        Some(name)
    }

    /// Reads `name=(…)` after its parenthesis.
    fn array(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        draft.end_word()?;
        let name = draft.words.pop().unwrap_or_default().text;
        let commands = self.commands(Some(')'))?;
        let values = commands.iter().flat_map(|command| command.words.clone());
        self.scope
            .set(name.trim_end_matches(['=', '+']), values.collect());
        let substitutions = commands.into_iter().flat_map(|c| c.substitutions);
        draft.command.substitutions.extend(substitutions);
        Ok(())
    }

    /// Reads `function name {` from its brace on.
    fn function_with_keyword(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        self.at -= 1;
        let name = draft.words.pop().unwrap_or_default().text;
        draft.words.pop();
        self.begin_function(name, draft)
    }

    /// Takes note of where the body of a function begins.
    fn begin_function(&mut self, name: String, draft: &mut Draft) -> Result<(), TooComplex> {
        if !draft.words.is_empty() {
            self.end_command(draft)?;
        }
        self.take_while(|c| c.is_whitespace());
        let (end, skipped) = match self.peek() {
            Some('{') => ("}", 1),
            Some('(') => (")", 0),
            _ => return Ok(()),
        };
        self.at += skipped;
        let body_start = self.at;
        draft.open.push(Compound {
            end,
            reads_pipe: false,
            function: Some(Function { name, body_start }),
        });
        Ok(())
    }

    /// Reads `((…))` after its first parenthesis, if that is what it is. Only the expansions in it run anything.
    fn arithmetic(&mut self, draft: &mut Draft) -> Result<bool, TooComplex> {
        let mut depth = 0;
        let rest = self.chars[self.at..].iter();
        let inner_end = rest.enumerate().find_map(|(at, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(self.at + at)
        });
        let Some(inner_end) = inner_end.filter(|end| self.chars.get(end + 1) == Some(&')')) else {
            return Ok(false);
        };
        let inside: String = self.chars[self.at + 1..inner_end].iter().collect();
        let body = self.expanded_text(&inside)?;
        draft.command.substitutions.extend(body.substitutions);
        if inside.contains([';', '\n']) {
            // No arithmetic: shells differ in what they make of it.
            let commands = self.inside(&inside, |inner| inner.commands(None))?;
            draft.command.substitutions.extend(commands);
        }
        self.at = inner_end + 2;
        Ok(true)
    }

    /// Undoes the expansions in text that is read like a quoted string.
    fn expanded_text(&mut self, text: &str) -> Result<Body, TooComplex> {
        let mut draft = self.inside(text, |inner| {
            let mut draft = Draft::default();
            inner.double_quoted(&mut draft, None)?;
            draft.end_word()?;
            Ok(draft)
        })?;
        Ok(Body {
            text: draft.words.pop().unwrap_or_default().text,
            substitutions: draft.command.substitutions,
        })
    }

    fn part_of_word(&mut self, c: char, draft: &mut Draft) -> Result<(), TooComplex> {
        match c {
            '\\' => match self.next() {
                None | Some('\n') => {}
                Some(escaped) => draft.push_quoted(escaped.encode_utf8(&mut [0; 4])),
            },
            '\'' => {
                let text = self.take_while(|c| c != '\'');
                self.next();
                draft.push_quoted(&text);
            }
            '"' => self.double_quoted(draft, Some('"'))?,
            '$' => self.expansion(draft, Quoting::None)?,
            '`' => self.backticks(draft, Quoting::None)?,
            c => draft.push(c),
        }
        Ok(())
    }

    fn double_quoted(&mut self, draft: &mut Draft, end: Option<char>) -> Result<(), TooComplex> {
        draft.push_quoted("");
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => break,
                '\\' => match self.next() {
                    None | Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        draft.push_quoted(c.encode_utf8(&mut [0; 4]))
                    }
                    Some(c) => draft.push_quoted(&format!("\\{c}")),
                },
                '$' => self.expansion(draft, Quoting::Double)?,
                '`' => self.backticks(draft, Quoting::Double)?,
                c => draft.push_quoted(c.encode_utf8(&mut [0; 4])),
            }
        }
        Ok(())
    }

    /// Reads what follows a `$`.
    fn expansion(&mut self, draft: &mut Draft, quoting: Quoting) -> Result<(), TooComplex> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                if self.peek() == Some('(') && self.arithmetic(draft)? {
                    return draft.expand(UNKNOWN, quoting);
                }
                let commands = self.substitution()?;
                self.substitute(commands, draft, quoting)
            }
            Some('{') => {
                self.at += 1;
                let start = self.at;
                let text = self.take_braced(quoting);
                self.read_both_ways(start, &text, draft, quoting)?;
                self.parameter(&text, draft, quoting)
            }
            Some('\'') if quoting == Quoting::None => {
                self.at += 1;
                let text = self.escaped_string();
                draft.push_quoted(&text);
                Ok(())
            }
            // `$"…"` is a string to translate: the quote that follows reads it.
            Some('"') if quoting == Quoting::None => Ok(()),
            Some(c) if is_special(c) => {
                self.at += 1;
                self.variable(c.encode_utf8(&mut [0; 4]), draft, quoting)
            }
            Some(c) if is_name(c) => {
                let name = self.take_while(is_name);
                self.variable(&name, draft, quoting)
            }
            _ => {
                draft.push('$');
                Ok(())
            }
        }
    }

    /// Reads commands up to `)`. Here-documents that began outside have their text outside.
    fn substitution(&mut self) -> Result<Vec<Command>, TooComplex> {
        let outside = std::mem::take(&mut self.pending);
        let commands = self.commands(Some(')'))?;
        self.pending = outside;
        Ok(commands)
    }

    fn variable(
        &mut self,
        name: &str,
        draft: &mut Draft,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let values = match (name, self.scope.variable(name)) {
            (_, Some(values)) => values.to_vec(),
            ("IFS", None) => vec![" ".to_owned()],
            ("HOME", None) => vec!["~".to_owned()],
            // A line has no arguments unless it is given some.
            ("@" | "*" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9", None) => Vec::new(),
            (name, None) => vec![format!("${name}")],
        };
        self.charge(values.iter().map(String::len).sum())?;
        draft.expand_each(&values, quoting)
    }

    /// Reads the inside of `${…}`.
    fn parameter(
        &mut self,
        text: &str,
        draft: &mut Draft,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let (is_indirect, text) = match text.strip_prefix('!') {
            Some(rest) if rest.starts_with(is_name) => (true, rest),
            _ => (false, text),
        };
        let end = match text.chars().next() {
            Some(c) if is_special(c) && !c.is_ascii_digit() => c.len_utf8(),
            _ => text.find(|c| !is_name(c)).unwrap_or(text.len()),
        };
        let (name, operation) = text.split_at(end);
        if let Some(values) = self.items(name, operation) {
            self.charge(values.iter().map(String::len).sum())?;
            return draft.expand_each(&values, quoting);
        }
        if name == "IFS" || (operation.is_empty() && !is_indirect) {
            return self.variable(name, draft, quoting);
        }
        let mut value = self.scope.variable(name).map(|values| values.join(" "));
        if is_indirect {
            let names = self.scope.variable(&value.unwrap_or_default());
            value = names.map(|values| values.join(" "));
        }
        match parameter::apply(value.as_deref(), operation) {
            Parameter::Value(value) => {
                self.charge(value.len())?;
                draft.expand(&value, quoting)
            }
            Parameter::Instead(text) => {
                let commands = self.inside(text, |inner| inner.commands(None))?;
                let words: Vec<&str> = commands
                    .iter()
                    .flat_map(|command| command.words.iter().map(String::as_str))
                    .collect();
                draft.expand(&words.join(" "), quoting)?;
                let substitutions = commands.into_iter().flat_map(|c| c.substitutions);
                draft.command.substitutions.extend(substitutions);
                Ok(())
            }
            Parameter::Unknown => {
                // `${x[$(reboot)]}`: what is in it may run.
                let body = self.expanded_text(operation)?;
                draft.command.substitutions.extend(body.substitutions);
                draft.expand(&format!("${name}"), quoting)
            }
        }
    }

    /// Returns what `${name[index]}` stands for.
    fn items(&self, name: &str, operation: &str) -> Option<Vec<String>> {
        let index = operation.strip_prefix('[')?.strip_suffix(']')?;
        let values = self.scope.variable(name)?;
        match index {
            "@" | "*" => Some(values.to_vec()),
            index => {
                let value = values.get(index.parse::<usize>().ok()?)?;
                Some(vec![value.clone()])
            }
        }
    }

    fn backticks(&mut self, draft: &mut Draft, quoting: Quoting) -> Result<(), TooComplex> {
        let mut inside = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => break,
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => {
                    inside.extend(self.next());
                }
                c => inside.push(c),
            }
        }
        let commands = self.inside(&inside, |inner| inner.commands(None))?;
        self.substitute(commands, draft, quoting)
    }

    fn substitute(
        &mut self,
        commands: Vec<Command>,
        draft: &mut Draft,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let value = all_printed(&commands).unwrap_or_else(|| UNKNOWN.to_owned());
        self.charge(value.len())?;
        draft.command.substitutions.extend(commands);
        draft.expand(value.trim_end_matches('\n'), quoting)
    }

    /// Reads what follows a `<` or `>`.
    fn redirect(&mut self, first: char, draft: &mut Draft) -> Result<(), TooComplex> {
        if self.skip_if('(') {
            let commands = self.substitution()?;
            let text = all_printed(&commands).filter(|_| first == '<');
            self.charge(text.as_ref().map_or(0, String::len))?;
            draft.command.files.extend(text);
            draft.command.substitutions.extend(commands);
            draft.push_quoted("/dev/fd/63");
            return Ok(());
        }
        draft.end_word_before_redirect()?;
        let second = match (first, self.peek()) {
            ('>', Some(c @ ('>' | '|' | '&'))) | ('<', Some(c @ ('<' | '>' | '&'))) => {
                self.at += 1;
                Some(c)
            }
            _ => None,
        };
        if (first, second) == ('<', Some('<')) {
            return self.here_document(draft);
        }
        let target = self.single_word(draft)?.text;
        let is_descriptor =
            second == Some('&') && target.chars().all(|c| c.is_ascii_digit() || c == '-');
        if !is_descriptor {
            draft.add_redirect(target, first == '>' || second == Some('>'));
        }
        Ok(())
    }

    /// Reads what follows `<<`.
    fn here_document(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        draft.command.reads_here_document = true;
        if self.skip_if('<') {
            draft.command.input = Some(self.single_word(draft)?.text);
            return Ok(());
        }
        let strips_tabs = self.skip_if('-');
        let delimiter = self.single_word(draft)?;
        let body = self.bodies.len();
        self.bodies.push(Body::default());
        draft.here_documents.push((draft.done.len(), body));
        self.pending.push(Pending {
            delimiter,
            strips_tabs,
            body,
        });
        Ok(())
    }

    /// Reads the texts of here-documents after the line that announced them.
    fn read_here_documents(&mut self) -> Result<(), TooComplex> {
        for pending in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            while self.peek().is_some() {
                let mut line = self.take_while(|c| c != '\n');
                self.next();
                if pending.strips_tabs {
                    line = line.trim_start_matches('\t').to_owned();
                }
                if line == pending.delimiter.text {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            self.bodies[pending.body] = match pending.delimiter.is_quoted {
                true => Body {
                    text,
                    ..Body::default()
                },
                false => self.expanded_text(&text)?,
            };
        }
        Ok(())
    }

    /// Reads the word after a redirection.
    fn single_word(&mut self, draft: &mut Draft) -> Result<Word, TooComplex> {
        self.take_while(|c| matches!(c, ' ' | '\t'));
        let mut target = Draft::default();
        while let Some(c) = self.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')') {
                // `>&1` and `>&-` have their target right after the sign, so no sign begins a word.
                break;
            }
            self.at += 1;
            self.part_of_word(c, &mut target)?;
        }
        target.end_word()?;
        let inner = &mut target.command.substitutions;
        draft.command.substitutions.append(inner);
        let texts: Vec<&str> = target.words.iter().map(|word| word.text.as_str()).collect();
        Ok(Word {
            text: texts.join(" "),
            is_quoted: target.words.iter().any(|word| word.is_quoted),
        })
    }

    /// Ends a command: takes note of what it means for those after it.
    fn end_command(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        draft.end_word()?;
        if draft.is_empty() {
            return Ok(());
        }
        let reads_pipe = draft.reads_pipe();
        let (reserved, ended) = draft.follow_compounds();
        for function in ended {
            self.end_function(function, self.at)?;
        }
        let words = std::mem::take(&mut draft.words);
        let mut command = std::mem::take(&mut draft.command);
        command.reads_pipe = reads_pipe;
        let may_be_alias = words.get(reserved).is_some_and(|word| !word.is_quoted);
        command.words = words.into_iter().map(|word| word.text).collect();
        if may_be_alias {
            self.expand_alias(&mut command, reserved)?;
        }
        self.take_note(&command, reserved);
        let called = self.called(&command, reserved)?;
        draft.done.push(command);
        draft.done.extend(called);
        Ok(())
    }

    /// Takes note of the variables, aliases and arguments a command sets.
    fn take_note(&mut self, command: &Command, reserved: usize) {
        let words = &command.words[reserved..];
        let is_assignment = |word: &&String| scope::assignment(word).is_some();
        let assigned = words.iter().take_while(is_assignment).count();
        for word in &words[..assigned] {
            self.scope.assign(word);
        }
        let loops = ["for", "select"].map(str::to_owned);
        if reserved > 0 && loops.contains(&command.words[reserved - 1]) {
            if let [name, keyword, values @ ..] = words
                && keyword == "in"
            {
                self.scope.set(name, values.to_vec());
            }
            return;
        }
        let Some((program, args)) = words[assigned..].split_first() else {
            return;
        };
        match program.as_str() {
            "alias" => args.iter().for_each(|arg| self.scope.set_alias(arg)),
            "set" => {
                let options = args.iter().take_while(|arg| arg.starts_with('-')).count();
                if args.len() > options || options > 0 && args[options - 1] == "--" {
                    self.scope.set_arguments("bash", &args[options..]);
                }
            }
            "read" => {
                if let (Some(name), Some(input)) = (args.last(), &command.input) {
                    self.scope.set(name, vec![input.clone()]);
                }
            }
            "printf" if args.first().is_some_and(|arg| arg == "-v") && args.len() > 2 => {
                let words = [&["printf".to_owned()], &args[2..]].concat();
                let inner = Command {
                    words,
                    ..Command::default()
                };
                self.scope
                    .set(&args[1], printed(&inner).into_iter().collect());
            }
            program if DECLARING.contains(&program) => {
                args.iter().for_each(|arg| {
                    self.scope.assign(arg);
                });
            }
            _ => {}
        }
    }

    /// Replaces an alias by what it stands for.
    fn expand_alias(&mut self, command: &mut Command, reserved: usize) -> Result<(), TooComplex> {
        let name = command.words[reserved].clone();
        let Some(text) = self.scope.take_alias(&name) else {
            return Ok(());
        };
        self.enter()?;
        let mut commands = self.inside(&text, |inner| inner.commands(None))?;
        self.scope.set_alias(&format!("{name}={text}"));
        if let Some(last) = commands.pop() {
            command.words.splice(reserved..=reserved, last.words);
            command.substitutions.extend(last.substitutions);
            command.substitutions.extend(commands);
        }
        Ok(())
    }

    /// Returns what a function runs, when the command calls one.
    fn called(&mut self, command: &Command, reserved: usize) -> Result<Vec<Command>, TooComplex> {
        let Some((name, arguments)) = command.words.get(reserved..).and_then(<[_]>::split_first)
        else {
            return Ok(Vec::new());
        };
        let Some(body) = self.scope.function(name) else {
            return Ok(Vec::new());
        };
        self.enter()?;
        let outside = self.scope.clone();
        self.scope = outside.inside(name, arguments);
        let mut commands = self.inside(&body, |inner| inner.commands(None))?;
        self.scope = outside;
        for inner in &mut commands {
            inner.reads_pipe |= command.reads_pipe;
        }
        Ok(commands)
    }

    /// Counts a call that is followed.
    fn enter(&mut self) -> Result<(), TooComplex> {
        self.calls += 1;
        match self.calls > CALLS_MAX {
            true => Err(TooComplex),
            false => Ok(()),
        }
    }

    fn end_function(&mut self, function: Function, end: usize) -> Result<(), TooComplex> {
        let body = &self.chars[function.body_start.min(end)..end];
        let body: String = body.iter().collect();
        self.charge(body.len())?;
        self.scope.set_function(&function.name, body);
        Ok(())
    }

    /// Ends functions whose end never came: they go on to the end of the text.
    fn close(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        for compound in std::mem::take(&mut draft.open) {
            if let Some(function) = compound.function {
                self.end_function(function, self.at)?;
            }
        }
        Ok(())
    }

    /// Gives commands the input that is known by now.
    fn fill_in_input(&mut self, draft: Draft) -> Result<Vec<Command>, TooComplex> {
        let mut commands = draft.done;
        for (command, body) in draft.here_documents {
            if let Some(command) = commands.get_mut(command) {
                let body = std::mem::take(&mut self.bodies[body]);
                command.input = Some(body.text);
                command.substitutions.extend(body.substitutions);
            }
        }
        for at in 1..commands.len() {
            if commands[at].reads_pipe && commands[at].input.is_none() {
                let input = printed(&commands[at - 1]);
                self.charge(input.as_ref().map_or(0, String::len))?;
                commands[at].input = input;
            }
        }
        Ok(commands)
    }

    /// Takes the inside of `${…}` and its closing brace.
    fn take_braced(&mut self, quoting: Quoting) -> String {
        let mut text = String::new();
        let mut ends = vec!['}'];
        while let Some(c) = self.next() {
            let end = ends[ends.len() - 1];
            match c {
                c if c == end => {
                    ends.pop();
                    if ends.is_empty() {
                        break;
                    }
                }
                '\\' => {
                    text.push(c);
                    text.extend(self.next());
                    continue;
                }
                '\'' if end != '"' && (ends.len() > 1 || quoting == Quoting::None) => {
                    text.push(c);
                    text.push_str(&self.take_while(|c| c != '\''));
                    text.extend(self.next());
                    continue;
                }
                '"' => ends.push('"'),
                '{' if end != '"' || text.ends_with('$') => ends.push('}'),
                '(' if end != '"' || text.ends_with('$') => ends.push(')'),
                _ => {}
            }
            text.push(c);
        }
        text
    }

    /// Where quotes inside `${…}` leave its end in doubt, what follows the first brace is read as well.
    fn read_both_ways(
        &mut self,
        start: usize,
        text: &str,
        draft: &mut Draft,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let Some(first_end) = text.find('}').filter(|_| text.contains(['\'', '"'])) else {
            return Ok(());
        };
        let after = start + text[..first_end].chars().count() + 1;
        let open = if quoting == Quoting::Double { "\"" } else { "" };
        let rest: String = self.chars[after..].iter().collect();
        let commands = self.inside(&format!("{open}{rest}"), |inner| inner.commands(None))?;
        draft.command.substitutions.extend(commands);
        Ok(())
    }

    /// Reads a `$'…'` string up to its closing quote.
    fn escaped_string(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\'' => break,
                '\\' => {
                    const ESCAPE_CHARS_MAX: usize = 9;
                    let end = self.chars.len().min(self.at + ESCAPE_CHARS_MAX);
                    let mut rest = self.chars[self.at..end].iter().copied().peekable();
                    text.extend(escaped(&mut rest));
                    self.at = end - rest.count();
                }
                c => text.push(c),
            }
        }
        text
    }

    fn skip_comment(&mut self) {
        self.take_while(|c| c != '\n');
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn skip_if(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += usize::from(is_next);
        is_next
    }

    fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> String {
        let rest = &self.chars[self.at..];
        let text: String = rest.iter().copied().take_while(|c| is_wanted(*c)).collect();
        self.at += text.chars().count();
        text
    }
}

/// Returns what commands print, when that is plain to see. Of a pipe, its last command prints.
fn all_printed(commands: &[Command]) -> Option<String> {
    let mut texts = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let is_piped_on = commands.get(at + 1).is_some_and(|next| next.reads_pipe);
        if !is_piped_on {
            texts.push(printed(command)?);
        }
    }
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns whether a character is a whole name by itself.
fn is_special(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '@' | '*' | '?' | '!' | '#' | '$' | '-')
}

/// Takes away what only looks different: control characters, and letters of double width.
fn plain(c: char) -> Option<char> {
    match c {
        '\n' | '\t' | '\r' => Some(c),
        '\u{3000}' | '\u{a0}' => Some(' '),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        c if c.is_control() => None,
        c => Some(c),
    }
}

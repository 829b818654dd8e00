//! Reads a shell command line the way a careful person would: which programs does it run, with what words?
//!
//! Not a shell grammar: compound commands are taken apart into the simple commands inside them, in order, whatever
//! decides between them. Quotes, escapes and the common ways to disguise a word (`r\m`, `r''m`, `$(echo rm)`,
//! `${x:-rm}`, `rm${IFS}-rf`) are undone. What only a running shell can know stays as `$name` or `$()`.

/// Substitutions and parentheses inside each other. People need three; more is meant to confuse.
const DEPTH_MAX: usize = 32;

/// Here-documents in one line. Each moves the rest of the line, so their number is limited.
const HERE_DOCUMENTS_MAX: usize = 64;

/// Stands for what a substitution prints when we cannot tell.
const UNKNOWN: &str = "$()";

/// One program with its words, or the shell's own word for something.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) words: Vec<String>,
    pub(crate) redirects: Vec<Redirect>,
    /// Commands run to make up the words.
    pub(crate) substitutions: Vec<Command>,
    pub(crate) here_document: Option<String>,
    /// Its input is what the command before it prints.
    pub(crate) reads_pipe: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) target: String,
    pub(crate) writes: bool,
}

/// The line is nested too deeply, or has too many parts, to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooComplex;

/// Returns every simple command of a line.
pub(crate) fn parse(line: &str) -> Result<Vec<Command>, TooComplex> {
    Reader::new(line, 0).commands(None)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    here_documents: usize,
}

impl Reader {
    fn new(text: &str, depth: usize) -> Self {
        Self {
            chars: text.chars().filter_map(plain).collect(),
            at: 0,
            depth,
            here_documents: 0,
        }
    }

    /// Reads commands up to the end, or to the closing character.
    fn commands(&mut self, end: Option<char>) -> Result<Vec<Command>, TooComplex> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooComplex);
        }
        let mut draft = Draft::default();
        while let Some(c) = self.next() {
            match c {
                c if Some(c) == end => break,
                ' ' | '\t' | '\r' => draft.end_word(),
                '\n' | ';' | ')' => draft.end_command(),
                '&' if self.peek() == Some('>') => draft.end_word(),
                '&' => {
                    self.skip_if('&');
                    draft.end_command();
                }
                '|' => {
                    draft.end_command();
                    draft.command.reads_pipe = !self.skip_if('|');
                    self.skip_if('&');
                }
                '(' => {
                    draft.end_command();
                    draft.done.extend(self.commands(Some(')'))?);
                }
                '#' if draft.word.is_none() => self.skip_comment(),
                '<' | '>' => self.redirect(c, &mut draft)?,
                c => self.part_of_word(c, &mut draft)?,
            }
        }
        draft.end_command();
        self.depth -= 1;
        Ok(draft.done)
    }

    fn part_of_word(&mut self, c: char, draft: &mut Draft) -> Result<(), TooComplex> {
        match c {
            '\\' => match self.next() {
                None | Some('\n') => {}
                Some(escaped) => draft.push_quoted(&escaped.to_string()),
            },
            '\'' => {
                let text = self.take_until('\'');
                draft.push_quoted(&text);
            }
            '"' => self.double_quoted(draft)?,
            '$' => self.expansion(draft, Quoting::None)?,
            '`' => self.backticks(draft, Quoting::None)?,
            c => draft.word().push(c),
        }
        Ok(())
    }

    fn double_quoted(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        draft.push_quoted("");
        while let Some(c) = self.next() {
            match c {
                '"' => break,
                '\\' => match self.next() {
                    None | Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => draft.word().push(c),
                    Some(c) => draft.word().extend(['\\', c]),
                },
                '$' => self.expansion(draft, Quoting::Double)?,
                '`' => self.backticks(draft, Quoting::Double)?,
                c => draft.word().push(c),
            }
        }
        Ok(())
    }

    /// Reads what follows a `$`.
    fn expansion(&mut self, draft: &mut Draft, quoting: Quoting) -> Result<(), TooComplex> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let commands = self.commands(Some(')'))?;
                draft.substitute(commands, quoting);
            }
            Some('{') => {
                self.at += 1;
                let parameter = self.take_until('}');
                self.parameter(&parameter, draft, quoting)?;
            }
            Some('\'') if quoting == Quoting::None => {
                self.at += 1;
                let text = self.escaped_string();
                draft.push_quoted(&text);
            }
            // `$"…"` is a string to translate: the quote that follows reads it.
            Some('"') if quoting == Quoting::None => {}
            Some(c) if is_name(c) => {
                let name = self.take_while(is_name);
                draft.expand(&variable(&name), quoting);
            }
            _ => draft.word().push('$'),
        }
        Ok(())
    }

    /// Reads the inside of `${…}`: a name, perhaps with a value for when it is unset.
    fn parameter(
        &self,
        parameter: &str,
        draft: &mut Draft,
        quoting: Quoting,
    ) -> Result<(), TooComplex> {
        let end = parameter.find(|c| !is_name(c)).unwrap_or(parameter.len());
        let (name, rest) = parameter.split_at(end);
        let default = rest
            .strip_prefix(':')
            .unwrap_or(rest)
            .strip_prefix(['-', '=', '+']);
        match default {
            Some(default) if name != "IFS" => {
                let commands = Reader::new(default, self.depth).commands(None)?;
                let words: Vec<String> = commands.iter().flat_map(|c| c.words.clone()).collect();
                for command in commands {
                    draft.command.substitutions.extend(command.substitutions);
                }
                draft.expand(&words.join(" "), quoting);
            }
            _ => draft.expand(&variable(name), quoting),
        }
        Ok(())
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
        let commands = Reader::new(&inside, self.depth).commands(None)?;
        draft.substitute(commands, quoting);
        Ok(())
    }

    /// Reads what follows a `<` or `>`.
    fn redirect(&mut self, first: char, draft: &mut Draft) -> Result<(), TooComplex> {
        if self.skip_if('(') {
            let commands = self.commands(Some(')'))?;
            draft.command.substitutions.extend(commands);
            draft.push_quoted("/dev/fd/63");
            return Ok(());
        }
        draft.end_word_before_redirect();
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
        let target = self.single_word(draft)?;
        let is_descriptor =
            second == Some('&') && target.chars().all(|c| c.is_ascii_digit() || c == '-');
        if !is_descriptor {
            let writes = first == '>' || second == Some('>');
            draft.command.redirects.push(Redirect { target, writes });
        }
        Ok(())
    }

    /// Reads what follows `<<`. The text is taken out, so that the rest of the line reads on as if it were not there.
    fn here_document(&mut self, draft: &mut Draft) -> Result<(), TooComplex> {
        if self.skip_if('<') {
            draft.command.here_document = Some(self.single_word(draft)?);
            return Ok(());
        }
        self.here_documents += 1;
        if self.here_documents > HERE_DOCUMENTS_MAX {
            return Err(TooComplex);
        }
        self.skip_if('-');
        let delimiter = self.single_word(draft)?;
        let Some(line_end) = self.chars[self.at..].iter().position(|c| *c == '\n') else {
            draft.command.here_document = Some(String::new());
            return Ok(());
        };
        let start = self.at + line_end + 1;
        let rest: String = self.chars[start..].iter().collect();
        let mut body_chars = 0;
        let mut body = String::new();
        for line in rest.split_inclusive('\n') {
            body_chars += line.chars().count();
            if line.trim_end_matches('\n').trim_start_matches('\t') == delimiter {
                break;
            }
            body.push_str(line);
        }
        self.chars.drain(start..start + body_chars);
        draft.command.here_document = Some(body);
        Ok(())
    }

    /// Reads the word after a redirection.
    fn single_word(&mut self, draft: &mut Draft) -> Result<String, TooComplex> {
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
        target.end_word();
        draft
            .command
            .substitutions
            .append(&mut target.command.substitutions);
        Ok(target.command.words.join(" "))
    }

    /// Reads a `$'…'` string up to its closing quote.
    fn escaped_string(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\'' => break,
                '\\' => text.extend(self.escaped_char()),
                c => text.push(c),
            }
        }
        text
    }

    fn escaped_char(&mut self) -> Option<char> {
        let (radix, digits_max) = match self.peek()? {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => {
                return self.next().map(|c| match c {
                    'n' => '\n',
                    't' => '\t',
                    c => c,
                });
            }
        };
        if radix == 16 {
            self.at += 1;
        }
        let mut code = 0;
        for _ in 0..digits_max {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            code = code * radix + digit;
            self.at += 1;
        }
        char::from_u32(code)
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
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| is_wanted(*c)) {
            text.push(c);
            self.at += 1;
        }
        text
    }

    /// Takes the text up to the closing character, and the character.
    fn take_until(&mut self, end: char) -> String {
        let text = self.take_while(|c| c != end);
        self.next();
        text
    }
}

/// A command on its way.
#[derive(Default)]
struct Draft {
    done: Vec<Command>,
    command: Command,
    word: Option<String>,
    is_word_quoted: bool,
}

impl Draft {
    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn push_quoted(&mut self, text: &str) {
        self.word().push_str(text);
        self.is_word_quoted = true;
    }

    fn end_word(&mut self) {
        self.command.words.extend(self.word.take());
        self.is_word_quoted = false;
    }

    /// Ends the word before a redirection, unless it is the number of a file descriptor.
    fn end_word_before_redirect(&mut self) {
        let is_number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
        if !self.is_word_quoted && self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
    }

    fn end_command(&mut self) {
        self.end_word();
        let command = std::mem::take(&mut self.command);
        let is_empty = command.words.is_empty()
            && command.redirects.is_empty()
            && command.substitutions.is_empty();
        if !is_empty {
            self.done.push(command);
        }
    }

    /// Puts in the value of an expansion, which makes several words when it is not quoted.
    fn expand(&mut self, value: &str, quoting: Quoting) {
        if quoting == Quoting::Double {
            self.word().push_str(value);
            return;
        }
        for (at, field) in value.split(char::is_whitespace).enumerate() {
            if at > 0 {
                self.end_word();
            }
            if !field.is_empty() {
                self.word().push_str(field);
            }
        }
    }

    fn substitute(&mut self, commands: Vec<Command>, quoting: Quoting) {
        let value = printed(&commands).unwrap_or_else(|| UNKNOWN.to_owned());
        self.command.substitutions.extend(commands);
        self.expand(&value, quoting);
    }
}

/// Returns what commands print, when that is plain to see.
fn printed(commands: &[Command]) -> Option<String> {
    let [Command { words, .. }] = commands else {
        return None;
    };
    match words.split_first()? {
        (program, words) if program == "echo" => {
            let is_flag = |word: &&String| matches!(word.as_str(), "-n" | "-e" | "-E");
            let shown: Vec<&str> = words
                .iter()
                .skip_while(is_flag)
                .map(String::as_str)
                .collect();
            Some(shown.join(" "))
        }
        (program, words) if program == "printf" => {
            let (format, values) = words.split_first()?;
            let fill = |text: String, value: &String| text.replacen("%s", value, 1);
            Some(values.iter().fold(format.clone(), fill))
        }
        _ => None,
    }
}

fn variable(name: &str) -> String {
    match name {
        "IFS" => " ".to_owned(),
        "HOME" => "~".to_owned(),
        name => format!("${name}"),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '*' | '?' | '!' | '#')
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows commands as their words with `·` between, `|` before those that read a pipe, `→` before written files, and
    /// substitutions in brackets.
    fn show(commands: &[Command]) -> String {
        let shown = commands.iter().map(|command| {
            let mut text = String::new();
            if command.reads_pipe {
                text.push('|');
            }
            text.push_str(&command.words.join("·"));
            for redirect in &command.redirects {
                text.push(if redirect.writes { '→' } else { '←' });
                text.push_str(&redirect.target);
            }
            if let Some(body) = &command.here_document {
                text.push_str(&format!("«{}»", body.trim_end()));
            }
            if !command.substitutions.is_empty() {
                text.push_str(&format!("[{}]", show(&command.substitutions)));
            }
            text
        });
        shown.collect::<Vec<_>>().join(" ; ")
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(show(&parse(line).unwrap()), expected, "{line}");
    }

    #[test]
    fn lines_are_taken_apart_at_their_operators() {
        check("ls -la", "ls·-la");
        check("a; b && c || d & e", "a ; b ; c ; d ; e");
        check("a | b |& c", "a ; |b ; |c");
        check("a\nb", "a ; b");
        check("(a; b) && { c; }", "a ; b ; {·c ; }");
        check("a # comment; b\nc", "a ; c");
        check("echo a#b", "echo·a#b");
        check("", "");
    }

    #[test]
    fn quotes_and_escapes_are_undone() {
        check(r#"echo "a b" 'c;d' e\ f"#, "echo·a b·c;d·e f");
        check(r"r\m -rf /", "rm·-rf·/");
        check("r''m \"\"", "rm·");
        check("$'\\x72m' x", "rm·x");
        check("\"a \\\" b\"", "a \" b");
        check("echo 'unfinished", "echo·unfinished");
        check("ｒｍ -rf /", "rm·-rf·/");
        check("rm \\\n -rf", "rm·-rf");
    }

    #[test]
    fn expansions_are_followed_as_far_as_can_be() {
        check("$(echo rm) -rf /", "rm·-rf·/[echo·rm]");
        check("`echo rm` x", "rm·x[echo·rm]");
        check("$(printf r%s m) x", "rm·x[printf·r%s·m]");
        check("${x:-rm} y", "rm·y");
        check("rm${IFS}-rf$IFS/", "rm·-rf·/");
        check("$(echo rm -rf) /", "rm·-rf·/[echo·rm·-rf]");
        check("\"$(echo a b)\"", "a b[echo·a·b]");
        check("rm \"$HOME\" ${HOME}/x $other", "rm·~·~/x·$other");
        check("x $(curl y)", "x·$()[curl·y]");
        check("${x:-$(rm y)}", "$()[rm·y]");
        check("echo $(a $(b (c)))", "echo·$()[a·$()[b ; c]]");
    }

    #[test]
    fn redirections_are_no_words() {
        check("a > f", "a→f");
        check("a >>f 2>&1", "a→f");
        check("a 2> \"e f\" < in", "a→e f←in");
        check("a &> f", "a→f");
        check("a >| f 2>&-", "a→f");
        check("> /dev/sda", "→/dev/sda");
        check("echo 2 > f", "echo·2→f");
        check("bash <(curl x)", "bash·/dev/fd/63[curl·x]");
    }

    #[test]
    fn here_documents_are_taken_out() {
        check("cat <<EOF | sh\nrm x\nEOF\nls", "cat«rm x» ; |sh ; ls");
        check("sh <<-'END'\n\tls\n\tEND\n", "sh«\tls»");
        check("sh <<< 'rm x'", "sh«rm x»");
        check("sh <<EOF\nnever ends", "sh«never ends»");
        check("sh << 'EOF", "sh«»");
        assert_eq!(parse(&"a <<b\nb\n".repeat(100)), Err(TooComplex));
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(parse(&"$(".repeat(100)), Err(TooComplex));
        assert_eq!(parse(&"(".repeat(100)), Err(TooComplex));
    }
}

//! Colours for code: comments, strings, numbers and the words of the commonest languages. A table instead of grammars:
//! it starts at once, weighs nothing, and is right often enough for reading.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::theme;

/// What is known of a language.
#[derive(Debug)]
struct Language {
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// Quotes that begin and end a string; the longer first.
    quotes: &'static [&'static str],
    keywords: &'static str,
}

const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));

#[rustfmt::skip]
const LANGUAGES: &[Language] = &[
    Language { names: &["rust", "rs"], line_comments: &["//"], block_comment: C_COMMENT, quotes: &["\""],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while" },
    Language { names: &["python", "py", "python3"], line_comments: &["#"], block_comment: None, quotes: &["\"\"\"", "'''", "\"", "'"],
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match case None nonlocal not or pass raise return True try while with yield self" },
    Language { names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"], line_comments: &["//"], block_comment: C_COMMENT, quotes: &["\"", "'", "`"],
        keywords: "abstract as async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of private protected public readonly return static super switch this throw true try type typeof undefined var void while yield" },
    Language { names: &["go", "golang"], line_comments: &["//"], block_comment: C_COMMENT, quotes: &["\"", "`", "'"],
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var" },
    Language { names: &["c", "h", "cpp", "c++", "cc", "hpp", "java", "kotlin", "kt", "cs", "csharp", "swift", "scala", "dart", "zig"], line_comments: &["//"], block_comment: C_COMMENT, quotes: &["\"\"\"", "\"", "'"],
        keywords: "abstract auto bool boolean break byte case catch char class const constexpr continue default delete do double else enum extends extern false final float for fun func goto guard if implements import include inline int interface internal let long namespace new null nullptr object operator override package private protected public return short signed sizeof static string struct super switch template this throw throws true try typedef typename union unsigned using val var virtual void volatile when while" },
    Language { names: &["sh", "bash", "shell", "zsh", "console", "fish", "dockerfile", "makefile"], line_comments: &["#"], block_comment: None, quotes: &["\"", "'"],
        keywords: "case do done elif else esac exit export fi for function if in local return set shift sudo then unset until while echo cd source FROM RUN COPY CMD ENTRYPOINT ENV WORKDIR" },
    Language { names: &["json", "jsonc", "json5"], line_comments: &["//"], block_comment: C_COMMENT, quotes: &["\""], keywords: "true false null" },
    Language { names: &["yaml", "yml"], line_comments: &["#"], block_comment: None, quotes: &["\"", "'"], keywords: "true false null yes no on off" },
    Language { names: &["toml", "ini", "conf", "properties"], line_comments: &["#", ";"], block_comment: None, quotes: &["\"\"\"", "'''", "\"", "'"], keywords: "true false" },
    Language { names: &["sql", "sqlite", "postgresql", "mysql"], line_comments: &["--"], block_comment: C_COMMENT, quotes: &["'", "\""],
        keywords: "add all alter and as asc begin between by case check column commit constraint create default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then union unique update values view when where with ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE CHECK COLUMN COMMIT CONSTRAINT CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM FULL GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER PRIMARY REFERENCES RETURNING RIGHT ROLLBACK SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES VIEW WHEN WHERE WITH" },
    Language { names: &["ruby", "rb"], line_comments: &["#"], block_comment: None, quotes: &["\"", "'"],
        keywords: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or puts raise require rescue return self super then true unless until when while yield" },
    Language { names: &["php"], line_comments: &["//", "#"], block_comment: C_COMMENT, quotes: &["\"", "'"],
        keywords: "abstract array as break case catch class const continue default do echo else elseif extends false final finally fn for foreach function if implements interface namespace new null private protected public return static switch this throw true try use while" },
    Language { names: &["lua"], line_comments: &["--"], block_comment: None, quotes: &["\"", "'"],
        keywords: "and break do else elseif end false for function if in local nil not or repeat return then true until while" },
    Language { names: &["css", "scss", "less"], line_comments: &[], block_comment: C_COMMENT, quotes: &["\"", "'"], keywords: "important media import" },
    Language { names: &["html", "xml", "svg", "vue"], line_comments: &[], block_comment: Some(("<!--", "-->")), quotes: &["\"", "'"], keywords: "" },
];

/// What a line may be in the middle of when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Comment,
    String(&'static str),
}

#[derive(Debug)]
pub(super) struct Highlighter {
    kind: Kind,
    inside: Inside,
}

#[derive(Debug)]
enum Kind {
    Plain,
    Diff,
    Language(&'static Language),
}

impl Highlighter {
    /// For the words behind a fence, such as `rust` or `python title=x`.
    pub(super) fn new(info: &str) -> Self {
        let name = info
            .split([' ', ',', '{', ':'])
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let kind = match name.as_str() {
            "diff" | "patch" => Kind::Diff,
            name => LANGUAGES
                .iter()
                .find(|language| language.names.contains(&name))
                .map_or(Kind::Plain, Kind::Language),
        };
        Self {
            kind,
            inside: Inside::Nothing,
        }
    }

    /// Colours the next line.
    pub(super) fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        match self.kind {
            Kind::Plain => vec![Span::raw(line.to_owned())],
            Kind::Diff => vec![Span::styled(line.to_owned(), diff_style(line))],
            Kind::Language(language) => self.code(language, line),
        }
    }

    fn code(&mut self, language: &'static Language, line: &str) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (length, style) = self.token(language, rest);
            let (token, after) = rest.split_at(length);
            spans.push(Span::styled(token.to_owned(), style));
            rest = after;
        }
        // Only strings in long quotes go on in the next line.
        if matches!(self.inside, Inside::String(quote) if quote.len() == 1 && quote != "`") {
            self.inside = Inside::Nothing;
        }
        spans
    }

    /// The length and the look of what `text` begins with.
    fn token(&mut self, language: &'static Language, text: &str) -> (usize, Style) {
        match self.inside {
            Inside::Comment => {
                let end = language.block_comment.map_or("", |(_, end)| end);
                return (self.until(text, end), theme::COMMENT);
            }
            Inside::String(quote) => return (self.until_quote(text, quote), theme::LITERAL),
            Inside::Nothing => {}
        }
        if language
            .line_comments
            .iter()
            .any(|mark| text.starts_with(mark))
        {
            return (text.len(), theme::COMMENT);
        }
        if let Some((start, end)) = language.block_comment
            && text.starts_with(start)
        {
            self.inside = Inside::Comment;
            return (
                start.len() + self.until(&text[start.len()..], end),
                theme::COMMENT,
            );
        }
        if let Some(quote) = language
            .quotes
            .iter()
            .find(|quote| text.starts_with(**quote))
        {
            self.inside = Inside::String(quote);
            let length = quote.len() + self.until_quote(&text[quote.len()..], quote);
            return (length, theme::LITERAL);
        }
        word(language, text)
    }

    fn until(&mut self, text: &str, end: &str) -> usize {
        match text.find(end) {
            Some(at) => {
                self.inside = Inside::Nothing;
                at + end.len()
            }
            None => text.len(),
        }
    }

    fn until_quote(&mut self, text: &str, quote: &str) -> usize {
        let mut is_escaped = false;
        for (at, c) in text.char_indices() {
            if !is_escaped && text[at..].starts_with(quote) {
                self.inside = Inside::Nothing;
                return at + quote.len();
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        text.len()
    }
}

fn word(language: &Language, text: &str) -> (usize, Style) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let Some(first) = text.chars().next() else {
        return (0, theme::PLAIN);
    };
    if length == 0 {
        return (first.len_utf8(), theme::PLAIN);
    }
    let word = &text[..length];
    let style = match word {
        _ if first.is_ascii_digit() => theme::NUMBER,
        _ if language.keywords.split(' ').any(|keyword| keyword == word) => theme::KEYWORD,
        _ if first.is_uppercase() && word.contains(char::is_lowercase) => theme::TYPE,
        _ => theme::PLAIN,
    };
    (length, style)
}

/// How a line of a unified diff looks.
pub(crate) fn diff_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => theme::GOOD,
        Some('-') => theme::BAD,
        Some('@') => theme::ACCENT,
        _ if line.starts_with("diff ") || line.starts_with("index ") => theme::DIM,
        _ => theme::PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles(language: &str, lines: &[&str]) -> Vec<Vec<(String, Style)>> {
        let mut highlighter = Highlighter::new(language);
        let lines = lines.iter().map(|line| highlighter.line(line));
        lines
            .map(|spans| {
                let styled = spans.into_iter().filter(|span| span.style != theme::PLAIN);
                styled
                    .map(|span| (span.content.into_owned(), span.style))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn words_strings_numbers_and_comments_are_told_apart() {
        let found = styles("rust", &["let x = \"a \\\" b\"; // done"]);
        let expected = [
            ("let", theme::KEYWORD),
            ("\"a \\\" b\"", theme::LITERAL),
            ("// done", theme::COMMENT),
        ];
        assert_eq!(
            found[0],
            expected.map(|(text, style)| (text.to_owned(), style))
        );
    }

    #[test]
    fn comments_and_long_strings_go_on_and_short_ones_do_not() {
        let found = styles("python", &["x = '''a", "b''' + 'open", "return 1"]);
        assert_eq!(found[1][0], ("b'''".into(), theme::LITERAL));
        assert_eq!(found[2][0], ("return".into(), theme::KEYWORD));
        let found = styles("c", &["/* a", "b */ int"]);
        assert_eq!(
            found[1],
            [
                ("b */".into(), theme::COMMENT),
                ("int".into(), theme::KEYWORD)
            ]
        );
    }

    #[test]
    fn nothing_is_lost_whatever_the_language() {
        for language in LANGUAGES {
            let mut highlighter = Highlighter::new(language.names[0]);
            for line in ["ünï \"cö", "'''x /* y -->", "`#; --", "", "🦀 0x1f"] {
                let text: String = highlighter
                    .line(line)
                    .iter()
                    .map(|span| span.content.as_ref())
                    .collect();
                assert_eq!(text, line);
            }
        }
    }

    #[test]
    fn diffs_are_green_and_red() {
        let found = styles("diff", &["+a", "-b", " c", "@@ -1 +1 @@"]);
        let looks: Vec<_> = found
            .iter()
            .map(|line| line.first().map(|(_, style)| *style))
            .collect();
        assert_eq!(
            looks,
            [
                Some(theme::GOOD),
                Some(theme::BAD),
                None,
                Some(theme::ACCENT)
            ]
        );
    }
}

//! What a person means by a line of search text. Every text is a valid query; at worst it finds nothing.
//!
//! Words stand for "all of these", `"…"` for a phrase, `OR` and `NOT` mean what they say where they can, `word*` is a
//! beginning. Everything else that is special to the index is only punctuation here.

use std::cell::OnceCell;

use super::snippet::{Edges, Needle};

/// Characters of a query that count. Nobody types more; a pasted page is cut.
const QUERY_CHARS_MAX: usize = 2048;

/// Terms of a query that count: the index works through each of them.
const TERMS_MAX: usize = 32;

/// Trigrams asked of the index per term. They only name candidates, and a few make them few.
const TRIGRAMS_MAX: usize = 16;

/// The shortest text the trigram index knows.
const TRIGRAM_CHARS: usize = 3;

/// Alternatives, of which one must fit.
#[derive(Debug, PartialEq)]
pub(super) struct Query {
    groups: Vec<Group>,
}

/// Terms that must all fit, and terms that must not. Never without one that must.
#[derive(Debug, Default, PartialEq)]
struct Group {
    wanted: Vec<Term>,
    unwanted: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    /// Lower case, without quotes.
    text: String,
    is_beginning: bool,
    /// Same in lower and upper case, as most of the world's scripts are: text need not be folded to look for it.
    is_caseless: bool,
}

/// Which index can answer.
#[derive(Debug, PartialEq)]
pub(super) enum Route {
    Nothing,
    Words,
    /// The words index, and if that knows nothing, parts of words.
    WordsOrTrigrams,
    Trigrams,
    /// Too short for an index: look at the newest messages one by one.
    Scan,
}

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let mut groups = vec![Group::default()];
        let (mut is_unwanted, mut terms) = (false, 0);
        for token in tokens(text) {
            let Some(group) = groups.last_mut() else {
                break;
            };
            match token {
                Token::And => {}
                Token::Or if group.wanted.is_empty() => {}
                Token::Or => groups.push(Group::default()),
                // At the beginning of a group there is nothing to take away from.
                Token::Not => is_unwanted = !group.wanted.is_empty(),
                Token::Term(_) if terms == TERMS_MAX => break,
                Token::Term(term) => {
                    let side = if std::mem::take(&mut is_unwanted) {
                        &mut group.unwanted
                    } else {
                        &mut group.wanted
                    };
                    side.push(term);
                    terms += 1;
                }
            }
        }
        groups.retain(|group| !group.wanted.is_empty());
        Self { groups }
    }

    pub(super) fn route(&self) -> Route {
        let has_trigrams = self
            .groups
            .iter()
            .all(|group| group.wanted.iter().any(Term::has_trigrams));
        let mut wanted = self.wanted();
        if self.groups.is_empty() {
            Route::Nothing
        } else {
            match (
                wanted.any(|term| term.text.contains(is_unspaced)),
                has_trigrams,
            ) {
                (false, false) => Route::Words,
                (false, true) => Route::WordsOrTrigrams,
                (true, true) => Route::Trigrams,
                (true, false) => Route::Scan,
            }
        }
    }

    /// Writes each alternative in the language of FTS5, for the words index. Every term is quoted, so none has a
    /// meaning of its own there.
    pub(super) fn to_words(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| {
            let wanted = join(&group.wanted, " AND ", Term::to_word);
            match group.unwanted.as_slice() {
                [] => format!("({wanted})"),
                unwanted => format!(
                    "(({wanted}) NOT ({}))",
                    join(unwanted, " OR ", Term::to_word)
                ),
            }
        });
        groups.collect()
    }

    /// Writes a query for the trigram index that finds at least everything that [`Query::fits`].
    pub(super) fn to_trigrams(&self) -> String {
        let groups = self.groups.iter().map(|group| {
            let indexed: Vec<Term> = group
                .wanted
                .iter()
                .filter(|term| term.has_trigrams())
                .cloned()
                .collect();
            format!("({})", join(&indexed, " AND ", Term::to_trigrams))
        });
        groups.collect::<Vec<_>>().join(" OR ")
    }

    /// Returns whether a text contains what is wanted, anywhere, also inside words.
    pub(super) fn fits(&self, text: &str) -> bool {
        let folded = OnceCell::new();
        let contains = |term: &Term| {
            if term.is_caseless {
                text.contains(&term.text)
            } else {
                folded.get_or_init(|| fold(text)).contains(&term.text)
            }
        };
        self.groups
            .iter()
            .any(|group| group.wanted.iter().all(contains) && !group.unwanted.iter().any(contains))
    }

    pub(super) fn wanted(&self) -> impl Iterator<Item = &Term> {
        self.groups.iter().flat_map(|group| &group.wanted)
    }
}

impl Term {
    fn new(text: &str) -> Option<Self> {
        let stem = text.trim_end_matches('*');
        stem.contains(char::is_alphanumeric).then(|| Self {
            text: fold(stem),
            is_beginning: stem.len() < text.len(),
            is_caseless: stem.chars().all(|c| !c.is_lowercase() && !c.is_uppercase()),
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where it lies when the words index finds it.
    pub(super) fn edges(&self) -> Edges {
        if self.is_beginning {
            Edges::BeginningOfWord
        } else {
            Edges::WholeWord
        }
    }

    pub(super) fn to_needle(&self, edges: Edges) -> Needle {
        Needle {
            chars: self.text.chars().collect(),
            edges,
        }
    }

    fn has_trigrams(&self) -> bool {
        self.text.chars().nth(TRIGRAM_CHARS - 1).is_some()
    }

    pub(super) fn to_word(&self) -> String {
        let star = if self.is_beginning { "*" } else { "" };
        format!("\"{}\"{star}", self.text)
    }

    fn to_trigrams(&self) -> String {
        let chars: Vec<char> = self.text.chars().collect();
        let trigrams = chars
            .windows(TRIGRAM_CHARS)
            .take(TRIGRAMS_MAX)
            .map(|trigram| format!("\"{}\"", String::from_iter(trigram)));
        trigrams.collect::<Vec<_>>().join(" AND ")
    }
}

fn join(terms: &[Term], operator: &str, write: fn(&Term) -> String) -> String {
    terms.iter().map(write).collect::<Vec<_>>().join(operator)
}

/// Lowers each character by itself, so that positions stay the same.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().map(fold_char).collect()
    }
}

pub(super) fn fold_char(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

enum Token {
    And,
    Or,
    Not,
    Term(Term),
}

fn tokens(text: &str) -> Vec<Token> {
    let cut: String = text.chars().take(QUERY_CHARS_MAX).collect();
    let pieces: Vec<&str> = cut.split('"').collect();
    // An odd quote opens nothing: with it the number of pieces is even, and the last is outside.
    let last = pieces.len() - 1;
    let mut tokens = Vec::new();
    for (i, piece) in pieces.into_iter().enumerate() {
        let is_quoted = i % 2 == 1 && i < last;
        if is_quoted {
            let phrase = piece.replace(char::is_control, " ");
            tokens.extend(Term::new(phrase.trim()).map(Token::Term));
        } else {
            tokens.extend(piece.split(is_break).filter_map(word));
        }
    }
    tokens
}

fn word(word: &str) -> Option<Token> {
    match word {
        "AND" => Some(Token::And),
        "OR" => Some(Token::Or),
        "NOT" => Some(Token::Not),
        word => Term::new(word.trim_start_matches('*')).map(Token::Term),
    }
}

/// Separates words, besides space: brackets and signs that people put around words rather than into them.
fn is_break(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '+' | '{' | '}' | '(' | ')' | ':' | '^')
}

/// Belongs to a script written without spaces between words, or (Korean) with endings grown to them: the words index
/// holds whole runs of it, which nobody searches for.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Burmese
        | '\u{1100}'..='\u{11ff}'     // Hangul letters
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3040}'..='\u{30ff}'     // Japanese syllables
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'     // Chinese characters
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'     // Hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_query_that_cannot_be_wrong() {
        let check = |text, expected| {
            assert_eq!(
                Query::parse(text).to_words().join(" OR "),
                expected,
                "{text}"
            );
        };
        check("Docker build", r#"("docker" AND "build")"#);
        check(
            r#"say "hello world" again"#,
            r#"("say" AND "hello world" AND "again")"#,
        );
        check(r#"an "open quote"#, r#"("an" AND "open" AND "quote")"#);
        check("a AND b", r#"("a" AND "b")"#);
        check("a OR b", r#"("a") OR ("b")"#);
        check("a NOT b c", r#"(("a" AND "c") NOT ("b"))"#);
        check("AND OR NOT", "");
        check("OR a OR", r#"("a")"#);
        check("NOT a", r#"("a")"#);
        check("a NOT", r#"("a")"#);
        check("a OR NOT b", r#"("a") OR ("b")"#);
        check("depl*", r#"("depl"*)"#);
        check("**depl***", r#"("depl"*)"#);
        check(
            "a^2 (b) {c}:d+e",
            r#"("a" AND "2" AND "b" AND "c" AND "d" AND "e")"#,
        );
        check("my-file.rs chat_id", r#"("my-file.rs" AND "chat_id")"#);
        check("- ... !", "");
        check("a\0b", r#"("a" AND "b")"#);
    }

    #[test]
    fn the_route_follows_script_and_length() {
        let check = |text, expected| assert_eq!(Query::parse(text).route(), expected, "{text}");
        check("", Route::Nothing);
        check("docker", Route::WordsOrTrigrams);
        check("go", Route::Words);
        check("go OR docker", Route::Words);
        check("部署容器", Route::Trigrams);
        check("容器", Route::Scan);
        check("docker 容器", Route::Trigrams);
        check("ไทย", Route::Trigrams);
    }

    #[test]
    fn fitting_is_by_substring_and_ignores_case() {
        let check = |query, text, expected| {
            assert_eq!(
                Query::parse(query).fits(text),
                expected,
                "{query} in {text}"
            );
        };
        check("OCKER", "Docker", true);
        check("容器", "用容器部署", true);
        check("容器 NOT 部署", "用容器部署", false);
        check("猫 OR 容器", "用容器部署", true);
        check("\"b c\"", "a b c", true);
        check("\"b c\"", "a bc", false);
    }

    #[test]
    fn long_terms_ask_for_a_few_trigrams_only() {
        let query = Query::parse(&"x".repeat(3000)).to_trigrams();
        assert_eq!(query.matches("\"xxx\"").count(), TRIGRAMS_MAX);
        let query = Query::parse(&"word ".repeat(3000)).to_words().join(" ");
        assert_eq!(query.matches("word").count(), TERMS_MAX);
    }
}

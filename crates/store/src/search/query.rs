//! What a person means by a line of search text. Every text is a valid query; at worst it finds nothing.
//!
//! Words stand for "all of these", `"…"` for a phrase, `OR` and `NOT` mean what they say where they can, `word*` is a
//! beginning. Everything else that is special to the index is only punctuation here. A [plain](Query::is_plain) query has
//! none of that: somebody asked in their own words, of which some may be missing or misspelt.

use std::cell::OnceCell;

use super::rank::Form;
use super::script::{is_unspaced, pieces_to_find};
use super::snippet::Edges;

/// Characters of a query that count. Nobody types more; a pasted page is cut.
const QUERY_CHARS_MAX: usize = 2048;

/// Terms of a query that count: the index works through each of them.
const TERMS_MAX: usize = 32;

/// Trigrams asked of the index per term. They only name candidates, and a few make them few.
const TRIGRAMS_MAX: usize = 16;

/// The shortest beginning of a word that an index is asked for beside other terms.
const BEGINNING_CHARS_MIN: usize = 4;

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
    is_quoted: bool,
    /// Same in lower and upper case, as most of the world's scripts are: text need not be folded to look for it.
    is_caseless: bool,
}

/// Which index answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    Words,
    /// Has messages with scripts that do not separate words, with all their words.
    Unspaced,
}

impl Index {
    /// The name of its table.
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Unspaced => "unspaced",
        }
    }
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

    /// Returns the index that knows the query's scripts; nothing when there is nothing to look for.
    pub(super) fn index(&self) -> Option<Index> {
        if self.groups.is_empty() {
            None
        } else if self.wanted().any(Term::is_unspaced) {
            Some(Index::Unspaced)
        } else {
            Some(Index::Words)
        }
    }

    /// Returns whether it can be asked of the trigram index.
    pub(super) fn has_trigrams(&self) -> bool {
        let has_some = |group: &Group| group.wanted.iter().any(Term::has_trigrams);
        !self.groups.is_empty() && self.groups.iter().all(has_some)
    }

    /// Returns the terms of a query without operators, phrases and beginnings.
    pub(super) fn plain(&self) -> Option<&[Term]> {
        match self.groups.as_slice() {
            [group] if group.unwanted.is_empty() && group.wanted.iter().all(Term::is_plain) => {
                Some(&group.wanted)
            }
            _ => None,
        }
    }

    /// Returns which of the [wanted](Self::wanted) terms are beginnings that are better looked for in the text, where
    /// others lead to it.
    pub(super) fn short_beginnings(&self) -> Vec<usize> {
        match self.groups.as_slice() {
            [group] if !group.wanted.iter().all(Term::is_short_beginning) => {
                let terms = group.wanted.iter().enumerate();
                let short = terms.filter(|(_, term)| term.is_short_beginning());
                short.map(|(at, _)| at).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether there is nothing but short beginnings: so many words have them that the newest messages are as good a place to
    /// look as an index.
    pub(super) fn is_short_beginnings(&self) -> bool {
        match self.groups.as_slice() {
            [group] => {
                group.unwanted.is_empty() && group.wanted.iter().all(Term::is_short_beginning)
            }
            _ => false,
        }
    }

    /// Writes each alternative in the language of FTS5, without the terms that `is_left_out` where others remain. Every
    /// term is quoted, so none has a meaning of its own there.
    pub(super) fn to_match(
        &self,
        index: Index,
        is_left_out: impl Fn(&Term) -> bool,
    ) -> Vec<String> {
        let join = |terms: &[Term], operator: &str| {
            let terms: Vec<String> = terms.iter().map(|term| term.to_match(index)).collect();
            terms.join(operator)
        };
        let groups = self.groups.iter().map(|group| {
            let asked = group.wanted.iter().filter(|term| !is_left_out(term));
            let mut asked: Vec<Term> = asked.cloned().collect();
            if asked.is_empty() {
                asked = group.wanted.clone();
            }
            let wanted = join(&asked, " AND ");
            match group.unwanted.as_slice() {
                [] => format!("({wanted})"),
                unwanted => format!("(({wanted}) NOT ({}))", join(unwanted, " OR ")),
            }
        });
        groups.collect()
    }

    /// Writes a query for the trigram index that finds at least everything that [`Query::fits`].
    pub(super) fn to_trigrams(&self) -> String {
        let groups = self.groups.iter().map(|group| {
            let indexed = group.wanted.iter().filter(|term| term.has_trigrams());
            let indexed: Vec<String> = indexed.map(Term::to_trigrams).collect();
            format!("({})", indexed.join(" AND "))
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
            is_quoted: false,
            is_caseless: stem.chars().all(|c| !c.is_lowercase() && !c.is_uppercase()),
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_unspaced(&self) -> bool {
        self.text.contains(is_unspaced)
    }

    pub(super) fn is_beginning(&self) -> bool {
        self.is_beginning
    }

    /// A beginning that so many words have that the index would have to put together the lists of all of them.
    pub(super) fn is_short_beginning(&self) -> bool {
        self.is_beginning && self.text.chars().count() < BEGINNING_CHARS_MIN
    }

    fn is_plain(&self) -> bool {
        !self.is_quoted && !self.is_beginning
    }

    /// How it stands in a text that an index finds by it.
    pub(super) fn to_form(&self) -> Form {
        let edges = match self {
            term if term.is_unspaced() => Edges::Anywhere,
            term if term.is_beginning => Edges::BeginningOfWord,
            _ => Edges::WholeWord,
        };
        Form::new(&self.text, edges)
    }

    fn has_trigrams(&self) -> bool {
        self.text.chars().nth(TRIGRAM_CHARS - 1).is_some()
    }

    pub(super) fn to_match(&self, index: Index) -> String {
        let (text, is_open) = match index {
            Index::Words => (self.text.clone(), false),
            Index::Unspaced => pieces_to_find(&self.text),
        };
        let star = if self.is_beginning || is_open {
            "*"
        } else {
            ""
        };
        format!("\"{text}\"{star}")
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
            let term = Term::new(phrase.trim()).map(|term| Term {
                is_quoted: true,
                ..term
            });
            tokens.extend(term.map(Token::Term));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_query_that_cannot_be_wrong() {
        let check = |text, expected| {
            assert_eq!(
                Query::parse(text)
                    .to_match(Index::Words, |_| false)
                    .join(" OR "),
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
    fn the_index_follows_the_script() {
        let check = |text, expected| assert_eq!(Query::parse(text).index(), expected, "{text}");
        check("", None);
        check("docker", Some(Index::Words));
        check("go OR docker", Some(Index::Words));
        check("部署容器", Some(Index::Unspaced));
        check("容", Some(Index::Unspaced));
        check("docker 容器", Some(Index::Unspaced));
        check("ไทย", Some(Index::Unspaced));
    }

    #[test]
    fn only_words_alone_are_plain() {
        let check = |text, expected| {
            let query = Query::parse(text);
            assert_eq!(query.plain().map(<[Term]>::len), expected, "{text}");
        };
        check("where is the key", Some(4));
        check("\"the key\"", None);
        check("key*", None);
        check("key OR lock", None);
        check("key NOT lock", None);
        check("", None);
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
        let query = Query::parse(&"word ".repeat(3000))
            .to_match(Index::Words, |_| false)
            .join(" ");
        assert_eq!(query.matches("word").count(), TERMS_MAX);
    }
}

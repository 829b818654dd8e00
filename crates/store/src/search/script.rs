//! Scripts that do not separate words.
//!
//! An index of words knows nothing of them. Each two neighbouring characters are a word instead: few enough to be found
//! fast, and any part of a sentence is a phrase of them. The last character of a run is one as well, so that a single
//! character is the beginning of a word wherever it stands.

/// Belongs to a script written without spaces between words, or (Korean) with endings grown to them.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Burmese
        | '\u{1100}'..='\u{11ff}'     // Hangul letters
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{1950}'..='\u{19df}'     // Tai Le, New Tai Lue
        | '\u{1a20}'..='\u{1aaf}'     // Tai Tham
        | '\u{1b00}'..='\u{1b7f}'     // Balinese
        | '\u{3005}'..='\u{3007}'     // Chinese repetition mark, zero
        | '\u{3040}'..='\u{30ff}'     // Japanese syllables
        | '\u{3100}'..='\u{312f}'     // Bopomofo
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'     // Chinese characters
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a980}'..='\u{a9ff}'     // Javanese, more Burmese
        | '\u{aa60}'..='\u{aadf}'     // more Burmese, Tai Viet
        | '\u{ac00}'..='\u{d7af}'     // Hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}'
    )
}

/// Returns a text as the index is to have it; nothing when every script in it separates words.
pub(super) fn pairs_to_index(text: &str) -> Option<String> {
    let is_plain = text.is_ascii() || !text.contains(is_unspaced);
    (!is_plain).then(|| pairs(text, Last::Alone).0)
}

/// Returns a term as the index has it, and whether its last word is only the beginning of one there.
pub(super) fn pairs_to_find(text: &str) -> (String, bool) {
    pairs(text, Last::Open)
}

/// What becomes of the last character of the last run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// It is a word.
    Alone,
    /// More may follow where the term stands.
    Open,
}

fn pairs(text: &str, last: Last) -> (String, bool) {
    let mut out = String::with_capacity(text.len() * 3);
    let mut chars = text.chars().peekable();
    let (mut in_run, mut is_open) = (false, false);
    while let Some(c) = chars.next() {
        if !is_unspaced(c) {
            if in_run {
                out.push(' ');
            }
            in_run = false;
            out.push(c);
            continue;
        }
        let next = chars.peek().copied();
        let has_pair = next.is_some_and(is_unspaced);
        // Without the first of its run, a single one at the end says what the pair before it has said.
        if !has_pair && next.is_none() && last == Last::Open && in_run {
            break;
        }
        out.push(' ');
        out.push(c);
        if has_pair {
            out.extend(next);
        }
        is_open = !has_pair && next.is_none() && last == Last::Open;
        in_run = true;
    }
    (out.trim().to_owned(), is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_pairs_and_their_last_character() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(pairs_to_index(text).as_deref(), expected, "{text}");
        };
        check("Docker, too", None);
        check("Café", None);
        check("用容器部署", Some("用容 容器 器部 部署 署"));
        check("用docker部署。好", Some("用 docker 部署 署 。 好"));
        check("ไทย", Some("ไท ทย ย"));
    }

    #[test]
    fn every_part_of_a_text_is_a_phrase_of_its_pairs() {
        for (term, expected, is_open) in [
            ("容器部署", "容器 器部 部署", false),
            ("容器", "容器", false),
            ("容", "容", true),
            ("容器docker", "容器 器 docker", false),
            ("docker容", "docker 容", true),
            ("docker", "docker", false),
        ] {
            assert_eq!(pairs_to_find(term), (expected.to_owned(), is_open), "{term}");
        }
    }
}

//! What somebody wrote themselves, without the mail they answer and without their signature.

/// A signature is short. What follows `--` at length is not one.
const SIGNATURE_LINES_MAX: usize = 12;
/// Programs wrap "On … wrote:" over so many lines at most.
const INTRODUCTION_LINES_MAX: usize = 3;
const INTRODUCTION_CHARS_MAX: usize = 300;

/// How "On … wrote:" begins and ends, in some languages. Others are known by the `>` that follow.
const INTRODUCTIONS: &[(&str, &str)] = &[
    ("on ", " wrote:"),
    ("am ", ":"),
    ("le ", " a écrit :"),
    ("le ", " a écrit:"),
    ("el ", " escribió:"),
    ("il ", " ha scritto:"),
    ("op ", ":"),
    ("em ", " escreveu:"),
    ("den ", ":"),
];
/// Where the end is only a colon, one of these stands before it.
const WROTE: &[&str] = &[" schrieb", " schreef", " skrev", " geschreven"];

const SEPARATORS: &[&str] = &[
    "-----original message-----",
    "----- original message -----",
    "-----ursprüngliche nachricht-----",
    "-----message d'origine-----",
    "-----mensaje original-----",
];

/// How programs head a mail that is passed on, in some languages.
const FORWARDS: &[&str] = &[
    "forwarded message",
    "weitergeleitete nachricht",
    "message transféré",
    "mensaje reenviado",
    "messaggio inoltrato",
    "doorgestuurd bericht",
    "mensagem encaminhada",
];

/// What a mail is to the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Answer,
    /// Its subject says that it passes another one on.
    Forward,
    Letter,
}

/// What somebody wrote themselves, and the mail that they pass on; either may be empty.
pub(super) fn parted(text: &str, kind: Kind) -> (String, String) {
    let whole = text.replace("\r\n", "\n");
    let lines: Vec<&str> = whole.lines().collect();
    let headed = (0..lines.len()).find(|at| heads_forward(lines[*at]));
    let quoted = || (0..lines.len()).find(|at| begins_quote(&lines, *at));
    let start = match kind {
        Kind::Answer => headed.or_else(|| {
            // Whoever adds nothing to a quote has passed it on.
            quote_start(&lines).filter(|at| lines[..*at].iter().all(|line| line.trim().is_empty()))
        }),
        Kind::Forward | Kind::Letter => headed.or_else(quoted),
    };
    let Some(start) = start else {
        return (own_words(text, kind == Kind::Answer), String::new());
    };
    let trimmed = |lines: &[&str]| lines.join("\n").trim_matches('\n').trim_end().to_owned();
    (
        trimmed(without_signature(&lines[..start])),
        trimmed(&lines[start..]),
    )
}

/// "---------- Forwarded message ---------", "Begin forwarded message:"
fn heads_forward(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let is_head = line.starts_with('-') || line.starts_with("begin ");
    is_head && FORWARDS.iter().any(|words| line.contains(words))
}

/// Cuts what was quoted from below an answer, and the signature. What is left is never nothing, unless there was nothing.
pub(super) fn own_words(text: &str, is_answer: bool) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.lines().collect();
    // People sign above what they quote, or below it.
    let mut own = without_signature(&lines);
    if let Some(start) = quote_start(own).filter(|_| is_answer) {
        own = without_signature(&own[..start]);
    }
    let kept = own.join("\n");
    let kept = kept.trim_matches('\n').trim_end();
    match kept.trim() {
        "" => text.trim_matches('\n').trim_end().to_owned(),
        _ => kept.to_owned(),
    }
}

/// Where the mail that is answered begins. An answer between the quoted lines needs them, and is left as it is.
fn quote_start(lines: &[&str]) -> Option<usize> {
    let at = (0..lines.len()).find(|at| begins_quote(lines, *at));
    let at = at.or_else(|| trailing_quote(lines))?;
    let rest = &lines[at..];
    let has_quotes = rest.iter().any(|line| is_quoted(line));
    let is_answered_inside = has_quotes && has_words_after_quotes(rest);
    (!is_answered_inside).then_some(at)
}

fn begins_quote(lines: &[&str], at: usize) -> bool {
    let line = lines[at].trim().to_lowercase();
    SEPARATORS.contains(&line.as_str()) || is_header_block(&lines[at..]) || introduces(lines, at)
}

/// "On Monday, Bob wrote:", over one line or several.
fn introduces(lines: &[&str], at: usize) -> bool {
    (1..=INTRODUCTION_LINES_MAX).any(|count| {
        let Some(taken) = lines.get(at..at + count) else {
            return false;
        };
        let words = taken.join(" ").trim().to_lowercase();
        if words.chars().count() > INTRODUCTION_CHARS_MAX || is_quoted(&words) {
            return false;
        }
        let is_known = INTRODUCTIONS.iter().any(|(start, end)| {
            let wrote = *end != ":" || WROTE.iter().any(|wrote| words.contains(wrote));
            words.starts_with(start) && words.ends_with(end) && wrote
        });
        is_known
            || (count == 1 && words.ends_with(':') && is_followed_by_the_quote(&lines[at + 1..]))
    })
}

/// Nothing but quoted lines follows.
fn is_followed_by_the_quote(rest: &[&str]) -> bool {
    let mut rest = rest
        .iter()
        .filter(|line| !line.trim().is_empty())
        .peekable();
    rest.peek().is_some_and(|line| is_quoted(line)) && rest.all(|line| is_quoted(line))
}

/// "From: … Sent: … To: … Subject: …", as Outlook puts above what it quotes.
fn is_header_block(lines: &[&str]) -> bool {
    const NAMES: &[&str] = &[
        "from", "sent", "date", "to", "cc", "subject", "von", "gesendet", "an", "betreff", "de",
        "envoyé", "à", "objet",
    ];
    let names_one = |line: &&&str| {
        let name = line.split_once(':').map(|(name, _)| name);
        let name = name.map(|name| name.trim_matches(['*', ' ']).to_lowercase());
        name.is_some_and(|name| NAMES.contains(&name.as_str()))
    };
    let skipped = lines
        .iter()
        .take_while(|line| line.trim().chars().all(|c| c == '_') && !line.trim().is_empty());
    let start = skipped.count();
    lines[start..].iter().take_while(names_one).count() >= 3
}

fn is_quoted(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

fn trailing_quote(lines: &[&str]) -> Option<usize> {
    let words = lines
        .iter()
        .rposition(|line| !is_quoted(line) && !line.trim().is_empty())?;
    let start = words + 1;
    lines[start..]
        .iter()
        .any(|line| is_quoted(line))
        .then_some(start)
}

fn has_words_after_quotes(lines: &[&str]) -> bool {
    let end = signature_start(lines).unwrap_or(lines.len());
    let first = lines.iter().position(|line| is_quoted(line)).unwrap_or(0);
    lines.get(first..end).is_some_and(|rest| {
        rest.iter()
            .any(|line| !is_quoted(line) && !line.trim().is_empty())
    })
}

fn without_signature<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    &lines[..signature_start(lines).unwrap_or(lines.len())]
}

fn signature_start(lines: &[&str]) -> Option<usize> {
    let is_sign = |line: &&str| *line == "-- " || *line == "--";
    let at = lines.iter().rposition(is_sign);
    let at = at.filter(|at| lines.len() - at <= SIGNATURE_LINES_MAX);
    at.or_else(|| device_line(lines))
}

/// "Sent from my phone", as the last words.
fn device_line(lines: &[&str]) -> Option<usize> {
    const STARTS: &[&str] = &[
        "sent from my ",
        "sent from outlook",
        "von meinem ",
        "get outlook for ",
    ];
    let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
    let line = lines[last].trim().to_lowercase();
    STARTS
        .iter()
        .any(|start| line.starts_with(start))
        .then_some(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(own_words(text, true), expected, "{text:?}");
    }

    #[test]
    fn what_is_answered_is_cut() {
        check(
            "yes\n\nOn Mon, 2 Nov 2026 at 10:00, Bob <b@c.d> wrote:\n> what?\n> really?",
            "yes",
        );
        check(
            "yes\r\n\r\nOn Mon, 2 Nov 2026 at 10:00\r\nBob <b@c.d>\r\nwrote:\r\n\r\n> what?\r\n",
            "yes",
        );
        check("ja\n\nAm 02.11.26 um 10:00 schrieb Bob:\n> was?", "ja");
        check(
            "oui\n\nLe lun. 2 nov. 2026, Bob a écrit :\n\n> quoi ?",
            "oui",
        );
        check("はい\n\n2026年11月2日 Bob:\n> 何", "はい");
        // Without signs, as programs make it of HTML.
        check("yes\n\nOn Mon, Bob wrote:\nwhat?\nreally?", "yes");
        check("yes\n\n-----Original Message-----\nFrom: Bob\nwhat?", "yes");
        check(
            "yes\n\n________________________________\nFrom: Bob\nSent: Monday\nTo: Alice\nSubject: what?\n\nwhat?",
            "yes",
        );
        check(
            "*yes*\n\n*From:* Bob\n*Sent:* Monday\n*To:* Alice\n\nwhat?",
            "*yes*",
        );
        check("yes\n> what?\n> really?\n", "yes");
        check("yes\n\n> what?\n\n-- \nAlice", "yes");
    }

    #[test]
    fn answers_between_the_lines_keep_them() {
        let text = "On Mon, Bob wrote:\n> one?\nyes\n> two?\nno";
        check(text, text);
        let text = "> one?\n\nyes";
        check(text, text);
    }

    #[test]
    fn signatures_are_cut() {
        check("hello\n-- \nAlice\n+1 555", "hello");
        check("hello\n--\nAlice", "hello");
        check("hello\n\nSent from my iPhone", "hello");
        assert_eq!(own_words("hello\n-- \nAlice", false), "hello");
        let table = format!("a\n--\n{}", "line\n".repeat(40));
        check(&table, table.trim_end());
    }

    #[test]
    fn a_mail_that_answers_nothing_is_kept_whole() {
        let forwarded = "see below\n\nOn Mon, Bob wrote:\nwhat?";
        assert_eq!(own_words(forwarded, false), forwarded);
        let lines = "one\n\n  two\n- three";
        check(lines, lines);
        check("From: me\nto you", "From: me\nto you");
    }

    #[test]
    fn what_is_passed_on_is_nobodys_own_words() {
        let forwarded = "---------- Forwarded message ---------\nFrom: Bob\nDate: Mon\n\npay me";
        let note = format!("see below\n\n{forwarded}");
        for kind in [Kind::Answer, Kind::Forward, Kind::Letter] {
            assert_eq!(parted(&note, kind), ("see below".into(), forwarded.into()));
            assert_eq!(parted(forwarded, kind), (String::new(), forwarded.into()));
        }
        let block = "From: Bob\nSent: Monday\nTo: Alice\nSubject: x\n\npay me";
        let note = format!("look\n{block}");
        assert_eq!(parted(&note, Kind::Forward), ("look".into(), block.into()));
        let bare = "On Mon, Bob wrote:\npay me";
        assert_eq!(parted(bare, Kind::Answer), (String::new(), bare.into()));
        let answer = "yes\n\nOn Mon, Bob wrote:\n> what?";
        assert_eq!(parted(answer, Kind::Answer), ("yes".into(), String::new()));
        let letter = "I forward nothing; the forwarded message is gone";
        assert_eq!(parted(letter, Kind::Letter), (letter.into(), String::new()));
    }

    #[test]
    fn nothing_is_cut_to_nothing() {
        check("> what?", "> what?");
        check("On Mon, Bob wrote:\n> what?", "On Mon, Bob wrote:\n> what?");
        check("-- \nAlice", "-- \nAlice");
        check("", "");
    }

    proptest! {
        #[test]
        fn words_stay_and_come_from_the_mail(text in "([a-z>:\\- ]{0,12}\n){0,12}", is_answer: bool) {
            let own = own_words(&text, is_answer);
            prop_assert!(text.contains(&own));
            prop_assert_eq!(own.trim().is_empty(), text.trim().is_empty());
        }
    }
}

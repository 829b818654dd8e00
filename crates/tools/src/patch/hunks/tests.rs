use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use super::super::v4a::{Change, parse};
use super::{Hunk, HunkLine, apply};

fn hunks(body: &str) -> Vec<Hunk> {
    match parse(&format!("*** Update File: a\n{body}"))
        .unwrap()
        .remove(0)
    {
        Change::Update { hunks, .. } => hunks,
        change => panic!("{change:?}"),
    }
}

fn check(text: &str, body: &str, expected: &str) {
    assert_eq!(apply(text, &hunks(body)).as_deref(), Ok(expected), "{body}");
}

fn misfit(text: &str, body: &str) -> String {
    apply(text, &hunks(body)).unwrap_err().reason
}

#[test]
fn lines_are_changed_added_and_removed() {
    check("a\nb\nc\n", " a\n-b\n+x\n+y\n c", "a\nx\ny\nc\n");
    check("a\nb\nc\n", "-a\n", "b\nc\n");
    check("a\nb\nc", "-c\n", "a\nb");
    check("a\n", "-a\n", "");
    check("a\n\nb\n", " a\n\n-b\n+c", "a\n\nc\n");
    check("a\nb\n", "+c\n", "a\nb\nc\n");
    check("a\nb", "+c\n", "a\nb\nc\n");
    check("", "+c\n", "c\n");
    check(
        "fn f\nx\nfn g\nx\n",
        "@@ fn f\n+y\n",
        "fn f\ny\nx\nfn g\nx\n",
    );
}

#[test]
fn context_stays_as_the_file_has_it() {
    check(
        "  if (a)  {\n\t  b\n  }\n",
        " if (a) {\n-b\n+c\n }",
        "  if (a)  {\n  c\n  }\n",
    );
}

#[test]
fn a_hunk_matches_whole_lines_only() {
    check("xa\na\n", "-a\n+b\n", "xa\nb\n");
}

#[test]
fn a_line_that_was_not_quoted_is_not_removed() {
    // The first hunk has changed what the second one means to remove.
    let overlapping = " one\n-two\n+2\n@@\n-two\n+zwei\n three\n";
    let reason = misfit("one\ntwo\nthree\n", overlapping);
    assert!(reason.contains("not in the file"), "{reason}");
    let reason = misfit(
        "begin()\nkeep_the_users_work()\nend()\n",
        " begin()\n-log(1)\n end()",
    );
    assert!(reason.contains("not in the file"), "{reason}");
    check(
        "begin()\nlet total = count(a, b);\nend()\n",
        " begin()\n-let total = count(a,b)\n+let total = 0;\n end()",
        "begin()\nlet total = 0;\nend()\n",
    );
}

#[test]
fn a_hint_or_the_order_of_hunks_decides_between_places() {
    let text = "fn f\n  x\nfn g\n  x\n";
    check(text, "@@ fn g\n-  x\n+  y\n", "fn f\n  x\nfn g\n  y\n");
    check(
        text,
        " fn g\n+  w\n@@\n-  x\n+  y\n",
        "fn f\n  x\nfn g\n  w\n  y\n",
    );
}

#[test]
fn what_does_not_fit_is_explained() {
    let text = "fn f\n  x\nfn g\n  x\n";
    let answer = misfit(text, "-  x\n+  y\n");
    assert!(answer.contains("2 times (lines 2, 4)"), "{answer}");
    let answer = misfit("let alpha = 1;\n", "-let alpho = 2;\n+b\n");
    assert!(answer.contains("line 1: `let alpha = 1;`"), "{answer}");
    let answer = misfit(text, "@@ fn h\n+y\n");
    assert!(
        answer.contains("no line contains the hint `fn h`"),
        "{answer}"
    );
}

/// Writes the difference of two texts as hunks.
fn difference(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(old, new);
    let groups = diff.grouped_ops(2);
    let hunk = |ops: &Vec<similar::DiffOp>| {
        let changes = ops.iter().flat_map(|op| diff.iter_changes(op));
        let lines = changes.map(|change| {
            let text = change.value().trim_end_matches('\n').to_owned();
            match change.tag() {
                ChangeTag::Equal => HunkLine::Context(text),
                ChangeTag::Delete => HunkLine::Removed(text),
                ChangeTag::Insert => HunkLine::Added(text),
            }
        });
        Hunk {
            lines: lines.collect(),
            ..Hunk::default()
        }
    };
    groups.iter().map(hunk).collect()
}

fn reversed(hunks: &[Hunk]) -> Vec<Hunk> {
    let mut hunks = hunks.to_vec();
    for line in hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
        *line = match line.clone() {
            HunkLine::Added(text) => HunkLine::Removed(text),
            HunkLine::Removed(text) => HunkLine::Added(text),
            context => context,
        };
    }
    hunks
}

/// Texts whose lines all differ, so that every place is clear.
fn text() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec(any::<bool>(), 1..40);
    lines.prop_map(|chosen| {
        let lines = chosen.iter().enumerate().filter(|(_, chosen)| **chosen);
        let text: String = lines
            .map(|(n, _)| format!("{}line {n};\n", "  ".repeat(n % 3)))
            .collect();
        text + "the end\n"
    })
}

proptest! {
    #[test]
    fn a_patch_applied_and_reversed_gives_the_file_back(old in text(), new in text()) {
        let hunks = difference(&old, &new);
        prop_assert_eq!(apply(&old, &hunks).unwrap(), new.clone());
        prop_assert_eq!(apply(&new, &reversed(&hunks)).unwrap(), old);
    }

    #[test]
    fn any_hunks_get_an_answer(text in "[ab \n]{0,30}", body in "([ +-][ab]{0,2}\n|@@[ab ]{0,3}\n){0,8}") {
        if let Ok(changes) = parse(&format!("*** Update File: a\n{body}"))
            && let [Change::Update { hunks, .. }] = changes.as_slice()
        {
            let _ = apply(&text, hunks);
        }
    }
}

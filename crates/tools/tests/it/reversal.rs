//! A patch that was applied and is then reversed gives the file back.

use hermes_tools::patch::hunks::apply;
use hermes_tools::patch::v4a::{Change, Hunk, HunkLine, parse};
use proptest::prelude::*;

/// What happens at one place of a file.
#[derive(Debug, Clone)]
enum Edit {
    Remove,
    Replace(String),
    Insert(String),
}

fn edit() -> impl Strategy<Value = Edit> {
    let text = "[ -~]{0,20}";
    prop_oneof![
        Just(Edit::Remove),
        text.prop_map(Edit::Replace),
        text.prop_map(Edit::Insert),
    ]
}

/// Each place has lines of its own before and after it, so that hunks do not overlap and are found.
const LINES_PER_PLACE: usize = 4;

fn file(texts: &[String]) -> Vec<String> {
    let number = |(number, text): (usize, &String)| format!("{number}: {text}");
    texts.iter().enumerate().map(number).collect()
}

/// Writes a patch with one hunk per edit.
fn patch(lines: &[String], edits: &[Edit]) -> String {
    let mut patch = String::from("*** Begin Patch\n*** Update File: a\n");
    for (place, edit) in edits.iter().enumerate() {
        let at = place * LINES_PER_PLACE + 1;
        let changed = match edit {
            Edit::Remove => format!("-{}\n", lines[at]),
            Edit::Replace(text) => format!("-{}\n+{at}: {text}\n", lines[at]),
            Edit::Insert(text) => format!(" {}\n+{at}: {text}!\n", lines[at]),
        };
        let (before, after) = (&lines[at - 1], &lines[at + 1]);
        patch.push_str(&format!("@@\n {before}\n{changed} {after}\n"));
    }
    patch + "*** End Patch\n"
}

fn reversed(hunks: &[Hunk]) -> Vec<Hunk> {
    let reverse = |line: &HunkLine| match line {
        HunkLine::Context(text) => HunkLine::Context(text.clone()),
        HunkLine::Removed(text) => HunkLine::Added(text.clone()),
        HunkLine::Added(text) => HunkLine::Removed(text.clone()),
    };
    let hunk = |hunk: &Hunk| Hunk {
        lines: hunk.lines.iter().map(reverse).collect(),
        ..hunk.clone()
    };
    hunks.iter().map(hunk).collect()
}

proptest! {
    #[test]
    fn a_patch_applied_and_reversed_gives_the_file_back(
        texts in prop::collection::vec("[ -~]{0,20}", LINES_PER_PLACE..40),
        edits in prop::collection::vec(edit(), 1..10),
        ends_with_break in any::<bool>(),
    ) {
        let lines = file(&texts);
        let places = (lines.len() / LINES_PER_PLACE).min(edits.len());
        let mut text = lines.join("\n");
        if ends_with_break {
            text.push('\n');
        }
        let changes = parse(&patch(&lines, &edits[..places])).unwrap();
        let [Change::Update { hunks, .. }] = changes.as_slice() else {
            panic!("one file is updated: {changes:?}");
        };
        let patched = apply(&text, hunks).unwrap();
        prop_assert_eq!(apply(&patched, &reversed(hunks)).unwrap(), text);
    }
}

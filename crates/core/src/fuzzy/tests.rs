use proptest::prelude::*;

use super::*;

fn one(text: &str, old: &str, new: &str) -> Result<(String, &'static str), ReplaceError> {
    replace(text, old, new, Occurrences::TheOnlyOne)
        .map(|replaced| (replaced.text, replaced.strategy.name()))
}

fn check(text: &str, old: &str, new: &str, expected: &str, strategy: &str) {
    let (result, name) = one(text, old, new).unwrap();
    assert_eq!((result.as_str(), name), (expected, strategy), "{old:?}");
}

#[test]
fn empty_lines_in_between_may_differ() {
    check(
        "  a\n\n  b\n",
        "a\nb",
        "a\nc",
        "  a\n  c\n",
        "indentation_flexible",
    );
}

#[test]
fn empty_lines_around_the_text_are_forgiven_in_both_texts() {
    check(
        "x\n  a\n  b\ny\n",
        "\na\nb\n\n",
        "\na\nc\n\n",
        "x\n  a\n  c\ny\n",
        "trimmed_boundary",
    );
}

#[test]
fn a_line_break_at_the_end_belongs_to_the_last_line() {
    check("  a  \n  b\n", "a\n", "c\n", "  c\n  b\n", "line_trimmed");
}

#[test]
fn indentation_is_kept_when_the_match_begins_behind_it() {
    check(
        "f:\n    if  x:\n        y\n",
        "if x:\n y",
        "if z:\n    w",
        "f:\n    if z:\n        w\n",
        "whitespace_normalized",
    );
}

#[test]
fn a_tab_inside_a_line_stays_as_it_was_written() {
    check(
        "\tprint(x)\n",
        "\tprint(x)",
        "\tprint(\"a\\tb\")",
        "\tprint(\"a\\tb\")\n",
        "exact",
    );
}

#[test]
fn what_was_escaped_in_both_texts_is_unescaped_in_both() {
    check("a\nb\n", "a\\nb", "a\\nc", "a\nc\n", "escape_normalized");
}

#[test]
fn the_breaks_of_a_region_are_kept() {
    check(
        "a\r\n  b\r\nc\n",
        "a\nb\n",
        "d\ne\n",
        "d\r\ne\r\nc\n",
        "line_trimmed",
    );
}

#[test]
fn white_space_alone_is_only_found_to_the_letter() {
    assert_eq!(one("a\n\nb\n", "  ", "x"), Err(ReplaceError::NotFound));
    check("a\tb", "\t", " ", "a b", "exact");
}

#[test]
fn a_single_similar_line_is_not_enough() {
    assert_eq!(
        one("let x = 6;\n", "let x = 5;", "let x = 7;"),
        Err(ReplaceError::NotFound)
    );
}

#[test]
fn half_a_dash_is_not_found() {
    assert_eq!(one("a—b\n", "-", "+"), Err(ReplaceError::NotFound));
    check("a—b\n", "--", "+", "a+b\n", "unicode_normalized");
}

#[test]
fn an_ambiguous_text_is_told_with_its_lines() {
    assert_eq!(
        one("x\ny\n\nx x\n", "x", "z"),
        Err(ReplaceError::Ambiguous {
            lines: vec![1, 4, 4]
        })
    );
}

#[test]
fn whole_lines_begin_and_end_at_breaks() {
    let found = find("xfoo\nfoo\n", "foo", Grain::WholeLines).unwrap();
    assert_eq!(found.ranges.first(), Some(&(5..8)));
    assert_eq!(found.ranges.len(), 1);
}

#[test]
fn near_lines_are_shown() {
    let near = nearest_lines("fn alpha() {}\nfn beta() {}\nzzz\n", "fn alpa() {}\n}");
    assert_eq!(near[0].number, 1);
}

proptest! {
    #[test]
    fn any_input_gets_an_answer(
        text in "[ab \t\r\n“—\\\\nt']{0,60}",
        old in "[ab \t\r\n\"-\\\\nt']{0,12}",
        new in "[ab \t\n\\\\nt'\"]{0,12}",
        all: bool,
    ) {
        let occurrences = if all { Occurrences::All } else { Occurrences::TheOnlyOne };
        if let Ok(replaced) = replace(&text, &old, &new, occurrences) {
            prop_assert!(replaced.count >= 1);
        }
    }

    #[test]
    fn found_ranges_are_in_order_and_apart(text in "[ab \n]{0,40}", old in "[ab \n]{1,6}") {
        for grain in [Grain::Anywhere, Grain::WholeLines] {
            let mut end = 0;
            for range in find(&text, &old, grain).map_or_else(Vec::new, |found| found.ranges) {
                prop_assert!(end <= range.start && range.start <= range.end);
                prop_assert!(text.get(range.clone()).is_some());
                end = range.end;
            }
        }
    }

    #[test]
    fn a_replacement_to_the_letter_can_be_taken_back(
        before in "[a-f\n]{0,30}", old in "[x-z]{1,5}", new in "[A-Z]{1,5}", after in "[a-f\n]{0,30}",
    ) {
        let text = format!("{before}{old}{after}");
        let there = replace(&text, &old, &new, Occurrences::TheOnlyOne).unwrap();
        let back = replace(&there.text, &new, &old, Occurrences::TheOnlyOne).unwrap();
        prop_assert_eq!(back.text, text);
    }
}

use serde_json::json;

use super::*;
use crate::yaml::parse;

fn path(key: &str) -> Vec<String> {
    key.split('.').map(str::to_owned).collect()
}

fn try_set(text: &str, key: &str, value: &Value) -> Result<String, EditError> {
    let root = parse(text).unwrap();
    set(text, root.as_ref(), &path(key), value)
}

#[track_caller]
fn check_set(text: &str, key: &str, value: &Value, expected: &str) {
    assert_eq!(try_set(text, key, value).as_deref(), Ok(expected));
}

#[track_caller]
fn check_unset(text: &str, key: &str, expected: &str) {
    let root = parse(text).unwrap();
    let changed = unset(text, root.as_ref(), &path(key));
    assert_eq!(changed, Ok(Some(expected.to_owned())));
}

#[test]
fn a_scalar_is_replaced_where_it_stands() {
    check_set("a: 1  # one\nb: 2\n", "a", &json!(7), "a: 7  # one\nb: 2\n");
    check_set(
        "a: 'x' # one\nb: 2\n",
        "a",
        &json!("it's"),
        "a: 'it''s' # one\nb: 2\n",
    );
    check_set("a: \"x\" # one", "a", &json!(true), "a: true # one");
    check_set(
        "a:\n  - x: é # ü\n  - y\n",
        "a.0.x",
        &json!(1),
        "a:\n  - x: 1 # ü\n  - y\n",
    );
    check_set(
        "'quoted key': 1\n",
        "quoted key",
        &json!(2),
        "'quoted key': 2\n",
    );
    check_set(
        "a: one\n  two # c\nb: 2\n",
        "a",
        &json!(1),
        "a: 1\n# c\nb: 2\n",
    );
}

#[test]
fn an_empty_value_is_filled() {
    check_set("a:\nb: 2\n", "a", &json!(1), "a: 1\nb: 2\n");
    check_set("a:  # why\nb: 2\n", "a", &json!(1), "a: 1  # why\nb: 2\n");
    check_set(
        "a:  # why\nb: 2\n",
        "a.x",
        &json!(1),
        "a:  # why\n  x: 1\nb: 2\n",
    );
    check_set(
        "a: {}\nb: 2\n",
        "a.x.y",
        &json!(1),
        "a:\n  x:\n    y: 1\nb: 2\n",
    );
    check_set("a: []\n", "a.0.x", &json!(1), "a:\n  - x: 1\n");
    check_set("a: ~\n", "a.x", &json!(1), "a:\n  x: 1\n");
}

#[test]
fn a_new_key_follows_the_last_of_its_section() {
    check_set(
        "a:\n  x: 1 # c\n\n# next\nb: 2\n",
        "a.y",
        &json!("z"),
        "a:\n  x: 1 # c\n  y: z\n\n# next\nb: 2\n",
    );
    check_set(
        "a:\n    x:\n        - 1\nb: 2",
        "a.y",
        &json!(2),
        "a:\n    x:\n        - 1\n    y: 2\nb: 2",
    );
    check_set("a: 1", "b", &json!({"c": [1]}), "a: 1\nb:\n  c:\n    - 1");
    check_set("- x: 1\n", "0.y", &json!(2), "- x: 1\n  y: 2\n");
    check_set(
        "a:\n- 1\n- 2 # c\nb: 1\n",
        "a.2",
        &json!(3),
        "a:\n- 1\n- 2 # c\n- 3\nb: 1\n",
    );
    check_set(
        "a: |+\n  text\n\nb: |\n  more\n\n\nc: 1\n",
        "d",
        &json!(1),
        "a: |+\n  text\n\nb: |\n  more\n\n\nc: 1\nd: 1\n",
    );
    check_set(
        "s:\n  a: |+\n    text\n\nc: 1\n",
        "s.d",
        &json!(1),
        "s:\n  a: |+\n    text\n\n  d: 1\nc: 1\n",
    );
    check_set(
        "s:\n  a: |\n    text\n\nc: 1\n",
        "s.d",
        &json!(1),
        "s:\n  a: |\n    text\n  d: 1\n\nc: 1\n",
    );
}

#[test]
fn lists_without_indentation_are_understood() {
    check_set("a:\n- -1\n- 2\n", "a.0", &json!(3), "a:\n- 3\n- 2\n");
    check_set(
        "a: # c\n- # d\n  k: -1\n",
        "a.0.k",
        &json!(3),
        "a: # c\n- # d\n  k: 3\n",
    );
    check_unset("a: # c\n- # d\n  -1\n- 2\n", "a.0", "a: # c\n# d\n- 2\n");
}

#[test]
fn a_text_of_comments_gets_its_first_setting_at_the_end() {
    check_set("", "a.b", &json!(1), "a:\n  b: 1\n");
    check_set("# only this", "a", &json!(1), "# only this\na: 1\n");
    check_set(
        "---\n# only this\n",
        "a",
        &json!(1),
        "---\n# only this\na: 1\n",
    );
    check_set("{}\n", "a", &json!(1), "{a: 1}\n");
}

#[test]
fn values_in_braces_are_edited_in_braces() {
    check_set(
        "a: {x: 1, y: 2} # c\n",
        "a.x",
        &json!("z"),
        "a: {x: z, y: 2} # c\n",
    );
    check_set(
        "a: {x: 1, y: 2}\n",
        "a.z",
        &json!([1]),
        "a: {x: 1, y: 2, z: [1]}\n",
    );
    check_set("a: {x: 1, y}\n", "a.y", &json!(2), "a: {x: 1, y: 2}\n");
    check_set("a: {x: , y: 2}\n", "a.x", &json!(1), "a: {x: 1 , y: 2}\n");
    check_set("a: {x: {}}\n", "a.x.y", &json!(1), "a: {x: {y: 1}}\n");
    check_set("a: [1, 2]\n", "a.2", &json!(3), "a: [1, 2, 3]\n");
    check_set(
        "a: [\n  1, # one\n  2\n]\n",
        "a.1",
        &json!(3),
        "a: [\n  1, # one\n  3\n]\n",
    );
}

#[test]
fn line_ends_stay_as_they_are() {
    check_set(
        "a: 1\r\nb:\r\n  c: 2 # x\r\n",
        "b.d",
        &json!(3),
        "a: 1\r\nb:\r\n  c: 2 # x\r\n  d: 3\r\n",
    );
    check_unset("a: 1\r\nb:\r\n  c: 2 # x\r\n", "b", "a: 1\r\n# x\r\n");
}

#[test]
fn replacing_a_section_keeps_its_comments() {
    check_set(
        "a: # beside\n  # inside\n  x: 1 # behind\nb: 2\n",
        "a",
        &json!(1),
        "a: 1  # beside\n# inside\n# behind\nb: 2\n",
    );
    check_set(
        "a: | # why\n  # text\nb: 2\n",
        "a",
        &json!(1),
        "a: 1  # why\nb: 2\n",
    );
    check_set("a: 1 # c\n", "a", &json!({"x": 1}), "a:  # c\n  x: 1\n");
    check_set(
        "- 1 # c\n- 2\n",
        "0",
        &json!({"x": 1, "y": 2}),
        "- x: 1\n  y: 2\n# c\n- 2\n",
    );
}

#[test]
fn unset_removes_the_line_and_keeps_the_comments() {
    check_unset("# top\na: 1 # one\nb: 2\n", "a", "# top\n# one\nb: 2\n");
    check_unset("a: 1\nb: 2", "b", "a: 1\n");
    check_unset(
        "a:\n  x: 1\n  # about y\n  y:\n    - 1 # first\nb: 2\n",
        "a.y",
        "a:\n  x: 1\n  # about y\n  # first\nb: 2\n",
    );
    check_unset(
        "t: |\n  text\nb:\n    # deep\n    c: 1\n",
        "b.c",
        "t: |\n  text\n# deep\n",
    );
}

#[test]
fn unset_prunes_what_it_empties() {
    check_unset("a:\n  b:\n    c: 1\nd: 2\n", "a.b.c", "d: 2\n");
    check_unset("a:\n  - b: 1\nd: 2\n", "a.0.b", "d: 2\n");
    check_unset("# c\na: 1\n", "a", "# c\n");
    check_unset("{a: 1}\n", "a", "{}\n");
}

#[test]
fn unset_works_in_lists_and_braces() {
    check_unset("a:\n- 1\n- 2 # two\n- 3\n", "a.1", "a:\n- 1\n# two\n- 3\n");
    check_unset("a:\n  - x: 1\n    y: 2\n", "a.0.x", "a:\n  - y: 2\n");
    check_unset(
        "a:\n  - x: 1 # c\n    y: 2\n",
        "a.0.x",
        "a:\n  - # c\n    y: 2\n",
    );
    check_unset("a: {x: 1, y: 2}\n", "a.x", "a: {y: 2}\n");
    check_unset("a: {x: 1, y: 2}\n", "a.y", "a: {x: 1}\n");
    check_unset("a: [1, 2, 3]\n", "a.1", "a: [1, 3]\n");
}

#[test]
fn what_others_share_is_refused() {
    let text = "base: &b {x: 1}\nuse: *b\nmore:\n  <<: *b\n  y: 2\n";
    assert!(matches!(
        try_set(text, "use.x", &json!(2)),
        Err(EditError::Shared { .. })
    ));
    assert!(matches!(
        try_set(text, "base.x", &json!(2)),
        Err(EditError::Unsupported { .. })
    ));
    assert!(matches!(
        try_set(text, "base", &json!(2)),
        Err(EditError::Unsupported { .. })
    ));
    check_set(
        text,
        "use",
        &json!(2),
        "base: &b {x: 1}\nuse: 2\nmore:\n  <<: *b\n  y: 2\n",
    );
    check_set(
        text,
        "more.x",
        &json!(3),
        "base: &b {x: 1}\nuse: *b\nmore:\n  <<: *b\n  y: 2\n  x: 3\n",
    );
}

#[test]
fn a_path_through_a_plain_value_is_refused() {
    assert_eq!(
        try_set("a: 1\n", "a.b", &json!(2)),
        Err(EditError::NotASection {
            path: path("a"),
            at: Position { line: 1, column: 4 }
        })
    );
    assert_eq!(
        try_set("a: [1]\n", "a.5", &json!(2)),
        Err(EditError::NoSuchItem {
            path: path("a"),
            length: 1,
            at: Position { line: 1, column: 4 }
        })
    );
    assert!(matches!(
        try_set("a: []\n", "a.b", &json!(2)),
        Err(EditError::Unsupported { .. })
    ));
}

#[test]
fn unsetting_what_is_not_there_changes_nothing() {
    let root = parse("a: 1\n").unwrap();
    assert_eq!(unset("a: 1\n", root.as_ref(), &path("b")), Ok(None));
    assert_eq!(unset("a: 1\n", root.as_ref(), &path("a.b")), Ok(None));
}

use hermes_testkit::telegram::TdLib;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;

fn check(markdown: &str, expected: &str) {
    assert_eq!(render(markdown).markdown, expected, "{markdown:?}");
}

#[test]
fn emphasis_is_telegrams() {
    check("**bold** *it* _it_ __bold__", "*bold* _it_ _it_ *bold*");
    check("***both***", "*_both_*");
    check("**a *b* c**", "*a _b_ c*");
    check("~~gone~~ and ~5 ~/a", "~gone~ and \\~5 \\~/a");
    check("~one~", "\\~one\\~");
    check("snake_case_name * 2", "snake\\_case\\_name \\* 2");
    check("**a\nb**", "*a*\n*b*");
}

#[test]
fn everything_else_is_escaped() {
    check(
        "1+1=2. (x) [y] {z} #a -b !c >d |e \\\\",
        "1\\+1\\=2\\. \\(x\\) \\[y\\] \\{z\\} \\#a \\-b \\!c \\>d \\|e \\\\",
    );
}

#[test]
fn code_keeps_its_letters() {
    check("`a_b*c`", "`a_b*c`");
    check("``a`b\\c``", "`a\\`b\\\\c`");
    check(
        "```rust\nlet a = `b` \\ 1;\n```",
        "```rust\nlet a = \\`b\\` \\\\ 1;```",
    );
    check(
        "```c++ title=x\na\n\nb\n```\nend",
        "```c++\na\n\nb```\n\nend",
    );
    check("```\nopen", "```\nopen```");
    check("**`a`**", "*`a`*");
}

#[test]
fn headings_are_bold_lines() {
    check("# One\ntext\n## **Two**", "*One*\n\ntext\n\n*Two*");
}

#[test]
fn lists_are_bullets_and_nest() {
    check(
        "- a\n- b\n  - c\n    1. d\n    2. e\n- f",
        "• a\n• b\n  • c\n    1\\. d\n    2\\. e\n• f",
    );
    check("3. a\n4. b", "3\\. a\n4\\. b");
    check("- [x] done\n- [ ] open", "☑ done\n☐ open");
    check("- a\n\n- b\n\n  more", "• a\n• b\n  more");
    check("- a\n  b", "• a\n  b");
    check("text\n- a\n\nafter", "text\n\n• a\n\nafter");
    check("- ```sh\n  ls\n  ```", "• \n```sh\nls```");
}

#[test]
fn links_are_links_only_where_telegram_makes_one() {
    check("[a.b](https://x.y/a_(b))", "[a\\.b](https://x.y/a_(b\\))");
    check("[**a**](http://x.y)", "[*a*](http://x.y)");
    check("[a](./file.md)", "a \\(\\./file\\.md\\)");
    check("[a](mailto:b@c.d)", "a \\(b@c\\.d\\)");
    check("<b@c.d>", "b@c\\.d");
    check("![a cat](https://x.y/c.png)", "[a cat](https://x.y/c.png)");
    check(
        "![](https://x.y/c.png)",
        "[https://x\\.y/c\\.png](https://x.y/c.png)",
    );
    check("https://x.y/a_b", "https://x\\.y/a\\_b");
}

#[test]
fn quotes_are_quotes() {
    check("> a\n> b\n\nc", ">a\n>b\n\nc");
    check("> a\n>\n> b", ">a\n>\n>b");
    check("> a\n> > b", ">a\n>\n>b");
    check("> [!WARNING]\n> hot", ">*Warning*\n>hot");
    check("> ```\n> x\n> y\n> ```", ">`x`\n>`y`");
    check("> **a\n> b**", ">*a*\n>*b*");
}

#[test]
fn spoilers_are_hidden_and_pipes_are_not() {
    check("it was ||the *butler*||!", "it was ||the _butler_||\\!");
    check("a || b || c", "a \\|\\| b \\|\\| c");
    check("`a||b||c`", "`a||b||c`");
    check("||||", "\\|\\|\\|\\|");
}

#[test]
fn tables_become_bullets_with_every_word() {
    check(
        "| Name | Age | Note |\n|---|---|---|\n| **Ann** | 30 | x_y |\n| Bo | | |",
        "• Name: *Ann*\n  ◦ Age: 30\n  ◦ Note: x\\_y\n• Name: *Bo*",
    );
    check("| A | B |\n|---|---|", "*A* · *B*");
}

#[test]
fn html_is_text_and_breaks_are_breaks() {
    check("a<br>b <u>c</u>", "a\nb <u\\>c</u\\>");
    check("<div>\nx\n</div>", "<div\\>\nx\n</div\\>");
}

#[test]
fn rules_and_odd_text_survive() {
    check("a\n\n---\n\nb", "a\n\n———\n\nb");
    check("", "");
    check("a\u{7}b\r\nc", "a b\nc");
    check("**", "\\*\\*");
}

#[test]
fn lengths_are_of_what_people_see_by_utf16() {
    let length = |markdown| utf16_length(&render(markdown).plain);
    assert_eq!(length("**😀.**"), 3);
    assert_eq!(length("[a](https://example.org/very/long)"), 1);
    assert_eq!(length("```rust\na\n```"), 1);
}

/// What models really write.
const CORPUS: &[&str] = &[
    include_str!("corpus/answer.md"),
    include_str!("corpus/code.md"),
    include_str!("corpus/tables.md"),
    include_str!("corpus/lists.md"),
    include_str!("corpus/odd.md"),
];

/// Telegram reads what we write, and sees the text we counted.
fn read_by_telegram(tdlib: &mut TdLib, markdown: &str) -> Result<(), String> {
    let rendered = render(markdown);
    let parsed = tdlib
        .parse(&rendered.markdown)
        .map_err(|error| format!("{error}: {:?} of {markdown:?}", rendered.markdown))?;
    if parsed.text == rendered.plain {
        Ok(())
    } else {
        Err(format!("{:?} is not {:?}", parsed.text, rendered.plain))
    }
}

#[test]
fn telegram_reads_the_answers_of_models() {
    let Some(mut tdlib) = TdLib::start() else {
        return;
    };
    for answer in CORPUS {
        read_by_telegram(&mut tdlib, answer).unwrap();
        // As it looks while it is written: cut off anywhere.
        for (at, _) in answer.char_indices().step_by(7) {
            read_by_telegram(&mut tdlib, &answer[..at]).unwrap();
        }
        for line in answer.lines() {
            read_by_telegram(&mut tdlib, line).unwrap();
        }
    }
}

#[test]
fn telegram_sees_the_styles_that_were_meant() {
    let Some(mut tdlib) = TdLib::start() else {
        return;
    };
    let mut kinds = |markdown: &str| -> Vec<String> {
        let parsed = tdlib.parse(&render(markdown).markdown).unwrap();
        let mut kinds: Vec<String> = parsed
            .entities
            .into_iter()
            .map(|(kind, from, length, detail)| format!("{kind} {from} {length} {detail}"))
            .collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds("😀 **x** `y`"), ["Bold 3 1 ", "Code 5 1 "]);
    assert_eq!(kinds("> a\n> b"), ["BlockQuote 0 3 "]);
    assert_eq!(kinds("```rust\na\n```"), ["PreCode 0 1 rust"]);
    assert_eq!(kinds("||a||"), ["Spoiler 0 1 "]);
    assert_eq!(kinds("[a](https://b.c/d)"), ["TextUrl 0 1 https://b.c/d"]);
    assert_eq!(kinds("~~a~~ *b*"), ["Italic 2 1 ", "Strikethrough 0 1 "]);
}

/// Pieces that mean something to somebody, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-zé😀 ]{1,6}",
        4 => prop::sample::select(vec![
            "*", "**", "***", "_", "__", "~", "~~", "`", "``", "```", "```rust\n", "\n", "\n\n", "> ", ">", "- ", "  - ",
            "1. ", "# ", "|", "||", "| a | b |\n|---|---|\n", "[a](", ")", "](https://x.y)", "[", "]", "(", "!", "![", "<br>",
            "<b>", "\\", ".", "+", "=", "{", "}", "#", "---\n", "https://a.b/c_d*e", "<https://a.b>", "- [x] ", "&amp;", "\t",
            "    ", "\u{0}", "\u{200b}", "[!NOTE]\n",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

#[test]
fn telegram_reads_whatever_we_write() {
    let Some(mut tdlib) = TdLib::start() else {
        return;
    };
    let mut runner = TestRunner::default();
    for _ in 0..5000 {
        let text = pieces().new_tree(&mut runner).unwrap().current();
        read_by_telegram(&mut tdlib, &text).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_word_is_lost(words in prop::collection::vec("[a-z]{3,8}", 1..30), seed in pieces()) {
        let text = words.iter().map(|word| format!("{word} {seed}")).collect::<String>();
        let plain = render(&text).plain;
        // A word in an address or behind a fence is not shown.
        let is_shown = !seed.contains(['(', '`', '[', '<', '&']);
        for word in words.iter().filter(|_| is_shown) {
            prop_assert!(plain.contains(word.as_str()), "{word} of {text:?} in {plain:?}");
        }
    }
}

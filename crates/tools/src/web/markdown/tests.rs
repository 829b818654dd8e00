use proptest::prelude::*;

use super::*;

fn page(html: &str) -> Page {
    convert(html, &Url::parse("https://example.com/docs/page").unwrap())
}

fn check(html: &str, expected: &str) {
    assert_eq!(page(html).text, expected, "{html}");
}

#[test]
fn blocks_are_paragraphs_and_white_space_is_one_space() {
    check("<p>one\n  two</p><p>three</p>", "one two\n\nthree");
    check(
        "<p>one<p>two<div>three</div>four",
        "one\n\ntwo\n\nthree\nfour",
    );
    check("one<br>two<hr>three", "one\ntwo\n\n---\n\nthree");
    check("<h1> A </h1>text<h3>B</h3>", "# A\n\ntext\n\n### B");
    check("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc");
}

#[test]
fn marks_stand_close_to_their_words_and_never_alone() {
    check("a <b> bold </b> word", "a **bold** word");
    check("<em>x</em><strong></strong> <code>f()</code>", "*x* `f()`");
    check("a<b> </b>b", "a b");
    check("<b>open<p>next", "**open\n\nnext**");
}

#[test]
fn links_are_absolute_and_only_those_that_lead_somewhere() {
    check(
        "<a href='../x?y=1#z'>there</a>",
        "[there](https://example.com/x?y=1#z)",
    );
    check("<a href=//o.example/>o</a>", "[o](https://o.example/)");
    check(
        "<a href='javascript:alert(1)'>no</a> <a href=#top>top</a> <a name=x>n</a>",
        "no top n",
    );
    check("<a href=/a></a>after", "after");
    check(
        "<base href='https://b.example/c/'><a href=d>d</a>",
        "[d](https://b.example/c/d)",
    );
    check(
        "<a href=/card><h2>Title</h2><p>words</p></a>",
        "[Title words](https://example.com/card)",
    );
}

#[test]
fn lists_keep_their_shape() {
    check("<ul><li>a<li>b</ul>", "- a\n- b");
    check(
        "<p>x</p><ol start=3><li><p>a</p></li><li>b</li></ol><p>y",
        "x\n\n3. a\n4. b\n\ny",
    );
    check(
        "<ul><li>a<ul><li>b<li>c</ul><li>d</ul>",
        "- a\n  - b\n  - c\n- d",
    );
    check("<ul><li></li><li>b</li></ul>", "- b");
}

#[test]
fn tables_of_data_stay_tables_and_layouts_become_text() {
    check(
        "<table><thead><tr><th>Name<th>Size<tbody><tr><td>a|b<td><b>1</b><tr><td>c</table>",
        "| Name | Size |\n| --- | --- |\n| a\\|b | **1** |\n| c |  |",
    );
    check(
        "<table><tr><td><p>one</p><p>two</p></td><td>three</td></tr></table>",
        "one\n\ntwo\n\nthree",
    );
    check("<table><tr><td>only</table>after", "only\n\nafter");
    check(
        "<table><tr><td><table><tr><td>a<td>b</table><td>c</table>",
        "| a | b |\n| --- | --- |\n\nc",
    );
}

#[test]
fn code_is_left_as_it_is() {
    check(
        "<pre><code>fn <b>main</b>() {\n    x &lt; y\n}\n</code></pre>after",
        "```\nfn main() {\n    x < y\n}\n```\n\nafter",
    );
    check("<pre>```\na</pre>", "````\n```\na\n````");
    check(
        "<ul><li>a<pre>b\nc</pre></ul>",
        "- a\n\n  ```\n  b\n  c\n  ```",
    );
}

#[test]
fn what_a_reader_does_not_see_is_left_out() {
    for hidden in [
        "<script>if (a < b) document.write('<p>x')</script>",
        "<style>p{}</style>",
        "<nav><a href=/>Home</a></nav>",
        "<div role=navigation>ways</div>",
        "<template><p>x</p></template>",
        "<noscript>x</noscript>",
        "<svg><title>x</title><path/></svg>",
        "<svg/>",
        "<iframe src=x>y</iframe>",
        "<button>x</button><select><option>x</select><textarea>x</textarea>",
        "<!-- x -->",
        "<div hidden>x<p>y</div>",
        "<p hidden>x",
        "<div HIDDEN=''><div>x</div>y</div>",
        "<span aria-hidden=true>x</span>",
        "<div style='display : NONE'>x</div>",
        "<div style=\"color:red;visibility:hidden !important\">x</div>",
        "<span style='font-size:0px'>x</span><span style='opacity: 0.0'>x</span>",
        "<div hidden><table><tr><td>x</div>y</td></tr></table></div>",
    ] {
        check(&format!("{hidden}<p>seen</p>"), "seen");
    }
    check("<p style='opacity:0.5;font-size:10px'>seen</p>", "seen");
}

#[test]
fn pictures_are_their_words() {
    check(
        "<img src=a.png alt='A  cat'>",
        "![A cat](https://example.com/docs/a.png)",
    );
    check("<img src=a.png>text", "text");
    check("<img alt=x src='data:image/png;base64,AAAA'>", "[IMAGE: x]");
}

#[test]
fn the_title_and_the_main_part_are_found() {
    let long = "word ".repeat(60);
    let html = format!(
        "<title>A &amp; B</title><header>Site</header><main><h1>T</h1>{long}</main><footer>F</footer>"
    );
    let page = page(&html);
    assert_eq!(page.title.as_deref(), Some("A & B"));
    assert!(page.text.starts_with("# T\n\nword") && page.text.ends_with("word"));
    check("<header>Site</header><main>short</main>", "Site\n\nshort");
}

#[test]
fn hostile_pages_take_little_time_and_space() {
    for html in [
        "<div>".repeat(20_000),
        "<b>x".repeat(10_000),
        "<ul><li>x".repeat(5_000),
        "<table><tr><td>".repeat(5_000),
        "</p></x>".repeat(10_000),
        format!("{}{}", "<ul>".repeat(300), "<li>x".repeat(5_000)),
        format!("<pre>{}", "`".repeat(50_000)),
        "<a href=x>".repeat(10_000),
        "<".repeat(50_000),
        "&".repeat(50_000),
        format!("<p {}>", "a ".repeat(10_000)),
    ] {
        let text = page(&html).text;
        assert!(text.len() <= TEXT_BYTES_MAX + 1024 * 1024, "{}", text.len());
    }
}

proptest! {
    #[test]
    fn no_page_is_too_broken(html in "(<[/]?(a|b|p|li|ul|ol|td|tr|table|pre|div|main|title|h1|blockquote)( hidden| href=x)?>|[a-z \n|`&;]{0,4}){0,40}") {
        page(&html);
    }

    #[test]
    fn plain_words_are_never_lost(words in proptest::collection::vec("[a-z]{1,8}", 1..20)) {
        let html: String = words.iter().map(|word| format!("<div><b>{word}</b></div>")).collect();
        let text = page(&html).text;
        for word in &words {
            prop_assert!(text.contains(word.as_str()));
        }
    }
}

//! `hermes insights`.

use super::{contains, json, refused, run, stdout, talked};
use crate::setting::bare;

#[tokio::test]
async fn it_counts_what_was_used_as_text_as_json_and_as_a_page() {
    let setting = talked(&["one <b>", "two"]).await;
    let hermes = &setting.hermes;
    let text = stdout(hermes, &["insights"]);
    contains(
        &text,
        &[
            "The last 30 days",
            "requests       2",
            "custom:test-model",
            "Mon",
            "█",
        ],
    );
    assert!(!text.contains('\x1b'), "plain when piped");
    let insights = json(hermes, &["insights", "--days", "1", "--json"]);
    assert_eq!(insights["models"][0]["used"]["requests"], 2);
    assert_eq!(insights["learning"]["undone"], 0);
    let page = hermes.work_folder().join("page.html");
    stdout(hermes, &["insights", "--html", page.to_str().unwrap()]);
    let html = std::fs::read_to_string(&page).unwrap();
    contains(
        &html,
        &["<!doctype html>", "custom:test-model", "one &lt;b&gt;"],
    );
    assert!(!html.contains("http"), "nothing is fetched: {html}");
}

#[tokio::test]
async fn a_home_in_which_nothing_was_asked_says_so() {
    let hermes = bare();
    contains(&stdout(&hermes, &["insights"]), &["nothing was asked"]);
    assert_eq!(
        json(&hermes, &["insights", "--json"])["hours"],
        serde_json::json!([])
    );
    let refusal = run(&hermes, &["insights", "--html", "no/such/folder/x.html"]);
    refused(&refusal, 1, &["cannot write `no/such/folder/x.html`"]);
}

#[tokio::test]
async fn it_shows_what_was_learned_and_how_skills_came_out() {
    let setting = talked(&["one"]).await;
    let hermes = &setting.hermes;
    let write = |path: &str, text: &str| {
        let file = hermes.home().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("memories/USER.md", "likes tea\n");
    let usage = r#"{"tally": {"use_count": 1, "view_count": 2, "success_count": 2, "failure_count": 1},
        "unused": {"use_count": 0}}"#;
    write("skills/.usage.json", usage);
    stdout(hermes, &["-z", "two"]);
    let text = stdout(hermes, &["insights"]);
    contains(
        &text,
        &[
            "Learning",
            "notes in the prompt of  1 conversation",
            "Skills, by use",
            "3 (2 well, 1 not)",
        ],
    );
    assert!(!text.contains("unused"), "{text}");
    let insights = json(hermes, &["insights", "--json"]);
    assert_eq!(insights["skills"][0]["failures"], 1);
    assert_eq!(insights["learning"]["conversations_with_notes"], 1);
}

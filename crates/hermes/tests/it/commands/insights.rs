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

//! Web pages, from the model's call to the model's next request.

use hermes_testkit::server::{Answer, Script};
use hermes_testkit::site::{Reaction, Site};
use serde_json::{Value, json};

use crate::setting::Setting;

/// What the model learned from its last call.
fn told(setting: &Setting) -> String {
    let requests = setting.server.requests();
    let messages = requests.last().unwrap().json["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    last["content"].as_str().unwrap().to_owned()
}

async fn asked_for(url: String, settings: &str) -> Setting {
    let call = Answer::call("c1", "web_extract", json!({"urls": [url]}));
    let setting = Setting::with(Script::new([call, Answer::text("read")]), settings).await;
    let output = setting.run(&["-z", "what does it say?"]);
    assert_eq!(output.stdout, "read\n", "{output:?}");
    setting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reaches_the_model_and_a_long_one_is_kept_in_the_home() {
    let lines: String = (0..3000)
        .map(|line| format!("<p>line {line}</p>"))
        .collect();
    let page = format!("<title>Long</title><script>no()</script>{lines}");
    let site = Site::open(move |_| Reaction::html(&page)).await;
    let allowed = "security:\n  allow_private_urls: true\nweb:\n  extract_char_limit: 3000\n";
    let setting = asked_for(site.url("/"), allowed).await;
    let answer: Value = serde_json::from_str(&told(&setting)).unwrap();
    let result = &answer["results"][0];
    assert_eq!(result["title"], "Long");
    let content = result["content"].as_str().unwrap();
    assert!(content.starts_with("line 0\n\nline 1\n"), "{content}");
    assert!(content.ends_with("line 2999") && content.len() < 4000);
    let kept = std::fs::read_dir(setting.hermes.home().join("cache/web")).unwrap();
    let names: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let name = names[0].to_str().unwrap();
    assert!(name.starts_with("127.0.0.1-") && content.contains(name));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_this_machine_are_not_asked_unless_the_user_allows_it() {
    let site = Site::open(|_| Reaction::html("secret")).await;
    let setting = asked_for(site.url("/"), "").await;
    let told = told(&setting);
    assert!(told.contains("security.allow_private_urls"), "{told}");
    assert!(site.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_blocklist_of_the_settings_counts() {
    let site = Site::open(|_| Reaction::html("secret")).await;
    let settings = "security:\n  allow_private_urls: true\n  website_blocklist:\n    enabled: true\n    \
                    domains: [127.0.0.1]\n";
    let setting = asked_for(site.url("/"), settings).await;
    let answer: Value = serde_json::from_str(&told(&setting)).unwrap();
    let block = json!({"host": "127.0.0.1", "rule": "127.0.0.1", "source": "config"});
    assert_eq!(answer["results"][0]["blocked_by_policy"], block);
    assert!(site.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_of_ours_leaves_in_an_address_in_whatever_form() {
    let site = Site::open(|_| Reaction::html("thanks")).await;
    let key = "qwertz-4711-asdfgh-0815-yxcvbn";
    let hex: String = key.bytes().map(|byte| format!("{byte:02X}")).collect();
    let paths = [
        format!("/?q={key}"),
        format!("/{hex}.png"),
        "/?q=cXdlcnR6LTQ3MTEtYXNkZmdoLTA4MTUteXhjdmJu".to_owned(),
        format!("/?a={}&b={}", &key[..10], &key[10..]),
        format!("/#{}", key.replace('-', "%252D").to_uppercase()),
    ];
    let calls = paths.iter().enumerate().map(|(at, path)| {
        let arguments = json!({"urls": [site.url(path)]});
        Answer::call(format!("c{at}"), "web_extract", arguments)
    });
    let script = Script::new(calls.chain([Answer::text("done")]));
    // Also where the settings let models see keys.
    let settings = "security:\n  allow_private_urls: true\n  redact_secrets: false\n";
    let setting = Setting::with(script, settings).await;
    let hermes = setting.hermes.clone().env("TAVILY_API_KEY", key);
    let output = hermes.args(["-z", "go"]).run();
    assert_eq!(output.stdout, "done\n", "{output:?}");
    let requests = setting.server.requests();
    let last = requests.last().unwrap().json.to_string();
    assert_eq!(
        last.matches("nothing was fetched").count(),
        paths.len(),
        "{last}"
    );
    assert!(site.requests().is_empty());
}

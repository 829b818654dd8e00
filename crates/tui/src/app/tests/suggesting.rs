//! Suggestions for what stands behind a command.

use hermes_core::command::List;

use super::*;

fn item(value: &str, label: &str, detail: &str) -> Item {
    Item {
        value: value.into(),
        label: label.into(),
        detail: detail.into(),
    }
}

fn models() -> Vec<Item> {
    let model = |name: &str, detail: &str| item(name, name, detail);
    vec![
        model(
            "anthropic:claude-opus-4-6",
            "in use · 1M tokens · $5 in, $25 out",
        ),
        model("anthropic:claude-haiku-4-5", "200k tokens · $1 in, $5 out"),
        model("ollama:qwen3:8b", "on this machine"),
    ]
}

fn sessions() -> Vec<Item> {
    vec![
        item(
            "20261116_101500_a1b2c3",
            "fix the login page",
            "5 min ago · 12 messages",
        ),
        item(
            "20261115_090000_d4e5f6",
            "what does this folder hold?",
            "1 d ago · 2 messages",
        ),
    ]
}

fn asked(effects: Vec<Effect>) -> Vec<List> {
    let requests = requests(effects).into_iter();
    requests
        .filter_map(|request| match request {
            ToHost::List(list) => Some(list),
            _ => None,
        })
        .collect()
}

fn enter(scene: &mut Scene) -> Vec<ToHost> {
    requests(scene.press(KeyCode::Enter, KeyModifiers::NONE))
}

/// The arguments of the one command that was sent.
fn sent(requests: Vec<ToHost>) -> (Verb, String) {
    match requests.into_iter().next() {
        Some(ToHost::Command { command, arguments }) => (command.verb, arguments),
        other => panic!("{other:?}"),
    }
}

#[test]
fn models_and_sessions_are_suggested_behind_their_commands() {
    let screen = |columns, rows| {
        let mut scene = Scene::new(columns, rows);
        scene.write("/model ");
        let list = List::Models;
        let items = models();
        scene.host(FromHost::Listed { list, items });
        let models = scene.screen();
        scene.control('u');
        scene.write("/resume log");
        let list = List::Sessions;
        let items = sessions();
        scene.host(FromHost::Listed { list, items });
        format!("{models}\n{}", scene.screen())
    };
    insta::assert_snapshot!("suggesting_80x24", screen(80, 24));
    insta::assert_snapshot!("suggesting_120x40", screen(120, 40));
    insta::assert_snapshot!("suggesting_40x12", screen(40, 12));
}

#[test]
fn a_list_is_asked_for_when_its_first_name_begins_and_not_for_every_letter() {
    let mut scene = Scene::new(80, 24);
    scene.write("/model");
    let space = KeyCode::Char(' ');
    let effects = scene.press(space, KeyModifiers::NONE);
    assert_eq!(asked(effects), [List::Models]);
    let effects = scene.press(KeyCode::Char('g'), KeyModifiers::NONE);
    assert_eq!(asked(effects), []);
    scene.control('u');
    let effects = scene.app.update(Input::Paste("/model g".into()), scene.now);
    assert_eq!(asked(effects), [List::Models]);
    scene.control('u');
    scene.write("/personality");
    let effects = scene.press(space, KeyModifiers::NONE);
    assert_eq!(asked(effects), [List::Personalities]);
}

#[test]
fn enter_sends_a_model_as_it_is_typed_and_the_arrows_choose_one() {
    let mut scene = Scene::new(80, 24);
    let list = List::Models;
    scene.host(FromHost::Listed {
        list,
        items: models(),
    });
    scene.write("/model haiku");
    let typed = sent(enter(&mut scene));
    assert_eq!(typed, (Verb::Model, "haiku".into()));
    scene.write("/model haiku");
    scene.press(KeyCode::Down, KeyModifiers::NONE);
    let chosen = sent(enter(&mut scene));
    assert_eq!(chosen, (Verb::Model, "anthropic:claude-haiku-4-5".into()));
    scene.write("/model haiku");
    scene.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(scene.app.draft(), "/model anthropic:claude-haiku-4-5 ");
}

#[test]
fn enter_takes_the_session_that_fits_and_none_where_nothing_is_typed() {
    let mut scene = Scene::new(80, 24);
    let list = List::Sessions;
    scene.host(FromHost::Listed {
        list,
        items: sessions(),
    });
    scene.write("/resume ");
    assert_eq!(sent(enter(&mut scene)), (Verb::Resume, String::new()));
    scene.write("/resume page login");
    let chosen = sent(enter(&mut scene));
    assert_eq!(chosen, (Verb::Resume, "20261116_101500_a1b2c3".into()));
}

#[test]
fn what_is_selected_stays_so_when_more_is_known() {
    let mut scene = Scene::new(80, 24);
    scene.write("/model ");
    let list = List::Models;
    let items = models();
    scene.host(FromHost::Listed { list, items });
    scene.press(KeyCode::Down, KeyModifiers::NONE);
    scene.press(KeyCode::Down, KeyModifiers::NONE);
    let mut items = models();
    items.insert(0, item("zai:glm-4.7", "zai:glm-4.7", ""));
    scene.host(FromHost::Listed { list, items });
    let chosen = sent(enter(&mut scene));
    assert_eq!(chosen.1, "anthropic:claude-haiku-4-5");
}

#[test]
fn a_word_that_needs_another_opens_the_next_list() {
    let mut scene = Scene::new(80, 24);
    scene.write("/tools en");
    let effects = scene.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(scene.app.draft(), "/tools enable ");
    assert_eq!(asked(effects), [List::Toolsets]);
    let list = List::Toolsets;
    let items = vec![item("web", "web", "off · search and read pages")];
    scene.host(FromHost::Listed { list, items });
    scene.write("w");
    let chosen = sent(enter(&mut scene));
    assert_eq!(chosen, (Verb::Tools, "enable web".into()));
}

#[test]
fn a_list_that_comes_late_does_not_cover_another_line() {
    let mut scene = Scene::new(80, 24);
    scene.write("/model ");
    scene.control('u');
    scene.write("hello");
    let before = scene.screen();
    let list = List::Models;
    let items = models();
    scene.host(FromHost::Listed { list, items });
    assert_eq!(scene.screen(), before);
}

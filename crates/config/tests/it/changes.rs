use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use hermes_config::{ChangeError, ConfigFile};
use serde_json::json;

use crate::world::World;

const CONFIG: &str = "\
# My settings.

model: gpt-5   # the good one

agent:
    max_turns: 50  # enough
    # reasoning_effort: high

mcp_servers:
    calendar: {command: mcp-calendar, args: []}
";

#[test]
fn a_change_touches_its_own_line_only() {
    let world = World::with_config(CONFIG);
    let changed = world.set("agent.max_turns", "60").unwrap();
    assert_eq!(
        (changed.name.as_str(), changed.warning),
        ("agent.max_turns", None)
    );
    assert_eq!(world.read("home/config.yaml"), CONFIG.replace("50", "60"));
    assert_eq!(world.read("home/config.yaml.bak"), CONFIG);
}

#[test]
fn the_first_change_makes_a_private_file() {
    let world = World::new();
    world.set("agent.max_turns", "5").unwrap();
    assert_eq!(world.read("home/config.yaml"), "agent:\n  max_turns: 5\n");
    let mode = fs::metadata(world.path("home/config.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!world.path("home/config.yaml.bak").exists());
}

#[test]
fn permissions_and_links_survive_a_change() {
    let world = World::new();
    world.write("dotfiles.yaml", "a: 1\n");
    fs::set_permissions(world.path("dotfiles.yaml"), Permissions::from_mode(0o640)).unwrap();
    symlink(world.path("dotfiles.yaml"), world.path("home/config.yaml")).unwrap();
    world.set("timezone", "UTC").unwrap();
    assert_eq!(world.read("dotfiles.yaml"), "a: 1\ntimezone: UTC\n");
    assert!(
        fs::symlink_metadata(world.path("home/config.yaml"))
            .unwrap()
            .is_symlink()
    );
    let mode = fs::metadata(world.path("dotfiles.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn older_spellings_are_changed_where_they_stand() {
    let world = World::with_config("max_turns: 5 # few\nmodel: gpt # good\n");
    world.set("agent.max_turns", "6").unwrap();
    world.set("model", "claude").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "max_turns: 6 # few\nmodel: claude # good\n"
    );
    world.set("model.provider", "anthropic").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "max_turns: 6 # few\nmodel:  # good\n  default: claude\n  provider: anthropic\n"
    );
    assert!(world.unset("agent.max_turns").unwrap().is_some());
    assert_eq!(world.settings().u64("agent.max_turns").unwrap(), 90);
}

#[test]
fn text_stays_text_where_text_is_expected() {
    let world = World::new();
    world.set("approvals.mode", "off").unwrap();
    world.set("display.streaming", "off").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "approvals:\n  mode: 'off'\ndisplay:\n  streaming: false\n"
    );
}

#[test]
fn lists_grow_by_index() {
    let world = World::new();
    world.set("fallback_providers.0.model", "a").unwrap();
    world.set("fallback_providers.1.model", "b").unwrap();
    world.set("fallback_providers.0.provider", "x").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "fallback_providers:\n  - model: a\n    provider: x\n  - model: b\n"
    );
    assert!(matches!(
        world.set("fallback_providers.9.model", "c"),
        Err(ChangeError::NoSuchItem { length: 2, .. })
    ));
    assert!(world.unset("fallback_providers.0").unwrap().is_some());
    assert!(world.unset("fallback_providers.0.model").unwrap().is_some());
    assert_eq!(world.read("home/config.yaml"), "");
}

#[test]
fn keys_of_services_go_to_the_env_file() {
    let world = World::new();
    world.write("home/.env", "# keys\nOTHER=1\n");
    let changed = world.set("openai_api_key", "sk 1").unwrap();
    assert_eq!(
        (changed.name.as_str(), changed.file),
        ("OPENAI_API_KEY", world.path("home/.env"))
    );
    assert_eq!(
        world.read("home/.env"),
        "# keys\nOTHER=1\nOPENAI_API_KEY=\"sk 1\"\n"
    );
    assert!(world.unset("OPENAI_API_KEY").unwrap().is_some());
    assert_eq!(world.unset("OPENAI_API_KEY").unwrap(), None);
    assert_eq!(world.read("home/.env"), "# keys\nOTHER=1\n");
}

#[test]
fn managed_settings_cannot_be_changed() {
    let world = World::with_config("agent: {max_turns: 5}\n");
    world.write(
        "managed/config.yaml",
        "agent: {max_turns: 9}\ncommand_allowlist: [ls]\n",
    );
    for key in ["agent.max_turns", "agent", "command_allowlist.0"] {
        assert!(
            matches!(world.set(key, "1"), Err(ChangeError::Managed { .. })),
            "{key}"
        );
        assert!(
            matches!(world.unset(key), Err(ChangeError::Managed { .. })),
            "{key}"
        );
    }
    world.set("agent.api_max_retries", "1").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "agent: {max_turns: 5, api_max_retries: 1}\n"
    );
}

#[test]
fn a_change_without_effect_says_so() {
    let mut world = World::new();
    world.set_variable("HERMES_INFERENCE_MODEL", "claude");
    let warning = world.set("model", "gpt").unwrap().warning.unwrap();
    assert!(warning.contains("HERMES_INFERENCE_MODEL"), "{warning}");
    let warning = world.set("agent.max_turn", "5").unwrap().warning.unwrap();
    assert!(
        warning.contains("did you mean `agent.max_turns`?"),
        "{warning}"
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_refused() {
    let world = World::with_config("a: 1\n");
    assert!(matches!(
        world.set("agent.max_turns", "many"),
        Err(ChangeError::WrongType { .. })
    ));
    assert!(matches!(
        world.set("toolsets", "web"),
        Err(ChangeError::WrongType { .. })
    ));
    assert!(matches!(
        world.set("agent", "1"),
        Err(ChangeError::WrongType { .. })
    ));
    assert!(matches!(
        world.set("a.b", "1"),
        Err(ChangeError::NotASection { .. })
    ));
    assert!(matches!(world.set("a..b", "1"), Err(ChangeError::Key(_))));
    assert_eq!(world.read("home/config.yaml"), "a: 1\n");
    world.set("toolsets", "[web, files]").unwrap();
    assert_eq!(
        world.settings().strings("toolsets").unwrap(),
        ["web", "files"]
    );
}

#[test]
fn a_word_that_a_setting_does_not_take_is_refused_and_told_of_where_it_stands() {
    let world = World::with_config("display:\n  edit_mode: vim # mine\n");
    let problems = world.settings().problems().to_vec();
    let told = problems.iter().map(|problem| problem.message.as_str());
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["`display.edit_mode` must be emacs or vi, but is the text `vim`"]
    );
    let refused = world.set("display.busy_input_mode", "wait").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`display.busy_input_mode` must be interrupt, queue or steer, not `wait`"
    );
    world.set("display.edit_mode", "vi").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "display:\n  edit_mode: vi # mine\n"
    );
    assert!(world.settings().problems().is_empty());
}

#[test]
fn somebody_elses_change_is_not_lost() {
    let world = World::with_config("a: 1\n");
    let mut file = ConfigFile::open(&world.path("home/config.yaml")).unwrap();
    file.set(&"b".parse().unwrap(), &json!(2)).unwrap();
    world.write("home/config.yaml", "a: 7\n");
    assert!(matches!(
        file.save(),
        Err(ChangeError::ChangedMeanwhile { .. })
    ));
    assert_eq!(world.read("home/config.yaml"), "a: 7\n");
}

#[test]
fn a_byte_order_mark_and_line_ends_survive() {
    let world = World::with_config("\u{feff}a: 1\r\n# c\r\n");
    world.set("timezone", "UTC").unwrap();
    assert_eq!(
        world.read("home/config.yaml"),
        "\u{feff}a: 1\r\ntimezone: UTC\r\n# c\r\n"
    );
}

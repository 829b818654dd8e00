use std::fs;

use hermes_config::{Origin, Position, Settings, Source, Standing, UserConfig};
use serde_json::json;

use crate::world::World;

#[test]
fn variables_say_where_commands_run() {
    let mut world = World::new();
    world.set_variable("TERMINAL_ENV", "docker");
    world.set_variable("TERMINAL_DOCKER_TMPFS_VAR_TMP", "1g");
    world.set_variable("TERMINAL_TIMEOUT", "20");
    world.set_variable("HERMES_REDACT_SECRETS", "false");
    let settings = world.settings();
    assert_eq!(settings.string("terminal.backend").unwrap(), "docker");
    let sizes = settings.get("terminal.docker_tmpfs").unwrap();
    assert_eq!(
        *sizes,
        json!({"tmp": "512m", "var_tmp": "1g", "run": "64m"})
    );
    assert_eq!(settings.u64("terminal.timeout").unwrap(), 20);
    assert!(!settings.bool("security.redact_secrets").unwrap());
    assert!(settings.problems().is_empty(), "{:?}", settings.problems());
}

#[test]
fn the_sizes_of_docker_have_the_names_of_hermes_agent_too() {
    let mut world = World::new();
    world.set_variable("HERMES_DOCKER_TMP_TMP_SIZE", "1g");
    world.set_variable("HERMES_DOCKER_VAR_TMP_TMP_SIZE", "2g");
    world.set_variable("HERMES_DOCKER_RUN_TMP_SIZE", "3m");
    let sizes = |world: &World| world.settings().get("terminal.docker_tmpfs").cloned();
    let expected = json!({"tmp": "1g", "var_tmp": "2g", "run": "3m"});
    assert_eq!(sizes(&world), Some(expected));
    world.set_variable("TERMINAL_DOCKER_TMPFS_TMP", "4g");
    let expected = json!({"tmp": "4g", "var_tmp": "2g", "run": "3m"});
    assert_eq!(sizes(&world), Some(expected));
}

#[test]
fn the_built_in_settings_are_complete_and_typed() {
    let settings = Settings::defaults();
    assert_eq!(settings.u64("agent.max_turns"), Ok(90));
    assert_eq!(settings.string("approvals.mode").as_deref(), Ok("manual"));
    assert_eq!(
        settings.string("display.memory_notifications").as_deref(),
        Ok("on")
    );
    assert_eq!(settings.optional_u64("model.context_length"), Ok(None));
    assert_eq!(
        settings.seconds("mcp_discovery_timeout"),
        Ok(std::time::Duration::from_millis(1500))
    );
    assert_eq!(
        settings.strings("toolsets"),
        Ok(vec!["hermes-cli".to_owned()])
    );
    assert_eq!(
        settings.origin("agent.max_turns").unwrap().to_string(),
        "built-in default"
    );
}

#[test]
fn stronger_layers_win() {
    let mut world =
        World::with_config("model: {default: user, provider: user}\nagent: {max_turns: 1}\n");
    world.write("managed/config.yaml", "agent:\n  max_turns: 7\n");
    world.set_variable("HERMES_INFERENCE_MODEL", "variable");
    world.set_variable("HERMES_YOLO_MODE", "1");
    world.flags = vec![
        ("model.default".parse().unwrap(), json!("flag")),
        ("max_turns".parse().unwrap(), json!(3)),
    ];
    let settings = world.settings();
    assert_eq!(settings.string("model.default").unwrap(), "flag");
    assert_eq!(settings.string("model.provider").unwrap(), "user");
    assert_eq!(settings.string("approvals.mode").unwrap(), "off");
    assert_eq!(settings.u64("agent.max_turns").unwrap(), 7);
    assert_eq!(
        settings.origin("agent.max_turns"),
        Some(Origin {
            source: Source::Managed(world.path("managed/config.yaml")),
            position: Some(Position {
                line: 2,
                column: 14
            }),
        })
    );
}

#[test]
fn every_layer_can_be_explained() {
    let mut world = World::with_config("# mine\nmodel: gpt\napi: 1\n");
    world.set_variable("HERMES_INFERENCE_MODEL", "claude");
    let explanation = world.settings().explain("model.default").unwrap();
    let says: Vec<_> = explanation
        .says
        .iter()
        .map(|said| (&said.value, said.standing))
        .collect();
    assert_eq!(
        says,
        [
            (&json!("claude"), Standing::Wins),
            (&json!("gpt"), Standing::Overridden),
            (&json!(""), Standing::Overridden)
        ]
    );
    let config = world.path("home/config.yaml");
    assert_eq!(
        explanation.to_string(),
        format!(
            "model.default = claude\n  in effect   claude  (environment variable `HERMES_INFERENCE_MODEL`)\n  \
             overridden  gpt  ({}:2:8)\n  overridden  ''  (built-in default)\n",
            config.display()
        )
    );
}

#[test]
fn sections_are_merged_and_lists_replaced() {
    let world = World::with_config(
        "agent:\n  max_turns: 5\ntoolsets: [web]\nterminal:\nmemory: null\ndisplay: {platforms: {slack: {streaming: true}}}\n",
    );
    let settings = world.settings();
    assert_eq!(settings.u64("agent.max_turns").unwrap(), 5);
    assert_eq!(settings.u64("agent.api_max_retries").unwrap(), 3);
    assert_eq!(settings.strings("toolsets").unwrap(), ["web"]);
    assert_eq!(settings.string("terminal.backend").unwrap(), "local");
    assert!(settings.bool("memory.memory_enabled").unwrap());
    assert_eq!(
        settings.get("display.platforms.telegram.streaming"),
        Some(&json!(true))
    );
    assert_eq!(settings.problems(), []);
}

#[test]
fn variables_are_expanded_in_files_and_unknown_ones_stay() {
    let mut world = World::with_config(
        "model: {base_url: 'http://${HOST}/v1', api_key: '${NO_SUCH}'}\nagent: {max_turns: '${N}'}\n",
    );
    world.set_variable("HOST", "localhost:1");
    world.set_variable("N", "12");
    let settings = world.settings();
    assert_eq!(
        settings.string("model.base_url").unwrap(),
        "http://localhost:1/v1"
    );
    assert_eq!(settings.string("model.api_key").unwrap(), "${NO_SUCH}");
    assert_eq!(settings.u64("agent.max_turns").unwrap(), 12);
    assert_eq!(settings.problems(), []);
}

#[test]
fn unknown_names_are_kept_and_reported_with_the_nearest_known_one() {
    let world = World::with_config(
        "agent:\n  max_turn: 5\nproviders: {own: {any: 1}}\nmcp_servers: {x: {command: y}}\n_config_version: 33\nagnet: 1\nauxiliary: {monitor: {model: m}}\n",
    );
    assert_eq!(world.settings().get("agent.max_turn"), Some(&json!(5)));
    assert_eq!(
        world.problems(),
        [
            "home/config.yaml:2:3: unknown setting `agent.max_turn` (did you mean `agent.max_turns`?)",
            "home/config.yaml:6:1: unknown setting `agnet` (did you mean `agent`?)",
        ]
    );
}

#[test]
fn side_work_that_is_not_done_here_is_said_to_have_no_effect() {
    let world = World::with_config(
        "auxiliary:\n  aproval: {model: m}\n  monitor: {model: m}\n  approval: {model: m}\n",
    );
    let told: Vec<_> = world
        .settings()
        .unused()
        .iter()
        .map(|said| said.to_string())
        .collect();
    let home = world.path("home/config.yaml");
    assert_eq!(
        told,
        [
            format!(
                "{}:2:3: `auxiliary.aproval` has no effect in this version (did you mean `auxiliary.approval`?)",
                home.display()
            ),
            format!(
                "{}:3:3: `auxiliary.monitor` has no effect in this version",
                home.display()
            ),
        ]
    );
    let explained = |key: &str| world.settings().explain(key).unwrap().is_unused;
    assert!(explained("auxiliary.monitor.model"));
    assert!(!explained("auxiliary.approval.model"));
}

#[test]
fn a_model_is_called_by_a_name() {
    assert_eq!(
        World::with_config("model: 5\n").problems(),
        ["home/config.yaml:1:8: `model.default` must be a name, but is the number `5`"]
    );
    assert_eq!(
        World::with_config("model: {provider: true}\n").problems(),
        ["home/config.yaml:1:19: `model.provider` must be a name, but is `true`"]
    );
    assert!(
        World::with_config("model: {default: o3, api_key: 5}\n")
            .problems()
            .is_empty()
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_with_its_place() {
    let world = World::with_config("agent:\n  max_turns: many\ndisplay: nice\n");
    let settings = world.settings();
    let error = settings.u64("agent.max_turns").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "`agent.max_turns` must be a whole number, zero or more, but is the text `many` ({}:2:14)",
            world.path("home/config.yaml").display()
        )
    );
    assert!(
        error
            .hint()
            .contains("hermes config explain agent.max_turns")
    );
    assert_eq!(settings.string("display.interface").unwrap(), "cli");
    assert_eq!(
        world.problems(),
        [
            "home/config.yaml:2:14: `agent.max_turns` must be a number, but is the text `many`",
            "home/config.yaml:3:10: `display` must be a section, but is the text `nice`, so it is ignored",
        ]
    );
}

#[test]
fn words_for_yes_and_no_are_booleans_where_one_is_expected() {
    let world = World::with_config(
        "approvals: {mode: off}\nmemory: {memory_enabled: no}\nprivacy: {redact_pii: On}\n",
    );
    let settings = world.settings();
    assert_eq!(settings.string("approvals.mode").unwrap(), "off");
    assert!(!settings.bool("memory.memory_enabled").unwrap());
    assert!(settings.bool("privacy.redact_pii").unwrap());
    assert_eq!(settings.problems(), []);
}

#[test]
fn a_project_is_read_only_where_it_is_trusted() {
    let world = World::new();
    world.write("project/.hermes/config.yaml", "agent: {max_turns: 3}\n");
    assert_eq!(world.settings().u64("agent.max_turns").unwrap(), 90);
    let problem = world.problems().remove(0);
    assert!(problem.contains("not trusted"), "{problem}");
    let project = world.path("project");
    world
        .set("security.trusted_projects.0", project.to_str().unwrap())
        .unwrap();
    assert_eq!(world.settings().u64("agent.max_turns").unwrap(), 3);
    let without = world
        .load_from(&world.path("project"), UserConfig::Ignore)
        .unwrap();
    assert_eq!(without.u64("agent.max_turns").unwrap(), 90);
}

#[test]
fn a_project_cannot_decide_what_is_its_owners_business() {
    let world = World::new();
    let trusted = world.path("project").display().to_string();
    world.write(
        "home/config.yaml",
        &format!("security: {{trusted_projects: ['{trusted}']}}\n"),
    );
    world.write(
        "project/.hermes/config.yaml",
        "model: evil\napprovals: {mode: 'off'}\nsecurity: {redact_secrets: false}\nbase_url: http://evil\n\
         delegation: {base_url: http://evil, max_iterations: 2}\nproviders: {x: {}}\n",
    );
    let settings = world.settings();
    assert_eq!(settings.string("model.default").unwrap(), "");
    assert_eq!(settings.string("approvals.mode").unwrap(), "manual");
    assert!(settings.bool("security.redact_secrets").unwrap());
    assert_eq!(settings.string("delegation.base_url").unwrap(), "");
    assert_eq!(settings.u64("delegation.max_iterations").unwrap(), 2);
    let ignored: Vec<_> = world
        .problems()
        .iter()
        .filter(|problem| problem.contains("ignored"))
        .cloned()
        .collect();
    assert_eq!(ignored.len(), 5, "{ignored:?}");
}

#[test]
fn the_home_in_a_repository_is_not_a_project() {
    let mut world = World::new();
    fs::create_dir_all(world.path("project/.hermes")).unwrap();
    world.set_variable(
        "HERMES_HOME",
        world.path("project/.hermes").to_str().unwrap(),
    );
    world.write("project/.hermes/config.yaml", "model: mine\n");
    assert_eq!(world.settings().string("model.default").unwrap(), "mine");
    assert_eq!(world.settings().problems(), []);
}

#[test]
fn secrets_are_not_shown() {
    let mut world = World::with_config(
        "model: {api_key: sk-very-secret}\nmcp_servers: {x: {url: 'http://h/?k=${T}', headers: {X: 'sk-${T}'}}}\n",
    );
    world.set_variable("T", "sk-token");
    let shown = world.settings().to_yaml();
    assert!(shown.contains("api_key: '***'"), "{shown}");
    assert!(!shown.contains("sk-"), "{shown}");
    assert!(shown.contains("url: 'http://h/?k=${T}'"), "{shown}");
    for key in [
        "model.api_key",
        "mcp_servers.x",
        "mcp_servers.x.url",
        "mcp_servers.x.headers.X",
    ] {
        let explanation = world.settings().explain(key).unwrap().to_string();
        assert!(!explanation.contains("sk-"), "{explanation}");
    }
}

#[test]
fn what_is_shown_reads_back_as_the_settings() {
    let settings = Settings::defaults();
    let world = World::with_config(&settings.to_yaml());
    assert_eq!(world.settings().masked(), settings.masked());
    assert_eq!(world.settings().problems(), []);
}

#[test]
fn settings_without_an_effect_are_told_unless_they_say_what_is_built_in() {
    let world = World::with_config(
        "display: {resume_display: minimal}\ngoals: {max_turns: 9}\n\
         memory: {memory_enabled: true, write_approval: false}\nworktree: null\nagent: {max_turns: 5}\n",
    );
    let settings = world.load().unwrap();
    assert!(settings.problems().is_empty());
    let told: Vec<_> = settings
        .unused()
        .into_iter()
        .map(|one| one.message)
        .collect();
    assert_eq!(
        told,
        [
            "`display.resume_display` has no effect in this version",
            "the settings of `goals` have no effect in this version",
        ]
    );
    let changed = world.set("goals.max_turns", "8").unwrap();
    assert!(changed.warning.unwrap().contains("no effect"));
    let explained = settings.explain("goals.max_turns").unwrap();
    assert!(explained.to_string().contains("no effect in this version"));
    assert_eq!(world.set("agent.max_turns", "6").unwrap().warning, None);
}

#[test]
fn what_has_no_effect_in_a_provider_is_told_for_each() {
    let world = World::with_config(
        "providers:\n  lab: {base_url: u, ssl_verify: false, extra_body: {a: 1}}\n\
         custom_providers:\n- {name: old, base_url: u, rate_limit_delay: 2}\n",
    );
    let told = world.load().unwrap().unused();
    let told: Vec<_> = told.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`providers.lab.ssl_verify` has no effect"));
    assert!(told[0].contains("SSL_CERT_FILE"), "{told:?}");
    assert!(told[1].contains("`custom_providers.0.rate_limit_delay` has no effect"));
    let changed = world.set("providers.lab.ssl_ca_cert", "x").unwrap();
    assert!(changed.warning.unwrap().contains("no effect"));
}

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use hermes_config::{Environment, Home, HomeError, check_permissions, load_environment};

use hermes_core::Secret;

use crate::world::World;

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_home_is_below_the_users_unless_a_variable_says_otherwise() {
    let home = |pairs: &[(&str, &str)]| {
        Home::resolve(&Environment::from_pairs(pairs.iter().copied()), None)
    };
    let directory = |pairs: &[(&str, &str)]| {
        home(pairs)
            .unwrap()
            .directory()
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(directory(&[("HOME", "/nowhere/me")]), "/nowhere/me/.hermes");
    assert_eq!(
        directory(&[("HOME", "/nowhere/me"), ("HERMES_HOME", "/else")]),
        "/else"
    );
    assert_eq!(
        directory(&[("HOME", "/nowhere/me"), ("HERMES_HOME", "~/h")]),
        "/nowhere/me/h"
    );
    assert_eq!(
        directory(&[("HOME", "/nowhere/me"), ("HERMES_HOME", "")]),
        "/nowhere/me/.hermes"
    );
    assert!(matches!(home(&[]), Err(HomeError::Unknown)));
}

#[test]
fn a_new_home_is_private_and_complete() {
    let world = World::new();
    fs::remove_dir(world.path("home")).unwrap();
    let home = world.home();
    home.create().unwrap();
    assert_eq!(mode(home.directory()), 0o700);
    for folder in ["sessions", "logs", "memories", "skills", "cron", "hooks"] {
        assert_eq!(mode(&home.directory().join(folder)), 0o700);
    }
    assert!(
        fs::read_to_string(home.soul_md())
            .unwrap()
            .contains("You are Hermes")
    );
    assert_eq!(check_permissions(&home), []);
}

#[test]
fn creating_a_home_again_changes_nothing() {
    let world = World::new();
    let home = world.home();
    home.create().unwrap();
    fs::write(home.soul_md(), "mine").unwrap();
    home.create().unwrap();
    assert_eq!(fs::read_to_string(home.soul_md()).unwrap(), "mine");
}

#[test]
fn a_file_in_the_way_of_the_home_is_named() {
    let world = World::new();
    fs::remove_dir(world.path("home")).unwrap();
    world.write("home", "");
    assert!(
        matches!(world.home().create(), Err(HomeError::NotADirectory { path }) if path == world.path("home"))
    );
}

#[test]
fn a_profile_is_a_home_of_its_own() {
    let world = World::new();
    fs::create_dir_all(world.path("home/profiles/work")).unwrap();
    let home = Home::resolve(&world.environment(), Some("work")).unwrap();
    assert_eq!(home.directory(), world.path("home/profiles/work"));
    assert_eq!(
        (home.root(), home.profile()),
        (world.path("home").as_path(), Some("work"))
    );
    assert_eq!(home.profiles(), ["work"]);
}

#[test]
fn keys_and_settings_of_every_profile_are_known() {
    let world = World::new();
    fs::create_dir_all(world.path("home/profiles/work")).unwrap();
    let home = Home::resolve(&world.environment(), Some("work")).unwrap();
    for file in ["home/auth.json", "home/profiles/work/mcp-tokens"] {
        assert!(home.key_files().contains(&world.path(file)), "{file}");
    }
    for file in ["home/checkpoints", "home/profiles/work/hermes.db"] {
        assert!(home.own_files().contains(&world.path(file)), "{file}");
    }
    for file in ["home/config.yaml", "home/profiles/work/config.yaml"] {
        assert!(home.settings_files().contains(&world.path(file)), "{file}");
    }
}

#[test]
fn a_missing_profile_is_an_error_that_names_the_others() {
    let world = World::new();
    fs::create_dir_all(world.path("home/profiles/work")).unwrap();
    fs::create_dir_all(world.path("home/profiles/play")).unwrap();
    let error = Home::resolve(&world.environment(), Some("wrok")).unwrap_err();
    assert!(
        error.to_string().contains("(there are: play, work)"),
        "{error}"
    );
    let folder = world.path("home/profiles/wrok");
    let expected = format!(
        "name one that exists, or create the folder `{}`",
        folder.display()
    );
    assert_eq!(error.hint(), expected);
    assert!(!folder.exists());
    fs::create_dir(folder).unwrap();
    assert!(Home::resolve(&world.environment(), Some("wrok")).is_ok());
}

#[test]
fn a_name_no_profile_can_have_is_not_worth_a_folder() {
    let mut world = World::new();
    let folder = world.path("home/profiles/Work");
    fs::create_dir_all(&folder).unwrap();
    world.set_variable("HERMES_HOME", folder.to_str().unwrap());
    let error = Home::resolve(&world.environment(), None).unwrap_err();
    assert!(
        error.hint().contains("lowercase letters") && error.hint().contains("HERMES_HOME"),
        "{}",
        error.hint()
    );
}

#[test]
fn profiles_are_made_and_chosen() {
    let world = World::new();
    let home = world.home();
    let work = home.create_profile("work").unwrap();
    assert!(work.soul_md().exists());
    assert!(matches!(
        home.create_profile("work"),
        Err(HomeError::ProfileExists { .. })
    ));
    for name in ["default", "Work", "../x", ""] {
        assert!(
            matches!(
                home.create_profile(name),
                Err(HomeError::BadProfileName { .. })
            ),
            "{name}"
        );
    }
    home.use_profile("work").unwrap();
    assert_eq!(world.home(), work);
    assert!(matches!(
        home.use_profile("play"),
        Err(HomeError::NoSuchProfile { .. })
    ));
    home.use_profile("default").unwrap();
    assert_eq!(world.home(), home);
}

#[test]
fn the_sticky_profile_counts_until_something_stronger_is_said() {
    let mut world = World::new();
    fs::create_dir_all(world.path("home/profiles/work")).unwrap();
    world.write("home/active_profile", "work\n");
    assert_eq!(world.home().profile(), Some("work"));
    let default = Home::resolve(&world.environment(), Some("default")).unwrap();
    assert_eq!(default.directory(), world.path("home"));
    world.set_variable("HERMES_S6_SUPERVISED_CHILD", "1");
    assert_eq!(world.home().profile(), None);
}

#[test]
fn a_sticky_profile_that_is_gone_is_an_error_with_a_way_back() {
    let mut world = World::new();
    world.write("home/active_profile", "gone");
    let error = Home::resolve(&world.environment(), None).unwrap_err();
    let way_back = format!(
        "or remove `{}`",
        world.path("home/active_profile").display()
    );
    assert!(error.hint().ends_with(&way_back), "{}", error.hint());
    let profile = world.path("home/profiles/work");
    fs::create_dir_all(&profile).unwrap();
    world.set_variable("HERMES_HOME", profile.to_str().unwrap());
    assert_eq!(
        (world.home().profile(), world.home().root()),
        (Some("work"), world.path("home").as_path())
    );
}

#[test]
fn the_homes_env_file_wins_over_the_process_and_the_managed_one_over_all() {
    let mut world = World::new();
    for name in ["A", "B", "C"] {
        world.set_variable(name, "process");
    }
    world.write("home/.env", "B=home\nC=home\nHERMES_MANAGED_DIR=/nowhere\n");
    world.write("managed/.env", "C=managed\n");
    let environment = load_environment(world.environment(), &world.home()).unwrap();
    let values = ["A", "B", "C", "D"].map(|name| environment.get(name));
    assert_eq!(
        values,
        [Some("process"), Some("home"), Some("managed"), None]
    );
    assert_eq!(
        environment.path("HERMES_MANAGED_DIR"),
        Some(world.path("managed").as_path())
    );
}

#[test]
fn open_permissions_are_found_and_fixed() {
    let world = World::with_config("a: 1\n");
    world.write("home/.env", "A=1\n");
    let home = world.home();
    fs::set_permissions(home.directory(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.config_yaml(), Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(home.dot_env(), Permissions::from_mode(0o400)).unwrap();
    let problems = check_permissions(&home);
    let paths: Vec<_> = problems
        .iter()
        .map(|problem| problem.path.clone())
        .collect();
    assert_eq!(paths, [home.directory().to_path_buf(), home.config_yaml()]);
    problems.iter().for_each(|problem| problem.fix().unwrap());
    assert_eq!(check_permissions(&home), []);
    assert_eq!(
        (mode(home.directory()), mode(&home.config_yaml())),
        (0o700, 0o600)
    );
}

#[test]
fn keys_of_the_credential_pool_are_read_in_their_order_and_logins_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::from_pairs([("HERMES_HOME", folder.path().to_str().unwrap())]);
    let home = Home::resolve(&environment, None).unwrap();
    let keys = || hermes_config::stored_keys(&home).unwrap();
    assert_eq!(keys(), Some(Default::default()), "no file, no keys");
    let file = r#"{"version": 1, "credential_pool": {"openrouter": [
        {"auth_type": "api_key", "access_token": "second", "priority": 2},
        {"auth_type": "api_key", "access_token": "first", "priority": 1},
        {"auth_type": "oauth", "access_token": "login", "priority": 0},
        {"auth_type": "api_key", "access_token": "gone", "last_status": "dead"}
    ]}}"#;
    std::fs::write(folder.path().join("auth.json"), file).unwrap();
    let expected = [Secret::new("first"), Secret::new("second")];
    assert_eq!(keys().unwrap()["openrouter"], expected);
    std::fs::write(folder.path().join("auth.json"), "{ broken").unwrap();
    assert_eq!(
        keys(),
        None,
        "a broken file is told apart from an empty one"
    );
}

//! Stored keys: what is written, what is left alone, and what several processes do to each other.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use hermes_config::{
    AuthError, AuthFile, Environment, Home, KeyState, Refusal, StoredKey, StoredLogin, used_keys,
    used_logins,
};
use hermes_core::{LoginTokens, Secret, Timestamp};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_794_777_845_250);

fn change<T>(folder: &Path, work: impl FnOnce(&mut AuthFile) -> T) -> T {
    let changed: Result<T, AuthError> = AuthFile::change(folder, NOW, |file| Ok(work(file)));
    changed.unwrap()
}

fn add(folder: &Path, provider: &str, key: &str) {
    change(folder, |file| {
        file.add(provider, &Secret::new(key), None);
    });
}

fn read(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("auth.json")).unwrap()).unwrap()
}

fn refusal(seconds: u64) -> Refusal {
    Refusal {
        at: NOW,
        rest: Duration::from_secs(seconds),
        reason: "rate_limit".into(),
        message: "too many".into(),
    }
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() + seconds * 1000)
}

#[test]
fn a_new_file_is_private_and_has_the_known_shape() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), "openrouter", "secret");
    for name in ["auth.json", "auth.lock"] {
        let file = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let file = read(folder.path());
    let entry = &file["credential_pool"]["openrouter"][0];
    assert_eq!(
        (&file["version"], &file["updated_at"]),
        (&json!(1), &json!(NOW.to_text()))
    );
    assert_eq!(
        (&entry["auth_type"], &entry["priority"], &entry["label"]),
        (&json!("api_key"), &json!(0), &json!("key-1"))
    );
}

#[test]
fn a_refused_key_rests_until_its_time_or_until_it_is_woken() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    add(folder, "xai", "one");
    add(folder, "xai", "two");
    let states = |now| -> Vec<KeyState> {
        let keys = AuthFile::open(folder).unwrap().keys();
        keys.iter().map(|key| key.state(now)).collect()
    };
    let rest = |key: &str| {
        change(folder, |file| {
            file.rest("xai", &Secret::new(key), &refusal(60))
        })
    };
    assert!(rest("one") && !rest("three"));
    let resting = KeyState::Resting {
        until: later(60),
        reason: "too many".into(),
    };
    assert_eq!(states(NOW), [resting, KeyState::Good]);
    assert_eq!(states(later(60)), [KeyState::Good, KeyState::Good]);
    assert_eq!(change(folder, |file| file.wake("xai")), 1);
    assert_eq!(states(NOW), [KeyState::Good, KeyState::Good]);
    assert_eq!(change(folder, |file| file.wake("nobody")), 0);
}

#[test]
fn a_rest_that_another_program_noted_lasts_as_long_as_is_usual() {
    let folder = tempfile::tempdir().unwrap();
    let at = NOW.as_millis() as f64 / 1000.0;
    let entry = |code: u16| {
        json!({"auth_type": "api_key", "access_token": "k", "last_status": "exhausted",
               "last_status_at": at, "last_error_code": code, "last_error_reset_at": null})
    };
    let file = json!({"credential_pool": {"xai": [entry(401), entry(429)]}});
    fs::write(folder.path().join("auth.json"), file.to_string()).unwrap();
    let keys = AuthFile::open(folder.path()).unwrap().keys();
    let rests = |seconds| -> Vec<bool> {
        let rests = |key: &StoredKey| key.state(later(seconds)) != KeyState::Good;
        keys.iter().map(rests).collect()
    };
    assert_eq!(rests(299), [true, true]);
    assert_eq!(rests(301), [false, true]);
    assert_eq!(rests(3601), [false, false]);
}

#[test]
fn only_what_is_asked_for_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    let before = json!({
        "version": 1, "mystery": [1, 2],
        "credential_pool": {"nous": [{"access_token": "t", "auth_type": "oauth", "odd": {}}], "xai": []},
    });
    fs::write(&path, before.to_string()).unwrap();
    change(folder.path(), |file| file.wake("nous"));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        before.to_string(),
        "what does not change is not written"
    );
    add(folder.path(), "xai", "k");
    change(folder.path(), |file| {
        let keys = file.keys();
        let key = keys.iter().find(|key| key.provider == "xai").unwrap();
        file.remove(key);
    });
    let after = read(folder.path());
    assert_eq!(after["mystery"], before["mystery"]);
    assert_eq!(
        after["credential_pool"],
        json!({"nous": before["credential_pool"]["nous"]})
    );
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    for text in ["{ broken", "[]", r#"{"credential_pool": {"xai": 5}}"#] {
        fs::write(&path, text).unwrap();
        let changed: Result<(), AuthError> = AuthFile::change(folder.path(), NOW, |file| {
            file.add("xai", &Secret::new("k"), None);
            Ok(())
        });
        assert!(matches!(changed, Err(AuthError::Damaged { .. })), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn threads_that_add_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let folder = folder.path();
            scope.spawn(move || add(folder, "xai", &format!("key {number}")));
        }
    });
    assert_eq!(AuthFile::open(folder.path()).unwrap().keys().len(), 8);
}

#[test]
fn a_profile_uses_the_keys_of_the_root_for_providers_it_has_none_of() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let profile = root.join("profiles").join("work");
    fs::create_dir_all(&profile).unwrap();
    add(root, "xai", "root's");
    add(root, "groq", "root's");
    add(&profile, "xai", "its own");
    let environment = Environment::from_pairs([("HERMES_HOME", root.to_str().unwrap())]);
    let home = Home::resolve(&environment, Some("work")).unwrap();
    let used = used_keys(&home).unwrap();
    let used: Vec<_> = used
        .iter()
        .map(|(folder, key)| (folder.as_path(), key.provider.as_str(), key.secret.expose()))
        .collect();
    let expected = [
        (profile.as_path(), "xai", "its own"),
        (root, "groq", "root's"),
    ];
    assert_eq!(used, expected);
}

fn tokens(access: &str, expires_at: Option<Timestamp>) -> LoginTokens {
    LoginTokens {
        access: Secret::new(access),
        refresh: Some(Secret::new("refresh")),
        expires_at,
        scope: "a b".into(),
    }
}

#[test]
fn a_login_is_read_as_it_was_kept_and_what_stands_beside_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let before = json!({"providers": {
        "nous": {"portal_base_url": "https://x", "last_auth_error": {"message": "old"}},
        "xai-oauth": {"discovery": {}, "tokens": {"id_token": "i"}},
    }});
    fs::write(folder.path().join("auth.json"), before.to_string()).unwrap();
    for provider in ["nous", "xai-oauth"] {
        let kept = tokens(
            "access",
            Some(Timestamp::from_millis(
                NOW.as_millis() / 1000 * 1000 + 600_000,
            )),
        );
        change(folder.path(), |file| file.keep_login(provider, &kept, NOW));
        let file = AuthFile::open(folder.path()).unwrap();
        let Some(StoredLogin::Open(read)) = file.login(provider) else {
            panic!("{provider}: {file:?}");
        };
        assert_eq!((read.access, read.refresh), (kept.access, kept.refresh));
        let end = read.expires_at.unwrap().as_millis();
        assert!((end - NOW.as_millis() - 600_000).abs() < 2000, "{provider}");
    }
    let file = read(folder.path());
    assert_eq!(file["providers"]["nous"]["portal_base_url"], "https://x");
    assert_eq!(file["providers"]["nous"]["last_auth_error"], Value::Null);
    assert_eq!(file["providers"]["xai-oauth"]["tokens"]["id_token"], "i");
    assert_eq!(file["providers"]["xai-oauth"]["access_token"], Value::Null);
}

#[test]
fn an_ended_login_keeps_its_reason_and_no_tokens() {
    let folder = tempfile::tempdir().unwrap();
    for provider in ["nous", "xai-oauth"] {
        change(folder.path(), |file| {
            file.keep_login(provider, &tokens("access", None), NOW);
            file.end_login(provider, "it was revoked", NOW);
        });
        let ended = StoredLogin::Ended {
            reason: "it was revoked".into(),
        };
        let file = AuthFile::open(folder.path()).unwrap();
        assert_eq!(file.login(provider), Some(ended));
    }
    let text = fs::read_to_string(folder.path().join("auth.json")).unwrap();
    assert!(
        !text.contains("\"access\"") && !text.contains("\"refresh\""),
        "{text}"
    );
}

#[test]
fn a_login_that_was_given_up_is_open_again_when_its_tokens_are_still_there() {
    let folder = tempfile::tempdir().unwrap();
    let refused = json!({"message": "try later", "relogin_required": true});
    let before = json!({"providers": {
        "nous": {"access_token": "a", "portal_base_url": "https://x", "last_auth_error": refused},
        "xai-oauth": {"last_auth_error": refused},
    }});
    fs::write(folder.path().join("auth.json"), before.to_string()).unwrap();
    change(folder.path(), |file| {
        assert!(file.forget_end("nous") && file.forget_end("xai-oauth"));
        assert!(!file.forget_end("nous") && !file.forget_end("nobody"));
    });
    let file = AuthFile::open(folder.path()).unwrap();
    assert!(matches!(file.login("nous"), Some(StoredLogin::Open(_))));
    assert_eq!(file.login("xai-oauth"), None);
    let kept = read(folder.path());
    assert_eq!(kept["providers"]["nous"]["portal_base_url"], "https://x");
}

#[test]
fn a_removed_login_takes_its_copy_among_the_keys_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = json!({
        "active_provider": "nous",
        "providers": {"nous": {"access_token": "a"}},
        "credential_pool": {"nous": [
            {"access_token": "a", "auth_type": "oauth", "source": "device_code"},
            {"access_token": "k", "auth_type": "api_key", "source": "manual"},
        ]},
    });
    fs::write(folder.path().join("auth.json"), file.to_string()).unwrap();
    change(folder.path(), |file| {
        assert!(file.remove_login("nous").is_some());
    });
    let file = read(folder.path());
    assert_eq!(
        (&file["providers"], &file["active_provider"]),
        (&json!({}), &Value::Null)
    );
    let pool = file["credential_pool"]["nous"].as_array().unwrap();
    assert_eq!((pool.len(), &pool[0]["access_token"]), (1, &json!("k")));
}

#[test]
fn the_preferred_login_comes_first_and_a_profile_borrows_the_roots() {
    let folder = tempfile::tempdir().unwrap();
    change(folder.path(), |file| {
        file.keep_login("nous", &tokens("root", None), NOW);
        file.keep_login("xai-oauth", &tokens("root", None), NOW);
        file.prefer_login("xai-oauth");
    });
    let file = AuthFile::open(folder.path()).unwrap();
    assert_eq!(file.logins(), ["xai-oauth", "nous"]);
    let profile = folder.path().join("profiles/work");
    fs::create_dir_all(&profile).unwrap();
    change(&profile, |file| {
        file.keep_login("nous", &tokens("own", None), NOW);
    });
    let environment = Environment::from_pairs([("HERMES_HOME", folder.path().to_str().unwrap())]);
    let home = Home::resolve(&environment, Some("work")).unwrap();
    let used = used_logins(&home).unwrap();
    let whose = |provider: &str| {
        let mut used = used.iter();
        used.find(|used| used.provider == provider)
            .unwrap()
            .folder
            .clone()
    };
    assert_eq!(
        (whose("nous"), whose("xai-oauth")),
        (profile, folder.path().to_path_buf())
    );
}

#[test]
fn only_one_has_the_file_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let locked = AuthFile::try_lock(folder.path()).unwrap();
    assert!(locked.is_some());
    assert!(AuthFile::try_lock(folder.path()).unwrap().is_none());
    drop(locked);
    assert!(AuthFile::try_lock(folder.path()).unwrap().is_some());
}

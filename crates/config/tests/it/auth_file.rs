//! Stored keys: what is written, what is left alone, and what several processes do to each other.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use hermes_config::{
    AuthError, AuthFile, Environment, Home, KeyState, Refusal, StoredKey, used_keys,
};
use hermes_core::{Secret, Timestamp};
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

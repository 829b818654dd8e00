//! How often Discord may be asked: it says so with every answer, for buckets of routes, and all of them at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Buckets that are empty, and names of buckets, that are remembered.
const ENTRIES_MAX: usize = 2000;

#[derive(Default)]
pub(super) struct Limits(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Nothing may be asked before this.
    all: Option<Instant>,
    /// What Discord calls the bucket of a route.
    names: BTreeMap<String, String>,
    /// When an empty bucket has something in it again.
    empty: BTreeMap<String, Instant>,
}

/// What an answer says about limits.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) bucket: Option<String>,
    pub(super) remaining: Option<u64>,
    pub(super) reset_after: Option<Duration>,
    /// It was refused, for this long.
    pub(super) refused: Option<Duration>,
    /// Everything is, not only this route.
    pub(super) is_global: bool,
}

/// A route, and the one id in it that has a bucket of its own: `POST /channels/:id/messages` and `42`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    template: String,
    major: String,
}

impl Route {
    pub(super) fn of(method: &str, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or(path);
        // Which emoji it is makes no difference.
        let path = path.split_inclusive("/reactions/").next().unwrap_or(path);
        let mut template = method.to_owned();
        let mut major = String::new();
        let (mut before, mut earlier) = ("", "");
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let is_id = part.chars().all(|c| c.is_ascii_digit());
            let has_own_bucket = matches!(before, "channels" | "guilds" | "webhooks");
            let is_token = matches!(earlier, "webhooks" | "interactions");
            template.push('/');
            if is_id && has_own_bucket && major.is_empty() {
                part.clone_into(&mut major);
                template.push_str(":major");
            } else if is_id || is_token {
                template.push_str(":id");
            } else {
                template.push_str(part);
            }
            (earlier, before) = (before, part);
        }
        Self { template, major }
    }
}

impl Limits {
    /// How long a route must not be asked.
    pub(super) fn wait(&self, route: &Route) -> Option<Duration> {
        let known = self.lock();
        let now = Instant::now();
        let until = known.empty.get(&known.bucket(route)).copied();
        let until = until.max(known.all);
        until.filter(|until| *until > now).map(|until| until - now)
    }

    pub(super) fn learn(&self, route: &Route, told: &Told) {
        let mut known = self.lock();
        known.forget_old();
        if let Some(bucket) = &told.bucket {
            known.names.insert(route.template.clone(), bucket.clone());
        }
        let now = Instant::now();
        let is_empty = told.remaining == Some(0);
        let empty_for = told.refused.or(told.reset_after.filter(|_| is_empty));
        let Some(empty_for) = empty_for else {
            return;
        };
        if told.is_global {
            known.all = Some(now + empty_for);
        } else {
            let bucket = known.bucket(route);
            known.empty.insert(bucket, now + empty_for);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn bucket(&self, route: &Route) -> String {
        let name = self.names.get(&route.template).unwrap_or(&route.template);
        format!("{name} {}", route.major)
    }

    fn forget_old(&mut self) {
        if self.empty.len() >= ENTRIES_MAX {
            let now = Instant::now();
            self.empty.retain(|_, until| *until > now);
        }
        if self.names.len() >= ENTRIES_MAX {
            self.names.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(bucket: &str) -> Told {
        Told {
            bucket: Some(bucket.to_owned()),
            remaining: Some(0),
            reset_after: Some(Duration::from_secs(5)),
            ..Told::default()
        }
    }

    #[test]
    fn routes_differ_by_channel_and_not_by_message() {
        let edit = |path: &str| Route::of("PATCH", path);
        assert_eq!(
            edit("/channels/1/messages/2"),
            edit("/channels/1/messages/3")
        );
        assert_ne!(
            edit("/channels/1/messages/2"),
            edit("/channels/2/messages/2")
        );
        assert_ne!(
            edit("/channels/1/messages/2"),
            Route::of("DELETE", "/channels/1/messages/2")
        );
        let react = |path: &str| Route::of("PUT", path);
        assert_eq!(
            react("/channels/1/messages/2/reactions/%F0%9F%91%80/@me"),
            react("/channels/1/messages/3/reactions/x/@me")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_bucket_holds_up_its_channel_and_no_other() {
        let limits = Limits::default();
        let here = Route::of("POST", "/channels/1/messages");
        let elsewhere = Route::of("POST", "/channels/2/messages");
        limits.learn(&here, &empty("abc"));
        assert!(limits.wait(&here).is_some());
        assert_eq!(limits.wait(&elsewhere), None);
        // Routes of one bucket share it.
        let thread = Route::of("POST", "/channels/1/threads");
        limits.learn(
            &thread,
            &Told {
                bucket: Some("abc".to_owned()),
                ..Told::default()
            },
        );
        assert!(limits.wait(&thread).is_some());
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(limits.wait(&here), None);
        let everything = Told {
            refused: Some(Duration::from_secs(1)),
            is_global: true,
            ..Told::default()
        };
        limits.learn(&here, &everything);
        assert!(limits.wait(&elsewhere).is_some());
    }
}

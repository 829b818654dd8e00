//! The keys of one provider: which one is used next, and which ones rest because they were refused.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{BoxFuture, ModelErrorKind, Random, Secret};
use tokio::time::Instant;

/// A refused key may have been a hiccup of the provider's, or was renewed meanwhile.
const REST_AFTER_AUTH: Duration = Duration::from_secs(5 * 60);
/// Quotas are per hour or per day; asking again sooner only counts against them.
const REST_AFTER_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Which of several good keys goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The first until it is exhausted: `fill_first`.
    #[default]
    FillFirst,
    RoundRobin,
    LeastUsed,
    Random,
}

impl Strategy {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "fill_first" => Self::FillFirst,
            "round_robin" => Self::RoundRobin,
            "least_used" => Self::LeastUsed,
            "random" => Self::Random,
            _ => return None,
        })
    }
}

/// Remembers beyond one client, and beyond one process, which keys rest.
///
/// The client asks it once, when it is made, and tells it each refusal before its next request. What cannot be written
/// down is forgotten.
pub trait KeyLedger: Send + Sync + std::fmt::Debug {
    /// Returns how long a key is still to rest.
    fn rest_left(&self, provider: &str, key: &Secret) -> Option<Duration>;

    /// Writes a refusal down. Must not block the thread, whoever else holds what it writes to.
    fn refused<'a>(
        &'a self,
        provider: &'a str,
        key: &'a Secret,
        refusal: &'a KeyRefusal,
    ) -> BoxFuture<'a, ()>;
}

/// A key that the provider did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRefusal {
    pub kind: ModelErrorKind,
    /// How long it is spared.
    pub rest: Duration,
    /// The provider's words, fit to be shown.
    pub message: String,
}

#[derive(Debug)]
pub(crate) struct Pool {
    strategy: Strategy,
    random: Random,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keys: Vec<Key>,
    /// Where round robin goes on.
    next: usize,
}

#[derive(Debug)]
struct Key {
    secret: Secret,
    uses: u64,
    rests_until: Option<Instant>,
}

impl Pool {
    pub(crate) fn new(keys: &[Secret], strategy: Strategy) -> Self {
        let key = |secret: &Secret| Key {
            secret: secret.clone(),
            uses: 0,
            rests_until: None,
        };
        let state = State {
            keys: keys.iter().map(key).collect(),
            next: 0,
        };
        Self {
            strategy,
            random: Random::from_system(),
            state: Mutex::new(state),
        }
    }

    /// Picks a key. When all of them rest, the one that rests shortest: a late answer is better than none.
    pub(crate) fn pick(&self) -> Option<Secret> {
        let now = Instant::now();
        let mut state = self.state();
        let good: Vec<usize> = (0..state.keys.len())
            .filter(|index| state.keys[*index].is_good(now))
            .collect();
        let index = match self.choose(&state, &good) {
            Some(index) => index,
            None => (0..state.keys.len()).min_by_key(|index| state.keys[*index].rests_until)?,
        };
        state.next = index + 1;
        let key = &mut state.keys[index];
        key.uses += 1;
        Some(key.secret.clone())
    }

    /// Lets a key rest and returns whether another one is good.
    pub(crate) fn rest(&self, secret: &Secret, rest: Duration) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        for key in state.keys.iter_mut().filter(|key| key.secret == *secret) {
            key.rests_until = Some(now + rest);
        }
        state.keys.iter().any(|key| key.is_good(now))
    }

    fn choose(&self, state: &State, good: &[usize]) -> Option<usize> {
        match self.strategy {
            Strategy::FillFirst => good.first().copied(),
            Strategy::RoundRobin => {
                let after = good.iter().find(|index| **index >= state.next);
                after.or_else(|| good.first()).copied()
            }
            Strategy::LeastUsed => {
                let mut good = good.iter().copied();
                good.by_ref().min_by_key(|index| state.keys[*index].uses)
            }
            Strategy::Random => {
                let at = self.random.below(good.len() as u64) as usize;
                good.get(at).copied()
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a refused key rests: as long as the provider says, or as long as such refusals usually last.
pub(crate) fn rest_after(kind: ModelErrorKind, retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or(match kind {
        ModelErrorKind::Auth => REST_AFTER_AUTH,
        _ => REST_AFTER_LIMIT,
    })
}

impl Key {
    fn is_good(&self, now: Instant) -> bool {
        self.rests_until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(strategy: Strategy) -> Pool {
        let keys: Vec<Secret> = ["a", "b", "c"].map(Secret::new).into();
        Pool::new(&keys, strategy)
    }

    fn picks(pool: &Pool, count: usize) -> String {
        let pick = |_| pool.pick().unwrap().expose().to_owned();
        (0..count).map(pick).collect()
    }

    #[test]
    fn strategies_choose_as_they_are_named() {
        assert_eq!(picks(&pool(Strategy::FillFirst), 4), "aaaa");
        assert_eq!(picks(&pool(Strategy::RoundRobin), 4), "abca");
        assert_eq!(picks(&pool(Strategy::LeastUsed), 4), "abca");
        let random = picks(&pool(Strategy::Random), 200);
        assert!(['a', 'b', 'c'].iter().all(|key| random.contains(*key)));
        assert!(Pool::new(&[], Strategy::Random).pick().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_key_rests_and_comes_back() {
        let pool = pool(Strategy::FillFirst);
        let rest = rest_after(ModelErrorKind::Auth, None);
        assert!(pool.rest(&Secret::new("a"), rest));
        assert_eq!(picks(&pool, 1), "b");
        tokio::time::advance(REST_AFTER_AUTH).await;
        assert_eq!(picks(&pool, 1), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_rest_the_one_that_wakes_first_is_used() {
        let pool = pool(Strategy::FillFirst);
        let rest = |key, secs| {
            let wait = Some(Duration::from_secs(secs));
            let rest = rest_after(ModelErrorKind::RateLimit, wait);
            pool.rest(&Secret::new(key), rest)
        };
        assert!(rest("a", 30) && rest("b", 10));
        assert!(!rest("c", 20));
        assert_eq!(picks(&pool, 1), "b");
    }
}

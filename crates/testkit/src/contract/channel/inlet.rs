//! An inlet that keeps what it is given in memory.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::tool::BoxFuture;
use hermes_core::{Identity, Inlet, InletError, Update, Updates};
use tokio::sync::watch;

const WAIT_MAX: Duration = Duration::from_secs(20);

/// Keeps updates as a gateway does: known ones once, the cursor with them.
pub struct HeldInlet {
    kept: Mutex<Kept>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Each once, in the order they came.
    pub updates: Vec<Update>,
    /// All numbers, as often as they came.
    pub numbers: Vec<String>,
    pub cursor: Option<String>,
    pub connected: Vec<Identity>,
    pub heard_count: usize,
    pub passed_over: Vec<String>,
    pub refuses: bool,
    pub refused_count: usize,
}

impl Default for HeldInlet {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }
}

impl HeldInlet {
    pub fn kept(&self) -> Kept {
        self.lock().clone()
    }

    /// Keeps nothing from now on, or keeps again.
    pub fn set_refusing(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// Waits until something is so.
    pub async fn wait_for(&self, what: &str, is_so: impl Fn(&Kept) -> bool) -> Kept {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                changed.borrow_and_update();
                let kept = self.kept();
                if is_so(&kept) {
                    return kept;
                }
                let _ = changed.changed().await;
            }
        };
        match tokio::time::timeout(WAIT_MAX, waiting).await {
            Ok(kept) => kept,
            Err(_) => panic!("never: {what}; {:#?}", self.kept()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.send_modify(|version| *version += 1);
        changed
    }
}

impl Inlet for HeldInlet {
    fn accept(&self, updates: Updates) -> BoxFuture<'_, Result<(), InletError>> {
        let accepted = self.change(|kept| {
            if kept.refuses {
                kept.refused_count += 1;
                return Err(InletError("the disk is full".to_owned()));
            }
            let mut known: BTreeSet<String> = kept
                .updates
                .iter()
                .map(|update| update.id.clone())
                .collect();
            for update in updates.updates {
                kept.numbers.push(update.id.clone());
                if known.insert(update.id.clone()) {
                    kept.updates.push(update);
                }
            }
            if updates.cursor.is_some() {
                kept.cursor = updates.cursor;
            }
            Ok(())
        });
        Box::pin(async { accepted })
    }

    fn cursor(&self) -> Option<String> {
        self.lock().cursor.clone()
    }

    fn connected(&self, identity: Identity) {
        self.change(|kept| kept.connected.push(identity));
    }

    fn heard(&self) {
        self.change(|kept| kept.heard_count += 1);
    }

    fn passed_over(&self, what: &str) {
        self.change(|kept| kept.passed_over.push(what.to_owned()));
    }
}

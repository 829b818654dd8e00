//! What was learned of requests a while ago, within a limit: the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

pub(crate) struct Recent<K, V> {
    entries: HashMap<K, V>,
    /// Oldest first. A key that was removed may still stand here.
    order: VecDeque<K>,
    max: usize,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.entries.len() > self.max || self.order.len() > 2 * self.max {
            match self.order.pop_front() {
                Some(oldest) => self.entries.remove(&oldest),
                None => break,
            };
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_nothing_grows_for_ever() {
        let mut recent = Recent::new(2);
        for key in 0..3 {
            recent.insert(key, key);
        }
        assert_eq!((recent.get(&0), recent.get(&1)), (None, Some(&1)));
        for key in 0..1_000 {
            recent.insert(key, key);
            assert_eq!(recent.remove(&key), Some(key));
        }
        assert!(recent.order.len() <= 4, "{}", recent.order.len());
    }
}

//! How many tokens fit into the models of servers of one's own, as those said when they were asked for a list: kept in
//! the home's cache, so that no conversation has to ask again before it begins.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;

use hermes_config::Home;
use hermes_llm::discover::Offered;
use hermes_llm::{PROVIDERS, StatedWindows};
use hermes_os::{Access, Durability};

/// More servers than anybody starts; keeps the file small, which every start reads.
const ADDRESSES_MAX: usize = 32;
/// More models than a server of one's own has.
const MODELS_MAX: usize = 500;
/// Far above what the limits above let grow.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What was remembered. A file that cannot be read has nothing to say: the next list of models mends it.
pub fn read(home: &Home) -> StatedWindows {
    let read = || -> io::Result<StatedWindows> {
        let mut text = String::new();
        let file = fs::File::open(path(home))?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    };
    read().unwrap_or_default()
}

/// Keeps what the server at an address states of its models, in place of what it stated before. Those of hosted
/// providers are known by their names.
pub fn remember(home: &Home, base_url: &str, offered: &[Offered]) {
    let base_url = base_url.trim_end_matches('/');
    let before = read(home);
    let after = with(before.clone(), base_url, offered);
    if is_hosted(base_url) || before == after {
        return;
    }
    if let Err(error) = write(home, &after) {
        tracing::warn!(%error, "cannot remember how much fits into the models of a server");
    }
}

fn with(mut windows: StatedWindows, base_url: &str, offered: &[Offered]) -> StatedWindows {
    let models = offered.iter().take(MODELS_MAX);
    let models = models.filter_map(|one| Some((one.model.clone(), one.context_length?)));
    let models: BTreeMap<_, _> = models.filter(|(_, tokens)| *tokens > 0).collect();
    windows.remove(base_url);
    if !models.is_empty() {
        if windows.len() >= ADDRESSES_MAX {
            windows.pop_first();
        }
        windows.insert(base_url.to_owned(), models);
    }
    windows
}

fn is_hosted(base_url: &str) -> bool {
    let mut hosted = PROVIDERS.iter().filter(|provider| !provider.local);
    hosted.any(|provider| provider.base_url.trim_end_matches('/') == base_url)
}

/// Half a file is never seen: it gets its name when it is whole.
fn write(home: &Home, windows: &StatedWindows) -> io::Result<()> {
    fs::create_dir_all(home.cache())?;
    let content = serde_json::to_vec_pretty(windows)?;
    hermes_os::replace(&path(home), &content, Access::Usual, Durability::Unsynced)
}

fn path(home: &Home) -> PathBuf {
    home.cache().join("context_lengths.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(model: &str, context_length: Option<u64>) -> Offered {
        Offered {
            model: model.to_owned(),
            context_length,
        }
    }

    #[test]
    fn what_a_server_states_replaces_what_it_stated_and_addresses_stay_few() {
        let models = [offered("a", Some(4_096)), offered("b", None)];
        let windows = with(StatedWindows::new(), "http://x/v1", &models);
        assert_eq!(windows["http://x/v1"], [("a".to_owned(), 4_096)].into());
        let windows = with(windows, "http://x/v1", &[offered("a", None)]);
        assert!(windows.is_empty());
        let all = (0..2 * ADDRESSES_MAX).fold(windows, |windows, port| {
            with(windows, &format!("http://x:{port:03}/v1"), &models)
        });
        assert_eq!(all.len(), ADDRESSES_MAX);
    }
}

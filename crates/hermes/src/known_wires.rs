//! Which servers turned out to have chat completions only: kept in the home's cache, so that they are asked for more once
//! and not at every start.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;

use hermes_config::Home;
use hermes_llm::WireMemory;
use hermes_os::{Access, Durability};

/// More servers than anybody asks; keeps the file small, which every start reads.
const ADDRESSES_MAX: usize = 64;
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The addresses that were remembered. A file that cannot be read has none: they are found out again.
pub fn chat_only(home: &Home) -> BTreeSet<String> {
    let read = || -> io::Result<BTreeSet<String>> {
        let mut text = String::new();
        let file = fs::File::open(path(home))?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    };
    read().unwrap_or_default()
}

/// Writes down what is found out.
#[derive(Debug)]
pub struct KnownWires(Home);

impl KnownWires {
    pub fn of(home: &Home) -> Self {
        Self(home.clone())
    }
}

impl WireMemory for KnownWires {
    fn has_chat_only(&self, base_url: &str) {
        let mut addresses = chat_only(&self.0);
        if !addresses.insert(base_url.to_owned()) {
            return;
        }
        while addresses.len() > ADDRESSES_MAX {
            addresses.pop_first();
        }
        if let Err(error) = write(&self.0, &addresses) {
            tracing::warn!(%error, "cannot remember which API a server has");
        }
    }
}

/// Half a file is never seen: it gets its name when it is whole.
fn write(home: &Home, addresses: &BTreeSet<String>) -> io::Result<()> {
    fs::create_dir_all(home.cache())?;
    let content = serde_json::to_vec_pretty(addresses)?;
    hermes_os::replace(&path(home), &content, Access::Usual, Durability::Unsynced)
}

fn path(home: &Home) -> PathBuf {
    home.cache().join("chat_only.json")
}

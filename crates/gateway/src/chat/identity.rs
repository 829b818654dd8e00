//! One account, one process: two that receive with the same account would each get a part of the messages.
//!
//! Held across homes and profiles, by a lock that ends with its process.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_core::{ChannelError, ChannelFacts, Trouble};
use hermes_os::FileLock;
use hermes_os::lock::{self, Sharing};
use ring::digest::{SHA256, digest};

use crate::presence::{self, Holder};

/// Of the digest of an account, in bytes: nobody is to read accounts off the names of files.
const DIGEST_BYTES: usize = 8;

/// Where it is written down who receives with an account, and who we are.
#[derive(Debug, Clone)]
pub struct IdentityLock {
    path: PathBuf,
    holder: Holder,
    platform: &'static str,
}

impl IdentityLock {
    /// In a folder that all homes of a machine's user share.
    pub fn new(folder: &Path, facts: &ChannelFacts, holder: Holder) -> Self {
        let digest = digest(&SHA256, facts.account.as_bytes());
        let digest = digest.as_ref().iter().take(DIGEST_BYTES);
        let digest: String = digest.map(|byte| format!("{byte:02x}")).collect();
        Self {
            path: folder.join(format!("{}-{digest}.lock", facts.platform)),
            holder,
            platform: facts.platform,
        }
    }

    /// Takes it; an error says who has it and what to do.
    pub fn take(&self) -> Result<FileLock, ChannelError> {
        let passing = |error: std::io::Error| {
            let words = format!("`{}` cannot be locked: {error}", self.path.display());
            ChannelError::new(Trouble::Passing, words)
        };
        if let Some(folder) = self.path.parent() {
            hermes_os::make_private_folder(folder).map_err(passing)?;
        }
        let Some(held) = lock::try_lock(&self.path, Sharing::Alone).map_err(passing)? else {
            return Err(self.taken());
        };
        presence::write(held.file(), &self.holder).map_err(passing)?;
        Ok(held)
    }

    fn taken(&self) -> ChannelError {
        let name = fs::read(&self.path).ok();
        let holder: Option<Holder> = name.and_then(|name| serde_json::from_slice(&name).ok());
        let who = match holder {
            Some(holder) => format!("another gateway (pid {})", holder.pid),
            None => "another gateway".to_owned(),
        };
        let words = format!("{who} receives with this {} account", self.platform);
        ChannelError::new(Trouble::Conflict, words).with_hint(
            "end that one (`hermes gateway list` shows which profile it serves), or give this profile an account of its own",
        )
    }
}

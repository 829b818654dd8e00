//! A file with one line per request, for tests that kill processes and count afterwards.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use serde_json::json;

use super::{conversation::Conversation, http::Request};

/// Enough to recognise a message; the hash tells the rest.
const TEXT_CHARS_MAX: usize = 80;

pub(crate) struct Ledger {
    file: File,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// Appends the request in a single write, so that a kill leaves whole lines.
    pub(crate) fn record(
        &mut self,
        request: &Request,
        conversation: &Conversation,
    ) -> io::Result<()> {
        let last = conversation.last();
        let text = last.map(|last| last.text.as_str()).unwrap_or_default();
        let line = json!({
            "path": request.path,
            "body_hash": format!("{:016x}", fnv1a(&request.body)),
            "step": conversation.step(),
            "last_role": last.map(|last| last.role.name()),
            "last_text": text.chars().take(TEXT_CHARS_MAX).collect::<String>(),
        });
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

/// 64-bit FNV-1a: the same in every build, unlike the standard library's hashes.
fn fnv1a(bytes: &[u8]) -> u64 {
    let offset_basis = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(offset_basis, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

//! The two calls for which there is no safe way. All `unsafe` code of ours is here; decision 0020 says why there is any.

use std::ffi::c_void;
use std::path::Path;

pub(super) fn give_back() {
    trim_heap();
    let (Ok(program), Ok(maps)) = (
        std::env::current_exe(),
        std::fs::read_to_string("/proc/self/smaps"),
    ) else {
        return;
    };
    for mapping in untouched(&maps, &program) {
        drop_pages(mapping);
    }
}

/// Part of the program's file in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
}

/// The parts of a program that nobody can write to and nobody has written to: each page of them is as it is in the file. What
/// the loader has filled in, which is only read now too, has anonymous pages.
fn untouched(smaps: &str, program: &Path) -> Vec<Mapping> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(header) = header(line, program) {
            current = header;
        } else if let Some(bytes) = line.strip_prefix("Anonymous:") {
            let mapping = current.take();
            found.extend(mapping.filter(|_| bytes.trim() == "0 kB"));
        }
    }
    found
}

/// What a line says that begins a mapping: which one, if it is of the program and only to be read. `None` for other lines.
fn header(line: &str, program: &Path) -> Option<Option<Mapping>> {
    let mut words = line.split_ascii_whitespace();
    let (range, access) = (words.next()?, words.next()?);
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    // Offset, device, inode; a path may have spaces, but ours then simply is not found.
    let path = words.nth(3).unwrap_or_default();
    let is_ours = Path::new(path) == program && matches!(access, "r--p" | "r-xp");
    Some(is_ours.then_some(Mapping { start, end }))
}

#[expect(unsafe_code, reason = "madvise is unsafe, whatever it is told")]
fn drop_pages(mapping: Mapping) {
    let start = mapping.start as *mut c_void;
    let length = mapping.end - mapping.start;
    // SAFETY: the range is a private mapping of our own program's file without write access, none of whose pages was ever
    // written to (`untouched`), and programs are never unmapped while they run. `MADV_DONTNEED` lets the kernel forget such
    // pages and read them again from the same file, so that no byte of them changes for anybody, at any time.
    let dropped = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) };
    // It is only about memory: where it is not possible, everything goes on as before.
    _ = dropped;
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a function of C")]
fn trim_heap() {
    // SAFETY: it takes no pointer, may be called at any time from any thread, and gives back only what nobody has.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-2000 r--p 00000000 fe:00 7 /opt/hermes
Rss:                   4 kB
Anonymous:             0 kB
2000-9000 r-xp 00001000 fe:00 7 /opt/hermes
Anonymous:             0 kB
9000-a000 r--p 00008000 fe:00 7 /opt/hermes
Anonymous:             4 kB
a000-b000 rw-p 00009000 fe:00 7 /opt/hermes
Anonymous:             0 kB
b000-c000 r-xp 00000000 fe:00 8 /usr/lib/libc.so.6
Anonymous:             0 kB
c000-d000 r--p 00000000 00:00 0
Anonymous:             0 kB
d000-e000 r-xp 00001000 fe:00 7 /opt/hermes (deleted)
Anonymous:             0 kB
";

    #[test]
    fn only_what_is_as_in_the_file_is_dropped() {
        let found = untouched(SMAPS, Path::new("/opt/hermes"));
        let mapping = |start, end| Mapping { start, end };
        let program = [mapping(0x1000, 0x2000), mapping(0x2000, 0x9000)];
        assert_eq!(found[..2], program);
        assert!(!found.contains(&mapping(0x9000, 0xa000)), "relocated");
        assert_eq!(
            untouched("nonsense\nAnonymous: 0 kB\n", Path::new("/opt/hermes")),
            []
        );
    }
}

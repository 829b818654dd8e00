//! Who could still write into the pipe that is our standard input.

/// Returns whether another program than our own ancestors holds the other end, as in `grep … | hermes`. What a parent
/// holds may be left open by accident; what a neighbour holds was put there by somebody who wrote a pipeline.
#[cfg(target_os = "linux")]
pub fn is_in_pipeline() -> bool {
    let Ok(pipe) = std::fs::read_link("/proc/self/fd/0") else {
        return false;
    };
    let related = ancestors();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut strangers = numbers.filter(|process| !related.contains(process));
    strangers.any(|process| writes_to(process, &pipe))
}

/// Without a `/proc` nobody can tell; a pipeline is the likelier.
#[cfg(not(target_os = "linux"))]
pub fn is_in_pipeline() -> bool {
    true
}

/// This process, its parent, and so on.
#[cfg(target_os = "linux")]
fn ancestors() -> Vec<u32> {
    /// Deeper than any tree of processes that somebody starts us from.
    const DEPTH_MAX: usize = 256;
    let mut line = vec![std::process::id()];
    while let Some(parent) = line.last().copied().and_then(parent_of) {
        if parent == 0 || line.len() == DEPTH_MAX {
            break;
        }
        line.push(parent);
    }
    line
}

#[cfg(target_os = "linux")]
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn writes_to(process: u32, pipe: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    /// How the link of a descriptor says that it is open for writing.
    const WRITABLE: u32 = 0o200;
    let open = std::fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let is_it =
        |link: &std::path::Path| std::fs::read_link(link).is_ok_and(|target| target == pipe);
    let is_writable = |link: &std::path::Path| {
        std::fs::symlink_metadata(link).is_ok_and(|meta| meta.permissions().mode() & WRITABLE != 0)
    };
    open.map(|entry| entry.path())
        .any(|link| is_it(&link) && is_writable(&link))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_ancestors_ends_at_the_first_process() {
        let line = ancestors();
        assert_eq!(line.first(), Some(&std::process::id()));
        assert!(line.len() > 1 && line.len() < 256, "{line:?}");
    }
}

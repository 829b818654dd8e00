//! Names under which the model sees remote tools: `mcp__<server>__<tool>`.

/// Providers refuse longer names.
const CHARS_MAX: usize = 64;

const HASH_CHARS: usize = 8;

/// Builds the name of a tool. Whatever a provider would refuse becomes `_`; what is too long ends in a hash instead.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let name = format!("mcp__{}__{}", sanitised(server), sanitised(tool));
    if name.len() <= CHARS_MAX {
        return name;
    }
    with_hash(&name, server, tool)
}

/// Builds a second name for a tool whose first one is taken by another tool.
pub(crate) fn distinct_tool_name(server: &str, tool: &str) -> String {
    let name = format!("mcp__{}__{}", sanitised(server), sanitised(tool));
    with_hash(&name, server, tool)
}

/// Cuts the name and appends a hash of what it was made from, so that different tools stay different.
fn with_hash(name: &str, server: &str, tool: &str) -> String {
    let kept = name.len().min(CHARS_MAX - HASH_CHARS - 1);
    format!("{}_{:08x}", &name[..kept], hash(server, tool))
}

/// Replaces every character that is not an ASCII letter, a digit or `_`; the result is ASCII.
fn sanitised(part: &str) -> String {
    part.chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        })
        .collect()
}

/// FNV-1a: the same on every machine and in every release, because sessions remember tool names.
fn hash(server: &str, tool: &str) -> u32 {
    const SEPARATOR: u8 = 0;
    let bytes = server.bytes().chain([SEPARATOR]).chain(tool.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_server_and_tool() {
        assert_eq!(tool_name("files", "read"), "mcp__files__read");
        assert_eq!(
            tool_name("my-files.v2", "rëad file"),
            "mcp__my_files_v2__r_ad_file"
        );
    }

    #[test]
    fn a_long_name_is_cut_and_stays_unique() {
        let long = "a_very_long_tool_name_that_goes_on_and_on_and_on_for_ever_and_ever";
        let (first, second) = (
            tool_name("server", &format!("{long}_1")),
            tool_name("server", &format!("{long}_2")),
        );
        assert_eq!((first.len(), second.len()), (CHARS_MAX, CHARS_MAX));
        assert_ne!(first, second);
        assert!(first.starts_with("mcp__server__a_very_long"));
    }

    #[test]
    fn two_tools_that_sanitise_to_one_name_get_distinct_ones() {
        assert_eq!(tool_name("s", "a.b"), tool_name("s", "a-b"));
        assert_ne!(
            distinct_tool_name("s", "a.b"),
            distinct_tool_name("s", "a-b")
        );
    }
}

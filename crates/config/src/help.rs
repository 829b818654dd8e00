//! What `defaults.yaml` says about a setting, in the comments around it.

use crate::layer::DEFAULTS;

/// Returns the comment behind a setting, or else the one above it or around its section.
pub fn help(key: &str) -> Option<String> {
    help_in(DEFAULTS, key)
}

fn help_in(text: &str, key: &str) -> Option<String> {
    let mut found = None;
    // Sections around the line, by their indentation.
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut above = Vec::new();
    for line in text.lines() {
        let words = line.trim_start();
        if let Some(comment) = words.strip_prefix('#') {
            above.push(comment.trim());
            continue;
        }
        if let Some((name, rest)) = words.split_once(':') {
            let indent = line.len() - words.len();
            path.retain(|(outer, _)| *outer < indent);
            path.push((indent, name));
            if is_at(&path, key) {
                found = comment(rest, &above).or(found);
            }
        }
        above.clear();
    }
    found
}

/// Whether the line is about the setting, or about a section around it.
fn is_at(path: &[(usize, &str)], key: &str) -> bool {
    let mut names = key.split('.');
    path.iter().all(|(_, name)| names.next() == Some(name))
}

fn comment(rest: &str, above: &[&str]) -> Option<String> {
    if let Some((_, behind)) = rest.split_once(" # ") {
        return Some(behind.trim().to_owned());
    }
    let is_heading = above.iter().any(|line| line.contains('─'));
    (!above.is_empty() && !is_heading).then(|| above.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_explained_by_the_nearest_comment() {
        let text = "# ── Heading ──\n\n# About all.\n# And more.\na:\n  b: 1   # behind\n  c: 2\nd: {e: 1}  # flow\nf: 'x'\n";
        let help = |key| help_in(text, key);
        assert_eq!(help("a").as_deref(), Some("About all. And more."));
        assert_eq!(help("a.b").as_deref(), Some("behind"));
        assert_eq!(help("a.c").as_deref(), Some("About all. And more."));
        assert_eq!(help("d.e").as_deref(), Some("flow"));
        assert_eq!(help("f"), None);
        assert_eq!(help("unknown"), None);
    }

    #[test]
    fn the_built_in_settings_are_found() {
        let turns = super::help("agent.max_turns");
        assert_eq!(turns.as_deref(), Some("model requests in one turn"));
    }
}

//! The known name that a mistyped one probably meant.

use crate::yaml::{Content, Node};

/// Returns the closest of the settings beside `name`, or the one setting elsewhere that has exactly this name.
///
/// `section` is the path of the section `name` stands in, and `defaults` the tree of known settings.
pub(crate) fn nearest(defaults: &Node, section: &[String], name: &str) -> Option<String> {
    let beside = defaults.find(section).and_then(|siblings| {
        siblings
            .entries()
            .map(|entry| (distance(&entry.key, name), &entry.key))
            .filter(|(distance, _)| *distance <= tolerance(name))
            .min()
            .map(|(_, key)| join(section, key))
    });
    beside.or_else(|| {
        let mut elsewhere = Vec::new();
        collect_named(defaults, name, &mut Vec::new(), &mut elsewhere);
        match elsewhere.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    })
}

fn join(section: &[String], name: &str) -> String {
    let mut path = section.to_vec();
    path.push(name.to_owned());
    path.join(".")
}

/// Returns how many typing errors a name of this length may have.
fn tolerance(name: &str) -> usize {
    (name.chars().count() / 3).clamp(1, 3)
}

fn collect_named(node: &Node, name: &str, path: &mut Vec<String>, found: &mut Vec<String>) {
    for entry in node.entries() {
        if entry.key == name {
            found.push(join(path, name));
        }
        if matches!(entry.value.content, Content::Map(_)) {
            path.push(entry.key.clone());
            collect_named(&entry.value, name, path, found);
            path.pop();
        }
    }
}

/// Counts the letters to insert, remove, replace or swap with a neighbour to turn one name into the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, left_char) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, right_char) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(left_char != *right_char);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swapped =
                column > 0 && previous == Some(*right_char) && right[column - 1] == left_char;
            if is_swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
        previous = Some(left_char);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_typing_errors() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("max_turn", "max_turns", 1),
            ("mdoel", "model", 1),
            ("timeout", "tiemouts", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn the_nearest_name_is_beside_or_elsewhere() {
        let defaults = crate::yaml::parse("agent: {max_turns: 1}\nterminal: {timeout: 1}\n")
            .unwrap()
            .unwrap();
        let section = |name: &str| vec![name.to_owned()];
        assert_eq!(
            nearest(&defaults, &section("agent"), "max_turn").as_deref(),
            Some("agent.max_turns")
        );
        assert_eq!(
            nearest(&defaults, &section("agent"), "timeout").as_deref(),
            Some("terminal.timeout")
        );
        assert_eq!(nearest(&defaults, &[], "agnet").as_deref(), Some("agent"));
        assert_eq!(nearest(&defaults, &[], "zzz"), None);
    }
}

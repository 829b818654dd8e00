//! Decides which calls of a reply run side by side.

use std::path::Path;

use hermes_core::Parallel;

/// Calls that run at once, at most: enough to hide waiting, few enough not to swamp the machine.
const SEGMENT_CALLS_MAX: usize = 8;

/// Splits calls into segments. Segments run one after the other, the calls of one together; the order is kept.
pub(super) fn segments<T>(calls: Vec<T>, parallel: impl Fn(&T) -> Parallel) -> Vec<Vec<T>> {
    let mut segments: Vec<Vec<T>> = Vec::new();
    let mut open: Vec<Parallel> = Vec::new();
    for call in calls {
        let rule = parallel(&call);
        let joins = may_join(open.iter(), &rule);
        match segments.last_mut() {
            Some(segment) if joins && !open.is_empty() => segment.push(call),
            _ => {
                segments.push(vec![call]);
                open.clear();
            }
        }
        open.push(rule);
    }
    segments
}

/// Returns whether a call may run beside those that run already.
pub(super) fn may_join<'a>(
    mut running: impl ExactSizeIterator<Item = &'a Parallel>,
    rule: &Parallel,
) -> bool {
    running.len() < SEGMENT_CALLS_MAX && running.all(|other| may_share(other, rule))
}

fn may_share(left: &Parallel, right: &Parallel) -> bool {
    match (left, right) {
        (Parallel::Never, _) | (_, Parallel::Never) => false,
        (Parallel::Always, _) | (_, Parallel::Always) => true,
        (Parallel::Reads(_), Parallel::Reads(_)) => true,
        (
            Parallel::Reads(left) | Parallel::Writes(left),
            Parallel::Reads(right) | Parallel::Writes(right),
        ) => left
            .iter()
            .all(|left| right.iter().all(|right| !overlap(left, right))),
    }
}

/// Returns whether one path is the other or lies inside it.
fn overlap(left: &Path, right: &Path) -> bool {
    left.starts_with(right) || right.starts_with(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Parallel {
        match text.split_once(' ') {
            Some(("read", path)) => Parallel::Reads(vec![path.into()]),
            Some(("write", path)) => Parallel::Writes(vec![path.into()]),
            _ if text == "any" => Parallel::Always,
            _ => Parallel::Never,
        }
    }

    fn check(calls: &[&str], expected: &[&[&str]]) {
        assert_eq!(
            segments(calls.to_vec(), |call| rule(call)),
            expected,
            "{calls:?}"
        );
    }

    #[test]
    fn safe_neighbours_run_together_and_the_rest_are_barriers() {
        check(
            &["any", "any", "alone", "any"],
            &[&["any", "any"], &["alone"], &["any"]],
        );
        check(&["alone", "alone"], &[&["alone"], &["alone"]]);
        check(&[], &[]);
    }

    #[test]
    fn readers_share_a_path_and_writers_do_not() {
        check(&["read /a", "read /a"], &[&["read /a", "read /a"]]);
        check(&["read /a", "write /a"], &[&["read /a"], &["write /a"]]);
        check(&["write /a", "write /b"], &[&["write /a", "write /b"]]);
        check(&["write /a/b", "read /a"], &[&["write /a/b"], &["read /a"]]);
        check(&["write /ab", "read /a"], &[&["write /ab", "read /a"]]);
    }

    #[test]
    fn a_segment_has_a_limit() {
        let planned = segments(vec!["any"; 20], |call| rule(call));
        assert_eq!(planned.iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 4]);
    }
}

//! How alike two lines are: twice the characters they share in order, found longest piece first, by all characters.

/// Longer lines are alike only when they are equal.
const CHARS_MAX: usize = 1000;

/// Comparisons of characters one search may cost: about a second.
const WORK_MAX: usize = 400_000_000;

/// Compares lines until it has worked too much; from then on nothing is alike.
pub(super) struct Comparer {
    work_left: usize,
}

impl Comparer {
    pub(super) fn new() -> Self {
        Self {
            work_left: WORK_MAX,
        }
    }

    pub(super) fn is_alike(&mut self, left: &str, right: &str, ratio_min: f64) -> bool {
        left == right || self.ratio(left, right) >= ratio_min
    }

    /// Returns a number between 0 (nothing shared) and 1 (equal).
    pub(super) fn ratio(&mut self, left: &str, right: &str) -> f64 {
        let total = left.chars().count() + right.chars().count();
        match total {
            0 => 1.0,
            _ => 2.0 * self.shared(left, right) as f64 / total as f64,
        }
    }

    /// Counts the characters that both have in the same order.
    pub(super) fn shared(&mut self, left: &str, right: &str) -> usize {
        if left == right {
            return left.chars().count();
        }
        let left: Vec<char> = left.chars().take(CHARS_MAX + 1).collect();
        let right: Vec<char> = right.chars().take(CHARS_MAX + 1).collect();
        if left.len() > CHARS_MAX || right.len() > CHARS_MAX {
            return 0;
        }
        let mut shared = 0;
        let mut open = vec![(left.as_slice(), right.as_slice())];
        while let Some((left, right)) = open.pop() {
            let Some(work_left) = self.work_left.checked_sub(left.len() * right.len()) else {
                return 0;
            };
            self.work_left = work_left;
            let piece = longest_shared(left, right);
            if piece.chars == 0 {
                continue;
            }
            shared += piece.chars;
            open.push((&left[..piece.left], &right[..piece.right]));
            open.push((
                &left[piece.left + piece.chars..],
                &right[piece.right + piece.chars..],
            ));
        }
        shared
    }
}

struct Piece {
    left: usize,
    right: usize,
    chars: usize,
}

/// Finds the longest run of characters that both contain; of equals, the first.
fn longest_shared(left: &[char], right: &[char]) -> Piece {
    let mut longest = Piece {
        left: 0,
        right: 0,
        chars: 0,
    };
    // Lengths of the runs that end at each character of `right`, for the previous and this one of `left`.
    let mut previous = vec![0; right.len() + 1];
    let mut current = previous.clone();
    for (i, l) in left.iter().enumerate() {
        for (j, r) in right.iter().enumerate() {
            current[j + 1] = if l == r { previous[j] + 1 } else { 0 };
            if current[j + 1] > longest.chars {
                let chars = current[j + 1];
                longest = Piece {
                    left: i + 1 - chars,
                    right: j + 1 - chars,
                    chars,
                };
            }
        }
        std::mem::swap(&mut previous, &mut current);
    }
    longest
}

/// Returns whether so few characters occur in both that the ratio cannot reach the minimum; cheap.
pub(super) fn is_hopeless(left: &str, right: &str, ratio_min: f64) -> bool {
    let (left_len, right_len) = (left.len(), right.len());
    let total = (left_len + right_len) as f64;
    if 2.0 * left_len.min(right_len) as f64 / total < ratio_min {
        return true;
    }
    let mut counts = [0_i32; 256];
    for byte in left.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let mut both = 0;
    for byte in right.bytes() {
        let count = &mut counts[usize::from(byte)];
        both += usize::from(*count > 0);
        *count -= 1;
    }
    2.0 * (both as f64) / total < ratio_min
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_a_share_of_all_characters() {
        let mut comparer = Comparer::new();
        for (left, right, expected) in [
            ("", "", 1.0),
            ("abc", "abc", 1.0),
            ("abc", "xyz", 0.0),
            ("abcd", "bcde", 0.75),
            ("private Thread", "private volatile Thread", 28.0 / 37.0),
        ] {
            let ratio = comparer.ratio(left, right);
            assert!((ratio - expected).abs() < 1e-9, "{left} {right}: {ratio}");
        }
    }

    #[test]
    fn the_work_is_limited() {
        let mut comparer = Comparer { work_left: 10 };
        assert!(comparer.ratio("abc", "abd") > 0.0);
        assert_eq!(comparer.ratio("abc", "abd"), 0.0);
        assert!(comparer.is_alike("same", "same", 0.8));
    }
}

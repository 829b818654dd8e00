//! What this process has in memory, and how it gives back what it does not need.
//!
//! A process that runs for months has bursts: what was allocated in one stays with its allocator, and what was used of the
//! program once stays mapped, in pieces of 64 KB around it. Start at [`Keeper`].

#[cfg(target_os = "linux")]
mod give_back;

/// Growth that is worth giving something back for: less comes and goes all the time.
const GROWTH_BYTES_MIN: u64 = 4 << 20;
/// A process that is larger than it once was tries again after so many looks; after twice as many where that did not help,
/// up to the most.
const LOOKS_BETWEEN: u32 = 5;
const LOOKS_BETWEEN_MAX: u32 = 100;

/// What the process has in memory, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        pages.checked_mul(rustix::param::page_size() as u64)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Keeps a process small that is there for long. It is asked every few seconds ([`Keeper::look`]).
#[derive(Debug, Default)]
pub struct Keeper {
    last: Option<Given>,
    /// The least that was ever in memory after something was given back.
    least: Option<u64>,
    looks_between: u32,
}

/// The last time that something was given back.
#[derive(Debug, Clone, Copy)]
struct Given {
    before: u64,
    /// What was in memory at the look behind it: what is used all the time is back by then.
    after: Option<u64>,
    looks_since: u32,
}

impl Keeper {
    /// Gives back what is not needed, if the process has grown by a quarter since that was done last, or is still larger than
    /// it once was: a burst is over some time after it was noticed. Takes some milliseconds then.
    pub fn look(&mut self) {
        if self.is_due(resident_bytes()) {
            give_back();
        }
    }

    fn is_due(&mut self, now: Option<u64>) -> bool {
        let Some(now) = now else {
            return false;
        };
        let is_due = match &mut self.last {
            None => true,
            Some(last) => {
                last.looks_since += 1;
                let after = *last.after.get_or_insert_with(|| {
                    let has_helped = has_grown(last.before, now);
                    self.looks_between = if has_helped {
                        LOOKS_BETWEEN
                    } else {
                        (self.looks_between * 2).min(LOOKS_BETWEEN_MAX)
                    };
                    now
                });
                let least = *self.least.insert(self.least.unwrap_or(after).min(after));
                let has_waited = last.looks_since >= self.looks_between;
                has_grown(now, after) || (has_waited && has_grown(now, least))
            }
        };
        if is_due {
            self.looks_between = self.looks_between.max(LOOKS_BETWEEN);
            self.last = Some(Given {
                before: now,
                after: None,
                looks_since: 0,
            });
        }
        is_due
    }
}

fn has_grown(now: u64, before: u64) -> bool {
    now > before + (before / 4).max(GROWTH_BYTES_MIN)
}

/// Gives the system back what is free in the heap, and the pages of the program that can be read again from its file. Nothing
/// on other systems than Linux.
pub fn give_back() {
    #[cfg(target_os = "linux")]
    give_back::give_back();
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn what_is_needed_all_the_time_is_given_back_once() {
        let mut keeper = Keeper::default();
        assert!(keeper.is_due(Some(28 * MB)), "after the start");
        for _ in 0..1_000 {
            assert!(!keeper.is_due(Some(10 * MB)), "it is back, and needed");
        }
        assert!(!keeper.is_due(Some(13 * MB)));
        assert!(!keeper.is_due(None), "nobody tells");
    }

    #[test]
    fn a_burst_is_forgotten_also_when_it_ends_after_it_was_noticed() {
        let mut keeper = Keeper::default();
        assert!(keeper.is_due(Some(28 * MB)));
        assert!(!keeper.is_due(Some(10 * MB)));
        assert!(keeper.is_due(Some(100 * MB)), "it begins");
        let looks = (1..).find(|_| keeper.is_due(Some(90 * MB)));
        let looks = looks.unwrap_or_default();
        assert!(
            looks <= 2 * LOOKS_BETWEEN,
            "{looks}: nothing of it was free yet"
        );
        for _ in 0..LOOKS_BETWEEN_MAX {
            assert!(!keeper.is_due(Some(11 * MB)), "it is over");
        }
    }

    #[test]
    fn who_needs_more_for_good_is_left_in_peace_more_and_more() {
        let mut keeper = Keeper::default();
        keeper.is_due(Some(28 * MB));
        keeper.is_due(Some(10 * MB));
        let tries = (0..10 * LOOKS_BETWEEN_MAX).filter(|_| keeper.is_due(Some(60 * MB)));
        let tries = tries.count();
        assert!((8..20).contains(&tries), "{tries}");
    }

    /// Runs its code and reads its constants afterwards as before: all of it is read again from the file.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_gave_back_its_program_goes_on() {
        let heap: Vec<u8> = (0..32 * MB).map(|at| at as u8).collect();
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let before = sum(&heap);
        let words = "words that stand in the program".to_owned();
        let threads = [0; 4].map(|_| {
            std::thread::spawn(|| {
                for _ in 0..10 {
                    give_back();
                    assert_eq!(format!("{:?}", Some(1.5)), "Some(1.5)");
                }
            })
        });
        for thread in threads {
            thread.join().expect("it goes on");
        }
        assert_eq!(sum(&heap), before);
        assert_eq!(words, "words that stand in the program");
    }

    /// What is in use behind it keeps the allocator from giving it back by itself.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn what_a_burst_left_in_the_heap_is_given_back() {
        let resident = || resident_bytes().expect("the system tells");
        let mut burst: Vec<Vec<u8>> = (0..64 * 1_024).map(|_| vec![1; 1_024]).collect();
        let last = burst.pop();
        drop(burst);
        let full = resident();
        give_back();
        let now = resident();
        assert!(
            now + 32 * MB < full,
            "{} MB, then {} MB",
            full / MB,
            now / MB
        );
        assert!(last.is_some());
    }
}

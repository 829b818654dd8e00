//! What this process has in memory, and how it gives back what it does not need.
//!
//! A process that runs for months has bursts: what was allocated in one stays with its allocator, and what was used of the
//! program once stays mapped, in pieces of 64 KB around it. Start at [`Keeper`].

#[cfg(target_os = "linux")]
mod give_back;

/// Growth that is worth giving something back for: less comes and goes all the time.
const GROWTH_BYTES_MIN: u64 = 4 << 20;

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
    /// What was in memory at the look behind the last time: what is used all the time is back by then.
    needed: Option<u64>,
    has_given: bool,
}

impl Keeper {
    /// Gives back what is not needed, if the process has grown by a quarter since that was done last. Takes some
    /// milliseconds then.
    pub fn look(&mut self) {
        if self.is_due(resident_bytes()) {
            give_back();
        }
    }

    fn is_due(&mut self, now: Option<u64>) -> bool {
        let Some(now) = now else {
            return false;
        };
        if std::mem::take(&mut self.has_given) {
            self.needed = Some(now);
        }
        let due = match self.needed {
            Some(needed) => now > needed + (needed / 4).max(GROWTH_BYTES_MIN),
            None => true,
        };
        self.has_given = due;
        due
    }
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
        for _ in 0..10 {
            assert!(!keeper.is_due(Some(10 * MB)), "it is back, and needed");
        }
        assert!(!keeper.is_due(Some(13 * MB)));
        assert!(keeper.is_due(Some(100 * MB)), "a burst");
        assert!(!keeper.is_due(Some(60 * MB)), "it still goes on");
        assert!(!keeper.is_due(Some(74 * MB)));
        assert!(keeper.is_due(Some(76 * MB)));
        assert!(!keeper.is_due(None), "nobody tells");
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

//! What one document may take. Whoever made it may mean harm: a few bytes can stand for any amount of work.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// More than a book of thousands of pages has.
const OBJECTS_MAX: usize = 5_000_000;
/// Bytes that come out of compressed streams, all together.
const DECODED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Somebody waits for the text.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Asking for the time costs more than reading an object.
const OBJECTS_BETWEEN_LOOKS: usize = 4096;

/// Counts down; once it is spent, it stays so, and everything that asks ends.
pub(super) struct Budget {
    objects: Cell<usize>,
    decoded_bytes: Cell<usize>,
    deadline: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            objects: Cell::new(OBJECTS_MAX),
            decoded_bytes: Cell::new(DECODED_BYTES_MAX),
            deadline: Instant::now() + TIME_MAX,
        }
    }

    /// Counts one object; `None` when there may be no more.
    pub(super) fn take_object(&self) -> Option<()> {
        let left = self.objects.get().checked_sub(1)?;
        let is_late = left % OBJECTS_BETWEEN_LOOKS == 0 && Instant::now() > self.deadline;
        self.objects.set(if is_late { 0 } else { left });
        Some(())
    }

    pub(super) fn take_decoded(&self, bytes: usize) {
        let left = self.decoded_bytes.get().saturating_sub(bytes);
        self.decoded_bytes.set(left);
        if Instant::now() > self.deadline {
            self.objects.set(0);
        }
    }

    pub(super) fn decoded_bytes_left(&self) -> usize {
        self.decoded_bytes.get()
    }

    pub(super) fn is_spent(&self) -> bool {
        self.objects.get() == 0 || self.decoded_bytes.get() == 0
    }
}

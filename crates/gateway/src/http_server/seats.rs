//! The connections of a listener. When there is no room for another, one of those that ask nothing has to go: whoever opens
//! connections and says nothing keeps nobody else out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::CancellationToken;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for so many connections.
pub(super) struct Seats {
    room: Arc<Semaphore>,
    taken: Mutex<HashMap<u64, Arc<Seat>>>,
    /// Grows with everything that happens, and orders it.
    now: AtomicU64,
}

/// The place of one connection.
pub(super) struct Seat {
    number: u64,
    /// Requests that are not answered to the end.
    asking: AtomicUsize,
    /// When it last asked something, or came.
    active: AtomicU64,
    leave: CancellationToken,
    seats: Arc<Seats>,
    _room: OwnedSemaphorePermit,
}

/// A request that is being answered.
pub(super) struct Asking(Arc<Seat>);

impl Seats {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            room: Arc::new(Semaphore::new(count)),
            taken: Mutex::default(),
            now: AtomicU64::default(),
        })
    }

    /// Takes a place. Where none is free, the connection that has asked nothing for longest leaves; where all ask, this waits.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Arc<Seat>> {
        if self.room.available_permits() == 0 {
            self.let_one_go();
        }
        let room = Arc::clone(&self.room).acquire_owned().await.ok()?;
        let number = self.tick();
        let seat = Arc::new(Seat {
            number,
            asking: AtomicUsize::default(),
            active: AtomicU64::new(number),
            leave: CancellationToken::new(),
            seats: Arc::clone(self),
            _room: room,
        });
        self.lock().insert(number, Arc::clone(&seat));
        Some(seat)
    }

    fn let_one_go(&self) {
        let taken = self.lock();
        let silent = taken
            .values()
            .filter(|seat| seat.asking.load(Ordering::SeqCst) == 0 && !seat.leave.is_cancelled());
        let longest = silent.min_by_key(|seat| seat.active.load(Ordering::SeqCst));
        if let Some(seat) = longest {
            seat.leave.cancel();
        }
    }

    fn tick(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Seat>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Waits until others need the place more.
    pub(super) async fn must_leave(&self) {
        self.leave.cancelled().await;
    }

    /// Notes that something is asked, until what is returned is dropped.
    pub(super) fn ask(self: &Arc<Self>) -> Asking {
        self.asking.fetch_add(1, Ordering::SeqCst);
        Asking(Arc::clone(self))
    }

    /// Gives the place back.
    pub(super) fn give_back(&self) {
        self.seats.lock().remove(&self.number);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.active.store(self.0.seats.tick(), Ordering::SeqCst);
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_asks_nothing_makes_room_and_who_asks_stays() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        let asking = first.ask();
        let leaving = async {
            second.must_leave().await;
            second.give_back();
            drop(second);
        };
        let (third, ()) = tokio::join!(seats.take(), leaving);
        assert!(third.is_some());
        assert!(!first.leave.is_cancelled());
        drop(asking);
    }
}

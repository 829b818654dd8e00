//! The connections of a listener. When there is no room for another, one of those that ask nothing has to go: whoever opens
//! connections and says nothing keeps nobody else out, nor does who begins a request and never comes to its end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::CancellationToken;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// While there is no room, a request has to be here by then: a picture over a slow line takes as long.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Room for so many connections.
pub(super) struct Seats {
    room: Arc<Semaphore>,
    taken: Mutex<HashMap<u64, Arc<Seat>>>,
    /// The number of the next seat.
    next: AtomicU64,
    /// When the first could come: times are told from then on.
    began: Instant,
    /// One that asked something has its answer.
    answered: Notify,
}

/// The place of one connection.
pub(super) struct Seat {
    number: u64,
    /// Requests that are here, and not answered to the end.
    asking: AtomicUsize,
    /// When it last had an answer, or came: in microseconds.
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
            next: AtomicU64::default(),
            began: Instant::now(),
            answered: Notify::new(),
        })
    }

    /// Takes a place. Where none is free, the connection that has asked nothing for longest leaves; where all ask, this waits.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let room = loop {
            let answered = self.answered.notified();
            if self.room.available_permits() == 0 {
                self.let_some_go();
            }
            tokio::select! {
                room = Arc::clone(&self.room).acquire_owned() => break room.ok()?,
                () = answered => {}
            }
        };
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let seat = Arc::new(Seat {
            number,
            asking: AtomicUsize::default(),
            active: AtomicU64::new(self.now()),
            leave: CancellationToken::new(),
            seats: Arc::clone(self),
            _room: room,
        });
        self.lock().insert(number, Arc::clone(&seat));
        Some(seat)
    }

    /// Has the one leave that asked nothing for longest, and those with it that have had time enough.
    fn let_some_go(&self) {
        let taken = self.lock();
        let is_silent = |seat: &&Arc<Seat>| seat.asking.load(Ordering::SeqCst) == 0;
        let mut silent: Vec<_> = taken.values().filter(is_silent).collect();
        silent.sort_by_key(|seat| (seat.active.load(Ordering::SeqCst), seat.number));
        if silent.iter().any(|seat| seat.leave.is_cancelled()) {
            // Those are about to make room.
            return;
        }
        let late = self.now().saturating_sub(SILENCE_MAX.as_micros() as u64);
        for (at, seat) in silent.into_iter().enumerate() {
            if at == 0 || seat.active.load(Ordering::SeqCst) < late {
                seat.leave.cancel();
            }
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
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
        let seats = &self.0.seats;
        self.0.active.store(seats.now(), Ordering::SeqCst);
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
        seats.answered.notify_waiters();
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

    #[tokio::test(start_paused = true)]
    async fn those_who_had_time_enough_leave_together() {
        let seats = Seats::new(3);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        tokio::time::advance(SILENCE_MAX * 2).await;
        let third = seats.take().await.unwrap();
        seats.let_some_go();
        assert!(first.leave.is_cancelled() && second.leave.is_cancelled());
        assert!(!third.leave.is_cancelled());
    }

    #[tokio::test]
    async fn who_has_its_answer_makes_room_for_who_waits() {
        let seats = Seats::new(1);
        let first = seats.take().await.unwrap();
        let asking = first.ask();
        let leaving = async {
            tokio::task::yield_now().await;
            assert!(!first.leave.is_cancelled());
            drop(asking);
            first.must_leave().await;
            first.give_back();
            drop(first);
        };
        let (second, ()) = tokio::join!(seats.take(), leaving);
        assert!(second.is_some());
    }
}

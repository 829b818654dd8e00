//! Room for turns: how many run at a time, and who waits for that. Knows nothing of lanes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Seats for turns. Their number may change while some are taken.
pub(super) struct Room(Mutex<Seats>);

struct Seats {
    max: usize,
    taken: usize,
    /// First come, first served.
    waiting: VecDeque<oneshot::Sender<Seat>>,
}

/// A place in the room; it is free again when this is dropped.
pub(super) struct Seat(Arc<Room>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.seats().taken -= 1;
        self.0.admit();
    }
}

impl Room {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Seats {
            max,
            taken: 0,
            waiting: VecDeque::new(),
        })))
    }

    /// A seat, if one is free and nobody waits for it.
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Seat> {
        let mut seats = self.seats();
        let is_free = seats.taken < seats.max && seats.waiting.is_empty();
        is_free.then(|| self.seat(&mut seats))
    }

    /// Waits in line for a seat. The place in the line is lost with the future.
    pub(super) fn take(self: &Arc<Self>) -> impl Future<Output = Option<Seat>> + Send + 'static {
        let (sender, seat) = oneshot::channel();
        self.seats().waiting.push_back(sender);
        self.admit();
        async move { seat.await.ok() }
    }

    /// A seat for who got up from one, also where none is free: what goes on by itself cannot be kept waiting, and nobody new
    /// comes in before there is room again.
    pub(super) fn take_back(self: &Arc<Self>) -> Seat {
        let mut seats = self.seats();
        self.seat(&mut seats)
    }

    pub(super) fn resize(self: &Arc<Self>, max: usize) {
        self.seats().max = max;
        self.admit();
    }

    /// Lets in whoever waits, as far as there is room.
    fn admit(self: &Arc<Self>) {
        while let Some((next, seat)) = self.next() {
            // Who does not wait any more leaves the seat to the next.
            drop(next.send(seat));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<Seat>, Seat)> {
        let mut seats = self.seats();
        seats.waiting.retain(|waiting| !waiting.is_closed());
        if seats.taken >= seats.max {
            return None;
        }
        let next = seats.waiting.pop_front()?;
        Some((next, self.seat(&mut seats)))
    }

    fn seat(self: &Arc<Self>, seats: &mut Seats) -> Seat {
        seats.taken += 1;
        Seat(Arc::clone(self))
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn seats_go_to_those_who_wait_in_their_order() {
        let room = Room::new(1);
        let first = room.try_take().expect("a seat");
        let (mut second, mut third) = (Box::pin(room.take()), Box::pin(room.take()));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(room.try_take().is_none(), "it is the second's");
        assert!(third.as_mut().now_or_never().is_none());
        let second = second.as_mut().now_or_never().flatten().expect("its turn");
        drop(second);
        assert!(third.as_mut().now_or_never().flatten().is_some());
        assert!(room.try_take().is_some());
    }

    #[test]
    fn who_waits_no_more_takes_no_seat() {
        let room = Room::new(1);
        let first = room.try_take().expect("a seat");
        drop(room.take());
        drop(first);
        let second = room.try_take().expect("a seat");
        // Also who leaves after the seat was theirs.
        let third = room.take();
        drop(second);
        drop(third);
        assert!(room.try_take().is_some());
    }

    #[test]
    fn who_takes_a_seat_back_keeps_others_out_until_there_is_room() {
        let room = Room::new(1);
        let first = room.try_take().expect("a seat");
        let back = room.take_back();
        drop(first);
        assert!(room.try_take().is_none());
        drop(back);
        assert!(room.try_take().is_some());
    }

    #[test]
    fn a_room_grows_and_shrinks_while_seats_are_taken() {
        let room = Room::new(1);
        let first = room.try_take().expect("a seat");
        let mut second = Box::pin(room.take());
        room.resize(2);
        let second = second.as_mut().now_or_never().flatten().expect("room");
        room.resize(1);
        drop(second);
        assert!(room.try_take().is_none(), "one is taken of one");
        drop(first);
        assert!(room.try_take().is_some());
    }
}

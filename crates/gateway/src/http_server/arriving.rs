//! The body of a request on its way in. Until its last piece is here the request counts as none: whoever begins one and does
//! not go on makes room for others, like who says nothing.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::seats::{Asking, Seat};

/// A body that tells when it is here.
pub(super) struct Arriving {
    body: Incoming,
    pub(super) asked: Arc<Asked>,
}

/// Whether a request is here; from then on, and as long as somebody has this, its connection stays.
pub(super) struct Asked {
    seat: Arc<Seat>,
    asking: OnceLock<Asking>,
}

impl Asked {
    pub(super) fn note(&self) {
        self.asking.get_or_init(|| self.seat.ask());
    }
}

impl Arriving {
    pub(super) fn new(body: Incoming, seat: &Arc<Seat>) -> Self {
        let asked = Asked {
            seat: Arc::clone(seat),
            asking: OnceLock::new(),
        };
        if body.is_end_stream() {
            asked.note();
        }
        Self {
            body,
            asked: Arc::new(asked),
        }
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let is_last = matches!(polled, Poll::Ready(None | Some(Err(_))));
        if is_last || self.body.is_end_stream() {
            self.asked.note();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

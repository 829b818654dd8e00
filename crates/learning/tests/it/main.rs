//! Notes and reviews at their boundary: real files, the real store, a scripted model.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod honcho;
mod injected;
mod killed;
mod notes;
mod recall;
mod review;
mod user_model;

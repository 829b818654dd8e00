//! OAuth: tokens that are kept, renewed and sent, and how a person gets the first one.
//!
//! [`ServerToken`] has the token of one server; every request asks it, and asks it again when the server refused what it
//! gave. [`Login`] gets a token from a person. They meet only in the token files (`store`), so that a login in one
//! process is found by all others. [`StepUp`] has a person log in again while a call waits. The protocol of discovering and logging in is the library's; renewing is ours,
//! because it must tell "no" from "not now" and must not be interrupted half-way.

mod answer;
mod callback;
mod challenge;
mod client;
mod disk;
mod http;
mod login;
mod registration;
mod renewal;
mod server_token;
mod step_up;
mod store;
mod token;

pub use callback::{Callback, CallbackError, Returned};
pub(crate) use challenge::missing_scope;
pub use login::{Login, LoginError, forget_login};
pub(crate) use server_token::ServerToken;
pub(crate) use step_up::StepUp;

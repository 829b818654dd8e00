//! Many conversations in one process, against a scripted model server.

mod many;
mod one_of_many;
mod support;

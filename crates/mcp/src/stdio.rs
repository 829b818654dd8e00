//! Servers that are programs we start and talk to over their standard input and output.

mod environment;
mod family;
mod lines;
mod malware;
mod package;
mod process;
mod watchdog;
mod written;

pub(crate) use environment::child_environment;
pub(crate) use family::Effort;
pub(crate) use lines::Lines;
pub(crate) use malware::MalwareCheck;
pub(crate) use process::{Pipes, Process, Program};
pub(crate) use written::Written;

//! The process group of a command: everything it started, also what left the group, ends with it.

use std::time::Duration;

use hermes_os::ProcessGroup as Group;
use rustix::process::Signal;
use tokio::process::Child;

use crate::mark::signal_marked;
use crate::watchdog::Watched;

/// Kills the group when dropped, unless it was released.
#[derive(Debug)]
pub(crate) struct ProcessGroup<'a> {
    group: Group,
    /// Forgotten once everything else is done.
    _watched: Option<Watched<'a>>,
    /// What is in the environment of its processes, to find those that left the group.
    mark: Option<String>,
    kill_on_drop: bool,
}

impl<'a> ProcessGroup<'a> {
    /// Takes charge of the group that `leader` leads. Returns `None` when the leader was already waited for.
    pub(crate) fn led_by(leader: &Child, mut watched: Option<Watched<'a>>) -> Option<Self> {
        let group = Group::led_by(leader)?;
        if let Some(watched) = &mut watched {
            watched.add_group(group.id());
        }
        Some(Self {
            group,
            _watched: watched,
            mark: None,
            kill_on_drop: true,
        })
    }

    pub(crate) fn marked(mut self, mark: &str) -> Self {
        self.mark = Some(mark.to_owned());
        self
    }

    /// Returns whether any process of the group lives.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.group.is_alive()
    }

    /// Lets go: what the command left running in the background may go on.
    pub(crate) fn release(mut self) {
        self.kill_on_drop = false;
    }

    /// Asks every process of the group to end, waits for at most `grace`, then kills what is left.
    pub(crate) async fn end(mut self, leader: &mut Child, grace: Duration) {
        self.group.signal(Signal::TERM);
        if !self.group.gone_within(leader, grace, || true).await {
            self.group.signal(Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup<'_> {
    fn drop(&mut self) {
        if self.kill_on_drop {
            self.group.signal(Signal::KILL);
            if let Some(mark) = &self.mark {
                signal_marked(mark, Signal::KILL);
            }
        }
    }
}

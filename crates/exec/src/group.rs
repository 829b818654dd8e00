//! A process group: a command and everything it started.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::mark::signal_marked;
use crate::watchdog::Watched;

/// How often we look whether a group that was asked to end is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Kills the group when dropped, unless it was released.
#[derive(Debug)]
pub(crate) struct ProcessGroup<'a> {
    id: Pid,
    /// Forgotten once everything else is done.
    _watched: Option<Watched<'a>>,
    /// What is in the environment of its processes, to find those that left the group.
    mark: Option<String>,
    kill_on_drop: bool,
}

impl<'a> ProcessGroup<'a> {
    /// Takes charge of the group that `leader` leads. Returns `None` when the leader was already waited for.
    pub(crate) fn led_by(leader: &Child, mut watched: Option<Watched<'a>>) -> Option<Self> {
        let id = Pid::from_raw(leader.id()?.try_into().ok()?)?;
        if let Some(watched) = &mut watched {
            watched.add_group(id);
        }
        Some(Self {
            id,
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
    pub(crate) fn is_alive(&self) -> bool {
        test_kill_process_group(self.id).is_ok()
    }

    /// Lets go: what the command left running in the background may go on.
    pub(crate) fn release(mut self) {
        self.kill_on_drop = false;
    }

    /// Asks every process of the group to end, waits for at most `grace`, then kills what is left.
    pub(crate) async fn end(self, leader: &mut Child, grace: Duration) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            // A dead leader counts as a member until it was waited for.
            let _ = leader.try_wait();
            if test_kill_process_group(self.id).is_err() {
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // The only failure is a group that is gone, which is what we want.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for ProcessGroup<'_> {
    fn drop(&mut self) {
        if self.kill_on_drop {
            self.signal(Signal::KILL);
            if let Some(mark) = &self.mark {
                signal_marked(mark, Signal::KILL);
            }
        }
    }
}

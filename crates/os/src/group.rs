//! A process group: a program and everything it started, as far as that did not leave the group.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

/// How often we look whether a group that was asked to end is gone.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The group that a child leads. Does nothing when it is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    id: Pid,
    /// Seen gone: the id may belong to somebody else by now, and gets no more signals.
    is_gone: bool,
}

impl ProcessGroup {
    /// Returns the group that a child leads, unless it was already waited for. It must have been started as the leader of
    /// a group.
    pub fn led_by(leader: &Child) -> Option<Self> {
        let id = Pid::from_raw(leader.id()?.try_into().ok()?)?;
        Some(Self { id, is_gone: false })
    }

    /// The id of the group, which is that of its leader.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Returns whether any process of the group lives.
    pub fn is_alive(&mut self) -> bool {
        self.is_gone |= test_kill_process_group(self.id).is_err();
        !self.is_gone
    }

    /// Sends a signal to every process of the group.
    pub fn signal(&self, signal: Signal) {
        if !self.is_gone {
            // The only failure is a group that is gone, which is what we want.
            let _ = kill_process_group(self.id, signal);
        }
    }

    /// Waits until no process of the group lives, and `others_gone` says the same of whatever else belongs to it; at most
    /// this long. Returns whether that is so.
    pub async fn gone_within(
        &mut self,
        leader: &mut Child,
        wait_max: Duration,
        mut others_gone: impl FnMut() -> bool,
    ) -> bool {
        let deadline = Instant::now() + wait_max;
        while Instant::now() < deadline {
            // A dead leader counts as a member until it was waited for.
            let _ = leader.try_wait();
            if !self.is_alive() && others_gone() {
                return true;
            }
            sleep(LOOK_INTERVAL).await;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_group_ends_with_everything_in_it() {
        #[expect(clippy::disallowed_methods, reason = "a test starts a real program")]
        let mut leader = tokio::process::Command::new("sh")
            .args(["-c", "sleep 300 & sleep 300"])
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut group = ProcessGroup::led_by(&leader).unwrap();
        assert!(group.is_alive());
        let soon = Duration::from_millis(20);
        assert!(!group.gone_within(&mut leader, soon, || true).await);
        group.signal(Signal::KILL);
        let long = Duration::from_secs(10);
        assert!(group.gone_within(&mut leader, long, || true).await);
        assert!(!group.is_alive());
    }
}

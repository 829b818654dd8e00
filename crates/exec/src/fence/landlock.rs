//! A fence the kernel puts around a thread and everything it starts.
//!
//! Landlock restricts the thread that asks for it, for ever. So one thread asks, and then starts the fenced commands; all
//! of them are in the same domain and may signal and look at each other, as commands do without a fence.

use std::io;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use super::Fence;
use super::missing::NoLandlock;

/// The thread that starts fenced commands. It ends with this.
#[derive(Debug)]
pub(crate) struct FencedThread {
    orders: mpsc::Sender<Order>,
}

/// A command to start, and where to say what became of it.
struct Order {
    command: Command,
    runtime: Handle,
    answer: mpsc::Sender<io::Result<Child>>,
}

impl FencedThread {
    pub(super) fn start(fence: Fence) -> Result<Self, String> {
        let (orders, inbox) = mpsc::channel::<Order>();
        let (ready, is_ready) = mpsc::channel();
        let serve = move || {
            let restricted = kernel::restrict_this_thread(&fence);
            let is_restricted = restricted.is_ok();
            let _ = ready.send(restricted.map(drop));
            if is_restricted {
                inbox.into_iter().for_each(Order::carry_out);
            }
        };
        std::thread::Builder::new()
            .name("fenced".to_owned())
            .spawn(serve)
            .map_err(|error| error.to_string())?;
        let restricted = is_ready.recv().map_err(|_| gone().to_string())?;
        restricted.map_err(|error| error.to_string())?;
        Ok(Self { orders })
    }

    /// Starts a command inside the fence.
    pub(super) fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, answered) = mpsc::channel();
        let order = Order {
            command,
            runtime: Handle::current(),
            answer,
        };
        self.orders.send(order).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}

impl Order {
    fn carry_out(mut self) {
        let _runtime = self.runtime.enter();
        // Nobody hears it when the call was dropped; the child is then dropped too.
        let _ = self.answer.send(self.command.spawn());
    }
}

/// Returns the version of Landlock here, or why it cannot be used. Tried on a thread of its own.
pub(super) fn version() -> Result<i32, NoLandlock> {
    let nothing = Fence {
        writable: Vec::new(),
        readable: Vec::new(),
        network: super::Network::Open,
    };
    std::thread::spawn(move || kernel::restrict_this_thread(&nothing))
        .join()
        .unwrap_or_else(|_| {
            Err(NoLandlock::Refused {
                detail: gone().to_string(),
            })
        })
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts fenced commands is gone")
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::path::Path;

    use landlock::{
        ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset,
        RulesetAttr, RulesetCreatedAttr, RulesetError, path_beneath_rules,
    };

    use super::super::Fence;
    use super::super::missing::NoLandlock;
    use super::super::places::DEVICES;

    /// The first version that guards against truncation and lets files move between folders: Linux 6.2.
    const NEEDED: ABI = ABI::V3;

    /// Restricts the calling thread, and returns the version of Landlock that does it.
    pub(super) fn restrict_this_thread(fence: &Fence) -> Result<i32, NoLandlock> {
        match try_restrict(fence) {
            Ok(status) => version_in(&status.landlock),
            Err(error) => Err(why_not(&error)),
        }
    }

    fn version_in(status: &LandlockStatus) -> Result<i32, NoLandlock> {
        match *status {
            LandlockStatus::Available {
                effective_abi,
                kernel_abi,
            } => Ok(kernel_abi.unwrap_or(effective_abi as i32)),
            LandlockStatus::NotEnabled => Err(NoLandlock::NotEnabled),
            LandlockStatus::NotImplemented => Err(NoLandlock::NotBuiltIn),
        }
    }

    /// Asks for whatever the kernel has: how much that is tells why it was not enough. The calling thread is good for
    /// nothing afterwards.
    fn why_not(error: &RulesetError) -> NoLandlock {
        let tried = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEEDED))
            .and_then(Ruleset::create)
            .and_then(|ruleset| ruleset.restrict_self());
        let found = match tried {
            Ok(status) => version_in(&status.landlock),
            Err(_) => Ok(NEEDED as i32),
        };
        match found {
            Ok(version) if version < NEEDED as i32 => NoLandlock::TooOld { version },
            Ok(_) => NoLandlock::Refused {
                detail: error.to_string(),
            },
            Err(missing) => missing,
        }
    }

    fn try_restrict(fence: &Fence) -> Result<RestrictionStatus, RulesetError> {
        let all = AccessFs::from_all(NEEDED);
        let read = AccessFs::from_read(NEEDED);
        let devices = read | AccessFs::WriteFile | AccessFs::Truncate;
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)?
            .create()?
            .add_rules(path_beneath_rules(&fence.readable, read))?
            .add_rules(path_beneath_rules([Path::new(DEVICES)], devices))?
            .add_rules(path_beneath_rules(&fence.writable, all))?
            .restrict_self()
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::super::Fence;
    use super::super::missing::NoLandlock;

    pub(super) fn restrict_this_thread(_: &Fence) -> Result<i32, NoLandlock> {
        Err(NoLandlock::NotLinux)
    }
}

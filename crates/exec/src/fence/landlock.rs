//! A fence the kernel puts around a thread and everything it starts.
//!
//! Landlock restricts the thread that asks for it, for ever. So one thread asks, and then starts the fenced commands; all
//! of them are in the same domain and may signal and look at each other, as commands do without a fence. Work that is no
//! command gets a thread of its own.

use std::io;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use super::grants::Grants;
use super::missing::NoLandlock;
pub(super) use kernel::Rules;

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
    pub(super) fn start(rules: &Rules) -> io::Result<Self> {
        let rules = rules.try_clone()?;
        let (orders, inbox) = mpsc::channel::<Order>();
        let (ready, is_ready) = mpsc::channel();
        let serve = move || {
            let restricted = rules.restrict_this_thread();
            privileges::give_up();
            let is_restricted = restricted.is_ok();
            let _ = ready.send(restricted);
            if is_restricted {
                inbox.into_iter().for_each(Order::carry_out);
            }
        };
        std::thread::Builder::new()
            .name("fenced".to_owned())
            .spawn(serve)?;
        let restricted = is_ready.recv().map_err(|_| gone())?;
        restricted.map_err(io::Error::other)?;
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

/// Does work inside the fence, on a thread that is good for nothing else, and waits for it.
pub(super) fn work(rules: &Rules, work: Box<dyn FnOnce() + Send + '_>) -> io::Result<()> {
    let rules = rules.try_clone()?;
    std::thread::scope(|scope| {
        let fenced = move || {
            rules.restrict_this_thread().map_err(io::Error::other)?;
            work();
            Ok(())
        };
        let thread = std::thread::Builder::new().name("fenced work".to_owned());
        match thread.spawn_scoped(scope, fenced)?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Returns the version of Landlock here, or why it cannot be used. Tried on a thread of its own.
pub(super) fn version() -> Result<i32, NoLandlock> {
    let tried = || Rules::of(&Grants::default())?.restrict_this_thread();
    std::thread::spawn(tried).join().unwrap_or_else(|_| {
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
    use std::io;

    use landlock::{
        ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
        RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
    };

    use super::super::grants::Grants;
    use super::super::missing::NoLandlock;

    /// The first version that guards against truncation and lets files move between folders: Linux 6.2.
    const NEEDED: ABI = ABI::V3;

    /// The first version that keeps signals and abstract sockets inside: Linux 6.12. Used where it is there.
    const SCOPED: ABI = ABI::V6;

    /// Rules that any number of threads can be put under.
    #[derive(Debug)]
    pub(in super::super) struct Rules {
        ruleset: RulesetCreated,
    }

    impl Rules {
        pub(in super::super) fn of(grants: &Grants) -> Result<Self, NoLandlock> {
            let made = make(grants).map_err(|error| why_not(&error))?;
            Ok(Self { ruleset: made })
        }

        pub(in super::super) fn try_clone(&self) -> io::Result<Self> {
            let ruleset = self.ruleset.try_clone()?;
            Ok(Self { ruleset })
        }

        /// Restricts the calling thread, and returns the version of Landlock that does it.
        pub(super) fn restrict_this_thread(self) -> Result<i32, NoLandlock> {
            match self.ruleset.restrict_self() {
                Ok(status) => version_in(&status.landlock),
                Err(error) => Err(why_not(&error)),
            }
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

    /// Asks for whatever the kernel has: how much that is tells why it was not enough.
    fn why_not(error: &RulesetError) -> NoLandlock {
        let found = std::thread::spawn(|| {
            let tried = Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(NEEDED))
                .and_then(Ruleset::create)
                .and_then(|ruleset| ruleset.restrict_self());
            match tried {
                Ok(status) => version_in(&status.landlock),
                Err(_) => Ok(NEEDED as i32),
            }
        });
        match found.join().unwrap_or(Ok(NEEDED as i32)) {
            Ok(version) if version < NEEDED as i32 => NoLandlock::TooOld { version },
            Ok(_) => NoLandlock::Refused {
                detail: error.to_string(),
            },
            Err(missing) => missing,
        }
    }

    fn make(grants: &Grants) -> Result<RulesetCreated, RulesetError> {
        let all = AccessFs::from_all(NEEDED);
        let read = AccessFs::from_read(NEEDED);
        let devices = read | AccessFs::WriteFile | AccessFs::Truncate;
        // Whoever may make a device reads every disk through it.
        let write = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)?
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(SCOPED))?
            .set_compatibility(CompatLevel::HardRequirement)
            .create()?
            .add_rules(path_beneath_rules(&grants.list, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(&grants.read, read))?
            .add_rules(path_beneath_rules(&grants.devices, devices))?
            .add_rules(path_beneath_rules(&grants.write, write))
    }
}

/// What the superuser could still do inside: load code into the kernel, look into other processes, set the clock, type into
/// the terminals of others. As in containers, little of it is left.
#[cfg(target_os = "linux")]
mod privileges {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

    const KEPT: CapabilitySet = CapabilitySet::CHOWN
        .union(CapabilitySet::DAC_OVERRIDE)
        .union(CapabilitySet::FOWNER)
        .union(CapabilitySet::FSETID)
        .union(CapabilitySet::KILL)
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::SETUID)
        .union(CapabilitySet::SETPCAP)
        .union(CapabilitySet::NET_BIND_SERVICE)
        .union(CapabilitySet::NET_RAW)
        .union(CapabilitySet::SYS_CHROOT)
        .union(CapabilitySet::SYS_NICE)
        .union(CapabilitySet::SETFCAP)
        .union(CapabilitySet::AUDIT_WRITE);

    /// Gives the others up, for this thread and what it starts: nothing inside a fence gets them back.
    pub(super) fn give_up() {
        let Ok(had) = capabilities(None) else {
            return;
        };
        let kept = CapabilitySets {
            effective: had.effective & KEPT,
            permitted: had.permitted & KEPT,
            inheritable: CapabilitySet::empty(),
        };
        // Giving up is always allowed.
        let _ = set_capabilities(None, kept);
    }
}

#[cfg(not(target_os = "linux"))]
mod privileges {
    pub(super) fn give_up() {}
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;

    use super::super::grants::Grants;
    use super::super::missing::NoLandlock;

    #[derive(Debug)]
    pub(in super::super) struct Rules;

    impl Rules {
        pub(in super::super) fn of(_: &Grants) -> Result<Self, NoLandlock> {
            Err(NoLandlock::NotLinux)
        }

        pub(in super::super) fn try_clone(&self) -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn restrict_this_thread(self) -> Result<i32, NoLandlock> {
            Err(NoLandlock::NotLinux)
        }
    }
}

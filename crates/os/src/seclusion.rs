//! Keeps the user's other processes out of ours. Commands that a model writes run as the same user, and our environment
//! and memory hold keys: without this, `cat /proc/$PPID/environ` shows them.

/// Lets only the superuser look into this process. Programs that it starts are not concerned.
#[cfg(target_os = "linux")]
pub fn seclude() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // A kernel that refuses leaves things as they were.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Other systems do not show a process to its neighbours in files.
#[cfg(not(target_os = "linux"))]
pub fn seclude() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn nobody_looks_into_our_memory() {
        super::seclude();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    }
}

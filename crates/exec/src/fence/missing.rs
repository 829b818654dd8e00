//! Why this machine cannot fence commands in, and what exactly would change that.

use std::fs;

/// Why there is no fence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFenced {
    #[error("nothing here can fence commands in: {landlock}; {bubblewrap}")]
    NoSupport {
        landlock: NoLandlock,
        bubblewrap: NoBubblewrap,
    },
    #[error("only bubblewrap can cut commands off from the network: {bubblewrap}")]
    NetworkStaysOpen { bubblewrap: NoBubblewrap },
}

impl NotFenced {
    /// What to do about it, besides doing without a fence.
    pub fn fix(&self) -> String {
        match self {
            Self::NoSupport {
                landlock,
                bubblewrap,
            } => format!("{}; or {}", bubblewrap.fix(), landlock.fix()),
            Self::NetworkStaysOpen { bubblewrap } => bubblewrap.fix(),
        }
    }
}

/// Why Landlock cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLandlock {
    #[error("only Linux has Landlock")]
    NotLinux,
    #[error("this kernel was built without Landlock")]
    NotBuiltIn,
    #[error("this kernel has Landlock, but it was not switched on when the machine started")]
    NotEnabled,
    #[error("this kernel has version {version} of Landlock, and version 3 (Linux 6.2) is needed")]
    TooOld { version: i32 },
    #[error("Landlock does not work: {detail}")]
    Refused { detail: String },
}

impl NoLandlock {
    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::NotLinux => {
                "commands in a container: `hermes config set terminal.backend docker`"
            }
            Self::NotBuiltIn | Self::TooOld { .. } => {
                "a kernel of Linux 6.2 or newer with CONFIG_SECURITY_LANDLOCK, as current distributions have it"
            }
            Self::NotEnabled => {
                "put `lsm=landlock,` and what `cat /sys/kernel/security/lsm` shows on the kernel's command line \
                 (GRUB_CMDLINE_LINUX in /etc/default/grub, then `sudo update-grub`), and restart"
            }
            Self::Refused { .. } => {
                "a container or service that does not filter Landlock's system calls"
            }
        }
    }
}

/// Why bubblewrap cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoBubblewrap {
    #[error("`bwrap` is not on the PATH")]
    Missing,
    #[error("`bwrap` does not start: {detail}")]
    NotStarted { detail: String },
    #[error("`bwrap` does not work here: {said}")]
    NoNamespaces { said: String, why: Forbidden },
}

impl NoBubblewrap {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::Missing => "install the package `bubblewrap` (`sudo apt install bubblewrap`, \
                              `sudo dnf install bubblewrap`, `sudo pacman -S bubblewrap`)"
                .to_owned(),
            Self::NotStarted { .. } => {
                "install the package `bubblewrap` anew, and look which one `command -v bwrap` finds"
                    .to_owned()
            }
            Self::NoNamespaces { why, .. } => why.fix(),
        }
    }
}

/// What keeps users from making namespaces, which is what bubblewrap fences with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// A setting of the kernel, and the value that allows it.
    By(&'static str, &'static str),
    /// None of the settings we know: as a rule the container we are in.
    Otherwise,
}

impl Forbidden {
    /// The settings that forbid it, the value that does, and one that does not.
    const SETTINGS: &[(&str, &str, &str)] = &[
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];

    /// Looks through the settings of this kernel.
    pub(super) fn here() -> Self {
        Self::of(|name| {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            fs::read_to_string(path).ok()
        })
    }

    fn of(value: impl Fn(&str) -> Option<String>) -> Self {
        let forbids = |(name, forbidding, _): &&(&str, &str, &str)| {
            value(name).is_some_and(|value| value.trim() == *forbidding)
        };
        let found = Self::SETTINGS.iter().find(forbids);
        found.map_or(Self::Otherwise, |(name, _, allowing)| {
            Self::By(name, allowing)
        })
    }

    fn fix(self) -> String {
        match self {
            Self::By(name, value) => format!(
                "`sudo sysctl -w {name}={value}`, and the line `{name}={value}` in /etc/sysctl.d/bubblewrap.conf to \
                 keep it"
            ),
            Self::Otherwise => "if this is a container, start it with `--security-opt seccomp=unconfined` or use \
                                Hermes outside of it; `bwrap --ro-bind / / --unshare-net true` has to work"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix_with(set: &[(&str, &str)]) -> String {
        let forbidden = Forbidden::of(|name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| format!("{value}\n"))
        });
        forbidden.fix()
    }

    #[test]
    fn the_kernel_setting_that_forbids_namespaces_is_named_with_the_value_that_allows_them() {
        for (name, forbidding, allowing) in Forbidden::SETTINGS {
            let fix = fix_with(&[(name, forbidding)]);
            let command = format!("`sudo sysctl -w {name}={allowing}`");
            assert!(fix.starts_with(&command), "{fix}");
            assert_eq!(fix_with(&[(name, allowing)]), fix_with(&[]));
        }
        assert!(fix_with(&[]).contains("container"));
    }

    #[test]
    fn whatever_is_missing_has_a_fix_of_its_own() {
        let landlock = [
            NoLandlock::NotLinux,
            NoLandlock::NotBuiltIn,
            NoLandlock::NotEnabled,
            NoLandlock::Refused {
                detail: "no".to_owned(),
            },
        ];
        let words = ["terminal.backend", "Linux 6.2", "lsm=landlock", "filter"];
        for (missing, word) in landlock.iter().zip(words) {
            assert!(missing.fix().contains(word), "{missing}: {}", missing.fix());
        }
        assert!(
            NoBubblewrap::Missing
                .fix()
                .contains("apt install bubblewrap")
        );
    }
}

//! Whether local commands are fenced in as the settings say, and what this machine lacks for it.

use std::path::Path;

use hermes_exec::{FenceKind, FenceSupport, Network};

use super::Check;
use crate::base::Base;
use crate::error::Result;
use crate::layout::one_line;
use crate::terminals::{FenceState, Sandbox, fence_state, local_environment, sandbox};

const NAME: &str = "sandbox";
const WITHOUT: &str = "`hermes config set terminal.sandbox off` does without";

/// Compares what the settings ask for with what this machine has. That it works is for `commands` to say.
pub(super) fn check(base: &Base) -> Result<Check> {
    let wanted = sandbox(base)?;
    let backend = base.settings.string("terminal.backend")?;
    let check = match backend.as_str() {
        "local" => {
            let support = FenceSupport::of_this_machine(&local_environment(base)?);
            match fence_state(base) {
                Ok(FenceState::Held {
                    project,
                    is_writable: false,
                    ..
                }) => home_is_no_project(&judge(wanted, &support), &project),
                _ => judge(wanted, &support),
            }
        }
        backend => Check::good(NAME, format!("none of ours; commands run over {backend}")),
    };
    // Some of it may be the words of `bwrap`.
    Ok(Check {
        text: one_line(&check.text),
        ..check
    })
}

fn home_is_no_project(judged: &Check, project: &Path) -> Check {
    Check::good(
        NAME,
        format!(
            "{}; nothing in {} is written without a question, as it is a home or a folder of the system",
            judged.text,
            project.display()
        ),
    )
}

fn judge(wanted: Option<Sandbox>, support: &FenceSupport) -> Check {
    let Some(Sandbox { kind, network }) = wanted else {
        return Check::good(
            NAME,
            format!(
                "off, so that everything but reading is asked about; this machine has: {}",
                listed(support)
            ),
        );
    };
    let name = match kind {
        FenceKind::Project => "project",
        FenceKind::Strict => "strict",
    };
    if let (Some(program), Err(_)) = (&support.seatbelt, &support.landlock) {
        let closed = match network {
            Network::Open => "",
            Network::Closed => " without network",
        };
        let path = program.display();
        return Check::good(NAME, format!("{name}{closed}, by Seatbelt at {path}"));
    }
    match (network, &support.landlock, &support.bubblewrap) {
        (Network::Open, Ok(version), _) => {
            Check::good(NAME, format!("{name}, by Landlock version {version}"))
        }
        (Network::Open, Err(landlock), Ok(bubblewrap)) => {
            let path = bubblewrap.display();
            Check::good(
                NAME,
                format!("{name}, by bubblewrap at {path} ({landlock})"),
            )
        }
        (Network::Open, Err(landlock), Err(bubblewrap)) => {
            let fix = format!("{}; or {}; {WITHOUT}", bubblewrap.fix(), landlock.fix());
            match kind {
                FenceKind::Project => Check::doubtful(
                    NAME,
                    format!(
                        "none, so that everything but reading is asked about: {landlock}; {bubblewrap}"
                    ),
                    fix,
                ),
                FenceKind::Strict => Check::broken(
                    NAME,
                    format!("`strict` needs Landlock or bubblewrap: {landlock}; {bubblewrap}"),
                    fix,
                ),
            }
        }
        (Network::Closed, _, Ok(bubblewrap)) => {
            let path = bubblewrap.display();
            Check::good(
                NAME,
                format!("{name} without network, by bubblewrap at {path}"),
            )
        }
        (Network::Closed, landlock, Err(bubblewrap)) => {
            let open = match landlock {
                Ok(_) => "`hermes config set terminal.network on` leaves the network open; ",
                Err(_) => "",
            };
            Check::broken(
                NAME,
                format!("a closed network needs bubblewrap: {bubblewrap}"),
                format!("{}; or {open}{WITHOUT}", bubblewrap.fix()),
            )
        }
    }
}

/// What there is, and for the rest how to get it.
fn listed(support: &FenceSupport) -> String {
    let landlock = match &support.landlock {
        Ok(version) => format!("Landlock version {version}"),
        Err(missing) => format!("no Landlock ({missing}; it takes {})", missing.fix()),
    };
    let bubblewrap = match &support.bubblewrap {
        Ok(path) => format!("bubblewrap at {}", path.display()),
        Err(missing) => format!("no bubblewrap ({missing}; {})", missing.fix()),
    };
    match &support.seatbelt {
        Some(path) => format!("Seatbelt at {}", path.display()),
        None => format!("{landlock}; {bubblewrap}"),
    }
}

#[cfg(test)]
mod tests {
    use hermes_exec::{Forbidden, NoBubblewrap, NoLandlock};

    use super::super::State;
    use super::*;

    fn none() -> FenceSupport {
        FenceSupport {
            landlock: Err(NoLandlock::NotEnabled),
            bubblewrap: Err(NoBubblewrap::Missing),
            seatbelt: None,
        }
    }

    #[track_caller]
    fn told(check: &Check, state: State, words: &[&str]) {
        let fix = check.fix.as_deref().unwrap_or_default();
        let shown = format!("{} {fix}", check.text);
        assert_eq!(check.state, state, "{shown}");
        for word in words {
            assert!(shown.contains(word), "{word} in {shown}");
        }
    }

    fn wanted(kind: FenceKind, network: Network) -> Option<Sandbox> {
        Some(Sandbox { kind, network })
    }

    #[test]
    fn each_fence_says_what_puts_it_up() {
        let all = FenceSupport {
            landlock: Ok(7),
            bubblewrap: Ok("/usr/bin/bwrap".into()),
            seatbelt: None,
        };
        let project = wanted(FenceKind::Project, Network::Open);
        let strict = wanted(FenceKind::Strict, Network::Open);
        let closed = wanted(FenceKind::Project, Network::Closed);
        for (wanted, words) in [
            (project, "project, by Landlock"),
            (strict, "strict, by Landlock"),
            (closed, "project without network, by bubblewrap"),
            (None, "; this machine has: "),
        ] {
            told(&judge(wanted, &all), State::Good, &[words]);
        }
        let old = FenceSupport {
            landlock: Err(NoLandlock::TooOld { version: 1 }),
            ..all
        };
        let words = ["project, by bubblewrap", "version 1"];
        told(&judge(project, &old), State::Good, &words);
        let mac = FenceSupport {
            landlock: Err(NoLandlock::NotLinux),
            seatbelt: Some("/usr/bin/sandbox-exec".into()),
            ..none()
        };
        told(
            &judge(project, &mac),
            State::Good,
            &["project, by Seatbelt"],
        );
        told(
            &judge(closed, &mac),
            State::Good,
            &["without network, by Seatbelt"],
        );
    }

    #[test]
    fn a_fence_that_cannot_be_put_up_says_what_exactly_is_missing() {
        let words = [
            "apt install bubblewrap",
            "lsm=landlock",
            "sandbox off",
            "asked about",
        ];
        let project = judge(wanted(FenceKind::Project, Network::Open), &none());
        told(&project, State::Doubtful, &words);
        let strict = judge(wanted(FenceKind::Strict, Network::Open), &none());
        told(&strict, State::Broken, &words[..3]);
        told(&judge(None, &none()), State::Good, &words[..2]);
        let forbidden = FenceSupport {
            landlock: Ok(7),
            bubblewrap: Err(NoBubblewrap::NoNamespaces {
                said: "no permissions".to_owned(),
                why: Forbidden::By("user.max_user_namespaces", "15000"),
            }),
            seatbelt: None,
        };
        let words = [
            "sysctl -w user.max_user_namespaces=15000",
            "terminal.network on",
        ];
        let closed = wanted(FenceKind::Project, Network::Closed);
        told(&judge(closed, &forbidden), State::Broken, &words);
    }
}

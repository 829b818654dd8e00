//! Whether local commands are fenced in as the settings say, and what this machine lacks for it.

use hermes_exec::{FenceMeans, Network};

use super::Check;
use crate::base::Base;
use crate::commands::layout::one_line;
use crate::failure::Outcome;
use crate::terminals::{local_environment, sandbox};

const NAME: &str = "sandbox";
const WITHOUT: &str = "`hermes config set terminal.sandbox off` does without";

/// Compares what the settings ask for with what this machine has. That it works is for `commands` to say.
pub(super) fn check(base: &Base) -> Outcome<Check> {
    let wanted = sandbox(base)?;
    let backend = base.settings.string("terminal.backend")?;
    let check = match backend.as_str() {
        "local" => {
            let means = FenceMeans::of_this_machine(&local_environment(base)?);
            judge(wanted, &means)
        }
        backend => elsewhere(wanted, backend),
    };
    // Some of it may be the words of `bwrap`.
    Ok(Check {
        text: one_line(&check.text),
        ..check
    })
}

fn elsewhere(wanted: Option<Network>, backend: &str) -> Check {
    match wanted {
        None => Check::good(NAME, format!("off; commands run over {backend}")),
        Some(_) => Check::doubtful(
            NAME,
            format!("fences in local commands only, and yours run over {backend}"),
            format!("`hermes config set terminal.backend local` fences them in; {WITHOUT}"),
        ),
    }
}

fn judge(wanted: Option<Network>, means: &FenceMeans) -> Check {
    match (wanted, &means.landlock, &means.bubblewrap) {
        (None, _, _) => Check::good(NAME, format!("off; this machine has: {}", listed(means))),
        (Some(Network::Open), Ok(version), _) => {
            Check::good(NAME, format!("project, by Landlock version {version}"))
        }
        (Some(Network::Open), Err(landlock), Ok(bubblewrap)) => {
            let path = bubblewrap.display();
            Check::good(
                NAME,
                format!("project, by bubblewrap at {path} ({landlock})"),
            )
        }
        (Some(Network::Open), Err(landlock), Err(bubblewrap)) => Check::broken(
            NAME,
            format!("`project` needs Landlock or bubblewrap: {landlock}; {bubblewrap}"),
            format!("{}; or {}; {WITHOUT}", bubblewrap.fix(), landlock.fix()),
        ),
        (Some(Network::Closed), _, Ok(bubblewrap)) => {
            let path = bubblewrap.display();
            Check::good(NAME, format!("offline, by bubblewrap at {path}"))
        }
        (Some(Network::Closed), landlock, Err(bubblewrap)) => {
            let project = match landlock {
                Ok(_) => "`hermes config set terminal.sandbox project` leaves the network open; ",
                Err(_) => "",
            };
            Check::broken(
                NAME,
                format!("`offline` needs bubblewrap: {bubblewrap}"),
                format!("{}; or {project}{WITHOUT}", bubblewrap.fix()),
            )
        }
    }
}

/// What there is, and for the rest how to get it.
fn listed(means: &FenceMeans) -> String {
    let landlock = match &means.landlock {
        Ok(version) => format!("Landlock version {version}"),
        Err(missing) => format!("no Landlock ({missing}; it takes {})", missing.fix()),
    };
    let bubblewrap = match &means.bubblewrap {
        Ok(path) => format!("bubblewrap at {}", path.display()),
        Err(missing) => format!("no bubblewrap ({missing}; {})", missing.fix()),
    };
    format!("{landlock}; {bubblewrap}")
}

#[cfg(test)]
mod tests {
    use hermes_exec::{Forbidden, NoBubblewrap, NoLandlock};

    use super::super::State;
    use super::*;

    fn none() -> FenceMeans {
        FenceMeans {
            landlock: Err(NoLandlock::NotEnabled),
            bubblewrap: Err(NoBubblewrap::Missing),
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

    #[test]
    fn each_fence_says_what_puts_it_up() {
        let all = FenceMeans {
            landlock: Ok(7),
            bubblewrap: Ok("/usr/bin/bwrap".into()),
        };
        let (project, offline) = (Some(Network::Open), Some(Network::Closed));
        told(
            &judge(project, &all),
            State::Good,
            &["project, by Landlock"],
        );
        told(
            &judge(offline, &all),
            State::Good,
            &["offline, by bubblewrap"],
        );
        told(
            &judge(None, &all),
            State::Good,
            &["off; this machine has: "],
        );
        let old = FenceMeans {
            landlock: Err(NoLandlock::TooOld { version: 1 }),
            ..all
        };
        let words = ["project, by bubblewrap", "version 1"];
        told(&judge(project, &old), State::Good, &words);
    }

    #[test]
    fn a_fence_that_cannot_be_put_up_says_what_exactly_is_missing() {
        let words = ["apt install bubblewrap", "lsm=landlock", "sandbox off"];
        let project = judge(Some(Network::Open), &none());
        told(&project, State::Broken, &words);
        told(&judge(None, &none()), State::Good, &words[..2]);
        let forbidden = FenceMeans {
            landlock: Ok(7),
            bubblewrap: Err(NoBubblewrap::NoNamespaces {
                said: "no permissions".to_owned(),
                why: Forbidden::By("user.max_user_namespaces", "15000"),
            }),
        };
        let words = [
            "sysctl -w user.max_user_namespaces=15000",
            "sandbox project",
        ];
        told(
            &judge(Some(Network::Closed), &forbidden),
            State::Broken,
            &words,
        );
    }

    #[test]
    fn a_fence_for_commands_elsewhere_is_doubtful() {
        let check = elsewhere(Some(Network::Closed), "ssh");
        told(
            &check,
            State::Doubtful,
            &["over ssh", "terminal.backend local"],
        );
        told(&elsewhere(None, "ssh"), State::Good, &["off"]);
    }
}

//! Whether commands run where the settings say, and scripts with them.

use std::time::Duration;

use hermes_config::Source;

use super::files::is_writable;
use super::{Check, find_program};
use crate::base::Base;
use crate::error::{Error, ErrorKind};
use crate::layout::one_line;
use crate::terminals::Terminals;
use crate::terminals::try_out::{ask, try_terminal};

const FIX: &str = "`hermes setup terminal` asks what is needed and tries it";
const LOCAL: &str = "local";

/// A place that takes longer to answer is of little use.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// `execute_code` speaks to scripts in this Python or a newer one.
const PYTHON_MIN: (u32, u32) = (3, 8);
const PYTHON_VERSION: &str = "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'";

/// Runs a harmless command on the terminal of the settings, unless it is elsewhere and we are to stay offline.
pub(super) async fn checks(base: &Base, offline: bool) -> Vec<Check> {
    const NAME: &str = "commands";
    let backend = match base.settings.string("terminal.backend") {
        Ok(backend) => one_line(&backend),
        Err(error) => return vec![Check::broken(NAME, error.to_string(), FIX)],
    };
    if offline && backend != LOCAL {
        return match Terminals::to_try(base) {
            Ok(_) => vec![Check::good(
                NAME,
                format!("run over {backend}; not tried, as asked"),
            )],
            Err(error) => vec![broken(base, NAME, error)],
        };
    }
    // Shells keep what they are left with in the home, which is not ours to make.
    if !base.home.directory().is_dir() {
        return vec![Check::good(NAME, "not tried, as there is no home yet")];
    }
    if !is_writable(base.home.directory()) {
        return vec![Check::good(
            NAME,
            "not tried, as the home cannot be written to",
        )];
    }
    match try_terminal(base, ANSWER_TIME_MAX).await {
        Ok(answered) => {
            let place = match (backend.as_str(), answered.system.as_str()) {
                (LOCAL, _) => "on this machine".to_owned(),
                (backend, "") => format!("over {backend}"),
                (backend, system) => format!("over {backend} ({system})"),
            };
            let ms = answered.elapsed.as_millis();
            let ran = Check::good(NAME, format!("run {place}, {ms} ms"));
            vec![ran, python(base, &backend).await]
        }
        Err(error) => {
            // A place that cannot even be named is told by its setting.
            let message = match backend.as_str() {
                LOCAL => error.to_string(),
                _ if error.kind() == ErrorKind::Asked => error.to_string(),
                backend => format!("over {backend}: {error}"),
            };
            vec![Check {
                text: message,
                ..broken(base, NAME, error)
            }]
        }
    }
}

fn broken(base: &Base, name: &'static str, error: Error) -> Check {
    // What the files say does not count as long as a variable says otherwise.
    let variable = variable(base).filter(|_| error.kind() == ErrorKind::Asked);
    let unset = variable.map(|name| format!("`unset {name}`, or give it another value"));
    let ways = [unset, error.hint(), Some(FIX.to_owned())];
    let fix = ways.into_iter().flatten().collect::<Vec<_>>().join("; or ");
    Check::broken(name, error.to_string(), fix)
}

/// The variable that says where commands run, if one does.
fn variable(base: &Base) -> Option<&'static str> {
    match base.settings.origin("terminal.backend")?.source {
        Source::Variable(name) => Some(name),
        _ => None,
    }
}

/// Asks the Python that `execute_code` would use for its version.
async fn python(base: &Base, backend: &str) -> Check {
    const NAME: &str = "python3";
    const INSTALL: &str = "install Python 3.8 or newer there (`sudo apt install python3`), or do without: \
                           `hermes tools disable code_execution`";
    let terminals = match Terminals::to_try(base) {
        Ok(terminals) => terminals,
        Err(error) => return broken(base, NAME, error),
    };
    let asked = ask(
        base,
        terminals.terminal.as_ref(),
        PYTHON_VERSION,
        ANSWER_TIME_MAX,
    );
    let place = match (backend, find_program(&base.environment, "python3")) {
        (LOCAL, Some(path)) => path.display().to_string(),
        (LOCAL, None) => "on this machine".to_owned(),
        (backend, _) => format!("over {backend}"),
    };
    match asked.await.map(|(_, text)| (version(&text), text)) {
        Ok((Some(found), text)) if found >= PYTHON_MIN => {
            Check::good(NAME, format!("{text}, {place}"))
        }
        Ok((Some(_), text)) => Check::doubtful(
            NAME,
            format!("{text} ({place}) is too old for execute_code"),
            INSTALL,
        ),
        Ok((None, _)) | Err(_) => Check::doubtful(
            NAME,
            format!("does not run ({place}), so execute_code does not work"),
            INSTALL,
        ),
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_whitespace().last()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_chatter_before_them_is_ignored() {
        assert_eq!(version("3.13"), Some((3, 13)));
        assert!(version("welcome! 3.10") >= Some(PYTHON_MIN));
        assert!(version("3.7") < Some(PYTHON_MIN));
        assert_eq!(version("python3: not found"), None);
        assert_eq!(version(""), None);
    }
}

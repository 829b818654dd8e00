//! Opening a page where the person is. The address is on the screen in any case.

use crate::base::Base;

/// Set in sessions from another machine, where the person's browser is.
const REMOTE: [&str; 3] = ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"];

/// Tries to open an address in the person's browser.
pub(super) fn open_browser(base: &Base, url: &str) {
    let has = |name: &str| base.environment.get(name).is_some();
    if REMOTE.into_iter().any(has) {
        return;
    }
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if has("DISPLAY") || has("WAYLAND_DISPLAY") {
        "xdg-open"
    } else {
        return;
    };
    if let Err(error) = hermes_exec::launch(opener, [url]) {
        tracing::debug!(%error, "no browser was opened");
    }
}

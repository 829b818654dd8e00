//! Who looks at a call that needs consent before a person does: a scanner, a reviewing model, the list of what is allowed.

use std::sync::Arc;

use hermes_core::hidden_keys::LABEL;
use hermes_core::redact::redact;
use hermes_core::{AllowList, Event, HiddenKeys, Preview, Scanner};
use serde_json::Value;

use crate::approvals::ConsentRequest;
use crate::reviewer::{Opinion, Reviewer, Subject};
use crate::turn::TurnContext;

/// Those who are asked before a person is. Each may be missing.
#[derive(Clone, Default)]
pub struct Safety {
    pub scanner: Option<Arc<dyn Scanner>>,
    /// `approvals.mode: smart`.
    pub reviewer: Option<Reviewer>,
    /// Where "always" is kept. Without it, nothing can be allowed for longer than a session.
    pub allow_list: Option<Arc<dyn AllowList>>,
    /// `security.redact_secrets`: keys that no model sees.
    pub hidden_keys: Option<Arc<HiddenKeys>>,
    /// Whoever talks is not the owner of the home: nobody here can let a call leave the fence.
    pub keeps_inside: bool,
}

impl Safety {
    /// Returns a text for a model, without the keys in it.
    pub fn hide_keys(&self, text: String) -> String {
        match &self.hidden_keys {
            Some(keys) => keys.hide(text),
            None => text,
        }
    }

    /// Says why a call must not run whose arguments hold what the model was shown in the place of a key.
    pub(crate) fn refuse_label(&self, arguments: &Value) -> Option<String> {
        self.hidden_keys.as_ref()?;
        holds_label(arguments).then(|| {
            format!(
                "`{LABEL}` stands for a key that you are not shown; used here, it would take the place of the key. Change \
                 the lines around it with `patch`, or let a program take the key from where it is."
            )
        })
    }
}

fn holds_label(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(LABEL),
        Value::Array(items) => items.iter().any(holds_label),
        Value::Object(fields) => fields.values().any(holds_label),
        _ => false,
    }
}

/// Returns what the scanner has against a command.
pub(crate) async fn scanned(cx: &TurnContext<'_>, command: Option<&str>) -> Option<String> {
    let scanner = cx.ports.safety.scanner.as_ref()?;
    tokio::select! {
        finding = scanner.scan(command?) => finding,
        // The question that may follow is withdrawn at once.
        () = cx.stop.cancelled() => Some("was not looked at, because of the interrupt".to_owned()),
    }
}

/// Returns what is shown of a change, without the keys in it: it is stored, and goes wherever questions are shown.
pub(crate) fn without_keys(cx: &TurnContext<'_>, preview: Preview) -> Preview {
    let diff = redact(&cx.ports.safety.hide_keys(preview.diff.clone()));
    Preview {
        is_whole: preview.is_whole && diff == preview.diff,
        diff,
        basis: preview.basis,
    }
}

/// Returns what the reviewing model thinks of a request. Without one, a person must decide.
pub(crate) async fn reviewed(cx: &TurnContext<'_>, request: &ConsentRequest<'_>) -> Opinion {
    let Some(reviewer) = &cx.ports.safety.reviewer else {
        return Opinion::Unsure;
    };
    let session = cx.recorder.session();
    let subject = match &request.preview {
        Some(preview) => Subject::Change(format!("{}\n{}", request.what, preview.diff)),
        None => Subject::Command {
            text: &request.what,
            folder: request.folder.as_deref(),
        },
    };
    let (opinion, spent) = tokio::select! {
        answer = reviewer.opinion(session, &cx.turn, &subject, &request.reason) => answer,
        () = request.asker.stop.cancelled() => (Opinion::Unsure, None),
    };
    if let Some(spent) = spent {
        cx.tell(Event::CallSpent {
            call: request.asker.call.clone(),
            usage: spent.usage,
            cost: spent.cost,
            model: spent.model,
        });
    }
    opinion
}

/// Keeps what a person allowed for good. The command runs now in any case; what could not be saved is asked again.
pub(crate) async fn allow_for_good(
    cx: &TurnContext<'_>,
    request: &ConsentRequest<'_>,
    pattern: Option<&str>,
) {
    let (Some(list), Some(folder)) = (&cx.ports.safety.allow_list, &request.folder) else {
        return;
    };
    if let Err(reason) = list.allow(&request.what, pattern, folder).await {
        let notice = hermes_core::Notice::NotTaken { reason };
        cx.tell(Event::Notice { notice });
    }
}

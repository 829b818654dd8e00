//! Changes of files that somebody agrees to first: which they are, what they look like, and whether what is about to be
//! written is what was agreed to.
//!
//! Shared by the tools that change files. What a path means for it is in `guard`; asking is not done here.

use std::path::Path;

use hermes_core::text::head;
use hermes_core::{Agreement, Consent, Preview, Review};
use sha2::{Digest as _, Sha256};

use crate::ToolPorts;
use crate::diff;
use crate::files::FileSystems;
use crate::guard::Write;
use crate::ledger::Stamp;
use crate::target::Target;

/// What somebody is shown of a change. It is kept with the question, and nobody reads more before they answer.
const PREVIEW_BYTES_MAX: usize = 200_000;

/// What a yes for the session covers where every change is asked about: all but the files that are asked about anyway.
const ORDINARY_FILES: &str = "ordinary files";

/// Why an ordinary file is asked about.
const EVERY_CHANGE: &str = "changes a file, and every change is shown first until one is allowed for the session (`approvals.edits`)";

/// `approvals.edits`: which changes of files are looked at before they are made.
#[derive(Debug, Clone, Default)]
pub enum EditReview {
    /// Those that a command would be asked about.
    #[default]
    Sensitive,
    /// Every one.
    Every,
}

impl EditReview {
    fn is_of_every(&self) -> bool {
        matches!(self, Self::Every)
    }
}

/// Decides about the changes of one tool.
#[derive(Clone)]
pub(crate) struct Edits {
    tool: &'static str,
    systems: FileSystems,
    review: EditReview,
}

impl Edits {
    pub(crate) fn of(tool: &'static str, ports: &ToolPorts, systems: &FileSystems) -> Self {
        Self {
            tool,
            systems: systems.clone(),
            review: ports.edit_review.clone(),
        }
    }

    /// Says who must agree to a change of these files.
    pub(crate) fn consent(&self, paths: &[&str], cwd: &Path) -> Consent {
        let mut reasons: Vec<&str> = Vec::new();
        let (mut shown, mut covers) = (Vec::new(), Vec::new());
        let mut is_for_person = self.review.is_of_every();
        let mut writes = self.systems.judge_writes(paths, cwd);
        writes.sort_by_key(|write| rank(&write.judgement));
        for write in writes {
            match write.judgement {
                // The call says why when it runs; nobody need be asked.
                Write::Refused(_) => return Consent::NotNeeded,
                Write::Asked {
                    reason,
                    is_for_person: by_person,
                } => {
                    is_for_person |= by_person;
                    add(&mut reasons, reason);
                }
                Write::Free => {}
            }
            if let Some(name) = self.name(&write.judgement, &write.name) {
                add(&mut covers, name);
            }
            add(&mut shown, on_one_line(&write.shown));
        }
        if covers.is_empty() {
            return Consent::NotNeeded;
        }
        if reasons.is_empty() {
            reasons.push(EVERY_CHANGE);
        }
        Consent::Review(Review {
            reason: reasons.join(", and "),
            what: shown.join("\n"),
            covers,
            is_for_person,
            may_wait: false,
        })
    }

    /// Refuses to change a file that was not agreed to: a link may lead elsewhere than it did, or a name on another
    /// machine may mean more than it said.
    pub(crate) fn check(
        &self,
        path: &str,
        target: &Target,
        agreement: &Agreement,
    ) -> Result<(), String> {
        let file = self.systems.name_of_write(path, target.path());
        let name = self.name(target.judgement(), &file);
        if name.is_none_or(|name| agreement.covers.contains(&name)) {
            return Ok(());
        }
        let reason = match target.judgement() {
            Write::Asked { reason, .. } => reason,
            Write::Free | Write::Refused(_) => EVERY_CHANGE,
        };
        Err(format!(
            "`{}` is not written: this {reason}, and nobody was asked about it; call again with the path `{}`",
            target.asked().display(),
            target.path().display(),
        ))
    }

    /// What must be covered for a write, if anything.
    fn name(&self, judgement: &Write, file: &str) -> Option<String> {
        match judgement {
            Write::Asked { .. } => Some(format!("{} {file}", self.tool)),
            _ => self.review.is_of_every().then(|| ORDINARY_FILES.to_owned()),
        }
    }
}

/// One file of a change.
pub(crate) struct Edit<'a> {
    /// As the model named it.
    pub(crate) name: &'a str,
    /// The name it had before, if it is moved.
    pub(crate) moved_from: Option<&'a str>,
    pub(crate) target: &'a Target,
    pub(crate) before: Before<'a>,
    /// `None`: there will be no file.
    pub(crate) after: Option<&'a [u8]>,
}

/// What is in a file now.
pub(crate) enum Before<'a> {
    NoFile,
    Content(&'a [u8]),
    /// Too large to be read, or it cannot be.
    Unread(Stamp),
}

/// Shows a change to whoever is to agree to it. What they are asked about comes first, where no long change of other files
/// pushes it off the screen.
pub(crate) fn preview(edits: &[Edit<'_>]) -> Preview {
    let mut in_order: Vec<&Edit<'_>> = edits.iter().collect();
    in_order.sort_by_key(|edit| rank(edit.target.judgement()));
    let mut diff: String = in_order.into_iter().map(Edit::diff).collect();
    if diff.is_empty() {
        // Written a second time, after a crash say.
        diff.push_str("[nothing would change]\n");
    }
    let shown = head(&diff, PREVIEW_BYTES_MAX);
    let is_whole = shown.len() == diff.len();
    Preview {
        basis: basis(edits),
        diff: if is_whole {
            diff
        } else {
            format!(
                "{shown}\n[… {} more bytes are not shown]\n",
                diff.len() - shown.len()
            )
        },
        is_whole: is_whole && edits.iter().all(Edit::is_shown),
    }
}

/// Refuses a change that is not the one somebody has seen.
pub(crate) fn check_seen(edits: &[Edit<'_>], agreement: &Agreement) -> Result<(), String> {
    match &agreement.basis {
        Some(seen) if *seen != basis(edits) => Err(
            "nothing was written: what is there has changed since this change was shown and agreed to; read it again, \
             and make the change anew"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Tells a change from every other: which files, what is in them, what will be.
fn basis(edits: &[Edit<'_>]) -> String {
    let mut hash = Sha256::new();
    let mut add = |kind: &str, part: &[u8]| {
        hash.update(format!("{kind} {}:", part.len()));
        hash.update(part);
    };
    for edit in edits {
        add("file", edit.target.path().as_os_str().as_encoded_bytes());
        add("from", edit.moved_from.unwrap_or_default().as_bytes());
        match edit.before {
            Before::NoFile => add("nothing", b""),
            Before::Content(content) => add("content", content),
            Before::Unread(stamp) => add("unread", format!("{stamp:?}").as_bytes()),
        }
        match edit.after {
            Some(content) => add("content", content),
            None => add("nothing", b""),
        }
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Edit<'_> {
    fn diff(&self) -> String {
        let name = on_one_line(self.name);
        let moved = self.moved_from.map(|from| {
            let from = on_one_line(from);
            format!("rename from {from}\nrename to {name}\n")
        });
        let (old, note) = match self.before {
            Before::NoFile => (None, ""),
            Before::Content(_) if self.target.is_secret() => {
                (None, "[what is in it now is not shown: it holds secrets]\n")
            }
            Before::Content(content) if !is_text(content) => {
                (None, "[what is in it now is not shown: it is not text]\n")
            }
            // It was free to write where it was.
            Before::Content(_) if self.is_moved_to_where_is_asked() => (None, ""),
            Before::Content(content) => (Some(content), ""),
            Before::Unread(_) => (None, "[what is in it now is not shown: it is too large]\n"),
        };
        let diff = diff::whole(&name, old, self.after);
        format!("{}{note}{diff}", moved.unwrap_or_default())
    }

    /// Whether somebody must see all of a file that is moved, also where no line of it changes.
    fn is_moved_to_where_is_asked(&self) -> bool {
        let is_asked = matches!(self.target.judgement(), Write::Asked { .. });
        self.moved_from.is_some() && is_asked
    }

    fn is_shown(&self) -> bool {
        let is_before_shown = match self.before {
            Before::NoFile => true,
            Before::Content(content) => is_text(content) && !self.target.is_secret(),
            Before::Unread(_) => false,
        };
        is_before_shown && self.after.is_none_or(is_text)
    }
}

fn is_text(content: &[u8]) -> bool {
    str::from_utf8(content).is_ok()
}

/// In which order files are shown to whoever must agree.
fn rank(judgement: &Write) -> u8 {
    match judgement {
        Write::Asked { .. } => 0,
        Write::Free | Write::Refused(_) => 1,
    }
}

/// Spells out the line breaks of a name, so that none of it passes for another file or for lines of the change.
fn on_one_line(name: &str) -> String {
    name.replace('\r', "\\r").replace('\n', "\\n")
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

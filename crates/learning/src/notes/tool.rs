//! `memory`: the model's way to its notes. It has no way to read them, for they are in the prompt; it can search what was
//! archived.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hermes_core::{
    Action, Author, BoxFuture, Consent, Effect, Exposure, Parallel, Plan, PlanContext, Preview,
    PreviewContext, Review, Scripts, SessionId, StoreError, Subagents, Surfaces, Tool, ToolContext,
    ToolError, ToolGroup, ToolOutput, ToolSpec, TurnId,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::grounding::{Conversations, Doubt, Grounding, Objection};

use super::{
    Changed, NoteFile, Notes, NotesError, Operation, PendingNote, Provenance, Refused, basis_of,
    diff,
};
use crate::blocking::blocking;

pub const NAME: &str = "memory";

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset(NAME),
    surfaces: Surfaces::Every,
    // They work for the parent, which remembers.
    subagents: Subagents::None,
    scripts: Scripts::No,
    for_small_models: None,
};

/// Answers that the file is full, in one turn. Who did not find room by then does not find any.
const FULL_MAX: u32 = 3;

/// What a yes for the session covers.
const COVERS: &str = "notes";

/// What a yes for the session covers where a note has somebody else's words.
const COVERS_OTHERS: &str = "notes in the words of others";

/// The tool over the notes of one person. What was said in a conversation decides which of its changes somebody is asked about.
pub fn tool(notes: Notes, conversations: Conversations) -> Arc<dyn Tool> {
    made(notes, conversations, Writes::AtOnce)
}

/// The same where nobody can be asked: what somebody has to agree to waits for them.
pub fn staging_tool(notes: Notes, conversations: Conversations) -> Arc<dyn Tool> {
    let writes = if notes.settings().write_approval {
        Writes::AfterConsent
    } else {
        Writes::AtOnce
    };
    made(notes, conversations, writes)
}

fn made(notes: Notes, conversations: Conversations, writes: Writes) -> Arc<dyn Tool> {
    Arc::new(Memory {
        spec: shared_spec(&notes),
        notes,
        conversations,
        writes,
        full: Mutex::default(),
    })
}

/// When a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    AtOnce,
    AfterConsent,
}

/// The specification for those files that are used: one for all conversations, for each has the tool.
fn shared_spec(notes: &Notes) -> &'static ToolSpec {
    static OF_BOTH: OnceLock<ToolSpec> = OnceLock::new();
    static OF_MEMORY: OnceLock<ToolSpec> = OnceLock::new();
    static OF_USER: OnceLock<ToolSpec> = OnceLock::new();
    let used: Vec<NoteFile> = notes.used().collect();
    let shared = match used.as_slice() {
        [NoteFile::Memory] => &OF_MEMORY,
        [NoteFile::User] => &OF_USER,
        _ => &OF_BOTH,
    };
    shared.get_or_init(|| spec(&used))
}

fn spec(used: &[NoteFile]) -> ToolSpec {
    let targets: Vec<&str> = used.iter().map(|file| file.as_str()).collect();
    ToolSpec {
        name: NAME.to_owned(),
        description: "Keep notes that every later conversation begins with: `user` for who the user is and what they \
                      prefer, `memory` for lasting facts about their projects and machine and for lessons learnt. Short, \
                      self-contained entries; rather change an entry than add one. What you write shows from the next \
                      conversation on."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "target": {"type": "string", "enum": targets, "description": "Which notes (default memory)"},
                "action": {
                    "type": "string",
                    "enum": ["add", "replace", "remove", "archive", "search"],
                    "description": "archive: keep out of the prompt; search: find archived ones by words in `content`",
                },
                "content": {"type": "string", "description": "The entry for add and replace"},
                "old_text": {"type": "string", "description": "Words that only the entry meant has"},
                "operations": {
                    "type": "array",
                    "description": "Several changes at once, all or none; only the end must fit",
                    "items": {
                        "type": "object",
                        "properties": {
                            "action": {"type": "string", "description": "add, replace, remove or archive"},
                            "content": {"type": "string", "description": "As above"},
                            "old_text": {"type": "string", "description": "As above"},
                        },
                        "required": ["action"],
                    },
                },
                "make_room": {"type": "boolean", "description": "Archive the oldest entries if it is full"},
            },
            "required": [],
        }),
    }
}

struct Memory {
    spec: &'static ToolSpec,
    notes: Notes,
    conversations: Conversations,
    writes: Writes,
    /// How often a turn was told that a file is full.
    full: Mutex<FullAnswers>,
}

/// The last turn of a session that was told so, and how often.
type FullAnswers = HashMap<SessionId, (Option<TurnId>, u32)>;

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    target: Option<String>,
    action: Option<String>,
    content: Option<String>,
    old_text: Option<String>,
    operations: Option<Vec<OperationArguments>>,
    #[serde(default)]
    make_room: bool,
}

#[derive(Debug, Default, Deserialize)]
struct OperationArguments {
    #[serde(default)]
    action: String,
    content: Option<String>,
    old_text: Option<String>,
}

/// What a call wants.
#[derive(Debug, Clone)]
enum Wanted {
    Search { words: String },
    Change(Change),
}

#[derive(Debug, Clone)]
struct Change {
    file: NoteFile,
    operations: Vec<Operation>,
    make_room: bool,
}

impl Wanted {
    fn read(arguments: &Value) -> Result<Self, String> {
        let arguments = Arguments::deserialize(arguments)
            .map_err(|error| format!("the arguments of `{NAME}` do not fit its schema: {error}"))?;
        let target = arguments
            .target
            .as_deref()
            .unwrap_or(NoteFile::Memory.as_str());
        let file = NoteFile::named(target)
            .ok_or_else(|| format!("there are no notes `{target}`; `target` is memory or user"))?;
        if arguments.action.as_deref() == Some("search") {
            return match arguments.content.filter(|words| !words.trim().is_empty()) {
                Some(words) => Ok(Self::Search { words }),
                None => Err("give the words to search for in `content`".to_owned()),
            };
        }
        let single = arguments.action.map(|action| OperationArguments {
            action,
            content: arguments.content,
            old_text: arguments.old_text,
        });
        let operations = single
            .into_iter()
            .chain(arguments.operations.into_iter().flatten());
        Ok(Self::Change(Change {
            file,
            operations: operations
                .map(OperationArguments::read)
                .collect::<Result<_, _>>()?,
            make_room: arguments.make_room,
        }))
    }
}

impl OperationArguments {
    fn read(self) -> Result<Operation, String> {
        let Self {
            action,
            content,
            old_text,
        } = self;
        let needed = |text: Option<String>, name: &str| {
            text.ok_or_else(|| format!("`{action}` needs `{name}`"))
        };
        match action.as_str() {
            "add" => Ok(Operation::Add {
                content: needed(content, "content")?,
            }),
            "replace" => Ok(Operation::Replace {
                old_text: needed(old_text, "old_text")?,
                content: needed(content, "content")?,
            }),
            "remove" => Ok(Operation::Remove {
                old_text: needed(old_text, "old_text")?,
            }),
            "archive" => Ok(Operation::Archive {
                old_text: needed(old_text, "old_text")?,
            }),
            other => Err(format!(
                "there is no action `{other}`; use add, replace, remove or archive"
            )),
        }
    }
}

impl Tool for Memory {
    fn spec(&self) -> &ToolSpec {
        self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let wanted = Wanted::read(arguments);
        let (effect, parallel, consent) = match &wanted {
            Ok(Wanted::Change(Change { file, .. })) => {
                let path = self.notes.path(*file);
                // Made twice it is as made once: what is there is not added, what is gone is not found.
                (
                    Effect::Idempotent,
                    Parallel::Writes(vec![path]),
                    self.consent(*file),
                )
            }
            Ok(Wanted::Search { .. }) | Err(_) => {
                (Effect::Read, Parallel::Always, Consent::NotNeeded)
            }
        };
        Plan {
            consent,
            ..Plan::new(effect, parallel, Call::of(self, wanted))
        }
    }

    fn close_session(&self, session: &SessionId) {
        self.lock_full().remove(session);
    }
}

impl Memory {
    fn consent(&self, file: NoteFile) -> Consent {
        if !self.notes.settings().write_approval || self.writes == Writes::AfterConsent {
            return Consent::NotNeeded;
        }
        Consent::Review(Review {
            reason: "changes what is remembered in later conversations (`memory.write_approval`)"
                .to_owned(),
            what: self.notes.path(file).display().to_string(),
            covers: vec![COVERS.to_owned()],
            is_for_person: true,
            may_wait: false,
        })
    }

    /// Looks at whose words a change would keep, and what it would take away.
    async fn doubt(&self, change: &Change, asked: &Asked<'_>) -> Result<Option<Doubt>, StoreError> {
        let Change {
            file,
            operations,
            make_room,
        } = change;
        // What cannot be made is refused when it is tried, with all that the model has to know.
        let fits = self.notes.preview(*file, operations, *make_room).is_ok();
        let outcome = self.notes.outcome(*file, operations);
        let Some((before, after)) = outcome.ok().filter(|_| fits) else {
            return Ok(None);
        };
        let without = |some: &[String], others: &[String]| -> Vec<String> {
            some.iter()
                .filter(|one| !others.contains(one))
                .cloned()
                .collect()
        };
        let (added, removed) = (without(&after, &before), without(&before, &after));
        let (put, gone, kept) = (added.join("\n"), removed.join("\n"), after.join("\n"));
        let texts = added.iter().chain([&put, &gone, &kept]);
        let person = self.notes.settings().person.as_deref();
        let grounding =
            Grounding::of(texts.map(String::as_str), person).knowing(&before.join("\n"));
        let grounding = match asked.by {
            Author::Review => grounding,
            _ => grounding.working_in(asked.cwd),
        };
        let heard = self.conversations.hear(asked.session, grounding).await?;
        if let Some(objection) = added.iter().find_map(|entry| heard.check(entry).err()) {
            return Ok(Some(Doubt::Strange(objection)));
        }
        let is_loss = asked.by == Author::Review && !heard.allows_loss(&gone, &put, &kept);
        Ok(is_loss.then_some(Doubt::Loss))
    }

    fn lock_full(&self) -> std::sync::MutexGuard<'_, FullAnswers> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answer that a file is full. Returns how many this turn has got.
    fn count_full(&self, cx: &ToolContext) -> u32 {
        let mut full = self.lock_full();
        let counted = full.entry(cx.session.clone()).or_default();
        if counted.0 != cx.turn {
            *counted = (cx.turn.clone(), 0);
        }
        counted.1 += 1;
        counted.1
    }

    /// A refusal as the model reads it: what is wrong, what there is, and what it can do.
    fn refusal(&self, error: &NotesError, cx: &ToolContext) -> String {
        let error_text = error.to_string();
        let NotesError::Refused(refused) = error else {
            return json!({"success": false, "error": error_text}).to_string();
        };
        match refused {
            Refused::Full { usage, entries, alike } => {
                let is_done = self.count_full(cx) >= FULL_MAX;
                let advice = if is_done {
                    "Stop trying to make it fit by hand: either call once more with `make_room: true`, or leave it."
                } else {
                    "Merge or shorten entries and add the new one in one call with `operations`, or call again with \
                     `make_room: true`: the oldest entries go to the archive, where `search` finds them."
                };
                let merges: Vec<_> = alike.iter().map(|(one, other)| json!([one, other])).collect();
                json!({
                    "success": false,
                    "done": is_done,
                    "error": error_text,
                    "usage": usage.to_string(),
                    "current_entries": entries,
                    "could_be_merged": merges,
                    "advice": advice,
                })
            }
            Refused::NoMatch { entries, .. } => {
                json!({"success": false, "error": error_text, "current_entries": entries})
            }
            Refused::Ambiguous { matches, .. } => {
                json!({"success": false, "error": error_text, "matches": matches})
            }
            _ => json!({"success": false, "error": error_text}),
        }
        .to_string()
    }
}

/// Who wants a change, and in which conversation.
struct Asked<'a> {
    by: Author,
    session: &'a SessionId,
    cwd: &'a Path,
}

struct Call {
    tool: Arc<Memory>,
    wanted: Result<Wanted, String>,
    /// Found out once.
    doubt: OnceCell<Option<Doubt>>,
}

impl Call {
    fn of(tool: Arc<Memory>, wanted: Result<Wanted, String>) -> Self {
        Self {
            tool,
            wanted,
            doubt: OnceCell::new(),
        }
    }

    async fn doubt(&self, change: &Change, asked: Asked<'_>) -> Result<Option<Doubt>, ToolError> {
        let find = || self.tool.doubt(change, &asked);
        let doubt = self.doubt.get_or_try_init(find).await;
        let doubt = doubt.map_err(|error| ToolError::Answer(format!("not done: {error}")))?;
        Ok(doubt.clone())
    }

    async fn change(&self, change: &Change, cx: &ToolContext) -> Result<String, ToolError> {
        let tool = &self.tool;
        let by = Provenance {
            author: cx.author,
            session: Some(cx.session.clone()),
            turn: cx.turn.clone(),
        };
        let agreement = &cx.agreement;
        let is_agreed =
            agreement.basis.is_some() || agreement.covers.iter().any(|name| name == COVERS_OTHERS);
        let asked = Asked {
            by: cx.author,
            session: &cx.session,
            cwd: &cx.cwd,
        };
        let doubt = if is_agreed {
            None
        } else {
            self.doubt(change, asked).await?
        };
        let Change {
            file,
            operations,
            make_room,
        } = change;
        let refusal = |error| ToolError::Answer(tool.refusal(&error, cx));
        match &doubt {
            Some(Doubt::Strange(objection)) if cx.author == Author::Review => {
                return Err(ToolError::Answer(objection.to_string()));
            }
            Some(_) => {}
            None if tool.writes == Writes::AfterConsent => {}
            None => {
                let basis = agreement.basis.as_deref();
                let changed = tool
                    .notes
                    .apply_agreed(*file, operations, *make_room, &by, basis)
                    .await
                    .map_err(refusal)?;
                return Ok(told(*file, &changed));
            }
        }
        let staged = tool.notes.stage(*file, operations, *make_room, &by).await;
        Ok(waits(&staged.map_err(refusal)?, doubt.as_ref()))
    }
}

impl Action for Call {
    fn review<'a>(
        &'a self,
        cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Review>, ToolError>> {
        Box::pin(async move {
            let Ok(Wanted::Change(change)) = &self.wanted else {
                return Ok(None);
            };
            let asked = Asked {
                by: Author::Agent,
                session: cx.session,
                cwd: cx.cwd,
            };
            let Some(Doubt::Strange(Objection { words, source })) =
                self.doubt(change, asked).await?
            else {
                return Ok(None);
            };
            Ok(Some(Review {
                reason: format!(
                    "keeps for all later conversations what {source} says and you did not say (“{words}”)"
                ),
                what: self.tool.notes.path(change.file).display().to_string(),
                covers: vec![COVERS_OTHERS.to_owned()],
                is_for_person: true,
                may_wait: true,
            }))
        })
    }

    fn preview<'a>(
        &'a self,
        _cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async move {
            let Ok(Wanted::Change(Change {
                file,
                operations,
                make_room,
            })) = &self.wanted
            else {
                return Ok(None);
            };
            let (notes, operations) = (self.tool.notes.clone(), operations.clone());
            let (file, make_room) = (*file, *make_room);
            let path = notes.path(file);
            let previewed = blocking(move || notes.preview(file, &operations, make_room)).await;
            let (before, after) =
                previewed.map_err(|error| ToolError::Answer(error.to_string()))?;
            Ok(Some(Preview {
                diff: diff(&path, &before, &after),
                is_whole: true,
                basis: basis_of(&before, &after),
            }))
        })
    }

    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match &self.wanted {
                Err(why) => Err(ToolError::Answer(why.clone())),
                Ok(Wanted::Search { words }) => self.tool.search(words.clone()).await,
                Ok(Wanted::Change(change)) => {
                    let answer = self.change(change, cx).await?;
                    Ok(ToolOutput::text(answer))
                }
            }
        })
    }
}

impl Memory {
    async fn search(&self, words: String) -> Result<ToolOutput, ToolError> {
        let notes = self.notes.clone();
        let found = blocking(move || notes.search(&words)).await;
        let found = found.map_err(|error| ToolError::Answer(error.to_string()))?;
        let found: Vec<Value> = found
            .iter()
            .filter(|found| crate::threats::find(&found.text).is_none())
            .map(|found| json!({"in": found.place, "entry": found.text}))
            .collect();
        let answer = json!({"success": true, "count": found.len(), "found": found});
        Ok(ToolOutput::text(answer.to_string()))
    }
}

/// A change that waits for somebody, as the model reads it.
fn waits(pending: &PendingNote, doubt: Option<&Doubt>) -> String {
    let number = pending.number;
    let why = doubt.map_or_else(String::new, |doubt| format!(": {}", doubt.why()));
    json!({
        "success": true,
        "done": true,
        "proposed": number,
        "summary": pending.summary,
        "see": "hermes memory pending",
        "message": format!(
            "not written yet{why}. It waits for the user as number {number}, who decides with `/memory approve {number}` or \
             `/memory reject {number}`. Go on without it."
        ),
    })
    .to_string()
}

/// A change that was made, as the model reads it.
fn told(file: NoteFile, changed: &Changed) -> String {
    let mut answer = json!({
        "success": true,
        "done": true,
        "target": file.as_str(),
        "usage": changed.usage.to_string(),
        "entry_count": changed.entries,
        "message": changed.summary,
        "note": "Saved. This conversation's prompt stays as it is; later ones begin with it.",
    });
    if !changed.archived.is_empty() {
        answer["archived"] = json!(changed.archived);
    }
    if let Some(id) = changed.id {
        answer["change"] = json!(id.0);
    }
    answer.to_string()
}

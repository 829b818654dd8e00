//! The model of the user as the settings want it, and as text for people.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::text::shorten;
use hermes_core::{
    Audience, ChangeId, Clock, Conclusion, FactId, Model, Premise, Representation, SessionOptions,
    Superseded, Timestamp, Tool, UserModel,
};
use hermes_learning::asking::{Asking, Books};
use hermes_learning::user_model::honcho::{
    Honcho, HonchoSettings, HonchoUserModel, Known, PROVIDER as HONCHO, WriteFrequency,
};
use hermes_learning::user_model::{
    LocalUserModel, PROVIDER as LOCAL, UserModelError, UserModelSettings,
};
use hermes_store::SqliteStore;
use serde_json::json;

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::hearings::{HearingPlan, Hearings, Pace};
use crate::layout::{Table, age, one_line, printable};
use crate::models::{Models, Purpose};
use crate::recall;
use crate::reviews;
use crate::runtime::Runtime;

/// Of a fact, this much fits a line.
const FACT_CHARS_MAX: usize = 200;

/// How long whoever looks how things are waits for a provider.
const PROBE_DEADLINE: Duration = Duration::from_secs(3);

/// `memory.provider`: who keeps the model of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// Hermes itself, in its database.
    Local,
    /// Honcho, a service.
    Honcho,
    /// Nobody.
    Off,
    /// One that is not there; Hermes does it.
    Unknown(String),
}

impl Provider {
    pub fn chosen(base: &Base) -> Result<Self> {
        let name = base.settings.optional_string("memory.provider")?;
        Ok(match name.as_deref().map(str::trim) {
            None | Some("" | LOCAL | "builtin" | "built-in") => Self::Local,
            Some(HONCHO) => Self::Honcho,
            Some("none" | "off") => Self::Off,
            Some(other) => Self::Unknown(other.to_owned()),
        })
    }

    /// What the user should know of their choice.
    pub fn warning(&self, base: &Base) -> Option<String> {
        match self {
            Self::Honcho => match honcho_settings(base) {
                Ok(_) => None,
                Err(error) => Some(format!("{error}; nothing is known of you meanwhile")),
            },
            Self::Unknown(name) => Some(format!(
                "memory.provider: there is no `{}` here; the model of the user is kept locally (known: local, honcho, none)",
                one_line(name)
            )),
            _ => None,
        }
    }
}

/// What a conversation has of it.
#[derive(Clone)]
pub(crate) struct OfSession {
    pub(crate) model: Arc<dyn UserModel>,
    pub(crate) hearing: Option<HearingPlan>,
}

/// As the settings want it; `None` when it is off, or a conversation goes without.
pub(crate) fn of(
    runtime: &Runtime,
    base: &Base,
    options: &SessionOptions,
    main: &Arc<dyn Model>,
) -> Result<Option<OfSession>> {
    let is_on = base.settings.bool("user_model.enabled")?;
    let provider = Provider::chosen(base)?;
    if !is_on || options.leaves_out.rules || provider == Provider::Off {
        return Ok(None);
    }
    let store = Arc::clone(runtime.store());
    let clock = Arc::clone(runtime.clock());
    let person = options.person.clone();
    if provider == Provider::Honcho {
        let Ok(Some(honcho)) = runtime.honcho(base) else {
            // The warning of the provider says why.
            return Ok(None);
        };
        let pace = honcho_pace(base, &honcho.settings)?;
        let model: Arc<dyn UserModel> = Arc::new(of_honcho(base, person, store, clock, honcho)?);
        let hearing = (options.audience == Audience::Person)
            .then(|| hearing(runtime, base, options, &model, pace));
        return Ok(Some(OfSession { model, hearing }));
    }
    let books = Some(Books {
        ledger: store.clone(),
        clock: Arc::clone(&clock),
    });
    let asking = recall::asking(base, runtime.models(), Purpose::UserModel, main, books)?;
    let local = local(base, person, store, clock, Some(asking))?;
    let model: Arc<dyn UserModel> = Arc::new(local);
    let settings = &base.settings;
    // A hearing asks nobody, so that it could keep nothing where every change is asked about.
    let learns = settings.bool("learning.enabled")? && !settings.bool("memory.write_approval")?;
    let pace = Pace {
        turns: settings.u64("user_model.turns")?,
        rest: settings.seconds("learning.rest")?,
        over: over(base)?,
    };
    let is_heard = options.audience == Audience::Person && learns;
    Ok(Some(OfSession {
        hearing: is_heard.then(|| hearing(runtime, base, options, &model, pace)),
        model,
    }))
}

/// How long a conversation rests until it is over.
fn over(base: &Base) -> Result<Duration> {
    let rest = base.settings.seconds("user_model.rest")?;
    Ok(rest.max(Duration::from_secs(1)))
}

/// Honcho's `writeFrequency`.
fn honcho_pace(base: &Base, settings: &HonchoSettings) -> Result<Pace> {
    Ok(Pace {
        turns: match settings.write {
            WriteFrequency::EachTurn => 1,
            WriteFrequency::Turns(turns) => turns,
            WriteFrequency::Session => 0,
        },
        rest: Duration::ZERO,
        over: over(base)?,
    })
}

/// How Honcho is used, from `honcho.json` in the home, else from the one that its programs share; `None` where that says it
/// is off.
pub fn honcho_settings(base: &Base) -> Result<Option<HonchoSettings>> {
    let own = base.home.directory().join("honcho.json");
    let shared = base
        .environment
        .user_home()
        .map(|home| home.join(".honcho/config.json"));
    let mut file = json!({});
    for path in std::iter::once(own).chain(shared) {
        if path.is_file() {
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Error::asked(format!("`{}` cannot be read: {error}", path.display()))
            })?;
            file = serde_json::from_str(&text).map_err(|error| {
                Error::asked(format!("`{}` is not JSON: {error}", path.display()))
            })?;
            break;
        }
    }
    let host = match base.home.profile() {
        Some(profile) => format!("hermes_{profile}"),
        None => "hermes".to_owned(),
    };
    HonchoSettings::read(&file, &host, |name| base.variable(name))
        .map_err(|why| Error::asked(format!("memory.provider is honcho, but {why}")))
}

fn of_honcho(
    base: &Base,
    person: Option<String>,
    store: Arc<SqliteStore>,
    clock: Arc<dyn Clock>,
    honcho: Arc<Honcho>,
) -> Result<HonchoUserModel> {
    Ok(HonchoUserModel {
        honcho,
        archive: store.clone(),
        models: store,
        clock,
        person,
        prompt_chars_max: base.settings.u64("user_model.char_limit")? as usize,
        write_approval: base.settings.bool("memory.write_approval")?,
    })
}

/// Honcho's model of a person for whoever works on it with commands; `None` where another provider is chosen.
pub fn honcho_for_commands(
    base: &Base,
    person: Option<String>,
    store: Arc<SqliteStore>,
) -> Result<Option<HonchoUserModel>> {
    if Provider::chosen(base)? != Provider::Honcho {
        return Ok(None);
    }
    let settings = honcho_settings(base)?.ok_or_else(|| {
        Error::asked("memory.provider is honcho, but honcho.json says `enabled: false`")
    })?;
    let honcho = Arc::new(Honcho::new(settings));
    of_honcho(base, person, store, Arc::new(SystemClock), honcho).map(Some)
}

/// How Honcho is at this moment: in good words, or in bad ones.
pub async fn honcho_standing(base: &Base) -> Result<String, String> {
    let settings = match honcho_settings(base) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Err("Honcho; honcho.json says `enabled: false`".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let without_effect = match settings.without_effect.as_slice() {
        [] => String::new(),
        keys => format!("; without an effect here: {}", keys.join(", ")),
    };
    let place = format!("Honcho at {}", settings.base_url);
    match Honcho::new(settings).probe(PROBE_DEADLINE).await {
        Ok(()) => Ok(format!("{place} answers{without_effect}")),
        Err(error) => Err(format!("{place} does not work: {error}")),
    }
}

/// What Honcho knows, in words.
pub fn shown_honcho(known: &Known) -> String {
    let card: Vec<String> = known.card.iter().map(|line| format!("- {line}")).collect();
    let parts: Vec<String> = [card.join("\n"), known.representation.trim().to_owned()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() {
        return "Honcho knows nothing of you yet".to_owned();
    }
    printable(&parts.join("\n\n"))
}

/// How a conversation is heard.
fn hearing(
    runtime: &Runtime,
    base: &Base,
    options: &SessionOptions,
    model: &Arc<dyn UserModel>,
    pace: Pace,
) -> HearingPlan {
    HearingPlan(Arc::new(Hearings {
        model: Arc::clone(model),
        models: runtime.store().clone(),
        clock: Arc::clone(runtime.clock()),
        person: options.person.clone(),
        pace,
        is_told: reviews::is_told(base),
    }))
}

fn local(
    base: &Base,
    person: Option<String>,
    store: Arc<SqliteStore>,
    clock: Arc<dyn Clock>,
    asking: Option<Asking>,
) -> Result<LocalUserModel> {
    Ok(LocalUserModel {
        store: store.clone(),
        archive: store.clone(),
        models: store.clone(),
        log: store.clone(),
        ledger: store,
        clock,
        asking,
        settings: UserModelSettings {
            person,
            prompt_chars_max: base.settings.u64("user_model.char_limit")? as usize,
            budget: reviews::budget(base)?,
        },
    })
}

/// The model of a person for whoever works on it with commands; without somebody to ask.
pub fn for_commands(
    base: &Base,
    person: Option<String>,
    store: Arc<SqliteStore>,
) -> Result<LocalUserModel> {
    local(base, person, store, Arc::new(SystemClock), None)
}

/// The same with who answers questions.
pub async fn for_questions(
    base: &Base,
    person: Option<String>,
    store: Arc<SqliteStore>,
    models: &Models,
) -> Result<LocalUserModel> {
    let main = models.main(base, Audience::Nobody).await?.model;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let books = Some(Books {
        ledger: store.clone(),
        clock: Arc::clone(&clock),
    });
    let asking = recall::asking(base, models, Purpose::UserModel, &main, books)?;
    local(base, person, store, clock, Some(asking))
}

/// The tools where nobody calls them: they are only looked at.
pub(crate) fn to_look_at(base: &Base, options: &SessionOptions) -> Result<Vec<Arc<dyn Tool>>> {
    let is_on = base.settings.bool("user_model.enabled")?;
    if !is_on || options.leaves_out.rules || Provider::chosen(base)? == Provider::Off {
        return Ok(Vec::new());
    }
    let Ok(store) = SqliteStore::open_read_only(base.home.database()) else {
        return Ok(Vec::new());
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let person = options.person.clone();
    if Provider::chosen(base)? == Provider::Honcho {
        let honcho = honcho_for_commands(base, person, Arc::new(store));
        return Ok(match honcho {
            Ok(Some(honcho)) => honcho.tools(),
            _ => Vec::new(),
        });
    }
    Ok(local(base, person, Arc::new(store), clock, None)?.tools())
}

/// What is known, as a table; with what was believed before, if that is wanted.
pub fn shown(known: &Representation, history: History, now: Timestamp) -> String {
    let mut rows: Vec<Row> = Vec::new();
    rows.extend(known.premises.iter().map(Row::of_premise));
    rows.extend(known.conclusions.iter().map(Row::of_conclusion));
    if history == History::LeftOut {
        rows.retain(|row| row.superseded.is_none());
    }
    if rows.is_empty() {
        return "nothing is known of you yet; it comes from your own words, after conversations"
            .to_owned();
    }
    let mut table = Table::new(["FACT", "KIND", "SURE", "SAID", "WHAT"]);
    for row in rows {
        let replaced = match &row.superseded {
            None => String::new(),
            Some(Superseded { by: Some(by), .. }) => format!(" (replaced by {by})"),
            Some(_) => " (does not hold any more)".to_owned(),
        };
        table.row([
            row.id.to_string(),
            row.kind.to_owned(),
            format!("{} %", row.confidence),
            age(row.at, now),
            format!(
                "{}{}{replaced}",
                shorten(&one_line(row.text), FACT_CHARS_MAX),
                row.basis
            ),
        ]);
    }
    table.text()
}

/// Whether facts are shown that do not count any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    Shown,
    LeftOut,
}

struct Row<'a> {
    id: FactId,
    kind: &'static str,
    confidence: u8,
    at: Timestamp,
    text: &'a str,
    basis: String,
    superseded: &'a Option<Superseded>,
}

impl<'a> Row<'a> {
    fn of_premise(fact: &'a Premise) -> Self {
        Self {
            id: fact.id,
            kind: fact.kind.as_str(),
            confidence: fact.confidence,
            at: fact.at,
            text: &fact.text,
            basis: String::new(),
            superseded: &fact.superseded,
        }
    }

    fn of_conclusion(fact: &'a Conclusion) -> Self {
        let premises: Vec<String> = fact.premises.iter().map(ToString::to_string).collect();
        Self {
            id: fact.id,
            kind: "concluded",
            confidence: fact.confidence,
            at: fact.at,
            text: &fact.text,
            basis: format!(" [{}]", premises.join(", ")),
            superseded: &fact.superseded,
        }
    }
}

/// What a change came to, in words.
pub fn changed(made: Result<Option<(ChangeId, String)>, UserModelError>) -> Result<String> {
    Ok(match made.map_err(told)? {
        Some((id, what)) => format!("{} (change {id})", one_line(&what)),
        None => "nothing was changed".to_owned(),
    })
}

/// An error in the words of the runtime.
pub fn told(error: UserModelError) -> Error {
    let hint = match &error {
        UserModelError::NoFact(_) => "`hermes user show` lists the facts",
        UserModelError::NoChange(_) => "`hermes learning log` lists the changes",
        UserModelError::NothingToUndo(_) => "`hermes user edit` opens the facts",
        UserModelError::Unreadable(_) => {
            "`hermes user forget --all` begins anew; the learning log keeps what was there"
        }
        _ => return Error::asked(error.to_string()),
    };
    Error::asked(error.to_string()).with_hint(hint)
}

//! Recall and titles as the settings want them: which archive, which profiles, which model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_agent::Follower;
use hermes_config::Home;
use hermes_core::{Archive, Audience, Event, Followed, Model, SessionId, SessionOptions, Tool};
use hermes_learning::asking::{Asking, Books};
use hermes_learning::recall::{Profiles, Recall, tool, tool_to_look_at};
use hermes_learning::titles::Titles;
use hermes_store::SqliteStore;

use crate::base::Base;
use crate::error::Result;
use crate::models::{Models, Purpose};

/// The longest that a model may take, whatever the settings say: nobody reads the answer any more.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Turns after which a conversation that has no title stays without one.
const TITLED_TURNS_MAX: usize = 2;

/// Who answers for a purpose: the model that its section names, or the main one.
pub(crate) fn asking(
    base: &Base,
    models: &Models,
    purpose: Purpose,
    main: &Arc<dyn Model>,
    books: Option<Books>,
) -> Result<Asking> {
    let model = models.get(base, purpose)?;
    let section = purpose.section().unwrap_or_default();
    let timeout = base.settings.seconds(&format!("{section}.timeout"))?;
    Ok(Asking {
        model: model.unwrap_or_else(|| Arc::clone(main)),
        timeout: timeout.clamp(Duration::from_secs(1), TIMEOUT_MAX),
        books,
    })
}

/// Looks into the conversations of this home.
pub fn recall(base: &Base, archive: Arc<dyn Archive>, asking: Option<Asking>) -> Recall {
    Recall {
        archive,
        profiles: Some(Arc::new(ProfileHomes(base.home.clone()))),
        asking,
    }
}

/// The same for a command: with the model that writes summaries, when one is wanted.
pub async fn recall_for_people(
    base: &Base,
    archive: Arc<dyn Archive>,
    models: &Models,
) -> Result<Recall> {
    let main = models.main(base, Audience::Nobody).await?.model;
    // Who only looks writes nothing down.
    let books = None;
    let asking = asking(base, models, Purpose::Recall, &main, books)?;
    Ok(recall(base, archive, Some(asking)))
}

/// The tool of a conversation.
pub(crate) fn recall_tool(
    base: &Base,
    archive: Arc<dyn Archive>,
    asking: Option<Asking>,
) -> Arc<dyn Tool> {
    tool(recall(base, archive, asking))
}

/// The tool where nobody calls it: it is only looked at.
pub(crate) fn to_look_at(base: &Base) -> Arc<dyn Tool> {
    match SqliteStore::open_read_only(base.home.database()) {
        Ok(archive) => recall_tool(base, Arc::new(archive), None),
        Err(_) => tool_to_look_at(),
    }
}

/// Databases of other profiles, below the root of this home.
struct ProfileHomes(Home);

impl Profiles for ProfileHomes {
    fn archive(&self, profile: &str) -> std::result::Result<Arc<dyn Archive>, String> {
        let Self(home) = self;
        let names = home.profiles();
        let folder = match profile {
            "default" => home.root().to_owned(),
            name if names.iter().any(|known| known == name) => {
                home.root().join("profiles").join(name)
            }
            other => {
                return Err(format!(
                    "there is no profile `{other}`; there are: default {}",
                    names.join(" ")
                ));
            }
        };
        let database = home.database();
        let name = database.file_name().unwrap_or_default();
        match SqliteStore::open_read_only(folder.join(name)) {
            Ok(store) => Ok(Arc::new(store)),
            Err(error) => Err(format!("profile `{profile}` has no conversations: {error}")),
        }
    }
}

/// What names conversations; nothing where a script is served, or the settings want none.
pub(crate) fn titles(
    base: &Base,
    models: &Models,
    options: &SessionOptions,
    main: &Arc<dyn Model>,
    archive: Arc<dyn Archive>,
    books: Books,
) -> Result<Option<Titles>> {
    let settings = &base.settings;
    if options.audience != Audience::Person
        || !settings.bool("auxiliary.title_generation.enabled")?
    {
        return Ok(None);
    }
    Ok(Some(Titles {
        archive,
        asking: asking(base, models, Purpose::Titles, main, Some(books))?,
        language: settings
            .optional_string("auxiliary.title_generation.language")?
            .unwrap_or_default(),
    }))
}

/// Names a conversation after its first exchange. Ends with it.
pub(crate) async fn keep_titled(titles: Titles, id: SessionId, follower: Follower) {
    let mut events = follower.into_stream();
    let mut turns = 0;
    while let Some(followed) = events.next().await {
        let Followed::Event(event) = followed else {
            continue;
        };
        if !matches!(event.event, Event::TurnEnded { .. }) {
            continue;
        }
        turns += 1;
        match titles.name(&id).await {
            Ok(None) if turns < TITLED_TURNS_MAX => {}
            Ok(_) => return,
            Err(error) => {
                tracing::debug!("no title for {id}: {error}");
                return;
            }
        }
    }
}

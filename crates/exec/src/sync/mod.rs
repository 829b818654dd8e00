//! Brings files of Hermes' home to where commands run, and back: the skills, whose scripts run there, and the credential
//! files the user named. The project is not among them.
//!
//! One mechanism over any [`Transport`]; over there it takes a POSIX shell, `tar` and `sha256sum`, those of busybox will do.
//! `scan` looks at what is here, `plan` decides, `pack` makes archives and takes them apart, `there` talks to the other
//! side, and `back` puts what was changed there into its place here. Start at [`FileSync::bring`].

mod back;
mod credential;
mod name;
mod pack;
mod plan;
mod scan;
mod there;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::Random;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use crate::environment::Granted;
use crate::remote::Transport;
use crate::remote::script::ScriptError;
use back::Landed;
pub use credential::{CredentialError, CredentialFile};
use name::Name;
use pack::Arrived;
use plan::Ledger;
use scan::Found;
use there::There;

/// Largest file that is brought anywhere: skills are text and small programs.
const FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Most files that are brought anywhere.
const FILES_MAX: usize = 5000;

/// Largest archive, which is held in memory.
const ARCHIVE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// When it did not work, commands are not held up by it again for this long.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// How often we try to bring files back, and the time all of it may take: somebody waits for their prompt.
const BACK_ATTEMPTS: u32 = 3;
const BACK_PAUSE: Duration = Duration::from_secs(1);
const LEAVE_TIME_MAX: Duration = Duration::from_secs(60);

/// Files that are asked for at once: their names are arguments of a program there.
const NAMES_ASKED: usize = 200;

/// Names in one notice; the rest is counted.
const NAMES_SHOWN: usize = 8;

/// What goes along with commands to another machine.
#[derive(Debug, Clone, Default)]
pub struct Forwarded {
    /// Names and values that commands find in their environment.
    pub variables: Vec<(String, String)>,
    /// The same of what a person let commands have besides.
    pub granted: Granted,
    pub files: Option<ForwardedFiles>,
}

/// Which files go along, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardedFiles {
    /// The home of Hermes here.
    pub home: PathBuf,
    /// The folder that stands for it there; `~/.hermes` is below the home there.
    pub folder: String,
    pub credentials: Vec<CredentialFile>,
    /// How often we look whether something changed here.
    pub look_interval: Duration,
}

#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error(transparent)]
    There(#[from] ScriptError),
    #[error("{0}")]
    Here(#[from] io::Error),
}

/// Keeps files over there like those here.
pub(crate) struct FileSync {
    files: ForwardedFiles,
    /// Tells this start of Hermes from others that use the same folder there.
    user: String,
    random: Random,
    /// Held while files are on their way.
    state: tokio::sync::Mutex<State>,
    notices: Mutex<Notices>,
}

#[derive(Default)]
struct State {
    /// Nothing until we have been there.
    ledger: Option<Ledger>,
    next_look: Option<Instant>,
}

/// What somebody should know, each thing once.
#[derive(Default)]
struct Notices {
    waiting: Vec<String>,
    /// Why files were not brought; forgotten when they are after all.
    failure: Option<String>,
    told: BTreeSet<String>,
}

impl FileSync {
    pub(crate) fn new(files: ForwardedFiles) -> Self {
        let random = Random::from_system();
        Self {
            files,
            user: format!("{:016x}", random.next_u64()),
            random,
            state: tokio::sync::Mutex::default(),
            notices: Mutex::default(),
        }
    }

    /// Brings what has changed since the last time. When that fails, commands run without, and a notice says so.
    ///
    /// Dropping the future leaves what was there; the next call begins anew.
    pub(crate) async fn bring(&self, transport: &dyn Transport) {
        let mut state = self.state.lock().await;
        if state.next_look.is_some_and(|next| Instant::now() < next) {
            return;
        }
        let brought = self.try_bring(transport, &mut state).await;
        let pause = match &brought {
            Ok(()) => self.files.look_interval,
            // The command finds out for itself, and the next one may have more luck.
            Err(SyncError::There(ScriptError::Transport(_))) => Duration::ZERO,
            Err(_) => RETRY_INTERVAL,
        };
        state.next_look = Some(Instant::now() + pause);
        let failure = brought.err().map(|error| {
            format!("skills and credential files were not brought along: {error}. Commands run without them")
        });
        self.notices().failure = failure;
    }

    async fn try_bring(
        &self,
        transport: &dyn Transport,
        state: &mut State,
    ) -> Result<(), SyncError> {
        let found = self.scan().await?;
        if !found.left_out.is_empty() {
            let names = listed(found.left_out.iter());
            self.tell(format!("too large or too many to bring along: {names}"));
        }
        let ledger = match &state.ledger {
            Some(ledger) => ledger.clone(),
            None if found.files.is_empty() => return Ok(()),
            None => {
                let seen = self.there(transport).look().await?;
                let files = found.files.clone();
                let here = blocking(move || pack::read_hashes(&files)).await?;
                plan::first_ledger(&here, &seen)
            }
        };
        let changes = plan::changes(&found.files, &ledger);
        if changes.is_empty() {
            state.ledger = Some(ledger);
            return Ok(());
        }
        let packed = blocking(move || pack::pack(&changes, &found.files, &ledger)).await??;
        if let Some(archive) = packed.archive {
            self.there(transport).put(&archive).await?;
        }
        state.ledger = Some(packed.ledger);
        Ok(())
    }

    /// Brings back what was changed there, and removes the credential files. Does nothing where we have not been.
    pub(crate) async fn leave(&self, transport: &dyn Transport) {
        let mut state = self.state.lock().await;
        let Some(ledger) = state.ledger.take() else {
            return;
        };
        state.next_look = None;
        let left = timeout(LEAVE_TIME_MAX, async {
            self.bring_back(transport, &ledger).await;
            self.remove_credentials(transport, &ledger).await;
        });
        if left.await.is_err() {
            let seconds = LEAVE_TIME_MAX.as_secs();
            self.tell(self.not_back(&format!("nothing answered within {seconds} s")));
        }
    }

    async fn bring_back(&self, transport: &dyn Transport, ledger: &Ledger) {
        let mut attempt = 1;
        let landed = loop {
            match self.try_bring_back(transport, ledger).await {
                Err(_) if attempt < BACK_ATTEMPTS => sleep(BACK_PAUSE * attempt).await,
                landed => break landed,
            }
            attempt += 1;
        };
        match landed {
            Ok(landed) => self.tell_landed(&landed),
            Err(error) => self.tell(self.not_back(&error.to_string())),
        }
    }

    async fn try_bring_back(
        &self,
        transport: &dyn Transport,
        ledger: &Ledger,
    ) -> Result<Landed, SyncError> {
        let there = self.there(transport);
        let seen = there.look().await?;
        let mut names = plan::coming_back(&seen.files, ledger);
        names.retain(|name| self.credentials().all(|credential| credential != name));
        if names.is_empty() {
            return Ok(Landed::default());
        }
        let mut arrived = Vec::new();
        for names in names.chunks(NAMES_ASKED) {
            arrived.extend(self.fetch(&there, names).await?);
        }
        let lock = back::lock(&self.files.home).await?;
        let (home, ledger) = (self.files.home.clone(), ledger.clone());
        let landed = blocking(move || back::land(&home, arrived, &ledger)).await?;
        drop(lock);
        Ok(landed)
    }

    async fn fetch(&self, there: &There<'_>, names: &[Name]) -> Result<Vec<Arrived>, SyncError> {
        let archive = there.get(names).await?;
        let asked: BTreeSet<Name> = names.iter().cloned().collect();
        let (arrived, refused) = blocking(move || pack::unpack(&archive, &asked)).await??;
        if refused > 0 {
            self.tell(format!(
                "{refused} things that are no files of skills, or too large, were not brought back"
            ));
        }
        match names.len().saturating_sub(arrived.len() + refused) {
            0 => Ok(arrived),
            missing => Err(io::Error::other(format!("{missing} files did not arrive")).into()),
        }
    }

    async fn remove_credentials(&self, transport: &dyn Transport, ledger: &Ledger) {
        let is_there = |name: &&Name| ledger.contains_key(*name);
        let names: Vec<Name> = self.credentials().filter(is_there).cloned().collect();
        let left = match self.there(transport).leave(&names).await {
            Ok(left) if left.is_empty() => return,
            Ok(left) => left,
            Err(_) if names.is_empty() => return,
            Err(error) => format!("{} ({error})", listed(names.iter())),
        };
        let folder = &self.files.folder;
        self.tell(format!(
            "credential files could not be removed from `{folder}` there; remove them yourself: {left}"
        ));
    }

    fn tell_landed(&self, landed: &Landed) {
        if !landed.replaced.is_empty() {
            let names = listed(landed.replaced.iter());
            self.tell(format!("skills that were changed there came back: {names}"));
        }
        for (name, copy) in &landed.beside {
            self.tell(format!(
                "`{}` was changed here and there; yours stays, and theirs is `{}`",
                name.as_str(),
                copy.display()
            ));
        }
        for (name, error) in &landed.failed {
            self.tell(format!("`{}` did not come back: {error}", name.as_str()));
        }
    }

    /// Returns what somebody should know, each thing once.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        let mut notices = self.notices();
        let mut taken = std::mem::take(&mut notices.waiting);
        taken.extend(notices.failure.take());
        taken.retain(|notice| notices.told.insert(notice.clone()));
        taken
    }

    fn tell(&self, notice: String) {
        self.notices().waiting.push(notice);
    }

    fn not_back(&self, why: &str) -> String {
        let folder = &self.files.folder;
        format!(
            "skills that were changed there did not come back: {why}. They stay in `{folder}/skills` there, and come \
             at the end of the next session"
        )
    }

    fn credentials(&self) -> impl Iterator<Item = &Name> {
        self.files.credentials.iter().map(CredentialFile::name)
    }

    fn there<'a>(&'a self, transport: &'a dyn Transport) -> There<'a> {
        There {
            transport,
            folder: &self.files.folder,
            user: &self.user,
            random: &self.random,
        }
    }

    async fn scan(&self) -> io::Result<Found> {
        let ForwardedFiles {
            home, credentials, ..
        } = self.files.clone();
        blocking(move || scan::scan(&home, &credentials)).await
    }

    fn notices(&self) -> MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}

fn listed<'a>(names: impl ExactSizeIterator<Item = &'a Name>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let shown: Vec<&str> = names.take(NAMES_SHOWN).map(Name::as_str).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

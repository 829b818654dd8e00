//! Where commands run. Starts every child process but the programs of MCP servers.
//!
//! Start at [`Local`], which implements [`hermes_core::Terminal`] on this machine; [`Ssh`] does on another host, [`Docker`]
//! and [`Apptainer`] do in a container, [`Daytona`] and [`Modal`] in a cloud, over `remote`, which is for every place that
//! is reached by a line; `sync` brings skills and credential files there and back. `shell` is what all of them run, and
//! [`Background`] stands on any of them. Every command is a process group of
//! its own, so that stopping it stops everything it started; a `watchdog` does the same should this process be killed
//! outright. `environment` decides what children see of ours. `program` runs single programs for the rest of Hermes: an
//! editor, a browser, `git`. [`CheckpointStore`] keeps copies of projects, with git as its store.
//!
//! Knows nothing of what a line means or who agreed to it: it is given a line, a session's id and a pass.
//!
//! A local command can do what the user can, unless [`Fences`] were put around it; consent is asked for before it gets
//! here.

mod fence;
mod kin;
mod leftovers;
mod local;
mod profile;
mod shell;

mod apptainer;
mod daytona;
mod docker;
mod modal;
mod remote;
mod ssh;
mod sync;

mod background;

mod capture;
mod clean;
mod group;
mod mark;
mod watchdog;

mod checkpoints;
mod environment;
mod program;

pub use apptainer::{Apptainer, ApptainerSettings};
pub use background::{Background, ProcessFolder};
pub use checkpoints::{
    Checkpoint, CheckpointLimits, CheckpointSettings, CheckpointStore, Restored, Tidied,
};
pub use daytona::{Daytona, DaytonaSettings};
pub use docker::{Docker, DockerSettings, TmpfsSizes};
pub use environment::{Granted, child_environment, is_secret_name, named_variables};
pub use fence::{
    FenceKind, FencePlaces, FenceSupport, Fences, Forbidden, GuestFolders, Network, NoBubblewrap,
    NoLandlock, NotFenced, Unfenced,
};
pub use local::Local;
pub use modal::{Modal, ModalSettings};
pub use program::{ProgramOutput, become_program, detach, filter, interactive, launch, output};
pub use shell::START_FILES;
pub use ssh::{Ssh, SshSettings};
pub use sync::{CredentialError, CredentialFile, Forwarded, ForwardedFiles};

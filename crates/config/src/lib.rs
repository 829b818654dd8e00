//! Settings of Hermes: where they come from, what they mean, and how they are changed.
//!
//! This crate is the only reader of the environment, of `.env` files and of settings files. It owns the home
//! folder's layout and its profiles. It knows the names and built-in values of all settings (`defaults.yaml`), not
//! what they do: the binary reads them here and passes plain values down.
//!
//! Start at [`Home::resolve`] for the place, [`load_environment`] for the variables and [`Settings::load`] for the
//! values; [`set`] and [`unset`] change one setting and keep every comment in the file.

mod environment;
mod home;
mod profile;

mod choices;
mod explain;
mod help;
mod layer;
mod names;
mod origin;
mod project;
mod review;
mod settings;
mod typed;
mod unused;

mod change;
mod config_file;
mod dotenv;
mod permissions;

mod auth_file;

mod aliases;
mod disk;
mod expand;
mod key;
mod mask;
mod suggest;
mod yaml;

pub use auth_file::{
    AuthError, AuthFile, KeyState, LockedAuthFile, Refusal, StoredKey, StoredLogin, UsedLogin,
    stored_keys, used_keys, used_logins,
};
pub use change::{ChangeError, Changed, set, unset};
pub use choices::choices;
pub use config_file::ConfigFile;
pub use disk::{ReadError, WriteError};
pub use dotenv::{DotEnv, DotEnvProblem, VariableError};
pub use environment::{Environment, load_environment};
pub use explain::{Explanation, Said, Standing};
pub use help::help;
pub use home::{ChosenBy, DEFAULT_SOUL, Home, HomeError};
pub use key::{Key, KeyError};
pub use layer::LoadError;
pub use mask::mask;
pub use origin::{Origin, Problem, Source};
pub use permissions::{PermissionProblem, check_permissions};
pub use profile::{is_profile_name, take_profile};
pub use settings::{Settings, Sources, UserConfig, from_yaml, managed_directory, to_yaml};
pub use typed::ValueError;
pub use unused::UNUSED;
pub use yaml::Position;

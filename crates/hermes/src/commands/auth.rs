//! `hermes auth`: the keys of providers, several of which can take turns, and the logins. Nothing here ever prints a
//! secret.

mod add;
mod list;
mod login;
mod status;

use crate::args::{AuthAddArgs, AuthArgs, AuthCommand, AuthKind, LoginArgs, LoginPlace};
use crate::base::Base;
use crate::failure::Outcome;
use crate::output::println;
use hermes_runtime::models::forget::{forget_key, forget_refusals};

pub(super) use login::{OpenBrowser, log_in};

pub(crate) async fn run(base: &Base, args: AuthArgs) -> Outcome<()> {
    match args.command {
        None => list::run(base, None, false),
        Some(AuthCommand::List { provider, json }) => {
            list::run(base, provider.as_deref(), json.json)
        }
        Some(AuthCommand::Add(args)) => add::run(base, args).await,
        Some(AuthCommand::Remove { provider, key }) => println(&forget_key(base, &provider, &key)?),
        Some(AuthCommand::Reset { provider }) => println(&forget_refusals(base, &provider)?),
        Some(AuthCommand::Status { provider, json }) => {
            status::run(base, provider.as_deref(), json.json)
        }
        Some(AuthCommand::Logout(place)) => log_out(base, &place).await,
    }
}

/// `hermes login`: `hermes auth add --type oauth` under the name people look for.
pub(crate) async fn log_in_at(base: &Base, args: LoginArgs) -> Outcome<()> {
    let provider = match args.place.provider() {
        Some(provider) => provider.to_owned(),
        None => login::ask_where_in(base)?.to_owned(),
    };
    let args = AuthAddArgs {
        provider,
        kind: Some(AuthKind::Oauth),
        no_browser: args.no_browser,
        ..AuthAddArgs::default()
    };
    add::run(base, args).await
}

/// `hermes logout`, and `hermes auth logout`.
pub(crate) async fn log_out(base: &Base, place: &LoginPlace) -> Outcome<()> {
    match place.provider() {
        Some(provider) => login::log_out(base, provider).await,
        None => login::log_out(base, &login::ask_where_out(base)?).await,
    }
}

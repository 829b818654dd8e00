//! The tokens of logins, kept in `auth.json`, so that every process uses the newest and only one of them renews.

use std::path::PathBuf;

use hermes_config::{AuthError, AuthFile, Home, LockedAuthFile, StoredLogin, used_logins};
use hermes_core::{Clock as _, LoginTokens};
use hermes_llm::LoginError;
use hermes_llm::login::{LockedTokens, TokenStore, TokenStoreError};

use crate::clock::SystemClock;

#[derive(Debug)]
pub(super) struct AuthTokens {
    home: Home,
}

impl AuthTokens {
    pub(super) fn of(home: &Home) -> Self {
        Self { home: home.clone() }
    }

    /// The folder a login is kept in: a profile may use the root's.
    fn folder(&self, provider: &str) -> Result<PathBuf, LoginError> {
        let used = used_logins(&self.home).map_err(failed)?;
        let used = used.into_iter().find(|used| used.provider == provider);
        Ok(match used {
            Some(used) => used.folder,
            None => self.home.directory().to_path_buf(),
        })
    }
}

impl TokenStore for AuthTokens {
    fn read(&self, provider: &'static str) -> Result<LoginTokens, LoginError> {
        let file = AuthFile::open(&self.folder(provider)?).map_err(failed)?;
        tokens(&file, provider)
    }

    fn try_lock(
        &self,
        provider: &'static str,
    ) -> Result<Option<Box<dyn LockedTokens>>, LoginError> {
        let locked = AuthFile::try_lock(&self.folder(provider)?).map_err(failed)?;
        Ok(locked.map(|file| Box::new(Locked { provider, file }) as Box<dyn LockedTokens>))
    }
}

struct Locked {
    provider: &'static str,
    file: LockedAuthFile,
}

impl Locked {
    fn change(&mut self, work: impl FnOnce(&mut AuthFile)) -> Result<(), LoginError> {
        let now = SystemClock.now();
        let changed: Result<(), AuthError> = self.file.change(now, |file| {
            work(file);
            Ok(())
        });
        changed.map_err(failed)
    }
}

impl LockedTokens for Locked {
    fn read(&self) -> Result<LoginTokens, LoginError> {
        tokens(self.file.file(), self.provider)
    }

    fn save(&mut self, tokens: &LoginTokens) -> Result<(), LoginError> {
        let provider = self.provider;
        self.change(|file| file.keep_login(provider, tokens, SystemClock.now()))
    }

    fn end(&mut self, reason: &str) -> Result<(), LoginError> {
        let provider = self.provider;
        self.change(|file| file.end_login(provider, reason, SystemClock.now()))
    }
}

fn tokens(file: &AuthFile, provider: &'static str) -> Result<LoginTokens, LoginError> {
    match file.login(provider) {
        Some(StoredLogin::Open(tokens)) => Ok(tokens),
        Some(StoredLogin::Ended { reason }) => Err(LoginError::Ended { provider, reason }),
        None => Err(LoginError::NotLoggedIn { provider }),
    }
}

fn failed(error: AuthError) -> LoginError {
    LoginError::Store(TokenStoreError {
        message: error.to_string(),
        hint: error.hint(),
    })
}

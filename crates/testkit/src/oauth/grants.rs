//! Which tokens and codes are good.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

const LIFETIME_SECONDS: u64 = 3600;

pub(crate) struct Grants {
    pub(super) lifetime: u64,
    pub(super) renewals: usize,
    pub(super) reuses: usize,
    given: usize,
    /// The scope of each code.
    codes: HashMap<String, String>,
    access: HashMap<String, String>,
    refresh: HashMap<String, String>,
    replaced: HashSet<String>,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            lifetime: LIFETIME_SECONDS,
            renewals: 0,
            reuses: 0,
            given: 0,
            codes: HashMap::new(),
            access: HashMap::new(),
            refresh: HashMap::new(),
            replaced: HashSet::new(),
        }
    }
}

impl Grants {
    pub(crate) fn scope_of(&self, access: &str) -> Option<&str> {
        self.access.get(access).map(String::as_str)
    }

    pub(super) fn expire_access(&mut self) {
        self.access.clear();
    }

    pub(super) fn code(&mut self, scope: &str) -> String {
        self.given += 1;
        let code = format!("secret-code-{}", self.given);
        self.codes.insert(code.clone(), scope.to_owned());
        code
    }

    /// Gives out a new pair of tokens.
    pub(super) fn grant(&mut self, scope: &str) -> Value {
        self.given += 1;
        let (access, refresh) = (
            format!("secret-access-{}", self.given),
            format!("secret-refresh-{}", self.given),
        );
        self.access.insert(access.clone(), scope.to_owned());
        self.refresh.insert(refresh.clone(), scope.to_owned());
        json!({
            "access_token": access, "refresh_token": refresh, "token_type": "Bearer",
            "expires_in": self.lifetime, "scope": scope,
        })
    }

    pub(super) fn exchange(&mut self, code: &str) -> Option<Value> {
        let scope = self.codes.remove(code)?;
        Some(self.grant(&scope))
    }

    /// Ends a login. Returns whether there was one.
    pub(super) fn forget(&mut self, refresh: &str) -> bool {
        self.access.clear();
        self.refresh.remove(refresh).is_some()
    }

    /// Renews once. A second time revokes everything.
    pub(super) fn renew(&mut self, refresh: &str) -> Option<Value> {
        if self.replaced.contains(refresh) {
            self.reuses += 1;
            self.access.clear();
            self.refresh.clear();
        }
        let scope = self.refresh.remove(refresh)?;
        self.replaced.insert(refresh.to_owned());
        self.access.clear();
        self.renewals += 1;
        Some(self.grant(&scope))
    }
}

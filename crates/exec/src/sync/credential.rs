//! Files with keys of other services that commands over there may use, because the user named them.

use std::fmt;
use std::path::{Path, PathBuf};

use super::name::Name;

/// What Hermes itself keeps secret below its home. A path also names everything below it.
const OWN: [&str; 9] = [
    ".anthropic_oauth.json",
    "auth",
    "auth.json",
    "auth.lock",
    "cache/bws_cache.json",
    "config.yaml",
    "hermes.db",
    "mcp-tokens",
    "webhook_subscriptions.json",
];

/// A file below the home of Hermes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFile(Name);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error(
        "`{path}` is not the path of a file below the home of Hermes, such as `google_token.json`"
    )]
    NotBelowHome { path: String },
    #[error("there is no file `{}`", path.display())]
    Missing { path: PathBuf },
    #[error("`{path}` leads out of the home of Hermes through a link")]
    LeadsOut { path: String },
    #[error("`{path}` may hold the keys of Hermes itself, which never leave this machine")]
    OwnSecret { path: String },
}

impl CredentialFile {
    /// Takes a path relative to the home. The file need not exist yet; [`CredentialFile::find`] says whether it does.
    pub fn new(path: &str) -> Result<Self, CredentialError> {
        let name = Name::new(path.strip_prefix("./").unwrap_or(path));
        let name = name.ok_or_else(|| CredentialError::NotBelowHome {
            path: path.to_owned(),
        })?;
        if is_own_secret(name.as_str()) {
            Err(CredentialError::OwnSecret {
                path: path.to_owned(),
            })
        } else {
            Ok(Self(name))
        }
    }

    /// Finds the file, through links that stay below the home.
    pub fn find(&self, home: &Path) -> Result<PathBuf, CredentialError> {
        let path = self.0.as_str().to_owned();
        let missing = || CredentialError::Missing {
            path: home.join(&path),
        };
        let home = home.canonicalize().map_err(|_| missing())?;
        let real = home.join(&path).canonicalize().map_err(|_| missing())?;
        match real.strip_prefix(&home).map(Path::to_str) {
            Ok(Some(below)) if is_own_secret(below) => Err(CredentialError::OwnSecret { path }),
            Ok(Some(_)) if real.is_file() => Ok(real),
            Ok(_) => Err(missing()),
            Err(_) => Err(CredentialError::LeadsOut { path }),
        }
    }

    pub(super) fn name(&self) -> &Name {
        &self.0
    }
}

impl fmt::Display for CredentialFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

fn is_own_secret(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let is_below = |own: &str| {
        let rest = path.strip_prefix(own);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '-']))
    };
    file == ".envrc"
        || file
            .strip_prefix(".env")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        || OWN.iter().any(|own| is_below(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_hermes_and_paths_elsewhere_are_refused() {
        for path in ["/etc/passwd", "../x", "a/../../x", "", "~/../x/.."] {
            let refused = CredentialFile::new(path);
            assert!(
                matches!(refused, Err(CredentialError::NotBelowHome { .. })),
                "{path}"
            );
        }
        for path in [
            ".env",
            "./.env",
            "profiles/work/.env.local",
            "auth.json",
            "hermes.db-wal",
            "mcp-tokens/github.json",
            "config.yaml",
        ] {
            let refused = CredentialFile::new(path);
            assert!(
                matches!(refused, Err(CredentialError::OwnSecret { .. })),
                "{path}"
            );
        }
        assert!(CredentialFile::new("google_token.json").is_ok());
        assert!(CredentialFile::new("author/key.json").is_ok());
    }

    #[test]
    fn a_link_is_followed_only_below_the_home_and_not_to_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join(".env"), "KEY=1").unwrap();
        std::fs::write(home.join("real.json"), "{}").unwrap();
        std::fs::write(folder.path().join("outside"), "x").unwrap();
        let find = |name: &str, target: &str| {
            std::os::unix::fs::symlink(target, home.join(name)).unwrap();
            CredentialFile::new(name).unwrap().find(&home)
        };
        assert!(find("inside", "real.json").is_ok());
        assert!(matches!(
            find("out", "../outside"),
            Err(CredentialError::LeadsOut { .. })
        ));
        assert!(matches!(
            find("own", ".env"),
            Err(CredentialError::OwnSecret { .. })
        ));
        assert!(matches!(
            find("none", "nothing"),
            Err(CredentialError::Missing { .. })
        ));
    }
}

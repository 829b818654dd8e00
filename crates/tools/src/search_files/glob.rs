//! Which files a glob means.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// Bytes of a glob. It has no numbers of repetitions, so that its length bounds what it is compiled to.
const GLOB_BYTES_MAX: usize = 4 * 1024;

pub(super) struct FileGlob {
    matcher: GlobMatcher,
    scope: Scope,
    /// A part of the glob begins with a dot, so files that do are meant too.
    pub(super) wants_hidden: bool,
}

/// What is compared with the glob.
enum Scope {
    /// `*.rs`: the name of the file.
    Name,
    /// `src/**/*.rs`: the path below the folder that is searched.
    Below,
    /// `/srv/*.rs`
    Absolute,
}

impl FileGlob {
    /// Makes the matcher of a glob. An error is written for the model.
    pub(super) fn new(glob: &str) -> Result<Self, String> {
        let glob = glob.trim_start_matches("./");
        if glob.len() > GLOB_BYTES_MAX {
            return Err(format!(
                "the glob has {} bytes, and {GLOB_BYTES_MAX} are allowed; name fewer files in it",
                glob.len()
            ));
        }
        let matcher = GlobBuilder::new(glob).literal_separator(true).build();
        let matcher = matcher.map_err(|error| format!("`{glob}` is not a valid glob: {error}"))?;
        Ok(Self {
            matcher: matcher.compile_matcher(),
            scope: match glob {
                glob if glob.starts_with('/') => Scope::Absolute,
                glob if glob.contains('/') => Scope::Below,
                _ => Scope::Name,
            },
            wants_hidden: glob
                .split('/')
                .any(|part| part.starts_with('.') && part != ".."),
        })
    }

    /// A word without wildcards means every file with that in its name.
    pub(super) fn of_name(pattern: &str) -> Result<Self, String> {
        let has_wildcards = pattern.contains(['*', '?', '[', '{', '/']);
        if has_wildcards {
            Self::new(pattern)
        } else {
            Ok(Self {
                wants_hidden: pattern.starts_with('.'),
                ..Self::new(&format!("*{pattern}*"))?
            })
        }
    }

    pub(super) fn is_match(&self, path: &Path, root: &Path) -> bool {
        match self.scope {
            Scope::Name => path
                .file_name()
                .is_some_and(|name| self.matcher.is_match(name)),
            Scope::Below => self
                .matcher
                .is_match(path.strip_prefix(root).unwrap_or(path)),
            Scope::Absolute => self.matcher.is_match(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_means_names_or_paths() {
        let root = Path::new("/srv/p");
        for (glob, path, expected) in [
            ("*.rs", "/srv/p/src/a.rs", true),
            ("*.{ts,js}", "/srv/p/a.js", true),
            ("src/*.rs", "/srv/p/src/a.rs", true),
            ("./src/*.rs", "/srv/p/src/a.rs", true),
            ("src/*.rs", "/srv/p/src/b/a.rs", false),
            ("src/**/*.rs", "/srv/p/src/b/a.rs", true),
            ("**/a.rs", "/srv/p/src/b/a.rs", true),
            ("/srv/**/*.rs", "/srv/p/src/b/a.rs", true),
            ("main", "/srv/p/main.rs", true),
            ("main", "/srv/p/domain.rs", true),
            ("main.rs", "/srv/p/main/a.rs", false),
        ] {
            let matcher = FileGlob::of_name(glob).unwrap();
            assert_eq!(matcher.is_match(Path::new(path), root), expected, "{glob}");
        }
        assert!(FileGlob::new("[").is_err());
        assert!(FileGlob::new(&"{a,b}".repeat(1000)).is_err());
        assert!(FileGlob::new(&"{a,b,c}*".repeat(500)).is_ok());
    }

    #[test]
    fn hidden_files_are_meant_when_they_are_named() {
        for (glob, expected) in [
            (".github/**", true),
            (".gitignore", true),
            ("*.rs", false),
            ("../*.rs", false),
        ] {
            assert_eq!(
                FileGlob::of_name(glob).unwrap().wants_hidden,
                expected,
                "{glob}"
            );
        }
    }
}

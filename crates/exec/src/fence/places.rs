//! Which folders are inside a fence: the project, places for temporary files and caches of tools to write to; everything
//! but secrets, or with a strict fence programs and their libraries, to read.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

use hermes_core::FenceArea;

use super::grants::ENTRIES_MAX;
use super::project::{git_folders, project_of};
use super::secrets;
use crate::program::find;

/// Top-level folders that are nobody's programs: homes, and the sockets of services.
const NOT_PROGRAMS: &[&str] = &["home", "root", "Users", "run"];

/// Name servers are found through this one.
const RESOLVER: &str = "/run/systemd/resolve";

pub(super) const DEVICES: &str = "/dev";

/// Where temporary files of commands go below the home, when it lies itself in a folder for temporary files, which cannot
/// be opened then.
const TEMPORARY_AT_HOME: &str = ".cache/hermes/tmp";

/// The same below the folder of a guest.
const TEMPORARY_OF_GUESTS: &str = "tmp";

/// For temporary files, and for memory that programs share.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// What programs read in a home behind a strict fence: start files, and toolchains without the keys beside them.
const READABLE_AT_HOME: &[&str] = &[
    ".profile",
    ".bash_profile",
    ".bashrc",
    ".bash_aliases",
    ".inputrc",
    ".gitconfig",
    ".config/git",
    ".cargo/bin",
    ".cargo/env",
    ".cargo/config.toml",
    ".cargo/registry",
    ".cargo/git",
    ".rustup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/uv",
    ".pyenv",
    ".rbenv",
    ".nvm",
    ".volta",
    ".bun",
    ".deno",
    ".asdf",
    ".sdkman",
    "go",
];

/// What tools download into, below the home. Never a folder whose programs or settings run outside of the fence. A tool
/// that is there finds its folder made.
const CACHES: &[Cache] = &[
    cache(None, ".cache"),
    cache(Some("cargo"), ".cargo/registry"),
    cache(Some("cargo"), ".cargo/git"),
    cache(Some("npm"), ".npm"),
    cache(Some("pnpm"), ".local/share/pnpm/store"),
    cache(Some("pnpm"), ".pnpm-store"),
    cache(Some("yarn"), ".yarn/berry"),
    cache(Some("bun"), ".bun/install/cache"),
    cache(Some("uv"), ".local/share/uv/python"),
    cache(Some("go"), "go/pkg"),
    cache(Some("gradle"), ".gradle/caches"),
    cache(Some("gradle"), ".gradle/daemon"),
    cache(Some("gradle"), ".gradle/native"),
    cache(Some("gradle"), ".gradle/wrapper/dists"),
    cache(Some("mvn"), ".m2/repository"),
    cache(Some("dotnet"), ".nuget/packages"),
    cache(Some("dotnet"), ".local/share/NuGet"),
    cache(Some("deno"), ".deno/gen"),
];

/// Folders in `.cache` that tools of this machine make with their first download. They could not where a secret lies beside
/// them.
const IN_CACHE: &[Cache] = &[
    cache(Some("pip"), "pip"),
    cache(Some("pip3"), "pip"),
    cache(Some("uv"), "uv"),
    cache(Some("poetry"), "pypoetry"),
    cache(Some("go"), "go-build"),
    cache(Some("yarn"), "yarn"),
    cache(Some("pnpm"), "pnpm"),
    cache(Some("node"), "node-gyp"),
    cache(Some("npx"), "ms-playwright"),
    cache(Some("deno"), "deno"),
    cache(Some("ccache"), "ccache"),
    cache(Some("sccache"), "sccache"),
    cache(Some("pre-commit"), "pre-commit"),
    cache(Some("bazel"), "bazel"),
    cache(Some("python3"), "huggingface/hub"),
    cache(None, "hermes/tmp"),
];

/// How names in `.cache` begin that shells and editors run outside of the fence.
const RUN_FROM_CACHE: &[&str] = &[
    "p10k-",
    "gitstatus",
    "zsh",
    "oh-my-zsh",
    "antidote",
    "zinit",
    "starship",
    "nvim",
    "vim",
    "wal",
    "fish",
];

/// Files by which cargo keeps others out of its caches.
const CARGO_LOCKS: &[&str] = &[".package-cache", ".package-cache-mutate"];

/// Variables that name such a folder, and what of it is written.
const CACHE_VARIABLES: &[(&str, &[&str])] = &[
    (
        "CARGO_HOME",
        &["registry", "git", ".package-cache", ".package-cache-mutate"],
    ),
    ("GOPATH", &["pkg"]),
    ("GOMODCACHE", &[""]),
    ("GOCACHE", &[""]),
    ("XDG_CACHE_HOME", &[""]),
    ("npm_config_cache", &[""]),
    ("NPM_CONFIG_CACHE", &[""]),
    ("PIP_CACHE_DIR", &[""]),
    ("UV_CACHE_DIR", &[""]),
    ("YARN_CACHE_FOLDER", &[""]),
];

struct Cache {
    /// Who needs it; everybody when there is none.
    program: Option<&'static str>,
    path: &'static str,
}

const fn cache(program: Option<&'static str>, path: &'static str) -> Cache {
    Cache { program, path }
}

/// What commands of guests read of the system: programs, and what programs need. Nobody's own files are there.
const OF_THE_SYSTEM: &[&str] = &[
    "/bin",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/System",
    "/Library",
    "/private/etc",
    "/private/var/db",
    "/private/var/select",
];

/// Leads to where name servers are found.
const NAME_SERVERS: &str = "/etc/resolv.conf";

/// How much commands may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceKind {
    /// Everything but secrets.
    Project,
    /// What is listed: the system's programs, toolchains, the project.
    Strict,
}

/// The folders of somebody who is not the owner of the machine: they see nothing else of it but the system's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFolders {
    /// Theirs: they work there, and write.
    pub own: PathBuf,
    /// What the owner lets them read.
    pub shared: Vec<PathBuf>,
}

/// Where the folders are that matter to a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencePlaces {
    pub kind: FenceKind,
    /// The home of the user.
    pub user_home: Option<PathBuf>,
    /// The home of Hermes with those of all profiles, which hold keys.
    pub hermes_home: PathBuf,
    /// Folders that running commands at all needs to write to.
    pub own: Vec<PathBuf>,
    /// A folder for the same, for commands that may leave the fence: no other reaches it.
    pub apart: PathBuf,
    /// Folders in Hermes' home that commands read: skills have scripts.
    pub shown: Vec<PathBuf>,
    /// The variables Hermes was started with: some name folders for temporary files and caches.
    pub variables: Vec<(OsString, OsString)>,
    /// Whose commands these are when they are not the owner's, whatever [`Self::kind`] says.
    pub guest: Option<GuestFolders>,
}

impl FencePlaces {
    /// Decides what is inside for a session that works in `cwd`. Folders that do not exist when the fence is put up stay
    /// out of reach.
    pub fn area(&self, cwd: &Path) -> FenceArea {
        if let Some(guest) = &self.guest {
            return self.area_of(guest);
        }
        let homes = self.homes();
        let project = project_of(&resolved(cwd), &homes);
        let hermes_home = resolved(&self.hermes_home);
        let mut writable = Vec::new();
        if is_writable(&project, &homes, &hermes_home) {
            writable.extend(beside(&project, std::slice::from_ref(&hermes_home)));
            writable.extend(git_folders(&project));
        }
        let private: Vec<PathBuf> = homes.iter().chain([&hermes_home]).cloned().collect();
        writable.extend(temporary_folders(&private));
        let named = self.variable("TMPDIR").into_iter().chain(self.caches());
        let is_wide = |path: &PathBuf| is_wide(path, &private);
        let mut hidden = secrets::hidden(self.user_home.as_deref(), &self.hermes_home, &project);
        dedup(&mut hidden);
        // A kernel that opens a folder opens what is inside, so what must stay closed is left out with what is around it.
        let mut closed: Vec<PathBuf> = hidden
            .iter()
            .filter(|path| path.exists())
            .cloned()
            .collect();
        closed.extend(self.run_from_caches());
        let named = named.map(|path| resolved(&path));
        let named = named.filter(|path| !is_wide(path));
        writable.extend(named.flat_map(|path| beside(&path, &closed)));
        dedup(&mut writable);
        FenceArea {
            readable: (self.kind == FenceKind::Strict).then(|| self.programs(&homes)),
            shown: self.shown.iter().map(|path| resolved(path)).collect(),
            project,
            writable,
            hidden,
        }
    }

    /// What is inside for a guest. Their folder is the project, wherever the owner works.
    fn area_of(&self, guest: &GuestFolders) -> FenceArea {
        let own = resolved(&guest.own);
        let hermes_home = resolved(&self.hermes_home);
        let homes = self.homes();
        let private: Vec<PathBuf> = homes.iter().chain([&hermes_home]).cloned().collect();
        let mut writable = vec![own.clone()];
        writable.extend(temporary_folders(&private));
        let named = self.variable("TMPDIR").map(|path| resolved(&path));
        let named = named.filter(|path| !is_wide(path, &private));
        writable.extend(named.iter().flat_map(|path| beside(path, &private)));
        dedup(&mut writable);
        let mut hidden = secrets::hidden(self.user_home.as_deref(), &self.hermes_home, &own);
        dedup(&mut hidden);
        // A folder that is shared does not bring the secrets along that lie in it.
        let there = hidden.iter().filter(|path| path.exists());
        let closed: Vec<PathBuf> = there.cloned().collect();
        let shared = guest.shared.iter().map(|path| resolved(path));
        let shared = shared.flat_map(|path| beside(&path, &closed));
        let shown: Vec<PathBuf> = self.shown.iter().map(|path| resolved(path)).collect();
        let system = OF_THE_SYSTEM.iter().map(PathBuf::from);
        let name_servers = [RESOLVER.into(), resolved(Path::new(NAME_SERVERS))];
        let mut readable: Vec<PathBuf> = system.chain(name_servers).chain(shared).collect();
        readable.extend(shown.iter().cloned());
        dedup(&mut readable);
        // What is around their folder is closed because nothing opens it.
        hidden.retain(|path| !own.starts_with(path));
        FenceArea {
            project: own,
            readable: Some(readable),
            shown,
            writable,
            hidden,
        }
    }

    /// The user's home, by all of its names.
    fn homes(&self) -> Vec<PathBuf> {
        let homes = self.user_home.iter();
        let mut homes: Vec<PathBuf> = homes
            .flat_map(|home| [resolved(home), home.clone()])
            .collect();
        homes.dedup();
        homes
    }

    /// Where commands put temporary files, if not where they usually do.
    pub(super) fn temporary(&self, area: &FenceArea) -> Option<PathBuf> {
        let usual = self.variable("TMPDIR").unwrap_or(TEMPORARY[0].into());
        let other = match &self.guest {
            Some(guest) => guest.own.join(TEMPORARY_OF_GUESTS),
            None => self.user_home.as_ref()?.join(TEMPORARY_AT_HOME),
        };
        (!area.may_write(&resolved(&usual))).then_some(other)
    }

    fn variable(&self, wanted: &str) -> Option<PathBuf> {
        let variable = self.variables.iter().find(|(name, _)| name == wanted);
        let path = variable.map(|(_, value)| PathBuf::from(value));
        path.filter(|path| path.is_absolute())
    }

    fn caches(&self) -> Vec<PathBuf> {
        let at_home = self.user_home.iter().flat_map(|home| {
            CACHES.iter().map(|cache| home.join(cache.path)).chain(
                CARGO_LOCKS
                    .iter()
                    .map(|name| home.join(".cargo").join(name)),
            )
        });
        let named = CACHE_VARIABLES.iter().flat_map(|(variable, inside)| {
            let folder = self.variable(variable);
            folder.into_iter().flat_map(|folder| {
                inside.iter().map(move |name| {
                    if name.is_empty() {
                        folder.clone()
                    } else {
                        folder.join(name)
                    }
                })
            })
        });
        at_home.chain(named).collect()
    }

    /// What lies in caches and runs outside of the fence, as far as it is there.
    fn run_from_caches(&self) -> Vec<PathBuf> {
        let at_home = self.user_home.as_ref().map(|home| home.join(".cache"));
        let folders = at_home.into_iter().chain(self.variable("XDG_CACHE_HOME"));
        let is_run = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            RUN_FROM_CACHE.iter().any(|start| name.starts_with(start))
        };
        let entries = folders.flat_map(|folder| {
            let entries = resolved(&folder).read_dir().into_iter().flatten().flatten();
            entries.take(ENTRIES_MAX).filter(is_run).collect::<Vec<_>>()
        });
        entries.map(|entry| entry.path()).collect()
    }

    /// Makes the folders that tools on this machine would make in the home with their first download: behind the fence they
    /// could not. What cannot be made is left out.
    pub(super) fn make_caches(&self) {
        // Guests have none of the owner's.
        let Some(home) = self.user_home.as_ref().filter(|_| self.guest.is_none()) else {
            return;
        };
        let is_there = |program: &str| find(program, &self.variables).is_some();
        for cache in CACHES {
            if cache.program.is_none_or(is_there) {
                let _ = fs::create_dir_all(home.join(cache.path));
            }
        }
        let inner = home.join(".cache");
        for cache in IN_CACHE.iter().filter(|_| self.is_split(&inner)) {
            if cache.program.is_none_or(is_there) {
                let _ = fs::create_dir_all(inner.join(cache.path));
            }
        }
        let cargo = home.join(".cargo");
        for name in CARGO_LOCKS.iter().filter(|_| cargo.is_dir()) {
            let _ = fs::File::options()
                .append(true)
                .create(true)
                .open(cargo.join(name));
        }
    }

    /// Returns whether a folder of caches cannot be opened as a whole.
    fn is_split(&self, folder: &Path) -> bool {
        let hidden = secrets::hidden(self.user_home.as_deref(), &self.hermes_home, Path::new("/"));
        let mut closed = hidden.into_iter().chain(self.run_from_caches());
        closed.any(|path| path.starts_with(folder) && path.exists())
    }

    /// Everything at the top but homes, and toolchains.
    fn programs(&self, homes: &[PathBuf]) -> Vec<PathBuf> {
        let private: Vec<PathBuf> = homes.iter().chain([&self.hermes_home]).cloned().collect();
        let entries = Path::new("/").read_dir().into_iter().flatten().flatten();
        let is_public = |path: &PathBuf| {
            let named = NOT_PROGRAMS.iter().map(|name| Path::new("/").join(name));
            let hidden: Vec<PathBuf> = named.chain(private.iter().map(|path| top(path))).collect();
            let target = resolved(path);
            path != Path::new(DEVICES) && !hidden.iter().any(|hidden| target.starts_with(hidden))
        };
        let mut readable: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(is_public)
            .collect();
        readable.push(RESOLVER.into());
        let at_home = |home: &PathBuf| {
            let names = READABLE_AT_HOME.iter();
            names.map(|name| home.join(name)).collect::<Vec<_>>()
        };
        readable.extend(self.user_home.iter().flat_map(at_home));
        readable.sort();
        readable
    }
}

/// Returns a folder, or, when something private lies in it, everything in it that is beside the way there: a kernel that
/// opens a folder opens what is inside.
fn beside(folder: &Path, private: &[PathBuf]) -> Vec<PathBuf> {
    if !private.iter().any(|path| path.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    if private.iter().any(|path| path == folder) {
        return Vec::new();
    }
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let is_itself = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| !kind.is_symlink());
    entries
        .filter(is_itself)
        .take(ENTRIES_MAX)
        .flat_map(|entry| beside(&entry.path(), private))
        .collect()
}

/// Places for temporary files, without what is private in them.
fn temporary_folders(private: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let folders = TEMPORARY.iter().map(|path| resolved(Path::new(path)));
    folders.flat_map(|path| beside(&path, private))
}

/// Returns whether a folder holds everything, or what is private.
fn is_wide(folder: &Path, private: &[PathBuf]) -> bool {
    folder == Path::new("/") || private.iter().any(|private| private.starts_with(folder))
}

/// Folders of the system, which are nobody's project.
const SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
];

/// Where people keep sources among the folders of the system.
const SOURCES: &[&str] = &["/usr/src", "/usr/local/src"];

/// Returns whether a project may be written to: it is no home, holds none, and belongs to nobody else.
fn is_writable(project: &Path, homes: &[PathBuf], hermes_home: &Path) -> bool {
    let holds_home = homes.iter().any(|home| home.starts_with(project));
    let is_in = |folders: &[&str]| folders.iter().any(|folder| project.starts_with(folder));
    let is_home_of_somebody = project.parent().is_some_and(|parent| {
        ["/", "/home", "/Users"].contains(&parent.to_string_lossy().as_ref())
            && ["/home", "/Users", "/root", "/var"]
                .iter()
                .any(|top| project.starts_with(top))
    });
    !holds_home
        && !is_home_of_somebody
        && project != Path::new("/")
        && (!is_in(SYSTEM) || is_in(SOURCES))
        && !project.starts_with(hermes_home)
}

/// The folder directly under the root that a path is in.
fn top(path: &Path) -> PathBuf {
    let components = path.components();
    components
        .filter(|component| !matches!(component, Component::CurDir))
        .take(2)
        .collect()
}

pub(super) fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn dedup(paths: &mut Vec<PathBuf>) {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| path.as_os_str() != OsStr::new("") && seen.insert(path.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(kind: FenceKind) -> FencePlaces {
        FencePlaces {
            kind,
            user_home: Some("/data/me".into()),
            hermes_home: "/data/me/.hermes".into(),
            own: vec!["/data/me/.hermes/shells".into()],
            apart: "/data/me/.hermes/apart".into(),
            shown: vec!["/data/me/.hermes/skills".into()],
            variables: Vec::new(),
            guest: None,
        }
    }

    #[test]
    fn a_guest_reads_the_system_their_own_folder_and_what_is_shared_with_them() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in [
            ".hermes/people/bob/work",
            ".hermes/skills",
            "shared",
            ".ssh",
            "project/src",
        ] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        let sharing = |shared: &[&str]| FencePlaces {
            user_home: Some(home.clone()),
            hermes_home: home.join(".hermes"),
            shown: vec![home.join(".hermes/skills"), home.join(".hermes/people/bob")],
            guest: Some(GuestFolders {
                own: home.join(".hermes/people/bob/work"),
                shared: shared.iter().map(|name| home.join(name)).collect(),
            }),
            ..places(FenceKind::Project)
        };
        // Wherever the owner works, and although they share their whole home.
        for (shared, is_all) in [(["shared"], false), ([""], true)] {
            let area = sharing(&shared).area(&home.join("project"));
            for (name, reads, writes) in [
                (".hermes/people/bob/work/x", true, true),
                (".hermes/people/bob/results/x", true, false),
                (".hermes/people/anna/x", false, false),
                (".hermes/skills/x", true, false),
                (".hermes/.env", false, false),
                (".ssh/id_ed25519", false, false),
                ("shared/x", true, false),
                ("project/src/x", is_all, false),
                (".cargo/registry/x", false, false),
            ] {
                let path = home.join(name);
                assert_eq!(area.may_read(&path), reads, "{name} {shared:?}");
                assert_eq!(area.may_write(&path), writes, "{name} {shared:?}");
            }
            assert!(area.is_project_writable());
        }
        let area = sharing(&[]).area(&home);
        for (path, reads) in [
            ("/usr/bin/ls", true),
            ("/etc/hosts", true),
            ("/home/somebody/x", false),
            ("/root/x", false),
            ("/srv/x", false),
            ("/var/lib/x", false),
            ("/mnt/x", false),
        ] {
            assert_eq!(area.may_read(Path::new(path)), reads, "{path}");
        }
    }

    #[test]
    fn a_strict_fence_reads_toolchains_but_no_home() {
        let area = places(FenceKind::Strict).area(Path::new("/data/me/project"));
        let readable = area.readable.clone().unwrap();
        let reads = |path: &str| readable.contains(&PathBuf::from(path));
        assert!(reads("/usr") && reads("/etc") && reads("/data/me/.rustup"));
        assert!(!reads("/data") && !reads("/home") && !reads("/root") && !reads("/dev"));
        assert!(!reads("/data/me/.cargo") && !reads("/data/me/.ssh"));
        assert_eq!(area.writable[0], PathBuf::from("/data/me/project"));
    }

    #[test]
    fn everything_but_secrets_is_read_and_the_project_and_caches_are_written() {
        let area = places(FenceKind::Project).area(Path::new("/data/me/project"));
        let project = Path::new("/data/me/project");
        assert!(area.may_write(&project.join("x")) && area.is_project_writable());
        for (path, reads, writes) in [
            ("/data/me/notes", true, false),
            ("/data/me/.bashrc", true, false),
            ("/data/me/.ssh/id_ed25519", false, false),
            ("/data/me/.hermes/.env", false, false),
            ("/data/me/.hermes/skills/x/run.sh", true, false),
            ("/data/me/.cargo/registry/x", true, true),
            ("/data/me/.cargo/bin/cargo", true, false),
            ("/data/me/.cargo/credentials.toml", false, false),
            ("/data/me/.mozilla/firefox/x", false, false),
            ("/tmp/x", true, true),
            ("/usr/bin/ls", true, false),
        ] {
            assert_eq!(area.may_read(Path::new(path)), reads, "{path}");
            assert_eq!(area.may_write(Path::new(path)), writes, "{path}");
        }
    }

    #[test]
    fn a_secret_among_caches_and_what_shells_run_there_stay_closed() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in ["huggingface/hub", "pip", "gitstatus"] {
            fs::create_dir_all(home.join(".cache").join(name)).unwrap();
        }
        for name in ["huggingface/token", "p10k-instant-prompt-me.zsh"] {
            fs::write(home.join(".cache").join(name), "").unwrap();
        }
        let places = FencePlaces {
            user_home: Some(home.clone()),
            hermes_home: home.join(".hermes"),
            ..places(FenceKind::Project)
        };
        let area = places.area(&home.join("project"));
        for (name, writes) in [
            ("huggingface/hub/x", true),
            ("pip/x", true),
            ("huggingface/token", false),
            ("p10k-instant-prompt-me.zsh", false),
            ("gitstatus/gitstatusd", false),
        ] {
            let path = home.join(".cache").join(name);
            assert_eq!(area.may_write(&path), writes, "{name}");
            let is_open = area.writable.iter().any(|open| path.starts_with(open));
            assert_eq!(is_open, writes, "{name}: the kernel knows no exceptions");
        }
    }

    #[test]
    fn a_home_and_what_holds_one_are_not_written() {
        for project in [
            "/",
            "/data",
            "/data/me",
            "/etc",
            "/home",
            "/root",
            "/data/me/.hermes/x",
        ] {
            let area = places(FenceKind::Project).area(Path::new(project));
            assert!(!area.is_project_writable(), "{project}");
            assert!(!area.may_write(Path::new("/data/me/x")), "{project}");
            assert!(area.may_write(Path::new("/tmp/x")), "{project}");
        }
    }

    #[test]
    fn a_variable_names_a_folder_for_temporary_files_but_not_a_home() {
        let with = |value: &str| FencePlaces {
            variables: vec![("TMPDIR".into(), value.into())],
            ..places(FenceKind::Project)
        };
        let project = Path::new("/data/me/project");
        assert!(
            with("/scratch")
                .area(project)
                .may_write(Path::new("/scratch/x"))
        );
        for wide in ["/", "/data", "/data/me"] {
            let area = with(wide).area(project);
            assert!(!area.may_write(Path::new("/data/me/x")), "{wide}");
        }
    }

    #[test]
    fn a_home_among_temporary_files_is_held() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/project", "home/.hermes", "other/inside"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let places = FencePlaces {
            user_home: Some(root.join("home")),
            hermes_home: root.join("home/.hermes"),
            ..places(FenceKind::Project)
        };
        let area = places.area(&root.join("home/project"));
        for (name, writes) in [
            ("home/project/x", true),
            ("home/.cache/x", true),
            ("other/inside/x", true),
            ("home/.bashrc", false),
            ("home/.hermes/config.yaml", false),
            ("home/notes", false),
        ] {
            assert_eq!(area.may_write(&root.join(name)), writes, "{name}");
        }
        let temporary = places.temporary(&area).unwrap();
        assert!(area.may_write(&temporary), "{}", temporary.display());
        let usual = super::tests::places(FenceKind::Project);
        assert_eq!(
            usual.temporary(&usual.area(Path::new("/data/me/project"))),
            None
        );
    }

    #[test]
    fn a_project_that_holds_our_home_is_written_beside_it() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["src", "home"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let places = FencePlaces {
            hermes_home: root.join("home"),
            ..places(FenceKind::Project)
        };
        let area = places.area(&root);
        assert!(area.may_write(&root.join("src/x")));
        assert!(!area.may_write(&root.join("home/config.yaml")));
    }
}

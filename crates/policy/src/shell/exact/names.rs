//! Variables that decide what runs: the shell's own, and those in which programs look for other programs.

/// The shell itself looks at these, or computes with what they are set to.
const OF_THE_SHELL: &[&str] = &[
    "_",
    "CDPATH",
    "COLUMNS",
    "COPROC",
    "DIRSTACK",
    "EMACS",
    "ENV",
    "EUID",
    "EXECIGNORE",
    "FCEDIT",
    "FIGNORE",
    "FUNCNAME",
    "FUNCNEST",
    "FPATH",
    "GLOBIGNORE",
    "GLOBSORT",
    "GROUPS",
    "HISTCMD",
    "HISTCONTROL",
    "HISTFILE",
    "HISTFILESIZE",
    "HISTIGNORE",
    "HISTSIZE",
    "HISTTIMEFORMAT",
    "HOME",
    "HOSTFILE",
    "HOSTTYPE",
    "IFS",
    "IGNOREEOF",
    "INPUTRC",
    "LINENO",
    "LINES",
    "MACHTYPE",
    "MAIL",
    "MAILCHECK",
    "MAILPATH",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PATH",
    "PIPESTATUS",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PROMPT_DIRTRIM",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "TIMEFORMAT",
    "TMOUT",
    "UID",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "auto_resume",
    "histchars",
    "TEXTDOMAIN",
    "TEXTDOMAINDIR",
    "CHILD_MAX",
    "BASHOPTS",
    "ZDOTDIR",
];

/// Programs look for programs, libraries or settings in these.
const OF_PROGRAMS: &[&str] = &[
    "AR",
    "AS",
    "CPP",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "LD",
    "LDSHARED",
    "LESS",
    "LESSCLOSE",
    "LESSEDIT",
    "LESSKEY",
    "LESSOPEN",
    "LIBPATH",
    "SHLIB_PATH",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MFLAGS",
    "GNUMAKEFLAGS",
    "MANPL",
    "MANROFFOPT",
    "MORE",
    "NM",
    "OBJCOPY",
    "RANLIB",
    "STRIP",
    "RUSTC",
    "RUSTDOC",
    "RUSTFMT",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "SVN_SSH",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "CURL_HOME",
    "NETRC",
    "KUBECONFIG",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "GOFLAGS",
    "GOROOT",
    "GOTOOLDIR",
    "GOENV",
    "GOWORK",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CC",
    "CXX",
    "GZIP",
    "BZIP",
    "BZIP2",
    "XZ_DEFAULTS",
    "UNZIP",
    "ZIP",
    "JAVA_HOME",
    "JAVACMD",
    "CLASSPATH",
    "DISPLAY",
    "WINDOWID",
    "SSLKEYLOGFILE",
    "NIX_PATH",
    "HOSTALIASES",
    "GTK_MODULES",
    "QT_PLUGIN_PATH",
    "MALLOC_CONF",
    "TMUX",
    "STY",
    "SCREENDIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "EXINIT",
    "NVIM_APPNAME",
];

const BEGINNINGS: &[&str] = &[
    "BASH_",
    "COMP_",
    "READLINE_",
    "LD_",
    "DYLD_",
    "GIT_",
    "PERL",
    "RUBY",
    "PYTHON",
    "NODE_",
    "CARGO_",
    "SSH_",
    "SUDO_",
    "RSYNC_",
    "CVS",
    "SVN_",
    "VIM",
    "EMACS",
    "XDG_",
    "npm_config_",
    "NPM_CONFIG_",
    "YARN_",
    "PNPM_",
    "LUA_",
    "GUILE_",
    "TCL",
    "ERL_",
    "ELIXIR_",
    "R_",
    "JULIA_",
    "OPENSSL",
    "ANSIBLE_",
    "TF_",
    "PSQL",
    "PGSERVICE",
    "PGSYSCONF",
    "MYSQL",
    "SQLITE",
    "GIO_",
    "GPG_",
    "GNUPG",
    "KUBE_",
    "HELM_",
    "BUNDLE_",
    "GEM_",
    "CGO_",
    "WGET",
    "TAR_",
    "MAN_",
    "LC_",
    "LANG",
    "SCREEN",
    "PAGER_",
    "EDITOR_",
    "HERMES_",
    "PIP_",
    "DIRENV_",
    "PRE_COMMIT_",
];

const ENDINGS: &[&str] = &[
    "EDITOR", "PAGER", "SHELL", "BROWSER", "COMMAND", "CMD", "PROGRAM", "ASKPASS", "OPTS",
    "OPTIONS", "_OPT", "WRAPPER", "RC", "INIT", "PRELOAD", "VISUAL", "HOOK", "PLUGIN", "STARTUP",
    "RSH", "_EXEC", "LINKER", "RUNNER",
];

/// Names that look like the above and decide nothing, whatever is in them.
const HARMLESS: &[&str] = &[
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "CARGO_TERM_COLOR",
    "CGO_ENABLED",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_TERMINAL_PROMPT",
    "NODE_ENV",
    "NODE_PATH",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_NO_INPUT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "TF_VAR_name",
];

/// Values with which a name decides nothing, as people write them.
const HARMLESS_VALUES: &[(&[&str], &[&str])] = &[
    (
        &[
            "LC_ALL",
            "LC_CTYPE",
            "LC_COLLATE",
            "LC_MESSAGES",
            "LC_NUMERIC",
            "LC_TIME",
            "LANG",
            "LANGUAGE",
        ],
        &[
            "C",
            "POSIX",
            "C.UTF-8",
            "C.utf8",
            "en_US.UTF-8",
            "en_GB.UTF-8",
            "en",
        ],
    ),
    (
        &[
            "PAGER",
            "GIT_PAGER",
            "MANPAGER",
            "AWS_PAGER",
            "GH_PAGER",
            "SYSTEMD_PAGER",
        ],
        &["", "cat"],
    ),
    (
        &["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"],
        &["true", ":", "cat"],
    ),
    (
        &["CC", "CXX"],
        &["cc", "c++", "gcc", "g++", "clang", "clang++"],
    ),
    (
        &["PYTHONWARNINGS"],
        &["ignore", "default", "error", "always", "once"],
    ),
    (&["MAKEFLAGS"], &["-j", "-j1", "-j2", "-j4", "-j8", "-j16"]),
    (&["LESS"], &["", "-R", "-FRX", "FRX", "-FX", "R"]),
    (
        &["RUSTFLAGS", "RUSTDOCFLAGS"],
        &[
            "-D warnings",
            "-Dwarnings",
            "-Awarnings",
            "-A warnings",
            "-C target-cpu=native",
        ],
    ),
    (
        &["GOFLAGS"],
        &["-mod=mod", "-mod=vendor", "-mod=readonly", "-count=1"],
    ),
    (
        &["CFLAGS", "CXXFLAGS"],
        &[
            "-O0",
            "-O1",
            "-O2",
            "-O3",
            "-g",
            "-O0 -g",
            "-g -O0",
            "-O2 -g",
            "-Wall",
            "-Wall -Wextra",
        ],
    ),
    (
        &["NODE_OPTIONS"],
        &[
            "--max-old-space-size=2048",
            "--max-old-space-size=4096",
            "--max-old-space-size=8192",
            "--experimental-vm-modules",
            "--no-warnings",
            "--openssl-legacy-provider",
        ],
    ),
    (
        &["COLUMNS", "LINES"],
        &["80", "100", "120", "132", "160", "200", "24", "40", "50"],
    ),
];

/// Says why a variable must not be set without a question, if so. `value` is what it is set to, where that is known.
pub(crate) fn why_decides(name: &str, value: Option<&str>) -> Option<String> {
    if HARMLESS.contains(&name) || name.starts_with("TF_VAR_") {
        return None;
    }
    let is_harmless = |(names, values): &(&[&str], &[&str])| {
        names.contains(&name) && value.is_some_and(|value| values.contains(&value))
    };
    if HARMLESS_VALUES.iter().any(is_harmless) {
        return None;
    }
    if name == "PATH" && value.is_some_and(only_adds_known_folders) {
        return None;
    }
    if OF_THE_SHELL.contains(&name) {
        return Some(format!(
            "sets `{name}`, which decides how the shell reads and runs commands"
        ));
    }
    let upper = name.to_ascii_uppercase();
    let is_of_programs = OF_PROGRAMS.contains(&name)
        || BEGINNINGS.iter().any(|start| name.starts_with(start))
        || ENDINGS
            .iter()
            .any(|end| upper.ends_with(end) && name == upper);
    is_of_programs.then(|| format!("sets `{name}`, which may make programs run others"))
}

/// Stands for `$PATH` in a value of it.
pub(super) const OLD_PATH: &str = "$PATH";

/// Folders of tools that people put before the others, as they write them.
const TOOL_FOLDERS: &[&str] = &[
    "~/.cargo/bin",
    "~/.local/bin",
    "~/go/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "/usr/local/bin",
    "/usr/local/go/bin",
    "/opt/homebrew/bin",
];

/// Returns whether a new `PATH` is the old one with absolute folders after it, or well-known ones before it.
fn only_adds_known_folders(value: &str) -> bool {
    let mut folders = value.split(':');
    let before = folders.by_ref().take_while(|folder| *folder != OLD_PATH);
    let is_known = before
        .into_iter()
        .all(|folder| TOOL_FOLDERS.contains(&folder));
    let has_old = value
        .split(':')
        .filter(|folder| *folder == OLD_PATH)
        .count()
        == 1;
    let mut after = value
        .split(':')
        .skip_while(|folder| *folder != OLD_PATH)
        .skip(1);
    let is_absolute = |folder: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-~".contains(c);
        folder.starts_with(['/', '~']) && !folder.contains("..") && folder.chars().all(is_plain)
    };
    is_known && has_old && after.all(is_absolute)
}

//! Which packages a command would fetch and run. Pure: it reads the command line as the package runners do.

/// A package of a public registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) ecosystem: Ecosystem,
    pub(crate) name: String,
    /// Only an exact one.
    pub(crate) version: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ecosystem {
    Npm,
    Pypi,
}

impl Ecosystem {
    /// The name by which databases of advisories know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
        }
    }
}

/// How a runner's command line is read.
struct Runner {
    ecosystem: Ecosystem,
    /// Options that name the package, so that the first word is a program inside it.
    package: &'static [&'static str],
    /// Options that name further packages.
    more: &'static [&'static str],
    /// Other options that are followed by a value.
    valued: &'static [&'static str],
}

const NPM: Runner = Runner {
    ecosystem: Ecosystem::Npm,
    package: &["-p", "--package"],
    more: &[],
    valued: &[
        "-c",
        "--call",
        "--registry",
        "--cache",
        "--userconfig",
        "-w",
        "--workspace",
        "--loglevel",
        "--prefix",
        "--shell",
        "--cwd",
    ],
};

const UV: Runner = Runner {
    ecosystem: Ecosystem::Pypi,
    package: &["--from"],
    more: &["--with", "-w"],
    valued: &[
        "-p",
        "--python",
        "-i",
        "--index-url",
        "--default-index",
        "--index",
        "--extra-index-url",
        "-f",
        "--find-links",
        "--index-strategy",
        "--keyring-provider",
        "-P",
        "--upgrade-package",
        "--refresh-package",
        "--reinstall-package",
        "--resolution",
        "--prerelease",
        "--link-mode",
        "-C",
        "--config-setting",
        "--exclude-newer",
        "-c",
        "--constraints",
        "-b",
        "--build-constraints",
        "--overrides",
        "--env-file",
        "--with-editable",
        "--with-requirements",
        "--cache-dir",
        "--config-file",
        "--directory",
        "--project",
        "--color",
        "--python-platform",
        "--torch-backend",
        "--allow-insecure-host",
    ],
};

const PIPX: Runner = Runner {
    ecosystem: Ecosystem::Pypi,
    package: &["--spec"],
    more: &["--with"],
    valued: &[
        "--python",
        "-i",
        "--index-url",
        "--pip-args",
        "--fetch-python",
    ],
};

/// The commands that fetch packages, with the words that follow them.
const RUNNERS: &[(&[&str], &Runner)] = &[
    (&["npx"], &NPM),
    (&["bunx"], &NPM),
    (&["bun", "x"], &NPM),
    (&["npm", "exec"], &NPM),
    (&["npm", "x"], &NPM),
    (&["pnpm", "dlx"], &NPM),
    (&["pnpx"], &NPM),
    (&["yarn", "dlx"], &NPM),
    (&["uvx"], &UV),
    (&["uv", "tool", "run"], &UV),
    (&["pipx", "run"], &PIPX),
];

/// Returns the packages that a command would fetch; none for a command that is no package runner.
pub(crate) fn packages(command: &str, args: &[String]) -> Vec<Package> {
    let Some((runner, rest)) = runner_of(command, args) else {
        return Vec::new();
    };
    let specs = runner.specs(rest);
    let package = |spec: &String| match runner.ecosystem {
        Ecosystem::Npm => npm_package(spec),
        Ecosystem::Pypi => pypi_package(spec),
    };
    specs.iter().filter_map(package).collect()
}

fn runner_of<'a>(command: &str, args: &'a [String]) -> Option<(&'static Runner, &'a [String])> {
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let program = program.to_ascii_lowercase();
    let program = program.trim_end_matches(".cmd").trim_end_matches(".exe");
    RUNNERS.iter().find_map(|(words, runner)| {
        let (first, others) = words.split_first()?;
        let follows =
            args.len() >= others.len() && others.iter().zip(args).all(|(word, arg)| word == arg);
        (*first == program && follows).then(|| (*runner, &args[others.len()..]))
    })
}

impl Runner {
    /// Returns what the options, or the first word, say is to be fetched.
    fn specs(&self, args: &[String]) -> Vec<String> {
        let (mut named, mut more, mut first_word) = (Vec::new(), Vec::new(), None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (option, value) = match arg.split_once('=') {
                Some((option, value)) if arg.starts_with('-') => (option, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let mut value = || value.clone().or_else(|| args.next().cloned());
            if self.package.contains(&option) {
                named.extend(value());
            } else if self.more.contains(&option) {
                more.extend(value());
            } else if self.valued.contains(&option) {
                value();
            } else if option == "--" || !option.starts_with('-') {
                // Whatever follows belongs to the program.
                first_word = if option == "--" {
                    args.next()
                } else {
                    Some(arg)
                };
                break;
            }
        }
        if named.is_empty() {
            named.extend(first_word.cloned());
        }
        let with_commas = named.iter().chain(&more).flat_map(|specs| specs.split(','));
        with_commas.map(str::to_owned).collect()
    }
}

/// Reads `name@version`, where the name may have a scope.
fn npm_package(spec: &str) -> Option<Package> {
    let is_elsewhere = spec.contains(':') || spec.starts_with(['.', '/', '~']);
    let (scope, rest) = match spec.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .map(|(scope, rest)| (Some(scope), rest))?,
        None => (None, spec),
    };
    let (name, version) = rest
        .split_once('@')
        .map_or((rest, None), |(name, version)| (name, Some(version)));
    if is_elsewhere || name.is_empty() || name.contains('/') {
        return None;
    }
    Some(Package {
        ecosystem: Ecosystem::Npm,
        name: scope.map_or(name.to_owned(), |scope| format!("@{scope}/{name}")),
        version: version.and_then(exact),
    })
}

/// Reads `name[extras]==version` or `name@version`.
fn pypi_package(spec: &str) -> Option<Package> {
    let spec: String = spec.split_whitespace().collect();
    if spec.contains("://") || spec.contains("git+") || spec.starts_with(['.', '/', '~']) {
        return None;
    }
    let end = spec.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    let (name, mut rest) = spec.split_at(end.unwrap_or(spec.len()));
    if let Some(extras_end) = rest.strip_prefix('[').and_then(|extras| extras.find(']')) {
        rest = &rest[extras_end + 2..];
    }
    let version = rest.strip_prefix("==").or_else(|| rest.strip_prefix('@'));
    let separators = |c: char| matches!(c, '-' | '_' | '.');
    let parts = name.split(separators).filter(|part| !part.is_empty());
    let name = parts.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    (!name.is_empty()).then(|| Package {
        ecosystem: Ecosystem::Pypi,
        name,
        version: version.and_then(exact),
    })
}

/// Returns a version that is one, and not a tag or a range.
fn exact(version: &str) -> Option<String> {
    let is_exact = version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '!'))
        && !version.split('.').any(|part| matches!(part, "x" | "X"));
    is_exact.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the packages of a command line as `ecosystem name version`.
    fn check(line: &str, expected: &[&str]) {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        let args: Vec<String> = words.collect();
        let shown: Vec<String> = packages(&command, &args)
            .iter()
            .map(|package| {
                let version = package.version.as_deref().unwrap_or("any");
                format!("{} {} {version}", package.ecosystem.name(), package.name)
            })
            .collect();
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn npm_runners_name_their_package() {
        check(
            "npx -y @scope/server@1.2.3 --port 80",
            &["npm @scope/server 1.2.3"],
        );
        check("/usr/local/bin/npx server", &["npm server any"]);
        check("npx.cmd --yes server@latest", &["npm server any"]);
        check(
            "npx --package=real --registry https://x bin",
            &["npm real any"],
        );
        check(
            "npx -p one -p two@2.0.0 bin arg",
            &["npm one any", "npm two 2.0.0"],
        );
        check("npx -- server", &["npm server any"]);
        check("bunx server@^1.0.0", &["npm server any"]);
        check("npm exec server", &["npm server any"]);
        check("pnpm dlx server@1.x.0", &["npm server any"]);
    }

    #[test]
    fn python_runners_name_theirs() {
        check("uvx mcp-server-git", &["PyPI mcp-server-git any"]);
        check(
            "uvx --python 3.12 My.Server_Name==1.0",
            &["PyPI my-server-name 1.0"],
        );
        check(
            "uvx --from package[cli]==2.0.1 program",
            &["PyPI package 2.0.1"],
        );
        check(
            "uvx --with extra one@1.5.0",
            &["PyPI one 1.5.0", "PyPI extra any"],
        );
        check("uv tool run server>=2", &["PyPI server any"]);
        check(
            "pipx run --spec package==1.0.0 program",
            &["PyPI package 1.0.0"],
        );
    }

    #[test]
    fn what_comes_from_elsewhere_or_is_no_runner_has_no_package() {
        for line in [
            "node server.js",
            "python -m server",
            "npm start",
            "uv run server.py",
            "pipx install server",
            "npx ./local",
            "npx github:user/repo",
            "npx https://example.com/x.tgz",
            "uvx --from git+https://example.com/x server",
            "npx",
            "npx -y",
        ] {
            check(line, &[]);
        }
    }
}

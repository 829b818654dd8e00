//! Everyday tools behind the fence of Landlock: they build, install, test and commit as ever.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{CommandExit, ShellCommand, Terminal};
use hermes_exec::{FenceKind, FencePlaces, FenceSupport, Fences, Local, Network};

use hermes_testkit::peers::is_there as is_installed;

use crate::command;

/// A project of whoever runs the tests, whose toolchains are in their home.
struct Project {
    folder: tempfile::TempDir,
    local: Local,
}

impl Project {
    #[expect(clippy::print_stderr, reason = "a skipped test must be heard")]
    fn new(programs: &[&str]) -> Option<Self> {
        if let Err(why) = FenceSupport::of_this_machine(&environment()).landlock {
            eprintln!("SKIPPED: {why}");
            return None;
        }
        if let Some(missing) = programs.iter().find(|program| !is_there(program)) {
            // Says so loudly, or fails where every peer must be there.
            return is_installed(missing).then_some(()).and(None);
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in ["project", ".hermes/shells", ".hermes/apart"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let places = FencePlaces {
            kind: FenceKind::Project,
            user_home: std::env::home_dir(),
            hermes_home: home.join(".hermes"),
            own: vec![home.join(".hermes/shells")],
            apart: home.join(".hermes/apart"),
            shown: Vec::new(),
            variables: environment(),
            guest: None,
        };
        let fences = Fences::new(places, Network::Open, &environment()).unwrap();
        let local = Local::new(environment(), home.join(".hermes/shells"));
        Some(Self {
            local: local.fenced(Arc::new(fences)),
            folder,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path("project").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn works(&self, line: &str) -> impl Future<Output = String> {
        let command = ShellCommand {
            cwd: self.path("project"),
            ..command(line)
        };
        async {
            let output = Terminal::run(&self.local, command).await.unwrap();
            assert_eq!(output.exit, CommandExit::Code(0), "{}", output.text);
            let notices = self.local.notices();
            assert!(notices.is_empty(), "{notices:?}");
            output.text
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tools are those of whoever runs the tests"
)]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Also a program in the home of whoever runs the tests will do.
fn is_there(program: &str) -> bool {
    let path = variable("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    folders.any(|folder| folder.join(program).is_file())
}

fn environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let names = [
        "HOME",
        "PATH",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "PYENV_ROOT",
    ];
    let value = |name: &str| Some((name.into(), variable(name)?));
    names.into_iter().filter_map(value).collect()
}

#[tokio::test]
async fn cargo_builds() {
    let Some(project) = Project::new(&["cargo"]) else {
        return;
    };
    project.write(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    project.write("src/main.rs", "fn main() { println!(\"built\"); }\n");
    let text = project.works("cargo run -q --offline").await;
    assert_eq!(text, "built\n");
}

#[tokio::test]
async fn npm_installs_and_runs() {
    let Some(project) = Project::new(&["npm", "node"]) else {
        return;
    };
    project.write(
        "part/package.json",
        r#"{"name": "part", "version": "1.0.0", "main": "i.js"}"#,
    );
    project.write("part/i.js", "module.exports = 'part'\n");
    project.write(
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "dependencies": {"part": "file:part"}, "scripts": {"test": "node -p \"require('part')\""}}"#,
    );
    let lines = "npm install --offline --no-audit --no-fund >/dev/null 2>&1 && rm -rf node_modules && \
                 npm ci --offline --no-audit --no-fund >/dev/null 2>&1 && npm test --silent";
    let text = project.works(lines).await;
    assert!(text.ends_with("part\n"), "{text}");
}

#[tokio::test]
async fn python_installs_into_an_environment_and_tests() {
    let Some(project) = Project::new(&["python3"]) else {
        return;
    };
    project.write(
        "pyproject.toml",
        "[project]\nname = \"tiny\"\nversion = \"0.1\"\n",
    );
    project.write("tiny.py", "def two():\n    return 2\n");
    project.write("test_tiny.py", "import unittest, tiny\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(tiny.two(), 2)\n");
    let lines = "python3 -m venv env && . env/bin/activate && python -m unittest -q 2>&1 && \
                 python -m pip --version >/dev/null && echo installed";
    let text = project.works(lines).await;
    assert!(text.ends_with("installed\n"), "{text}");
}

/// Whatever is fetched comes from the index that whoever runs the tests uses.
#[expect(clippy::print_stderr, reason = "a skipped test must be heard")]
async fn has_index(project: &Project) -> bool {
    let command = ShellCommand {
        cwd: project.path("project"),
        ..command(
            "python3 -m pip download -q --no-deps -d /tmp/hermes-comfort-index iniconfig 2>&1",
        )
    };
    let output = Terminal::run(&project.local, command).await.unwrap();
    let is_there = output.exit == CommandExit::Code(0);
    if !is_there {
        eprintln!("SKIPPED: pip reaches no index: {}", output.text);
    }
    is_there
}

#[tokio::test]
async fn pip_installs_and_pytest_tests() {
    let Some(project) = Project::new(&["python3"]) else {
        return;
    };
    if !has_index(&project).await {
        return;
    }
    project.write("tiny.py", "def two():\n    return 2\n");
    project.write(
        "test_tiny.py",
        "import tiny\n\ndef test_two():\n    assert tiny.two() == 2\n",
    );
    let lines = "python3 -m venv env && . env/bin/activate && pip install -q --disable-pip-version-check pytest && \
                 pytest -q && pip install -q --disable-pip-version-check --upgrade iniconfig";
    let text = project.works(lines).await;
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn make_makes() {
    let Some(project) = Project::new(&["make", "cc"]) else {
        return;
    };
    project.write("Makefile", "x: x.c\n\tcc -o x x.c\n");
    project.write(
        "x.c",
        "#include <stdio.h>\nint main(void) { puts(\"made\"); return 0; }\n",
    );
    assert!(project.works("make -j2 && ./x").await.ends_with("made\n"));
}

#[tokio::test]
async fn go_builds() {
    let Some(project) = Project::new(&["go"]) else {
        return;
    };
    project.write("go.mod", "module x\n");
    project.write(
        "main.go",
        "package main\n\nfunc main() { println(\"x\") }\n",
    );
    project.write(
        "x_test.go",
        "package main\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n",
    );
    let text = project
        .works("GOFLAGS=-mod=mod go build -o x . && ./x && go vet ./... && go test ./...")
        .await;
    assert!(text.contains("ok"), "{text}");
}

#[tokio::test]
async fn git_commits_switches_and_pushes_to_a_repository_in_the_project() {
    let Some(project) = Project::new(&["git"]) else {
        return;
    };
    let text = project
        .works(
            "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c && \
             git init -q -b main . && git init -q --bare bare.git && git remote add origin ./bare.git && \
             echo a > a && git add a && git commit -q -m one",
        )
        .await;
    assert_eq!(text, "");
    let text = project
        .works(
            "git switch -q -c topic && echo b > b && git add b && git commit -q -m two && git push -q -u origin topic && \
             git switch -q main && git merge -q topic && git stash -q && git gc -q && git log --format=%s",
        )
        .await;
    assert!(text.ends_with("two\none\n"), "{text}");
}

use hermes_core::FenceArea;

use super::*;
use crate::judge::Judge;
use crate::shell::Budget;

fn beyond_fence(line: &str, setting: FenceSetting<'_>) -> BeyondFence {
    let judged = Judge::of(line, None, &Budget::default());
    super::beyond_fence(line, &judged, setting)
}

struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            home: tempfile::tempdir().unwrap(),
        };
        for name in [
            "project/.git",
            ".ssh",
            ".config/gh",
            ".aws",
            "other/bare.git",
        ] {
            std::fs::create_dir_all(place.path(name)).unwrap();
        }
        let config = "[remote \"origin\"]\n\turl = git@example.com:me/x.git\n[remote \"web\"]\n\turl = \
                      https://example.com/x\n[remote \"near\"]\n\turl = ../other/bare.git\n";
        std::fs::write(place.path("project/.git/config"), config).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(name)
    }

    fn area(&self) -> FenceArea {
        FenceArea {
            project: self.path("project"),
            writable: vec![self.path("project"), self.path("scratch")],
            hidden: vec![
                self.path(".ssh"),
                self.path(".config/gh"),
                self.path(".aws"),
            ],
            ..FenceArea::default()
        }
    }

    fn with<T>(&self, look: impl Fn(FenceSetting<'_>) -> T) -> T {
        let (area, home, folder) = (self.area(), self.path(""), self.path("project"));
        look(FenceSetting {
            area: &area,
            home: Some(&home),
            folder: &folder,
        })
    }

    fn needs(&self, line: &str) -> BeyondFence {
        self.with(|setting| beyond_fence(line, setting))
    }
}

#[test]
fn most_lines_need_nothing() {
    let place = Place::new();
    for line in [
        "ls -la ~",
        "cargo build --release",
        "npm ci && npm test",
        "make -j4",
        "git status && git add -A && git commit -m 'x'",
        "git checkout -b topic",
        "echo x > out.txt 2>&1",
        "cp a b; rm -r build; mkdir -p x/y; touch z",
        "python3 -m pytest -q 2>/dev/null | tee log",
        "sed -i s/a/b/ src/main.rs",
        "tar -xf x.tar -C vendor",
        "cd sub && echo x > y",
        "git push near main",
        "git config --get user.name",
        "rg 'git push' docs",
        "echo x > ../scratch/y",
    ] {
        let needs = place.needs(line);
        let expected = match line {
            "git push near main" => 1,
            _ => 0,
        };
        assert_eq!(needs.reasons.len(), expected, "{line}: {needs:?}");
    }
}

#[test]
fn what_a_line_writes_outside_is_named() {
    let place = Place::new();
    for (line, path) in [
        ("echo x >> ~/.bashrc", ".bashrc"),
        ("cp a ~/other", "other"),
        ("cp a $HOME/b", "b"),
        ("mv ~/notes .", "notes"),
        ("cd .. && touch made", "made"),
        ("rm -rf ../other/*", "other"),
        ("sed -i s/a/b/ ~/notes", "notes"),
        ("tee ~/log < x", "log"),
        ("ln -s x ../link", "link"),
        ("curl -o ~/page https://example.com", "page"),
        ("git clone ../other/bare.git ../x", "x"),
        ("chmod 600 ~/notes", "notes"),
        ("bash -c true; dd if=x of=../disk", "disk"),
        ("git push near main", "other/bare.git"),
    ] {
        let needs = place.needs(line);
        let reason = format!("writes `~/{path}`, outside the project");
        assert_eq!(needs.reasons, [reason], "{line}");
        assert_eq!(needs.pass.writes[0], place.path(path), "{line}");
        assert!(!needs.pass.outside, "{line}");
    }
}

#[test]
fn what_a_line_reads_of_secrets_is_named() {
    let place = Place::new();
    for (line, reason) in [
        ("git push", "reads `~/.ssh`"),
        ("git -C . pull origin main", "reads `~/.ssh`"),
        ("git fetch origin", "reads `~/.ssh`"),
        ("git clone git@example.com:x/y", "reads `~/.ssh`"),
        ("git push web", "reads `~/.config/gh`"),
        ("ssh host uptime", "reads `~/.ssh`"),
        ("rsync -a x host:y", "reads `~/.ssh`"),
        ("gh pr list", "reads `~/.config/gh`"),
        ("aws s3 ls", "reads and writes `~/.aws`"),
    ] {
        let needs = place.needs(line);
        assert_eq!(
            needs.reasons.first().map(String::as_str),
            Some(reason),
            "{line}"
        );
        assert!(!needs.pass.outside, "{line}");
    }
    assert_eq!(place.needs("ssh host").pass.reads, [place.path(".ssh")]);
}

#[test]
fn what_leaves_the_fence_by_its_nature_leaves_it() {
    let place = Place::new();
    for line in [
        "docker ps",
        "sudo make install",
        "tmux new -d x",
        "crontab -e",
        "systemctl --user start x",
        "cargo install ripgrep",
        "npm i -g typescript",
        "git config --global user.name x",
    ] {
        assert!(place.needs(line).pass.outside, "{line}");
    }
    assert!(place.needs("crontab -l").is_empty());
}

#[test]
fn guarded_files_of_the_project_are_named() {
    let place = Place::new();
    for (line, path) in [
        ("echo x > AGENTS.md", "AGENTS.md"),
        ("cp hook .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("git config user.name x", ".git/config"),
        ("git remote add x y", ".git/config"),
    ] {
        let needs = place.needs(line);
        assert_eq!(
            needs.pass.writes,
            [place.path("project").join(path)],
            "{line}"
        );
        assert!(needs.reasons[0].starts_with("changes what"), "{needs:?}");
    }
}

#[test]
fn git_may_check_out_what_it_has_and_nothing_else_may() {
    let place = Place::new();
    let may = |line: &str| place.with(|setting| beyond_fence(line, setting).checkout);
    for (line, expected) in [
        ("git checkout main", Checkout::Known),
        ("git stash && git switch x", Checkout::Known),
        ("git reset --hard HEAD~1", Checkout::Known),
        ("git pull /tmp/evil main", Checkout::Known),
        ("git pull --rebase", Checkout::Known),
        ("git fetch && git merge origin/main", Checkout::Known),
        ("git pull", Checkout::Fetched),
        ("git pull origin main", Checkout::Fetched),
    ] {
        assert_eq!(may(line), expected, "{line}");
    }
    for line in [
        "git checkout main; echo x > AGENTS.md",
        "git -c core.fsmonitor=x checkout main",
        "git rebase --exec x main",
        "git apply x",
        "X=1 git checkout main",
        "git checkout $(x)",
        "ls",
        "",
    ] {
        assert_eq!(may(line), Checkout::Nothing, "{line}");
    }
}

#[test]
fn a_yes_can_cover_the_line_or_such_lines() {
    let place = Place::new();
    let patterns = |line: &str| place.needs(line).patterns;
    assert_eq!(
        patterns("git push origin x"),
        ["git push origin x", "git push *"]
    );
    assert_eq!(patterns("docker ps"), ["docker ps", "docker ps *"]);
    assert_eq!(patterns("git -C x push"), ["git -C x push", "git *"]);
    assert_eq!(patterns("git push; ls"), ["git push; ls"]);
    assert_eq!(patterns("ls *.rs > ~/x").len(), 1);
}

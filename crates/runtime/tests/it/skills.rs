//! Skills that a model writes: whose they are, what is kept of every change, and what is not to be had.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{Author, ChangeId, Tool, ToolContext};
use hermes_learning::skills::tools::{self, SkillPorts, Standing};
use hermes_learning::skills::{Skills, Sources, State};
use hermes_runtime::SystemClock;
use hermes_store::SqliteStore;
use serde_json::{Value, json};

const REVIEW: &str = "---\nname: review\ndescription: \"Use when: code changed\"\nversion: 1.0\ntags: [a]\n---\n# Review\n\nLook twice.\n";

struct World {
    folder: tempfile::TempDir,
    skills: Skills,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let store = SqliteStore::open(home.join("hermes.db"), home.join("locks")).unwrap();
        let skills = Skills {
            sources: Sources {
                home: home.join("skills"),
                external: vec![home.join("external")],
                bundles: home.join("skill-bundles"),
                fills_in_variables: true,
                ..Sources::default()
            },
            lock: home.join("locks/skills"),
            proposals: home.join("pending/skills"),
            wants_approval: false,
            log: Some(Arc::new(store)),
            clock: Arc::new(SystemClock),
        };
        fs::create_dir_all(home.join("skills")).unwrap();
        Self { folder, skills }
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(path)).ok()
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let ports = SkillPorts {
            skills: self.skills.clone(),
            author: Author::Agent,
            reach: Arc::new(|name: &str| match name {
                "SET" => Standing::Given,
                "KEPT" | "token.json" => Standing::ToBeAllowed,
                "OWN" => Standing::Never,
                _ => Standing::Missing,
            }),
        };
        let tools = tools::tools(&ports);
        tools
            .into_iter()
            .find(|tool| tool.spec().name == name)
            .unwrap()
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<Value, String> {
        let cx = ToolContext::alone("s1", "c1", Path::new("/"));
        let output = self.tool(name).run(arguments, &cx).await;
        let output = output.map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&output.text).unwrap())
    }

    async fn manage(&self, arguments: Value) -> Result<Value, String> {
        self.call("skill_manage", arguments).await
    }

    async fn create(&self, name: &str) -> Value {
        let content = REVIEW.replace("name: review", &format!("name: {name}"));
        let arguments =
            json!({"action": "create", "name": name, "content": content, "category": "dev"});
        self.manage(arguments).await.unwrap()
    }
}

#[tokio::test]
async fn a_model_writes_finds_loads_and_mends_its_own_skill() {
    let world = World::new();
    let made = world.create("review").await;
    assert_eq!(
        (&made["success"], &made["change"]),
        (&json!(true), &json!(1))
    );
    let written = world.read("skills/dev/review/SKILL.md").unwrap();
    assert!(
        written
            .starts_with("---\nname: review\ndescription: \"Use when: code changed\"\nmetadata:\n"),
        "{written}"
    );
    let file = json!({"action": "write_file", "name": "review", "file_path": "scripts/run.sh",
        "file_content": "#!/bin/sh\necho ${HERMES_SKILL_DIR}\n"});
    let made = world.manage(file).await.unwrap();
    assert_eq!(made["change"], 2, "{made}");
    let listed = world
        .call("skills_list", json!({"query": "twice"}))
        .await
        .unwrap();
    assert_eq!(
        listed["skills"],
        json!([{"name": "review", "description": "Use when: code changed", "category": "dev"}])
    );
    let patch = json!({"action": "patch", "name": "review", "old_string": "Look twice.",
        "new_string": "Look thrice in ${HERMES_SKILL_DIR}.", "reason": "twice was not enough"});
    world.manage(patch).await.unwrap();
    let viewed = world
        .call("skill_view", json!({"name": "dev/review"}))
        .await
        .unwrap();
    let content = viewed["content"].as_str().unwrap();
    assert!(
        content.contains("thrice in /") && content.contains("/skills/dev/review."),
        "{content}"
    );
    assert_eq!(
        viewed["linked_files"],
        json!({"scripts": ["scripts/run.sh"]})
    );
    let script = json!({"name": "review", "file_path": "scripts/run.sh"});
    let script = world.call("skill_view", script).await.unwrap();
    assert!(script["content"].as_str().unwrap().starts_with("#!/bin/sh"));
    let usage = world.skills.usage();
    let record = usage.get("review").unwrap();
    assert_eq!((record.view_count, record.patch_count), (2, 2));
    assert!(usage.is_of_agent("review"));
    let history = world.skills.history(Some("review")).await.unwrap();
    let said: Vec<_> = history
        .iter()
        .map(|one| one.change.summary.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "patched the skill `review` (twice was not enough)",
            "wrote `scripts/run.sh` of the skill `review`",
            "wrote the skill `review`"
        ]
    );
    assert!(history.iter().all(|one| one.is_finished));
}

#[tokio::test]
async fn what_a_person_wrote_is_only_changed_when_they_accept() {
    let world = World::new();
    let mine = world.put(
        "skills/mine/SKILL.md",
        REVIEW.replace("name: review", "name: mine"),
    );
    let theirs = world.put(
        "external/theirs/SKILL.md",
        REVIEW.replace("name: review", "name: theirs"),
    );
    for (name, file) in [("mine", &mine), ("theirs", &theirs)] {
        let before = fs::read_to_string(file).unwrap();
        let patch =
            json!({"action": "patch", "name": name, "old_string": "twice", "new_string": "once"});
        let answer = world.manage(patch.clone()).await.unwrap();
        assert!(
            answer["message"]
                .as_str()
                .unwrap()
                .starts_with("not changed:"),
            "{answer}"
        );
        assert_eq!(fs::read_to_string(file).unwrap(), before);
        let number = answer["proposed"].as_u64().unwrap();
        // Asking again does not ask twice.
        assert_eq!(world.manage(patch).await.unwrap()["proposed"], number);
        let (proposal, _) = world.skills.accept(number).await.unwrap();
        assert_eq!(proposal.number, number);
        assert_eq!(
            fs::read_to_string(file).unwrap(),
            before.replace("twice", "once")
        );
        assert!(world.skills.proposals().is_empty());
    }
    // Deleting, and files beside it, are changes too.
    for arguments in [
        json!({"action": "delete", "name": "mine"}),
        json!({"action": "write_file", "name": "mine", "file_path": "references/a.md", "file_content": "a"}),
        json!({"action": "edit", "name": "mine", "content": REVIEW.replace("name: review", "name: mine")}),
    ] {
        let answer = world.manage(arguments).await.unwrap();
        let number = answer["proposed"].as_u64().unwrap();
        world.skills.reject(number).await.unwrap();
    }
    assert!(mine.exists() && world.read("skills/mine/references/a.md").is_none());
    assert_eq!(world.skills.history(None).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_skill_of_the_agents_that_a_person_edited_or_pinned_is_theirs() {
    let world = World::new();
    world.create("review").await;
    let patch = |old: &str| json!({"action": "patch", "name": "review", "old_string": old, "new_string": "x"});
    let path = "skills/dev/review/SKILL.md";
    let edited = world.read(path).unwrap().replace("Look", "Peer");
    world.put(path, edited);
    let answer = world.manage(patch("Peer")).await.unwrap();
    assert!(
        answer["message"]
            .as_str()
            .unwrap()
            .contains("a person has changed"),
        "{answer}"
    );
    // That they agree to one change gives their words away to no other.
    world.skills.accept(1).await.unwrap();
    let answer = world.manage(patch("twice")).await.unwrap();
    assert_eq!(answer["proposed"], 2, "{answer}");
    world.skills.reject(2).await.unwrap();
    // Until they say so: then it is the agent's as it is now.
    world.skills.pin("review", false).await.unwrap();
    assert_eq!(world.manage(patch("twice")).await.unwrap()["change"], 3);
    world.skills.pin("review", true).await.unwrap();
    let answer = world.manage(patch("Review")).await.unwrap();
    assert!(
        answer["message"].as_str().unwrap().contains("pinned"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_text_that_a_person_gave_back_is_the_agents_as_it_is() {
    let world = World::new();
    world.create("review").await;
    let path = "skills/dev/review/SKILL.md";
    let edited = world.read(path).unwrap().replace("Look", "Peer");
    world.put(path, &edited);
    world.skills.pin("review", false).await.unwrap();
    let patch =
        json!({"action": "patch", "name": "review", "old_string": "Peer", "new_string": "Gaze"});
    assert_eq!(world.manage(patch).await.unwrap()["change"], 2);
    world.put(path, edited.replace("Peer", "Stare"));
    let patch =
        json!({"action": "patch", "name": "review", "old_string": "Stare", "new_string": "x"});
    assert_eq!(world.manage(patch).await.unwrap()["proposed"], 1);
}

#[tokio::test]
async fn a_file_that_a_person_put_beside_a_skill_of_the_agents_is_theirs() {
    let world = World::new();
    world.create("review").await;
    let own = json!({"action": "write_file", "name": "review", "file_path": "references/own.md", "file_content": "own"});
    assert_eq!(world.manage(own).await.unwrap()["change"], 2);
    world.put("skills/dev/review/references/mine.md", "mine");
    for arguments in [
        json!({"action": "write_file", "name": "review", "file_path": "references/mine.md", "file_content": "x"}),
        json!({"action": "remove_file", "name": "review", "file_path": "references/mine.md"}),
        json!({"action": "delete", "name": "review"}),
    ] {
        let answer = world.manage(arguments).await.unwrap();
        let number = answer["proposed"].as_u64().expect("it is proposed");
        world.skills.reject(number).await.unwrap();
    }
    assert_eq!(
        world
            .read("skills/dev/review/references/mine.md")
            .as_deref(),
        Some("mine")
    );
    // Until they give it away with the skill.
    world.skills.pin("review", false).await.unwrap();
    let mine =
        json!({"action": "remove_file", "name": "review", "file_path": "references/mine.md"});
    assert_eq!(world.manage(mine).await.unwrap()["change"], 3);
}

#[tokio::test]
async fn one_file_has_one_history_however_its_path_is_spelt() {
    let world = World::new();
    world.create("review").await;
    let write = |path: &str| json!({"action": "write_file", "name": "review", "file_path": path, "file_content": "theirs"});
    world.manage(write("references//./x.md")).await.unwrap();
    let history = world.skills.history(Some("review")).await.unwrap();
    assert_eq!(
        history[0].change.summary,
        "wrote `references/x.md` of the skill `review`"
    );
    world.put("skills/dev/review/references/x.md", "mine");
    for path in ["references/x.md", "references//x.md", "references/./x.md"] {
        let answer = world.manage(write(path)).await.unwrap();
        assert_eq!(answer["proposed"], 1, "{path}: {answer}");
    }
    assert_eq!(
        world.read("skills/dev/review/references/x.md").as_deref(),
        Some("mine")
    );
}

#[tokio::test]
async fn a_person_archives_a_skill_and_brings_it_back_whole() {
    let world = World::new();
    let long = format!(
        "---\nname: mine\ndescription: d\n---\n{}\n",
        "word ".repeat(25_000)
    );
    world.put("skills/dev/mine/SKILL.md", &long);
    world.put("skills/dev/mine/references/a.md", "a");
    world.skills.archive("mine").await.unwrap();
    assert_eq!(world.read("skills/dev/mine/SKILL.md"), None);
    let gone = world.skills.archive("mine").await.unwrap_err();
    assert!(gone.to_string().contains("no skill"), "{gone}");
    world.skills.restore("mine").await.unwrap();
    assert_eq!(world.read("skills/dev/mine/SKILL.md"), Some(long));
    assert_eq!(
        world.read("skills/dev/mine/references/a.md").as_deref(),
        Some("a")
    );
    assert!(!world.skills.usage().is_of_agent("mine"));
    let nothing = world.skills.restore("mine").await.unwrap_err();
    assert!(
        nothing.to_string().contains("no archived skill"),
        "{nothing}"
    );
    world.put("external/theirs/SKILL.md", "Theirs.");
    let refused = world.skills.archive("theirs").await.unwrap_err();
    assert!(
        refused.told().contains("skills.disabled"),
        "{}",
        refused.told()
    );
}

#[tokio::test]
async fn a_broken_file_of_ours_is_told_with_what_to_do() {
    let world = World::new();
    world.put(
        "skills/a/SKILL.md",
        REVIEW.replace("name: review", "name: a"),
    );
    world.put("skills/.usage.json", "{");
    let broken = world.skills.pin("a", true).await.unwrap_err();
    let told = broken.told();
    assert!(
        told.contains(".usage.json`") && told.contains("move it aside"),
        "{told}"
    );
}

#[tokio::test]
async fn the_number_of_a_proposal_never_means_another_one() {
    let world = World::new();
    let text = "---\nname: mine\ndescription: d\n---\nOne. Two.\n";
    world.put("skills/mine/SKILL.md", text);
    let patch = |new: &str| json!({"action": "patch", "name": "mine", "old_string": "One", "new_string": new});
    assert_eq!(world.manage(patch("1")).await.unwrap()["proposed"], 1);
    world.skills.reject(1).await.unwrap();
    assert_eq!(world.manage(patch("uno")).await.unwrap()["proposed"], 2);
    let gone = world.skills.accept(1).await.unwrap_err();
    assert!(gone.to_string().contains("no proposal 1"), "{gone}");
}

#[tokio::test]
async fn no_name_leads_out_of_the_home() {
    let world = World::new();
    let outside = "../../../out/gone";
    world.put(
        "skills/odd/SKILL.md",
        format!("---\nname: {outside}\ndescription: d\n---\nDo.\n"),
    );
    let library = world.skills.library().await;
    assert_eq!(library.skills[0].name, "odd");
    assert!(
        library.problems[0].contains("cannot be the name"),
        "{:?}",
        library.problems
    );
    // It is a person's, so that taking it away is proposed; whatever the proposal says, nothing leaves the home.
    let delete = json!({"action": "delete", "name": "odd"});
    world.manage(delete).await.unwrap();
    let forged = world.read("pending/skills/1.json").unwrap();
    let forged = forged.replace("\"skill\": \"odd\"", &format!("\"skill\": \"{outside}\""));
    world.put("pending/skills/2.json", &forged);
    world.put(
        "pending/skills/3.json",
        forged.replace("\"before\"", "\"before\": null, \"was\""),
    );
    let archived = json!({outside: {"state": "archived", "archived_from": "../../x"}});
    world.put("skills/.usage.json", archived.to_string());
    for number in [2, 3] {
        assert!(world.skills.accept(number).await.is_err(), "{number}");
    }
    world.skills.accept(1).await.unwrap();
    assert!(world.read("skills/.archive/odd/SKILL.md").is_some());
    assert!(!world.folder.path().join("../out").exists());
    assert!(!world.folder.path().parent().unwrap().join("out").exists());
}

#[tokio::test]
async fn a_proposal_for_a_text_that_changed_meanwhile_changes_nothing() {
    let world = World::new();
    let mine = world.put(
        "skills/mine/SKILL.md",
        "---\nname: mine\ndescription: d\n---\nOne. Two.\n",
    );
    let patch = json!({"action": "patch", "name": "mine", "old_string": "One", "new_string": "1"});
    world.manage(patch).await.unwrap();
    fs::write(&mine, "---\nname: mine\ndescription: d\n---\nOne. Three.\n").unwrap();
    let refused = world.skills.accept(1).await.unwrap_err();
    assert!(
        refused.to_string().contains("was changed since"),
        "{refused}"
    );
    assert!(fs::read_to_string(&mine).unwrap().contains("Three"));
    assert_eq!(world.skills.proposals().len(), 1);
}

#[tokio::test]
async fn every_change_can_be_taken_back_and_that_too() {
    let world = World::new();
    world.create("review").await;
    let path = "skills/dev/review/SKILL.md";
    let first = world.read(path).unwrap();
    let file = json!({"action": "write_file", "name": "review", "file_path": "references/a.md", "file_content": "a"});
    world.manage(file).await.unwrap();
    let patch =
        json!({"action": "patch", "name": "review", "old_string": "twice", "new_string": "once"});
    world.manage(patch).await.unwrap();
    world
        .manage(json!({"action": "delete", "name": "review"}))
        .await
        .unwrap();
    assert_eq!(world.read(path), None);
    assert!(world.read("skills/.archive/review/SKILL.md").is_some());
    assert_eq!(
        world.skills.usage().get("review").unwrap().state,
        State::Archived
    );
    // Back comes the skill with its files, then what it said first, then nothing of it.
    world.skills.undo_last("review").await.unwrap();
    assert!(world.read(path).unwrap().contains("once"));
    assert_eq!(
        world.read("skills/dev/review/references/a.md").as_deref(),
        Some("a")
    );
    world.skills.undo_last("review").await.unwrap();
    assert_eq!(world.read(path).unwrap(), first);
    let again = world.skills.undo(ChangeId(3)).await.unwrap_err();
    assert!(again.to_string().contains("taken back already"), "{again}");
    world.skills.undo_last("review").await.unwrap();
    assert_eq!(world.read("skills/dev/review/references/a.md"), None);
    world.skills.undo_last("review").await.unwrap();
    assert_eq!(world.read(path), None);
    assert!(world.skills.undo_last("review").await.is_err());
}

#[tokio::test]
async fn what_cannot_be_a_skill_or_a_file_of_one_is_told_and_leaves_nothing() {
    let world = World::new();
    world.create("good").await;
    let content = |name: &str| REVIEW.replace("name: review", &format!("name: {name}"));
    let huge = format!("{}{}", content("huge"), "x".repeat(100 * 1024 * 1024));
    for (arguments, said) in [
        (
            json!({"action": "create", "name": "../x", "content": content("../x")}),
            "cannot be the name",
        ),
        (
            json!({"action": "create", "name": "Good Name", "content": content("Good Name")}),
            "`good-name` would do",
        ),
        (
            json!({"action": "create", "name": "good", "content": content("good")}),
            "already",
        ),
        (
            json!({"action": "create", "name": "x", "content": content("x"), "category": "../.."}),
            "category",
        ),
        (
            json!({"action": "create", "name": "x", "content": "no front matter"}),
            "front matter",
        ),
        (
            json!({"action": "create", "name": "x", "content": "---\nname: x\ndescription: a: b\n---\nDo."}),
            "no YAML",
        ),
        (
            json!({"action": "create", "name": "x", "content": content("y")}),
            "called `x`",
        ),
        (
            json!({"action": "create", "name": "huge", "content": huge}),
            "100000 are allowed",
        ),
        (json!({"action": "create", "name": "x"}), "needs `content`"),
        (
            json!({"action": "patch", "name": "good", "old_string": "absent", "new_string": "x"}),
            "does not occur",
        ),
        (
            json!({"action": "patch", "name": "good", "old_string": "name: good", "new_string": "name: bad"}),
            "called `good`",
        ),
        (
            json!({"action": "patch", "name": "goood", "old_string": "a", "new_string": "b"}),
            "did you mean good",
        ),
        (
            json!({"action": "write_file", "name": "good", "file_path": "../../evil", "file_content": "x"}),
            "no place",
        ),
        (
            json!({"action": "write_file", "name": "good", "file_path": "/etc/evil", "file_content": "x"}),
            "no place",
        ),
        (
            json!({"action": "write_file", "name": "good", "file_path": "scripts/.hidden", "file_content": "x"}),
            "no place",
        ),
        (
            json!({"action": "write_file", "name": "good", "file_path": "run.sh", "file_content": "x"}),
            "no place",
        ),
        (
            json!({"action": "remove_file", "name": "good", "file_path": "scripts/none"}),
            "has no file",
        ),
        (
            json!({"action": "remove_file", "name": "good", "file_path": "SKILL.md"}),
            "delete archives",
        ),
        (
            json!({"action": "delete", "name": "good", "absorbed_into": "nobody"}),
            "no skill `nobody`",
        ),
        (json!({"action": "explode", "name": "good"}), "do not fit"),
    ] {
        let refused = world.manage(arguments).await.unwrap_err();
        assert!(refused.contains(said), "{said}: {refused}");
    }
    for (arguments, said) in [
        (json!({"name": "../x"}), "no skill `../x`"),
        (
            json!({"name": "good", "file_path": "../../hermes.db"}),
            "no file",
        ),
        (
            json!({"name": "good", "file_path": "/etc/passwd"}),
            "no file",
        ),
    ] {
        let refused = world.call("skill_view", arguments).await.unwrap_err();
        assert!(refused.contains(said), "{said}: {refused}");
    }
    assert_eq!(world.skills.history(None).await.unwrap().len(), 1);
    let entries = fs::read_dir(world.folder.path().join("skills")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".usage.json", "dev"]);
}

#[tokio::test]
async fn links_lead_no_write_out_of_a_skill() {
    let world = World::new();
    world.create("review").await;
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(
        &outside,
        world.folder.path().join("skills/dev/review/scripts"),
    )
    .unwrap();
    let file = json!({"action": "write_file", "name": "review", "file_path": "scripts/a", "file_content": "x"});
    let refused = world.manage(file).await.unwrap_err();
    assert!(refused.contains("leads out"), "{refused}");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
}

#[tokio::test]
async fn a_write_that_fails_is_told_and_forgotten_by_the_log() {
    let world = World::new();
    world.create("review").await;
    // No file can be put where a file is taken for a folder.
    world.put("skills/dev/review/references", "in the way");
    let file = json!({"action": "write_file", "name": "review", "file_path": "references/a.md", "file_content": "x"});
    let refused = world.manage(file).await.unwrap_err();
    assert!(refused.contains("references"), "{refused}");
    assert_eq!(world.skills.history(None).await.unwrap().len(), 1);
    assert!(world.read("skills/dev/review/SKILL.md").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_the_same_time_lose_nothing() {
    let world = Arc::new(World::new());
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..12 {
        let world = Arc::clone(&world);
        calls.spawn(async move { world.create(&format!("skill-{number}")).await });
    }
    calls.join_all().await;
    let library = world.skills.library().await;
    assert_eq!((library.skills.len(), library.problems.len()), (12, 0));
    assert_eq!(world.skills.history(None).await.unwrap().len(), 12);
    assert_eq!(world.skills.usage().iter().count(), 12);
    // Two that patch the same text: one is made, the other is told.
    let patch = |new: &str| json!({"action": "patch", "name": "skill-0", "old_string": "twice", "new_string": new});
    let (one, other) = tokio::join!(world.manage(patch("a")), world.manage(patch("b")));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}

#[tokio::test]
async fn with_write_approval_every_change_waits() {
    let mut world = World::new();
    world.skills.wants_approval = true;
    let answer = world.create("review").await;
    assert_eq!(answer["proposed"], 1);
    assert_eq!(world.read("skills/dev/review/SKILL.md"), None);
    world.skills.accept(1).await.unwrap();
    assert!(world.read("skills/dev/review/SKILL.md").is_some());
    assert!(world.skills.usage().is_of_agent("review"));
}

#[tokio::test]
async fn a_skill_says_what_it_needs_to_be_set_up() {
    let world = World::new();
    let needs = |name: &str| {
        format!(
            "---\nname: {name}\ndescription: d\nrequired_environment_variables:\n  - name: {name}\n    help: ask\n---\nDo.\n"
        )
    };
    world.put("skills/a/SKILL.md", needs("SET"));
    world.put("skills/b/SKILL.md", needs("MISSING"));
    let set = world
        .call("skill_view", json!({"name": "SET"}))
        .await
        .unwrap();
    assert_eq!(set["readiness_status"], "available");
    let missing = world
        .call("skill_view", json!({"name": "MISSING"}))
        .await
        .unwrap();
    assert_eq!(missing["readiness_status"], "setup_needed");
    assert!(missing["setup_note"].as_str().unwrap().contains("MISSING"));
}

#[tokio::test]
async fn a_skill_says_what_the_user_has_to_agree_to_and_in_which_words() {
    let world = World::new();
    world.put(
        "skills/a/SKILL.md",
        "---\nname: a\ndescription: d\nrequired_environment_variables: [SET, KEPT, OWN]\nrequired_credential_files:\n  \
         - path: token.json\n  - gone.json\n---\nDo.\n",
    );
    let viewed = world
        .call("skill_view", json!({"name": "a"}))
        .await
        .unwrap();
    assert_eq!(
        viewed["required_credential_files"],
        json!(["token.json", "gone.json"])
    );
    assert_eq!(viewed["readiness_status"], "setup_needed");
    let note = viewed["setup_note"].as_str().unwrap();
    for said in [
        "`/skills allow a KEPT`",
        "`/skills allow a token.json`",
        "`OWN` is never given",
        "`gone.json` is not there",
    ] {
        assert!(note.contains(said), "{said}: {note}");
    }
    assert!(
        !note.contains("SET`") && !note.contains("env_passthrough"),
        "{note}"
    );
}

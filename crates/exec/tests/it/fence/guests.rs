//! Somebody who is not the owner of the machine: the system's own folders, theirs, and what is shared.

use hermes_exec::{FenceKind, FencePlaces, Fences, GuestFolders, Local};

use super::*;

const WORK: &str = ".hermes/people/bob/work";

fn fenced(home: &Home, network: Network) -> Local {
    for name in [WORK, "shared"] {
        std::fs::create_dir_all(home.path(name)).unwrap();
    }
    for (name, words) in [
        ("project/plan", "the owner plans"),
        ("shared/menu", "for everybody"),
        (".hermes/people/bob/letter", "to bob"),
        (".hermes/skills/one", "a skill"),
    ] {
        std::fs::write(home.path(name), words).unwrap();
    }
    std::os::unix::fs::symlink(home.path("notes"), home.path("shared/link")).unwrap();
    let mut own = home.places(FenceKind::Project).own;
    own.push(home.path(WORK));
    let places = FencePlaces {
        own,
        shown: vec![home.path(".hermes/skills"), home.path(".hermes/people/bob")],
        guest: Some(GuestFolders {
            own: home.path(WORK),
            shared: vec![home.path("shared")],
        }),
        ..home.places(FenceKind::Project)
    };
    let fences = Fences::new(places, network, &environment()).unwrap();
    Local::new(environment(), home.path(".hermes/shells")).fenced(Arc::new(fences))
}

#[tokio::test]
async fn a_guest_reaches_their_folder_what_is_shared_and_the_system() {
    for network in [LANDLOCK, BUBBLEWRAP] {
        let home = Home::new();
        let local = fenced(&home, network);
        let at = |name: &str| home.path(name).display().to_string();
        let said = async |line: String| {
            let command = ShellCommand {
                cwd: home.path(WORK),
                ..home.command(&line)
            };
            Terminal::run(&local, command).await.unwrap().text
        };
        for (name, words) in [
            ("notes", "notes\n"),
            ("other/file", "other/file\n"),
            ("project/plan", "plans"),
            (".gitconfig", ".gitconfig\n"),
            (".ssh/id", ".ssh/id\n"),
            (".hermes/.env", ".hermes/.env\n"),
            ("shared/link", "notes\n"),
        ] {
            let told = said(format!("cat {}", at(name))).await;
            let own_words = told
                .lines()
                .any(|line| format!("{line}\n").contains(words) && !line.contains("cat:"));
            assert!(
                !own_words && told.contains("cat:"),
                "{network:?} {name}: {told}"
            );
        }
        for (name, words) in [
            ("shared/menu", "for everybody"),
            (".hermes/people/bob/letter", "to bob"),
            (".hermes/skills/one", "a skill"),
        ] {
            let told = said(format!("cat {0}; echo x > {0}; cat {0}", at(name))).await;
            assert_eq!(told.matches(words).count(), 2, "{network:?} {name}: {told}");
        }
        let told =
            said("echo mine > own; cat own; ls /usr/bin/env; head -c 4 /etc/passwd".into()).await;
        for words in ["mine", "/usr/bin/env", "root"] {
            assert!(told.contains(words), "{network:?}: {told}");
        }
        let told = said(format!("echo x > {}", at("project/new"))).await;
        assert!(!home.path("project/new").exists(), "{network:?}: {told}");
    }
}

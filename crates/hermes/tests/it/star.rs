//! The shape of the workspace: leaves depend on `hermes-core`, and where they touch the machine on `hermes-os`, and on no
//! other; `hermes-runtime` joins them, surfaces see the ports of `hermes-core`, and the binary wires.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const CORE: &str = "hermes-core";
/// What the core must not touch: the machine.
const OS: &str = "hermes-os";
const BINARY: &str = "hermes";
/// Joins the leaves; the only library that may.
const RUNTIME: &str = "hermes-runtime";
/// What the runtime must not know: whoever shows conversations to people.
const SURFACES: &[&str] = &["hermes-tui", "hermes-gateway", "hermes-channels"];
const TESTKIT: &str = "hermes-testkit";

/// Whose tests stand on the real part behind a port, rather than on one that only agrees with itself.
const TESTED_WITH: &[(&str, &str)] = &[
    ("hermes-gateway", "hermes-agent"),
    ("hermes-gateway", "hermes-config"),
    ("hermes-gateway", "hermes-runtime"),
    ("hermes-gateway", "hermes-store"),
    ("hermes-learning", "hermes-store"),
    ("hermes-tools", "hermes-policy"),
];

#[test]
fn the_crates_form_a_star_around_the_core() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let names: BTreeSet<&str> = packages
        .iter()
        .map(|package| text(package, "name"))
        .collect();
    assert_eq!(names.len(), 17, "{names:?}");
    let mut wrong = Vec::new();
    for package in packages
        .iter()
        .filter(|package| text(package, "name") != BINARY)
    {
        let name = text(package, "name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let target = text(dependency, "name");
            let is_ours = names.contains(target);
            let is_inner = name == CORE || name == OS;
            let is_hub = !is_inner && (target == CORE || target == OS);
            let is_for_tests = dependency["kind"] == "dev"
                && (target == TESTKIT || TESTED_WITH.contains(&(name, target)));
            let joins = name == RUNTIME && !SURFACES.contains(&target) && target != BINARY;
            if is_ours && !is_hub && !is_for_tests && !joins {
                wrong.push(format!("{name} -> {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that break the star: {wrong:?}");
}

/// Printing is for the binary; a test that skips itself may be heard.
#[test]
fn no_library_prints() {
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for entry in crates.read_dir().expect("crates") {
        let folder = entry.expect("a crate").path();
        if folder.ends_with("hermes") || folder.ends_with("testkit") {
            continue;
        }
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let name = folder.display();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{name} is not under the lints of the workspace"
        );
        let mut folders = vec![folder.join("src")];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let text = std::fs::read_to_string(&path).expect("a source");
                    assert!(
                        !text.contains("clippy::print_std"),
                        "{} switches the lint off that keeps libraries from printing",
                        path.display()
                    );
                }
            }
        }
    }
}

/// What must not enter the tree, not even as an option that nobody takes: TLS is rustls with ring, so that a build needs
/// neither cmake nor the headers of a system library.
const C_LIBRARIES: &[&str] = &[
    "aws-lc-fips-sys",
    "aws-lc-rs",
    "aws-lc-sys",
    "boring-sys",
    "native-tls",
    "openssl",
    "openssl-sys",
];

#[test]
fn tls_is_rustls_with_ring_and_the_lock_file_stays_small() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"))
        .expect("Cargo.lock");
    let packages: Vec<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("name = "))
        .collect();
    for refused in C_LIBRARIES {
        assert!(
            !packages.contains(&format!("\"{refused}\"").as_str()),
            "`{refused}` came in: `cargo tree -i {refused} --target all -e features` says through whom"
        );
    }
    assert!(
        packages.len() <= 450,
        "the lock file has {} packages; the budget is 450",
        packages.len()
    );
}

fn metadata() -> Value {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test asks cargo about the workspace"
    )]
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().expect("a text")
}

/// The compiler denies it everywhere; this counts who says that it knows better (decision 0020).
#[test]
fn unsafe_code_is_in_one_file() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in walk(&crates) {
        let text = std::fs::read_to_string(&entry).expect("a source file");
        let says = |word: &str| text.contains(&format!("{word}(unsafe_code"));
        if says("expect") || says("allow") || says("warn") {
            found.push(entry);
        }
    }
    let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["give_back.rs"], "{found:?}");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

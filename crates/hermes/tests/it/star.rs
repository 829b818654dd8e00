//! The shape of the workspace: leaves depend on `hermes-core` and on no other; `hermes-runtime` joins them,
//! surfaces see the ports of `hermes-core`, and the binary wires.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

const CORE: &str = "hermes-core";
const BINARY: &str = "hermes";
/// Joins the leaves; the only library that may.
const RUNTIME: &str = "hermes-runtime";
/// What the runtime must not know: whoever shows conversations to people.
const SURFACES: &[&str] = &["hermes-tui", "hermes-gateway", "hermes-channels"];
const TESTKIT: &str = "hermes-testkit";

#[test]
fn the_crates_form_a_star_around_the_core() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let names: BTreeSet<&str> = packages
        .iter()
        .map(|package| text(package, "name"))
        .collect();
    assert_eq!(names.len(), 14, "{names:?}");
    let mut wrong = Vec::new();
    for package in packages
        .iter()
        .filter(|package| text(package, "name") != BINARY)
    {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let target = text(dependency, "name");
            let is_ours = names.contains(target);
            let joins = text(package, "name") == RUNTIME && !SURFACES.contains(&target);
            let is_allowed =
                target == CORE || (target == TESTKIT && dependency["kind"] == "dev") || joins;
            if is_ours && !is_allowed {
                wrong.push(format!("{} -> {target}", text(package, "name")));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that break the star: {wrong:?}");
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

//! What must hold for any input whatever. Each function is the body of one fuzz target.

use hermes_core::Consent;
use hermes_core::command_policy::LINE_BYTES_MAX;
use hermes_policy::{CommandLists, consent_for, is_read_only};
use hermes_core::fuzzy::{Grain, Occurrences, find, replace};
use hermes_tools::patch::v4a::Change;
use hermes_tools::patch::{hunks, v4a};

/// A line is judged without a panic; what changes nothing is free; what is forbidden stays so after another line.
pub fn command_policy(line: &str) {
    let consent = consent_for(line);
    if is_read_only(line) {
        assert_eq!(consent, Consent::NotNeeded, "{line:?}");
    }
    let is_forbidden = |consent: &Consent| matches!(consent, Consent::Forbidden { .. });
    let later = format!("true\n{line}");
    if is_forbidden(&consent) && later.len() <= LINE_BYTES_MAX {
        assert!(is_forbidden(&consent_for(&later)), "{line:?}");
    }
    let everything = CommandLists::new(Vec::new(), vec!["*".to_owned()], Vec::new());
    assert_eq!(
        is_forbidden(&everything.consent_for(line)),
        is_forbidden(&consent)
    );
    let nothing = CommandLists::new(vec!["*".to_owned()], Vec::new(), Vec::new());
    assert!(is_forbidden(&nothing.consent_for(line)), "{line:?}");
}

/// A patch is read and applied without a panic. The text before the first NUL is the file, the rest the patch.
pub fn patch_parser(input: &str) {
    let (file, patch) = input.split_once('\0').unwrap_or(("", input));
    let Ok(changes) = v4a::parse(patch) else {
        return;
    };
    assert!(
        !changes.is_empty(),
        "a patch that changes nothing is an error"
    );
    for change in changes {
        assert!(change.paths().iter().all(|path| !path.is_empty()));
        if let Change::Update { hunks, .. } = change {
            let _ = hunks::apply(file, &hunks);
        }
    }
}

/// What is found lies inside the text, in order, and replacing does what it says. NULs separate text, old and new.
pub fn fuzzy_matcher(input: &str) {
    let mut parts = input.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (text, old, new) = (part(), part(), part());
    for grain in [Grain::Anywhere, Grain::WholeLines] {
        let Some(found) = find(text, old, grain) else {
            continue;
        };
        assert!(!found.ranges.is_empty());
        let mut end = 0;
        for range in &found.ranges {
            assert!(end <= range.start && range.start <= range.end, "{input:?}");
            assert!(text.get(range.clone()).is_some(), "{input:?}");
            end = range.end;
        }
    }
    if let Ok(replaced) = replace(text, old, new, Occurrences::TheOnlyOne) {
        assert_eq!(replaced.count, 1);
    }
    if let Ok(replaced) = replace(text, old, new, Occurrences::All) {
        assert!(replaced.count >= 1);
    }
}

//! The table of cases for fuzzy replacement.

use hermes_core::fuzzy::{Occurrences, ReplaceError, replace};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    content: String,
    old: String,
    new: String,
    replace_all: bool,
    result: String,
    count: usize,
    strategy: Option<String>,
    error: Option<String>,
}

#[test]
fn every_case_of_the_table_holds() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../fixtures/fuzzy.json")).unwrap();
    for case in cases {
        let occurrences = if case.replace_all {
            Occurrences::All
        } else {
            Occurrences::TheOnlyOne
        };
        let name = &case.name;
        match replace(&case.content, &case.old, &case.new, occurrences) {
            Ok(replaced) => {
                assert_eq!(case.error, None, "{name}");
                assert_eq!(replaced.text, case.result, "{name}");
                assert_eq!(replaced.count, case.count, "{name}");
                let strategy = Some(replaced.strategy.name());
                assert_eq!(strategy, case.strategy.as_deref(), "{name}");
            }
            Err(error) => assert_eq!(Some(kind(&error)), case.error.as_deref(), "{name}"),
        }
    }
}

fn kind(error: &ReplaceError) -> &'static str {
    match error {
        ReplaceError::EmptyOld => "empty_old",
        ReplaceError::OldEqualsNew => "old_equals_new",
        ReplaceError::NotFound => "not_found",
        ReplaceError::Ambiguous { .. } => "ambiguous",
        ReplaceError::EscapeDrift => "escape_drift",
    }
}

//! Suggestions for what stands behind a command: words that the registry knows, and names that the program listed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hermes_core::command::{Argument, List, Word};
use hermes_core::text::shorten;

use super::{FOUND_MAX, Suggestion};
use crate::host::Item;
use crate::{fuzzy, wrap};

/// Half of a usual terminal, so that there is room for what is known of it. Names are shown whole.
const TITLE_CHARS_MAX: usize = 40;

/// The lists that were asked for, as they came last.
#[derive(Debug, Default)]
pub(crate) struct Lists(BTreeMap<List, Vec<Item>>);

impl Lists {
    pub(crate) fn keep(&mut self, list: List, items: Vec<Item>) {
        self.0.insert(list, items);
    }
}

/// Those that fit the letters, best first; without letters all, in their own order.
pub(super) fn suggestions(argument: Argument, letters: &str, lists: &Lists) -> Vec<Suggestion> {
    match argument {
        Argument::Free => Vec::new(),
        Argument::Words(words) => {
            let found = fuzzy::matching(letters, words.iter().map(|word| word.word));
            found.into_iter().map(|at| of_word(&words[at])).collect()
        }
        Argument::Of(list) => {
            let items = lists.0.get(&list).map_or(&[][..], Vec::as_slice);
            let texts: Vec<_> = items.iter().map(searched).collect();
            let found = fuzzy::matching(letters, texts.iter().map(AsRef::as_ref));
            let found = found.into_iter().take(FOUND_MAX);
            found.map(|at| of_item(&items[at])).collect()
        }
    }
}

/// Whether the best of so many suggestions is what Enter takes. Not where nothing is typed, since the command may do
/// without an argument, and not where something else may be meant.
pub(super) fn is_obvious(argument: Argument, letters: &str, count: usize) -> bool {
    let is_clear = match argument {
        Argument::Free => false,
        Argument::Words(_) => count == 1,
        Argument::Of(list) => !list.is_open(),
    };
    !letters.is_empty() && is_clear
}

fn searched(item: &Item) -> Cow<'_, str> {
    if item.label == item.value {
        item.value.as_str().into()
    } else {
        format!("{} {}", item.label, item.value).into()
    }
}

fn of_word(word: &Word) -> Suggestion {
    Suggestion {
        word: word.word.to_owned(),
        label: word.word.to_owned(),
        detail: word.help.to_owned(),
        is_complete: word.then == Argument::Free,
    }
}

fn of_item(item: &Item) -> Suggestion {
    let label = wrap::clean(&item.label).replace('\n', " ");
    Suggestion {
        word: wrap::clean(&item.value).replace('\n', " "),
        label: if item.label == item.value {
            label
        } else {
            shorten(&label, TITLE_CHARS_MAX)
        },
        detail: wrap::clean(&item.detail).replace('\n', " "),
        is_complete: true,
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::command::{self, Surface};

    use super::*;

    fn item(value: &str, label: &str, detail: &str) -> Item {
        Item {
            value: value.into(),
            label: label.into(),
            detail: detail.into(),
        }
    }

    fn lists() -> Lists {
        let mut lists = Lists::default();
        let model = |name: &str| item(name, name, "");
        lists.keep(
            List::Models,
            ["anthropic:claude-opus-4-6", "openai-api:gpt-5.1"]
                .map(model)
                .into(),
        );
        lists.keep(
            List::Sessions,
            vec![
                item(
                    "20261116_090000_abc123",
                    "fix the \u{1b}[31mlogin\npage",
                    "",
                ),
                item(
                    "20261115_180000_def456",
                    "a poem about rust, in four stanzas with a refrain",
                    "",
                ),
            ],
        );
        lists
    }

    fn suggested(line: &str) -> Vec<String> {
        let typed = command::argument(line, Surface::Terminal).unwrap();
        let found = suggestions(typed.argument, typed.letters, &lists());
        found.into_iter().map(|one| one.word).collect()
    }

    #[test]
    fn models_fit_by_any_part_of_their_names() {
        assert_eq!(suggested("/model ").len(), 2);
        assert_eq!(suggested("/model opus"), ["anthropic:claude-opus-4-6"]);
        assert_eq!(suggested("/model gpt51"), ["openai-api:gpt-5.1"]);
        assert!(suggested("/model llama").is_empty());
    }

    #[test]
    fn sessions_fit_by_words_in_any_order_and_by_id() {
        for letters in ["login", "page fix", "fix the lo", "abc123", "20261116"] {
            let found = suggested(&format!("/resume {letters}"));
            assert_eq!(found[0], "20261116_090000_abc123", "{letters}");
        }
        assert_eq!(suggested("/resume refrain"), ["20261115_180000_def456"]);
    }

    #[test]
    fn words_of_the_registry_need_no_list() {
        assert_eq!(suggested("/yolo "), ["on", "off"]);
        assert_eq!(suggested("/busy st"), ["steer"]);
        assert_eq!(suggested("/tools "), ["enable", "disable"]);
        assert!(suggested("/tools enable ").is_empty());
    }

    #[test]
    fn what_the_program_lists_cannot_write_on_the_terminal() {
        let found = suggestions(Argument::Of(List::Sessions), "login", &lists());
        assert_eq!(found[0].label, "fix the login page");
    }

    #[test]
    fn enter_takes_only_what_must_be_meant() {
        assert!(is_obvious(Argument::Of(List::Sessions), "poem", 9));
        assert!(!is_obvious(Argument::Of(List::Sessions), "", 9));
        assert!(!is_obvious(Argument::Of(List::Models), "gpt", 1));
        let switch = command::argument("/yolo o", Surface::Terminal).unwrap();
        assert!(!is_obvious(switch.argument, switch.letters, 2));
        assert!(is_obvious(switch.argument, "of", 1));
    }
}

//! Which skills there are, with what they are for, and when to write one. Only for models that can load them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hermes_core::ToolSpec;
use hermes_core::skill::{SkillIndex, SkillLine};
use hermes_core::text::shorten;

use super::Wording;

/// How much a prompt tells of all skills together: it is paid for with every request.
struct Room {
    /// Characters of names with descriptions.
    index: usize,
    /// Characters of names alone, of those whose description has no place.
    names: usize,
    /// Characters of a description.
    description: usize,
}

const ROOM: Room = Room {
    index: 6_000,
    names: 1_500,
    description: usize::MAX,
};

/// For small models: names say most of it.
const ROOM_BRIEF: Room = Room {
    index: 1_200,
    names: 300,
    description: 80,
};

pub(super) const HEADING: &str = "# Skills";

const WRITING: &str = "After hard work whose way will be needed again (many steps, a trap found, a correction by the \
                       user), keep it as a skill; when a skill misled you, mend it at once.";

/// What goes first where there is no room for all.
#[derive(Clone, Copy)]
pub(super) enum Order<'a> {
    ByUse,
    /// Told whole, by name or not at all, as in this prompt: what was used meanwhile changes nothing of it.
    AsIn(&'a str),
}

/// Returns the paragraph for a session with these tools.
pub(super) fn fragment(
    index: &SkillIndex,
    tools: &[ToolSpec],
    wording: Wording,
    order: Order<'_>,
) -> Option<String> {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    if !has(index.viewer) {
        return None;
    }
    let viewer = index.viewer;
    let room = match wording {
        Wording::Full => ROOM,
        Wording::Brief => ROOM_BRIEF,
    };
    let lines = index.lines.iter().filter(|line| is_for(line, &has));
    let lines: Vec<Told<'_>> = lines.map(|line| Told::new(line, &room)).collect();
    let mut paragraph = vec![HEADING.to_owned()];
    if !lines.is_empty() {
        paragraph.push(match wording {
            Wording::Full => format!(
                "Ways of doing things, kept as texts. When one fits the task, load it with {viewer} before you begin and go by it."
            ),
            Wording::Brief => format!("When one fits the task, call {viewer} first and go by it."),
        });
    }
    if wording == Wording::Full && has(index.writer) {
        paragraph.push(format!("{WRITING} ({})", index.writer));
    }
    paragraph.extend(listed(sorted(lines, order), &room, index.finder));
    (paragraph.len() > 1).then(|| paragraph.join("\n"))
}

/// A skill, and what a prompt says of it.
struct Told<'a> {
    line: &'a SkillLine,
    entry: String,
}

impl<'a> Told<'a> {
    fn new(line: &'a SkillLine, room: &Room) -> Self {
        let description = shorten(&line.description, room.description);
        let entry = format!("- {}: {description}", line.name);
        Self { line, entry }
    }
}

fn is_for(line: &SkillLine, has: &impl Fn(&str) -> bool) -> bool {
    let has_any = |group: &Vec<String>| group.iter().any(|tool| has(tool));
    line.requires.iter().all(has_any) && !line.instead_of.iter().any(has_any)
}

fn sorted<'a>(mut lines: Vec<Told<'a>>, order: Order<'_>) -> Vec<Told<'a>> {
    match order {
        Order::ByUse => lines.sort_by_cached_key(|told| {
            let SkillLine { uses, name, .. } = told.line;
            (Reverse(*uses), name.clone())
        }),
        Order::AsIn(prompt) => {
            let named = named_in(prompt);
            lines.sort_by_cached_key(|told| {
                let place = named.iter().position(|name| *name == told.line.name);
                match place {
                    _ if prompt.contains(&format!("\n{}\n", told.entry)) => (0, 0, Reverse(0)),
                    Some(place) => (1, place, Reverse(0)),
                    // The longest first: where one of them had no place, that one has none.
                    None => (2, 0, Reverse(told.line.name.chars().count())),
                }
            });
        }
    }
    lines
}

/// The skills by category, whole where there is room; then names, then how many more there are.
fn listed(lines: Vec<Told<'_>>, room: &Room, finder: &str) -> Vec<String> {
    let mut left = room.index;
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for told in lines {
        let chars = told.entry.chars().count() + 1;
        if chars <= left {
            left -= chars;
            whole.push(told);
        } else {
            rest.push(told.line);
        }
    }
    let mut told = by_category(whole);
    told.extend(by_name(&rest, room, finder));
    told
}

fn by_category(lines: Vec<Told<'_>>) -> Vec<String> {
    let mut categories: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for told in lines {
        categories
            .entry(&told.line.category)
            .or_default()
            .push(told.entry);
    }
    let mut told = Vec::new();
    for (category, mut entries) in categories {
        entries.sort();
        told.push(format!("{category}:"));
        told.extend(entries);
    }
    told
}

const FURTHER: &str = "Further skills, which ";
const DESCRIBES: &str = "(query) describes: ";

fn by_name(lines: &[&SkillLine], room: &Room, finder: &str) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let mut left = room.names;
    let names: Vec<&str> = lines
        .iter()
        .map(|line| line.name.as_str())
        .take_while(|name| {
            let chars = name.chars().count() + 2;
            let fits = chars <= left;
            left = left.saturating_sub(chars);
            fits
        })
        .collect();
    let more = match lines.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    let names = names.join(", ");
    Some(format!("{FURTHER}{finder}{DESCRIBES}{names}{more}"))
}

/// The skills that a prompt tells by name alone, in its order.
fn named_in(prompt: &str) -> Vec<&str> {
    let mut lines = prompt.lines();
    let further = lines.find_map(|line| line.strip_prefix(FURTHER)?.split_once(DESCRIBES));
    let Some((_, names)) = further else {
        return Vec::new();
    };
    let names = match names.rsplit_once(" and ") {
        Some((names, more)) if more.ends_with(" others") => names,
        _ => names,
    };
    names.split(", ").collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(name: &str, description: &str, uses: u64) -> SkillLine {
        SkillLine {
            name: name.to_owned(),
            category: "dev".to_owned(),
            description: description.to_owned(),
            uses,
            ..SkillLine::default()
        }
    }

    fn told(lines: Vec<SkillLine>, tools: &[&str]) -> Option<String> {
        told_in(lines, tools, Wording::Full, Order::ByUse)
    }

    fn told_in(
        lines: Vec<SkillLine>,
        tools: &[&str],
        wording: Wording,
        order: Order<'_>,
    ) -> Option<String> {
        let index = SkillIndex {
            viewer: "view",
            writer: "write",
            finder: "find",
            lines,
        };
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: json!({}),
        };
        let tools: Vec<_> = tools.iter().map(spec).collect();
        fragment(&index, &tools, wording, order)
    }

    #[test]
    fn skills_are_told_by_category_to_who_can_load_them() {
        let lines = || vec![line("b", "does b", 0), line("a", "does a", 9)];
        assert_eq!(told(lines(), &["write"]), None);
        let text = told(lines(), &["view"]).unwrap();
        assert!(text.ends_with("\ndev:\n- a: does a\n- b: does b"), "{text}");
        assert!(text.contains("load it with view") && !text.contains("(write)"));
        assert_eq!(told(vec![], &["view"]), None);
        assert!(
            told(vec![], &["view", "write"])
                .unwrap()
                .ends_with("(write)")
        );
    }

    #[test]
    fn a_skill_is_told_when_the_tools_it_needs_are_there_and_those_it_stands_in_for_are_not() {
        let needs = SkillLine {
            requires: vec![vec!["web_a".into(), "web_b".into()], vec!["run".into()]],
            instead_of: vec![vec!["browser".into()]],
            ..line("x", "does x", 0)
        };
        let is_told = |tools: &[&str]| told(vec![needs.clone()], tools).is_some();
        assert!(is_told(&["view", "web_b", "run"]));
        assert!(!is_told(&["view", "web_b"]));
        assert!(!is_told(&["view", "web_b", "run", "browser"]));
    }

    #[test]
    fn when_there_are_too_many_those_used_most_are_told_whole() {
        let long = "d".repeat(1_000);
        let lines = (0..500).map(|number| line(&format!("skill-{number:03}"), &long, number));
        let text = told(lines.collect(), &["view"]).unwrap();
        assert!(text.chars().count() < ROOM.index + ROOM.names + 400);
        assert!(text.contains(&format!("- skill-499: {long}\n")), "{text}");
        assert!(text.contains("- skill-495: ") && !text.contains("- skill-494: "));
        assert!(
            text.contains("find(query) describes: skill-494, skill-493"),
            "{text}"
        );
        assert!(text.ends_with(" others"), "{text}");
    }

    /// As many as a large home has, with descriptions of all lengths.
    fn many(uses: impl Fn(u64) -> u64) -> Vec<SkillLine> {
        let lines = (0..177).map(|number| {
            let description = "d".repeat(40 + number * 7 % 160);
            let name = format!("skill-{}{number}", "x".repeat(number % 9));
            line(&name, &description, uses(number as u64))
        });
        lines.collect()
    }

    #[test]
    fn a_use_changes_nothing_of_what_is_told_already() {
        for wording in [Wording::Full, Wording::Brief] {
            let told = |lines, order| told_in(lines, &["view"], wording, order).unwrap();
            let before = told(many(|number| number), Order::ByUse);
            assert!(before.contains("Further skills") && before.ends_with(" others"));
            let used = || many(|number| (number * 31) % 177);
            assert_ne!(told(used(), Order::ByUse), before);
            let prompt = format!("You are.\n\n{before}\n\nToday is Monday.");
            assert_eq!(told(used(), Order::AsIn(&prompt)), before);

            let mut fewer = used();
            fewer.retain(|line| line.uses != 5);
            assert_ne!(told(fewer, Order::AsIn(&prompt)), before);
            let mut other = used();
            let is_whole = |line: &&mut SkillLine| before.contains(&format!("- {}: ", line.name));
            other.iter_mut().find(is_whole).unwrap().description = "else".to_owned();
            assert_ne!(told(other, Order::AsIn(&prompt)), before);
        }
    }

    #[test]
    fn a_small_model_is_told_in_few_words() {
        let lines = vec![line("a", &"long ".repeat(60), 0)];
        let told = |wording| told_in(lines.clone(), &["view", "write"], wording, Order::ByUse);
        let brief = told(Wording::Brief).unwrap();
        assert!(brief.chars().count() < 200, "{brief}");
        assert!(
            brief.contains("call view first") && brief.contains("- a: long"),
            "{brief}"
        );
        assert!(!brief.contains("(write)"), "{brief}");
        let many = told_in(
            many(|number| number),
            &["view"],
            Wording::Brief,
            Order::ByUse,
        );
        assert!(many.unwrap().chars().count() < 1_700);
    }
}

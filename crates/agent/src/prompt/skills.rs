//! Which skills there are, with what they are for, and when to write one. Only for models that can load them.

use std::collections::BTreeMap;

use hermes_core::ToolSpec;
use hermes_core::skill::{SkillIndex, SkillLine};

/// Names and descriptions, for all skills together: the prompt is paid for with every request.
const INDEX_CHARS_MAX: usize = 6_000;
/// Names alone, of those whose description has no place.
const NAMES_CHARS_MAX: usize = 1_500;

pub(super) const HEADING: &str = "# Skills";

const WRITING: &str = "After hard work whose way will be needed again (many steps, a trap found, a correction by the \
                       user), keep it as a skill; when a skill misled you, mend it at once.";

/// Returns the paragraph for a session with these tools.
pub(super) fn fragment(index: &SkillIndex, tools: &[ToolSpec]) -> Option<String> {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    if !has(index.viewer) {
        return None;
    }
    let viewer = index.viewer;
    let lines: Vec<&SkillLine> = index
        .lines
        .iter()
        .filter(|line| is_for(line, &has))
        .collect();
    let mut paragraph = vec![HEADING.to_owned()];
    if !lines.is_empty() {
        paragraph.push(format!(
            "Ways of doing things, kept as texts. When one fits the task, load it with {viewer} before you begin and go by it."
        ));
    }
    if has(index.writer) {
        paragraph.push(format!("{WRITING} ({})", index.writer));
    }
    paragraph.extend(listed(lines, index.finder));
    (paragraph.len() > 1).then(|| paragraph.join("\n"))
}

fn is_for(line: &SkillLine, has: &impl Fn(&str) -> bool) -> bool {
    let has_any = |group: &Vec<String>| group.iter().any(|tool| has(tool));
    line.requires.iter().all(has_any) && !line.instead_of.iter().any(has_any)
}

/// The skills by category, whole where there is room; else those used most, then names, then how many more there are.
fn listed(mut lines: Vec<&SkillLine>, finder: &str) -> Vec<String> {
    lines.sort_by_key(|line| (std::cmp::Reverse(line.uses), line.name.clone()));
    let mut room = INDEX_CHARS_MAX;
    let mut whole: Vec<&SkillLine> = Vec::new();
    let mut rest: Vec<&SkillLine> = Vec::new();
    for line in lines {
        let chars = entry(line).chars().count() + 1;
        if chars <= room {
            room -= chars;
            whole.push(line);
        } else {
            rest.push(line);
        }
    }
    let mut told = by_category(&whole);
    told.extend(by_name(&rest, finder));
    told
}

fn by_category(lines: &[&SkillLine]) -> Vec<String> {
    let mut categories: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in lines {
        categories
            .entry(&line.category)
            .or_default()
            .push(entry(line));
    }
    let mut told = Vec::new();
    for (category, mut entries) in categories {
        entries.sort();
        told.push(format!("{category}:"));
        told.extend(entries);
    }
    told
}

fn by_name(lines: &[&SkillLine], finder: &str) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let mut room = NAMES_CHARS_MAX;
    let names: Vec<&str> = lines
        .iter()
        .map(|line| line.name.as_str())
        .take_while(|name| {
            let chars = name.chars().count() + 2;
            let fits = chars <= room;
            room = room.saturating_sub(chars);
            fits
        })
        .collect();
    let more = match lines.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    Some(format!(
        "Further skills, which {finder}(query) describes: {}{more}",
        names.join(", ")
    ))
}

fn entry(line: &SkillLine) -> String {
    format!("- {}: {}", line.name, line.description)
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
        fragment(&index, &tools)
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
        assert!(text.chars().count() < INDEX_CHARS_MAX + NAMES_CHARS_MAX + 400);
        assert!(text.contains(&format!("- skill-499: {long}\n")), "{text}");
        assert!(text.contains("- skill-495: ") && !text.contains("- skill-494: "));
        assert!(
            text.contains("find(query) describes: skill-494, skill-493"),
            "{text}"
        );
        assert!(text.ends_with(" others"), "{text}");
    }
}

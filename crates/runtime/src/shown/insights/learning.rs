//! What learning took, what came of it, and how often that served.

use hermes_core::{COMPACTION_USE, Counted, LearningCost};
use hermes_learning::skills::Usage;
use serde::Serialize;

use super::{Summary, thousands};

/// Lines of a chart that still fit a screen.
const SKILLS_MAX: usize = 20;

/// How often a skill was used, and how that came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillUse {
    pub name: String,
    /// By people and by the agent.
    pub uses: u64,
    pub successes: u64,
    pub failures: u64,
}

/// The skills that were ever used, the most used first.
pub fn skill_uses(usage: &Usage) -> Vec<SkillUse> {
    let mut skills: Vec<SkillUse> = usage
        .iter()
        .map(|(name, record)| SkillUse {
            name: name.to_owned(),
            uses: usage.uses(name),
            successes: record.success_count,
            failures: record.failure_count,
        })
        .filter(|skill| skill.uses > 0)
        .collect();
    skills.sort_by(|a, b| b.uses.cmp(&a.uses).then_with(|| a.name.cmp(&b.name)));
    skills.truncate(SKILLS_MAX);
    skills
}

impl SkillUse {
    /// `3 (2 well, 1 not)`
    pub(super) fn label(&self) -> String {
        let uses = thousands(self.uses);
        match (self.successes, self.failures) {
            (0, 0) => uses,
            (well, 0) => format!("{uses} ({well} well)"),
            (well, not) => format!("{uses} ({well} well, {not} not)"),
        }
    }
}

impl Summary {
    /// Names and values; nothing where nothing was learned.
    pub(super) fn learned(&self) -> Vec<(String, String)> {
        let learning = &self.insights.learning;
        let mut rows: Vec<(String, String)> = learning
            .costs
            .iter()
            .map(|cost| (purpose(&cost.purpose), took(cost)))
            .collect();
        if !learning.changes.is_empty() {
            rows.push(("changes".to_owned(), changes(&learning.changes)));
        }
        if learning.undone > 0 {
            rows.push(("taken back".to_owned(), thousands(learning.undone)));
        }
        if learning.conversations_with_notes > 0 {
            let with = counted(learning.conversations_with_notes, "conversation");
            rows.push(("notes in the prompt of".to_owned(), with));
        }
        rows
    }
}

fn purpose(name: &str) -> String {
    match name {
        "review" => "reviews".to_owned(),
        COMPACTION_USE => "summaries".to_owned(),
        "title" => "titles".to_owned(),
        "user_question" => "questions about you".to_owned(),
        name => name.replace('_', " "),
    }
}

fn took(cost: &LearningCost) -> String {
    let money = match cost.micro_usd {
        0 => String::new(),
        micro_usd => format!(", ${:.2}", micro_usd as f64 / 1e6),
    };
    format!(
        "{}, {} tokens{money}",
        counted(cost.requests, "request"),
        thousands(cost.tokens)
    )
}

fn counted(number: u64, what: &str) -> String {
    let many = if number == 1 { "" } else { "s" };
    format!("{} {what}{many}", thousands(number))
}

fn changes(kinds: &[Counted]) -> String {
    let kinds = kinds.iter().map(|kind| {
        let what = match kind.name.as_str() {
            "skill" => "of skills".to_owned(),
            "user_model" => "of the model of the user".to_owned(),
            name => format!("of {name}"),
        };
        format!("{} {what}", thousands(kind.count))
    });
    kinds.collect::<Vec<_>>().join(", ")
}

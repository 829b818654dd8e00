//! What was used, as charts for a terminal or as a page.

mod chart;
mod learning;
mod page;

use std::collections::BTreeMap;

use hermes_core::{Insights, LearningInsights, Used};

use crate::style::Style;
use chart::Canvas;
pub use learning::{SkillUse, skill_uses};
pub use page::html;

const NOTHING_YET: &str = "nothing was asked in this time; `hermes` starts a conversation";

/// The charts, as wide as this many columns allow.
pub fn text(summary: &Summary, style: Style, columns: usize) -> String {
    if summary.is_empty() {
        NOTHING_YET.to_owned()
    } else {
        chart::text(summary, Canvas { style, columns })
    }
}

/// What was used in the last days.
#[derive(Debug, Default)]
pub struct Summary {
    pub days: u32,
    pub insights: Insights,
    /// The skills that were ever used, the most used first.
    pub skills: Vec<SkillUse>,
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

impl Summary {
    fn is_empty(&self) -> bool {
        self.insights.hours.is_empty()
            && self.insights.longest.is_empty()
            && self.insights.learning == LearningInsights::default()
    }

    fn total(&self) -> Used {
        let mut total = Used::default();
        self.insights
            .hours
            .iter()
            .for_each(|hour| total += hour.used);
        total
    }

    /// What was used on each day on which something was, in order.
    fn by_day(&self) -> Vec<(&str, Used)> {
        let mut days: BTreeMap<&str, Used> = BTreeMap::new();
        for hour in &self.insights.hours {
            *days.entry(&hour.day).or_default() += hour.used;
        }
        days.into_iter().collect()
    }

    /// Requests by weekday, from Sunday, and hour.
    fn by_weekday_and_hour(&self) -> [[u64; 24]; 7] {
        let mut requests = [[0; 24]; 7];
        for hour in &self.insights.hours {
            if let Some(cell) = requests
                .get_mut(usize::from(hour.weekday))
                .and_then(|day| day.get_mut(usize::from(hour.hour)))
            {
                *cell += hour.used.requests;
            }
        }
        requests
    }

    /// The figures that stand above the charts, with their names.
    fn headline(&self) -> Vec<(&'static str, String)> {
        let total = self.total();
        let sessions: u64 = self
            .insights
            .sources
            .iter()
            .map(|source| source.count)
            .sum();
        vec![
            ("conversations", thousands(sessions)),
            ("requests", thousands(total.requests)),
            ("tokens in", thousands(total.input)),
            ("tokens out", thousands(total.output)),
            ("cost", money(total)),
            ("active days", self.by_day().len().to_string()),
        ]
    }
}

/// `1,234,567`
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Dollars, and how many requests they leave out.
fn money(used: Used) -> String {
    let dollars = format!("${:.2}", used.cost_micro_usd as f64 / 1e6);
    match used.requests_without_price {
        0 => dollars,
        unknown if used.cost_micro_usd == 0 => format!("{} of unknown price", thousands(unknown)),
        unknown => format!("{dollars} + {} of unknown price", thousands(unknown)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn money_says_what_it_leaves_out() {
        let used = Used {
            cost_micro_usd: 1_500_000,
            requests_without_price: 2,
            ..Used::default()
        };
        assert_eq!(money(used), "$1.50 + 2 of unknown price");
        let unknown = Used {
            cost_micro_usd: 0,
            ..used
        };
        assert_eq!(money(unknown), "2 of unknown price");
    }
}

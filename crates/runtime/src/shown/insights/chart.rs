//! Charts of characters: bars, and a heat map of the week.

use hermes_core::text::shorten;

use super::{Summary, WEEKDAYS, money, thousands};
use crate::layout::{Table, one_line};
use crate::style::Style;

/// Widest bar. With its name and its number it fits 80 columns.
const BAR_WIDTH: usize = 36;
/// Narrower ones say nothing, whatever the terminal.
const BAR_WIDTH_MIN: usize = 4;
/// A week whose hours are two columns wide each, and its margin.
const WIDE_WEEK_COLUMNS: usize = 7 + 24 * 2;
/// Days shown as bars: a screen of them.
const DAYS_SHOWN: usize = 14;
const NAME_CHARS_MAX: usize = 28;

/// What is drawn on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Canvas {
    pub(super) style: Style,
    pub(super) columns: usize,
}

/// Everything, one section under the other. Sections without anything to show are left out.
pub(super) fn text(summary: &Summary, canvas: Canvas) -> String {
    let style = canvas.style;
    let insights = &summary.insights;
    let days = summary.by_day();
    let recent = &days[days.len().saturating_sub(DAYS_SHOWN)..];
    let sections = [
        (
            "Days, by requests",
            bars(
                recent.iter().map(|(day, used)| bar(day, used.requests)),
                canvas,
            ),
        ),
        ("The week, by requests", heat_map(summary, canvas)),
        ("Models", models(summary, canvas)),
        (
            "Tools, by calls",
            bars(
                insights
                    .tools
                    .iter()
                    .map(|tool| bar(&tool.name, tool.count)),
                canvas,
            ),
        ),
        (
            "Sources, by conversations",
            bars(
                insights
                    .sources
                    .iter()
                    .map(|source| bar(&source.name, source.count)),
                canvas,
            ),
        ),
        (
            "Turns that did not finish",
            bars(
                insights
                    .failures
                    .iter()
                    .map(|how| bar(&how.name, how.count)),
                canvas,
            ),
        ),
        ("Longest conversations", longest(summary)),
        ("Learning", learning(summary)),
        ("Skills, by use", skills(summary, canvas)),
    ];
    let heading = format!("The last {} days", summary.days);
    let mut text = format!("{}\n{}", style.bold(heading), headline(summary));
    for (title, section) in sections {
        if !section.is_empty() {
            text.push_str(&format!("\n\n{}\n{section}", style.bold(title)));
        }
    }
    text
}

fn headline(summary: &Summary) -> String {
    let mut table = Table::without_heading();
    for (name, value) in summary.headline() {
        table.row([format!("  {name}"), value]);
    }
    table.text()
}

struct Bar {
    name: String,
    value: u64,
    label: String,
}

fn bar(name: &str, value: u64) -> Bar {
    Bar {
        name: name.to_owned(),
        value,
        label: thousands(value),
    }
}

fn models(summary: &Summary, canvas: Canvas) -> String {
    let models = summary.insights.models.iter().map(|model| Bar {
        name: model.model.to_string(),
        value: model.used.requests,
        label: format!("{}  {}", thousands(model.used.requests), money(model.used)),
    });
    bars(models, canvas)
}

fn bars(bars: impl Iterator<Item = Bar>, canvas: Canvas) -> String {
    let bars: Vec<Bar> = bars.collect();
    let largest = bars.iter().map(|bar| bar.value).max().unwrap_or(0);
    let name = |bar: &Bar| shorten(&one_line(&bar.name), NAME_CHARS_MAX);
    let width = bars.iter().map(|bar| name(bar).chars().count()).max();
    let width = width.unwrap_or(0);
    let label = bars.iter().map(|bar| bar.label.chars().count()).max();
    let room = canvas
        .columns
        .saturating_sub(width + label.unwrap_or(0) + "      ".len())
        .clamp(BAR_WIDTH_MIN, BAR_WIDTH);
    let lines = bars.iter().map(|bar| {
        let drawn = canvas.style.cyan(blocks(bar.value, largest, room));
        format!("  {:<width$}  {drawn} {}", name(bar), bar.label)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A bar of eighths of a character. Whatever is not zero can be seen.
fn blocks(value: u64, largest: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if value == 0 || largest == 0 {
        return String::new();
    }
    let share = value as f64 / largest as f64;
    let eighths = ((share * (width * 8) as f64).round() as usize).max(1);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// One row per day of the week, one column per hour: the darker, the busier.
fn heat_map(summary: &Summary, canvas: Canvas) -> String {
    const SHADES: [&str; 5] = ["· ", "░░", "▒▒", "▓▓", "██"];
    const NARROW_SHADES: [&str; 5] = ["·", "░", "▒", "▓", "█"];
    let style = canvas.style;
    let (shades, hour_columns) = if canvas.columns >= WIDE_WEEK_COLUMNS {
        (SHADES, 2)
    } else {
        (NARROW_SHADES, 1)
    };
    let week = summary.by_weekday_and_hour();
    let busiest = week.iter().flatten().copied().max().unwrap_or(0);
    if busiest == 0 {
        return String::new();
    }
    let shade = |requests: &u64| match requests {
        0 => shades[0],
        requests => shades[(requests * 4).div_ceil(busiest) as usize],
    };
    let hours: String = (0..24)
        .step_by(6)
        .map(|hour| format!("{:<width$}", format!("{hour:02}"), width = 6 * hour_columns))
        .collect();
    let mut lines = vec![style.dim(format!("       {}", hours.trim_end()))];
    // A week begins on Monday.
    for day in [1, 2, 3, 4, 5, 6, 0] {
        let cells: String = week[day].iter().map(shade).collect();
        lines.push(format!("  {}  {}", WEEKDAYS[day], style.cyan(cells)));
    }
    lines.join("\n")
}

fn learning(summary: &Summary) -> String {
    let mut table = Table::without_heading();
    for (name, value) in summary.learned() {
        table.row([format!("  {name}"), value]);
    }
    table.text()
}

fn skills(summary: &Summary, canvas: Canvas) -> String {
    let skills = summary.skills.iter().map(|skill| Bar {
        name: skill.name.clone(),
        value: skill.uses,
        label: skill.label(),
    });
    bars(skills, canvas)
}

fn longest(summary: &Summary) -> String {
    let mut table = Table::without_heading();
    for session in &summary.insights.longest {
        let title = session.title.as_deref().unwrap_or(&session.preview);
        table.row([
            format!("  {}", session.id),
            format!("{} messages", session.messages),
            shorten(&one_line(title), NAME_CHARS_MAX),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use hermes_core::{HourUse, Insights, Used};

    use super::*;

    #[test]
    fn the_largest_bar_is_full_and_the_smallest_can_be_seen() {
        let blocks = |value, largest| blocks(value, largest, BAR_WIDTH);
        assert_eq!(blocks(10, 10), "█".repeat(BAR_WIDTH));
        assert_eq!(blocks(5, 10).chars().count(), BAR_WIDTH / 2);
        assert_eq!(blocks(1, 1_000_000), "▏");
        assert_eq!(
            (blocks(0, 10), blocks(0, 0)),
            (String::new(), String::new())
        );
    }

    #[test]
    fn bars_and_the_week_fit_a_narrow_terminal() {
        let insights = Insights {
            hours: vec![HourUse {
                day: "2026-11-16".into(),
                weekday: 1,
                hour: 6,
                used: Used {
                    requests: 1_234,
                    ..Used::default()
                },
            }],
            ..Insights::default()
        };
        let summary = Summary {
            days: 1,
            insights,
            skills: Vec::new(),
        };
        let charts = |columns| {
            let style = Style::PLAIN;
            text(&summary, Canvas { style, columns })
        };
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert!(widest(&charts(80)) > Some(40));
        let narrow = charts(40);
        assert!(widest(&narrow) <= Some(40), "{narrow}");
        assert!(narrow.contains("       00    06    12    18\n  Mon  ······█·"));
    }
}

//! Charts of characters: bars, and a heat map of the week.

use hermes_core::text::shorten;

use super::summary::{Summary, WEEKDAYS, money, thousands};
use crate::commands::layout::{Table, one_line};
use crate::style::Style;

/// Widest bar. With its name and its number it fits 80 columns.
const BAR_WIDTH: usize = 36;
/// Days shown as bars: a screen of them.
const DAYS_SHOWN: usize = 14;
const NAME_CHARS_MAX: usize = 28;

/// Everything, one section under the other. Sections without anything to show are left out.
pub(super) fn text(summary: &Summary, style: Style) -> String {
    let insights = &summary.insights;
    let days = summary.by_day();
    let recent = &days[days.len().saturating_sub(DAYS_SHOWN)..];
    let sections = [
        (
            "Days, by requests",
            bars(
                recent.iter().map(|(day, used)| bar(day, used.requests)),
                style,
            ),
        ),
        ("The week, by requests", heat_map(summary, style)),
        ("Models", models(summary, style)),
        (
            "Tools, by calls",
            bars(
                insights
                    .tools
                    .iter()
                    .map(|tool| bar(&tool.name, tool.count)),
                style,
            ),
        ),
        (
            "Sources, by conversations",
            bars(
                insights
                    .sources
                    .iter()
                    .map(|door| bar(&door.name, door.count)),
                style,
            ),
        ),
        (
            "Turns that did not finish",
            bars(
                insights
                    .failures
                    .iter()
                    .map(|how| bar(&how.name, how.count)),
                style,
            ),
        ),
        ("Longest conversations", longest(summary)),
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

fn models(summary: &Summary, style: Style) -> String {
    let models = summary.insights.models.iter().map(|model| Bar {
        name: model.model.to_string(),
        value: model.used.requests,
        label: format!("{}  {}", thousands(model.used.requests), money(model.used)),
    });
    bars(models, style)
}

fn bars(bars: impl Iterator<Item = Bar>, style: Style) -> String {
    let bars: Vec<Bar> = bars.collect();
    let largest = bars.iter().map(|bar| bar.value).max().unwrap_or(0);
    let name = |bar: &Bar| shorten(&one_line(&bar.name), NAME_CHARS_MAX);
    let width = bars.iter().map(|bar| name(bar).chars().count()).max();
    let width = width.unwrap_or(0);
    let lines = bars.iter().map(|bar| {
        let drawn = style.cyan(blocks(bar.value, largest));
        format!("  {:<width$}  {drawn} {}", name(bar), bar.label)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A bar of eighths of a character. Whatever is not zero can be seen.
fn blocks(value: u64, largest: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if value == 0 || largest == 0 {
        return String::new();
    }
    let share = value as f64 / largest as f64;
    let eighths = ((share * (BAR_WIDTH * 8) as f64).round() as usize).max(1);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// One row per day of the week, one column per hour: the darker, the busier.
fn heat_map(summary: &Summary, style: Style) -> String {
    const SHADES: [&str; 5] = ["· ", "░░", "▒▒", "▓▓", "██"];
    let week = summary.by_weekday_and_hour();
    let busiest = week.iter().flatten().copied().max().unwrap_or(0);
    if busiest == 0 {
        return String::new();
    }
    let shade = |requests: &u64| match requests {
        0 => SHADES[0],
        requests => SHADES[(requests * 4).div_ceil(busiest) as usize],
    };
    let hours: String = (0..24)
        .step_by(6)
        .map(|hour| format!("{hour:02}          "))
        .collect();
    let mut lines = vec![style.dim(format!("       {}", hours.trim_end()))];
    // A week begins on Monday.
    for day in [1, 2, 3, 4, 5, 6, 0] {
        let cells: String = week[day].iter().map(shade).collect();
        lines.push(format!("  {}  {}", WEEKDAYS[day], style.cyan(cells)));
    }
    lines.join("\n")
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
    use super::*;

    #[test]
    fn the_largest_bar_is_full_and_the_smallest_can_be_seen() {
        assert_eq!(blocks(10, 10), "█".repeat(BAR_WIDTH));
        assert_eq!(blocks(5, 10).chars().count(), BAR_WIDTH / 2);
        assert_eq!(blocks(1, 1_000_000), "▏");
        assert_eq!(
            (blocks(0, 10), blocks(0, 0)),
            (String::new(), String::new())
        );
    }
}

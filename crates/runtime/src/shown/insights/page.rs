//! The same charts as one HTML page: no scripts, nothing fetched, so that it can be kept and sent.

use std::fmt::Write as _;

use hermes_core::Used;

use super::{Summary, WEEKDAYS, money, thousands};

const STYLE: &str = "\
:root { color-scheme: light dark; --bar: #2a7ab0; --line: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; font-size: 1.1rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }
.figures b { display: block; font-size: 1.4rem; }
table { border-collapse: collapse; width: 100%; }
td { padding: .15rem .5rem .15rem 0; white-space: nowrap; }
td.bar { width: 60%; }
td.bar div { background: var(--bar); height: 1rem; border-radius: 2px; min-width: 2px; }
.week { display: grid; grid-template-columns: 3rem repeat(24, 1fr); gap: 2px; font-size: .75rem; }
.week i { aspect-ratio: 1; border-radius: 2px; background: var(--bar); outline: 1px solid var(--line); }";

pub fn html(summary: &Summary) -> String {
    let insights = &summary.insights;
    let days = summary.by_day();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Hermes insights</title>\n\
         <style>\n{STYLE}\n</style>\n<h1>The last {} days</h1>\n{}",
        summary.days,
        figures(summary)
    );
    let requests = |used: &Used| (used.requests, thousands(used.requests));
    let sections = [
        bars(
            "Days, by requests",
            days.iter().map(|(day, used)| (*day, requests(used))),
        ),
        week(summary),
        bars(
            "Models",
            insights.models.iter().map(|model| {
                let label = format!("{} · {}", thousands(model.used.requests), money(model.used));
                (model.model.to_string(), (model.used.requests, label))
            }),
        ),
        bars("Tools, by calls", counted(&insights.tools)),
        bars("Sources, by conversations", counted(&insights.sources)),
        bars("Turns that did not finish", counted(&insights.failures)),
        bars(
            "Longest conversations",
            insights.longest.iter().map(|session| {
                let title = session.title.as_deref().unwrap_or(&session.preview);
                let label = format!("{} messages", thousands(session.messages));
                (title.to_owned(), (session.messages, label))
            }),
        ),
        table("Learning", summary.learned()),
        bars(
            "Skills, by use",
            summary
                .skills
                .iter()
                .map(|skill| (skill.name.clone(), (skill.uses, skill.label()))),
        ),
    ];
    page.extend(sections);
    page
}

fn figures(summary: &Summary) -> String {
    let figure =
        |(name, value): (&str, String)| format!("<div><b>{}</b>{name}</div>\n", escaped(&value));
    let figures: String = summary.headline().into_iter().map(figure).collect();
    format!("<div class=\"figures\">\n{figures}</div>\n")
}

fn counted(counts: &[hermes_core::Counted]) -> impl Iterator<Item = (String, (u64, String))> {
    counts.iter().map(|counted| {
        (
            counted.name.clone(),
            (counted.count, thousands(counted.count)),
        )
    })
}

/// A section with one bar per row; nothing when there are no rows.
fn bars(title: &str, rows: impl Iterator<Item = (impl AsRef<str>, (u64, String))>) -> String {
    let rows: Vec<_> = rows.collect();
    let Some(largest) = rows.iter().map(|(_, (value, _))| *value).max() else {
        return String::new();
    };
    let mut html = format!("<h2>{title}</h2>\n<table>\n");
    for (name, (value, label)) in rows {
        let percent = value as f64 * 100.0 / largest.max(1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"bar\"><div style=\"width:{percent:.1}%\"></div></td><td>{}</td></tr>",
            escaped(name.as_ref()),
            escaped(&label)
        );
    }
    html.push_str("</table>\n");
    html
}

/// A section of names and values; nothing when there are none.
fn table(title: &str, rows: Vec<(String, String)>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let row = |(name, value): (String, String)| {
        format!(
            "<tr><td>{}</td><td>{}</td></tr>\n",
            escaped(&name),
            escaped(&value)
        )
    };
    let rows: String = rows.into_iter().map(row).collect();
    format!("<h2>{title}</h2>\n<table>\n{rows}</table>\n")
}

fn week(summary: &Summary) -> String {
    let week = summary.by_weekday_and_hour();
    let busiest = week.iter().flatten().copied().max().unwrap_or(0);
    if busiest == 0 {
        return String::new();
    }
    let mut html =
        String::from("<h2>The week, by requests</h2>\n<div class=\"week\">\n<span></span>");
    (0..24).for_each(|hour| html.push_str(&format!("<span>{hour}</span>")));
    for day in [1, 2, 3, 4, 5, 6, 0] {
        let _ = write!(html, "\n<span>{}</span>", WEEKDAYS[day]);
        for (hour, requests) in week[day].iter().enumerate() {
            let strength = *requests as f64 / busiest as f64;
            let name = WEEKDAYS[day];
            let _ = write!(
                html,
                "<i style=\"opacity:{:.2}\" title=\"{name} {hour}:00: {requests}\"></i>",
                0.06 + 0.94 * strength
            );
        }
    }
    html.push_str("\n</div>\n");
    html
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_cannot_become_part_of_the_page() {
        let row = ("<script>alert(\"1\")</script>", (1, "a & b".to_owned()));
        let html = bars("Title", [row].into_iter());
        assert!(!html.contains("<script>"), "{html}");
        assert!(html.contains("&lt;script&gt;") && html.contains("a &amp; b"));
    }
}

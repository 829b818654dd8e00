//! What Anthropic's wire must be told that depends on which Claude is asked: how much it may write, how it may think.

use serde::Serialize;

use crate::settings::Effort;

/// The least Anthropic accepts as a budget for thinking.
const BUDGET_MIN: u32 = 1024;

/// How a request asks for thinking.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Thinking {
    pub(super) thinking: Option<Mode>,
    pub(super) effort: Option<&'static str>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Mode {
    Disabled,
    /// The model decides how much; without `display` it thinks out of sight.
    Adaptive {
        display: &'static str,
    },
    Enabled {
        budget_tokens: u32,
    },
}

/// A model's family and version, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claude<'a> {
    /// `claude-sonnet-4-6`.
    Named(&'a str, (u32, u32)),
    /// `claude-3-5-haiku-20241022`.
    Numbered((u32, u32)),
    /// Not Anthropic's, or of a shape that nobody knows yet.
    Other,
}

/// Returns the output limit to send when nobody set one: Anthropic wants one, and takes no more than the model's own.
pub(super) fn output_tokens_max(model: &str) -> u32 {
    match Claude::of(model) {
        Claude::Numbered((3, 7)) => 64_000,
        Claude::Numbered((3, 5)) => 8_192,
        Claude::Numbered(..) => 4_096,
        Claude::Named("opus", version) if version < (4, 5) => 32_000,
        Claude::Named("opus", version) if version >= (4, 8) => 128_000,
        Claude::Named("fable" | "mythos", _) => 128_000,
        Claude::Named(..) | Claude::Other => 64_000,
    }
}

/// Says an effort in the words of the model. The output limit has to hold the thoughts too.
pub(super) fn thinking(model: &str, effort: Effort, output_tokens_max: u32) -> Thinking {
    let claude = Claude::of(model);
    if effort == Effort::None {
        return Thinking {
            thinking: claude.thinks_unasked().then_some(Mode::Disabled),
            effort: None,
        };
    }
    if claude.adapts() {
        return Thinking {
            thinking: Some(Mode::Adaptive {
                display: "summarized",
            }),
            effort: Some(claude.effort_name(effort)),
        };
    }
    let budget_tokens = budget(effort).min(output_tokens_max.saturating_sub(1));
    let is_enough = claude.thinks() && budget_tokens >= BUDGET_MIN;
    Thinking {
        thinking: is_enough.then_some(Mode::Enabled { budget_tokens }),
        effort: None,
    }
}

fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::None => 0,
        Effort::Minimal | Effort::Low => BUDGET_MIN,
        Effort::Medium => 8_000,
        Effort::High | Effort::XHigh | Effort::Max => 24_000,
    }
}

impl<'a> Claude<'a> {
    fn of(model: &'a str) -> Self {
        let Some((_, name)) = model.split_once("claude-") else {
            return Self::Other;
        };
        let words: Vec<&str> = name.split(['-', '.']).collect();
        let number = |at: usize| words.get(at).copied().and_then(version);
        match (number(0), number(1)) {
            (Some(_), None) if words.len() == 1 => Self::Other,
            (Some(major), minor) => Self::Numbered((major, minor.unwrap_or(0))),
            (None, Some(major)) => Self::Named(words[0], (major, number(2).unwrap_or(0))),
            (None, None) if matches!(words[0], "fable" | "mythos") => Self::Named(words[0], (0, 0)),
            (None, None) => Self::Other,
        }
    }

    fn adapts(self) -> bool {
        match self {
            Self::Named("opus" | "sonnet", version) => version >= (4, 6),
            Self::Named("haiku", version) => version >= (5, 0),
            Self::Named("fable" | "mythos", _) => true,
            Self::Named(..) | Self::Numbered(..) | Self::Other => false,
        }
    }

    /// Models of others on this wire are asked only where the table of providers says that they understand.
    fn thinks(self) -> bool {
        match self {
            Self::Numbered(version) => version >= (3, 7),
            Self::Named(..) | Self::Other => true,
        }
    }

    /// Returns whether silence about thinking means thinking.
    fn thinks_unasked(self) -> bool {
        matches!(self, Self::Named("opus" | "sonnet" | "haiku", version) if version >= (5, 0))
    }

    fn effort_name(self, effort: Effort) -> &'static str {
        let is_newer = match self {
            Self::Named("opus", version) => version >= (4, 7),
            Self::Named("sonnet" | "haiku", version) => version >= (5, 0),
            _ => true,
        };
        match effort {
            Effort::None | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::XHigh if is_newer => "xhigh",
            Effort::High | Effort::XHigh => "high",
            Effort::Max => "max",
        }
    }
}

/// Reads a number of one or two digits; longer ones are dates.
fn version(word: &str) -> Option<u32> {
    word.parse().ok().filter(|_| word.len() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_family_and_version() {
        let check = |name, expected| assert_eq!(Claude::of(name), expected, "{name}");
        check("claude-sonnet-4-6", Claude::Named("sonnet", (4, 6)));
        check("claude-opus-4-20250514", Claude::Named("opus", (4, 0)));
        check("anthropic/claude-haiku-4.5", Claude::Named("haiku", (4, 5)));
        check("claude-3-5-haiku-20241022", Claude::Numbered((3, 5)));
        check("claude-3-opus-20240229", Claude::Numbered((3, 0)));
        check("MiniMax-M2.1", Claude::Other);
        for odd in ["claude-", "claude-3", "claude-instant", "claude--"] {
            check(odd, Claude::Other);
        }
    }

    #[test]
    fn each_model_may_write_what_it_can() {
        let check = |name, tokens| assert_eq!(output_tokens_max(name), tokens, "{name}");
        check("claude-sonnet-4-6", 64_000);
        check("claude-opus-4-1", 32_000);
        check("claude-opus-4-5", 64_000);
        check("claude-3-7-sonnet-latest", 64_000);
        check("claude-3-5-sonnet-latest", 8_192);
        check("claude-3-haiku-20240307", 4_096);
        check("MiniMax-M2.1", 64_000);
    }

    #[test]
    fn an_effort_is_said_as_the_model_understands_it() {
        let asked = |model, effort| thinking(model, effort, 64_000);
        let adaptive = |effort| Thinking {
            thinking: Some(Mode::Adaptive {
                display: "summarized",
            }),
            effort: Some(effort),
        };
        let budget = |budget_tokens| Thinking {
            thinking: Some(Mode::Enabled { budget_tokens }),
            effort: None,
        };
        assert_eq!(asked("claude-sonnet-4-6", Effort::XHigh), adaptive("high"));
        assert_eq!(asked("claude-opus-4-7", Effort::XHigh), adaptive("xhigh"));
        assert_eq!(asked("claude-opus-4-6", Effort::Max), adaptive("max"));
        assert_eq!(asked("claude-haiku-4-5", Effort::Low), budget(1024));
        assert_eq!(asked("claude-opus-4-1", Effort::High), budget(24_000));
        assert_eq!(
            asked("claude-3-5-haiku-latest", Effort::High),
            Thinking::default()
        );
        assert_eq!(
            asked("claude-sonnet-4-6", Effort::None),
            Thinking::default()
        );
        let disabled = asked("claude-opus-5", Effort::None).thinking;
        assert_eq!(disabled, Some(Mode::Disabled));
    }

    #[test]
    fn thoughts_fit_into_the_output_limit_or_are_not_asked_for() {
        let budget = |limit| thinking("claude-haiku-4-5", Effort::High, limit).thinking;
        let budget_tokens = 3_999;
        assert_eq!(budget(4_000), Some(Mode::Enabled { budget_tokens }));
        assert_eq!(budget(777), None);
    }
}

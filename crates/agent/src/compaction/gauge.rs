//! How full a conversation's window is: the provider's own count of the last request, and an estimate of what came since.

use hermes_core::{Message, ModelName, Prefix, Usage};

use super::estimate::{Family, message_tokens, prefix_tokens};

/// For models nobody knows, where a number is needed: what most current ones have at least.
const WINDOW_ASSUMED: u64 = 256_000;
/// A window below this is a mistake in the settings or in an error message.
const WINDOW_MIN: u64 = 1_024;
/// A provider's count that is this many times smaller than ours leaves out what it had cached.
const UNDERCOUNT: u64 = 3;
/// No request is this many times as long as its window: such a number is noise.
const OVERCOUNT: u64 = 4;

/// What is known of the sizes in a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge {
    /// What an overflow taught of the window.
    learnt: Option<u64>,
    /// What the provider said it counted. Looking whether that can be takes an estimate of everything, which is made when
    /// somebody asks: most conversations have one turn.
    reported: Option<Reported>,
    /// What the provider counted, and of how many messages.
    measured: Option<(usize, u64)>,
    /// Estimate of the prefix, for a family of models.
    prefix: Option<(Family, u64)>,
    /// Estimate of the prefix and of the first so many messages.
    estimated: Option<(usize, u64)>,
    /// A hundredth of what our estimates have to be multiplied with.
    percent: Option<u64>,
    /// What a request took after the last compaction.
    pub(crate) after_last: Option<u64>,
    /// Compactions in a row that freed little.
    pub(crate) ineffective: u32,
    /// The user knows that nothing can be left out.
    pub(crate) is_told: bool,
}

/// A provider's count of a request and its answer.
#[derive(Debug, Clone, Copy)]
struct Reported {
    messages: usize,
    tokens: u64,
    window: u64,
}

impl Gauge {
    /// Forgets what was counted, because other messages are seen now; what was learnt stays.
    pub(crate) fn reset(&mut self) {
        (self.reported, self.measured, self.estimated) = (None, None, None);
        self.prefix = None;
    }

    /// What fits into a request and its answer.
    pub(crate) fn window(&self, stated: Option<u64>) -> u64 {
        let known = self.learnt.into_iter().chain(stated).min();
        known.unwrap_or(WINDOW_ASSUMED).max(WINDOW_MIN)
    }

    /// The same as far as it is known.
    pub(crate) fn known_window(&self, stated: Option<u64>) -> Option<u64> {
        (self.learnt.is_some() || stated.is_some()).then(|| self.window(stated))
    }

    /// Learns how much fits: what the provider said, or less than what it refused.
    pub(crate) fn learn(&mut self, said: Option<u64>, refused: u64, window: u64) {
        // A request that should have fitted shows that our count or the window is wrong.
        let learnt = said.unwrap_or_else(|| (refused * 9 / 10).min(window));
        self.learnt = Some(learnt.max(WINDOW_MIN));
        (self.reported, self.measured) = (None, None);
    }

    /// Takes in what the provider counted for the last request and its answer.
    pub(crate) fn measure(&mut self, usage: &Usage, messages: &[Message], window: u64) {
        let tokens = usage.total();
        if tokens > 0 {
            let messages = messages.len();
            self.reported = Some(Reported {
                messages,
                tokens,
                window,
            });
        }
    }

    /// Looks whether what the provider said can be.
    fn believe(&mut self, prefix: &Prefix, messages: &[Message], model: &ModelName) {
        let Some(reported) = self.reported.take() else {
            return;
        };
        let Some(messages) = messages.get(..reported.messages) else {
            return;
        };
        let (counted, window) = (reported.tokens, reported.window);
        let estimated = self.estimate(prefix, messages, model);
        let is_plausible = counted >= estimated / UNDERCOUNT
            && counted <= window.saturating_mul(OVERCOUNT).max(estimated * 2);
        if is_plausible {
            self.measured = Some((messages.len(), counted));
            self.percent = Some((counted * 100 / estimated.max(1)).clamp(60, 180));
        }
    }

    /// What the next request takes.
    pub(crate) fn tokens(
        &mut self,
        prefix: &Prefix,
        messages: &[Message],
        model: &ModelName,
    ) -> u64 {
        self.believe(prefix, messages, model);
        match self.measured {
            Some((count, tokens)) if count <= messages.len() => {
                let size = self.size(model);
                tokens + messages[count..].iter().map(size).sum::<u64>()
            }
            _ => {
                let estimated = self.estimate(prefix, messages, model);
                self.corrected(estimated)
            }
        }
    }

    /// Counts single messages.
    pub(crate) fn size(&self, model: &ModelName) -> impl Fn(&Message) -> u64 + Sync + use<> {
        let family = Family::of(&model.model);
        let percent = self.percent.unwrap_or(100);
        move |message| message_tokens(family, message) * percent / 100
    }

    /// What requests would begin with, in tokens, were it this.
    pub(crate) fn other_prefix(&self, prefix: &Prefix, model: &ModelName) -> u64 {
        self.corrected(prefix_tokens(Family::of(&model.model), prefix))
    }

    pub(crate) fn prefix(&self, prefix: &Prefix, model: &ModelName) -> u64 {
        let family = Family::of(&model.model);
        let tokens = match self.prefix {
            Some((known, tokens)) if known == family => tokens,
            _ => prefix_tokens(family, prefix),
        };
        self.corrected(tokens)
    }

    fn corrected(&self, tokens: u64) -> u64 {
        tokens * self.percent.unwrap_or(100) / 100
    }

    /// Estimates all, counting only what is new.
    fn estimate(&mut self, prefix: &Prefix, messages: &[Message], model: &ModelName) -> u64 {
        let family = Family::of(&model.model);
        let (count, tokens) = match self.estimated {
            Some(known) if known.0 <= messages.len() => known,
            _ => {
                let tokens = prefix_tokens(family, prefix);
                self.prefix = Some((family, tokens));
                (0, tokens)
            }
        };
        let new = messages[count..].iter();
        let tokens = tokens + new.map(|one| message_tokens(family, one)).sum::<u64>();
        self.estimated = Some((messages.len(), tokens));
        tokens
    }
}

/// Reads from a refusal how much fits: the number of tokens it names as the limit.
pub(crate) fn stated_limit(message: &str) -> Option<u64> {
    /// What stands before the limit in the words of providers.
    const BEFORE: &[&str] = &[
        "maximum context length is ",
        "maximum context length of ",
        "maximum model length of ",
        "context length is only ",
        "context length of only ",
        "context window of ",
        "context window is ",
        "available context size (",
        "context size (",
        "context length (",
        "n_ctx = ",
        "n_ctx: ",
        "\"n_ctx\":",
        "tokens > ",
        "maximum number of tokens allowed (",
        "maximum allowed input length ",
        "maximum prompt length is ",
        "max_model_len ",
        "limit of ",
        "limit is ",
    ];
    let lower = message.to_lowercase();
    BEFORE.iter().find_map(|before| {
        let (_, rest) = lower.split_once(before)?;
        let digits: String = rest
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(|c| c.is_ascii_digit() || *c == ',' || *c == '_')
            .filter(char::is_ascii_digit)
            .collect();
        let limit: u64 = digits.parse().ok()?;
        (limit >= WINDOW_MIN).then_some(limit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_the_words_of_providers() {
        for (message, limit) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9000",
                Some(8_192),
            ),
            (
                "prompt is too long: 210000 tokens > 200000 maximum",
                Some(200_000),
            ),
            (
                "the request exceeds the available context size (4096 tokens), try increasing it",
                Some(4_096),
            ),
            (
                "The input token count (33000) exceeds the maximum number of tokens allowed (32768).",
                Some(32_768),
            ),
            (
                "Please reduce the length: maximum model length of 16,384",
                Some(16_384),
            ),
            ("context_length_exceeded", None),
            ("limit of 3 requests", None),
        ] {
            assert_eq!(stated_limit(message), limit, "{message}");
        }
    }

    #[test]
    fn the_providers_count_goes_before_ours_unless_it_is_noise() {
        let model = ModelName {
            provider: "p".into(),
            model: "m".into(),
        };
        let prefix = Prefix::default();
        let messages = vec![Message::user("word ".repeat(1_000))];
        let tokens = |input: u64| {
            let mut gauge = Gauge::default();
            let usage = Usage {
                input,
                ..Usage::default()
            };
            gauge.measure(&usage, &messages, 16_000);
            gauge.tokens(&prefix, &messages, &model)
        };
        assert_eq!(tokens(1_400), 1_400);
        let ours = tokens(0);
        assert!((900..1_100).contains(&ours), "{ours}");
        assert_eq!(tokens(10), ours, "it counts only what was not cached");
        assert_eq!(tokens(u64::MAX), ours);
    }
}

//! When a fault strikes: on which messages, how often, and whether the work is done first.
//! The same for both transports; knows nothing of what the faults do.

use serde::{Deserialize, Serialize};

/// A fault and the messages it strikes. `.fail(fault)` makes one that strikes the next request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule<F> {
    pub fault: F,
    #[serde(default)]
    pub on: On,
    /// How often it strikes; `None` (JSON `null`) until it is cleared.
    #[serde(default = "once")]
    pub times: Option<usize>,
    /// Executes the request before it fails, so that the client cannot know.
    #[serde(default)]
    pub executes: bool,
}

/// The messages a fault strikes; in JSON `requests`, `everything`, or a method.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum On {
    /// Requests after the handshake: neither `initialize`, `server/discover` nor notifications.
    #[default]
    Requests,
    Everything,
    /// Messages of this method. `GET` and `DELETE` are methods too, and so is [`START`].
    Method(String),
}

/// The method that stands for the start of a stdio server.
pub const START: &str = "start";

/// The rules in force, in the order they were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Rules<F>(Vec<Rule<F>>);

impl<F> Rule<F> {
    pub fn once(fault: F) -> Self {
        Self {
            fault,
            on: On::default(),
            times: once(),
            executes: false,
        }
    }

    pub fn on(mut self, method: impl Into<String>) -> Self {
        self.on = On::Method(method.into());
        self
    }

    pub fn on_everything(mut self) -> Self {
        self.on = On::Everything;
        self
    }

    pub fn times(mut self, times: usize) -> Self {
        self.times = Some(times);
        self
    }

    pub fn until_cleared(mut self) -> Self {
        self.times = None;
        self
    }

    pub fn after_executing(mut self) -> Self {
        self.executes = true;
        self
    }
}

impl<F> From<F> for Rule<F> {
    fn from(fault: F) -> Self {
        Self::once(fault)
    }
}

impl On {
    fn includes(&self, method: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Method(wanted) => wanted == method,
            Self::Requests => {
                let is_handshake = ["initialize", "server/discover"].contains(&method);
                let is_no_request = ["GET", "DELETE", START, "response"].contains(&method);
                !is_handshake && !is_no_request && !method.starts_with("notifications/")
            }
        }
    }
}

impl From<String> for On {
    fn from(name: String) -> Self {
        match name.as_str() {
            "requests" => Self::Requests,
            "everything" => Self::Everything,
            _ => Self::Method(name),
        }
    }
}

impl From<On> for String {
    fn from(on: On) -> Self {
        match on {
            On::Requests => "requests".to_owned(),
            On::Everything => "everything".to_owned(),
            On::Method(method) => method,
        }
    }
}

impl<F> Default for Rules<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: Clone> Rules<F> {
    pub(crate) fn add(&mut self, rule: Rule<F>) {
        self.0.push(rule);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the first rule for a message of this method, and counts it.
    pub(crate) fn take(&mut self, method: &str) -> Option<Rule<F>> {
        self.take_up_to(1, method).pop()
    }

    /// Returns every rule for a message of this method, and counts each.
    pub(crate) fn take_all(&mut self, method: &str) -> Vec<Rule<F>> {
        self.take_up_to(usize::MAX, method)
    }

    fn take_up_to(&mut self, taken_max: usize, method: &str) -> Vec<Rule<F>> {
        let mut taken = Vec::new();
        self.0.retain_mut(|rule| {
            if taken.len() == taken_max || rule.times == Some(0) || !rule.on.includes(method) {
                return true;
            }
            taken.push(rule.clone());
            if let Some(times) = &mut rule.times {
                *times -= 1;
            }
            rule.times != Some(0)
        });
        taken
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the default of a field of this type"
)]
fn once() -> Option<usize> {
    Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: impl IntoIterator<Item = Rule<char>>) -> Rules<char> {
        Rules(rules.into_iter().collect())
    }

    fn taken(rules: &mut Rules<char>, methods: &[&str]) -> String {
        let fault = |method: &&str| rules.take(method).map_or('-', |rule| rule.fault);
        methods.iter().map(fault).collect()
    }

    #[test]
    fn a_rule_strikes_as_often_as_it_says_and_then_the_next_does() {
        let mut rules = rules([
            Rule::once('a').times(2),
            Rule::once('b'),
            Rule::once('c').times(0),
        ]);
        assert_eq!(taken(&mut rules, &["ping"; 4]), "aab-");
        rules.add(Rule::once('d').until_cleared());
        assert_eq!(taken(&mut rules, &["ping"; 3]), "ddd");
        rules.clear();
        assert_eq!(taken(&mut rules, &["ping"]), "-");
    }

    #[test]
    fn a_handshake_is_struck_only_if_the_rule_says_so() {
        let methods = [
            "initialize",
            "notifications/initialized",
            "GET",
            "tools/list",
        ];
        let always = || Rule::once('x').until_cleared();
        assert_eq!(taken(&mut rules([always()]), &methods), "---x");
        assert_eq!(
            taken(&mut rules([always().on("initialize")]), &methods),
            "x---"
        );
        assert_eq!(
            taken(&mut rules([always().on_everything()]), &methods),
            "xxxx"
        );
    }

    #[test]
    fn a_rule_reads_from_short_json() {
        let rule: Rule<char> = serde_json::from_str(r#"{"fault": "x"}"#).unwrap();
        assert_eq!(rule, Rule::once('x'));
        let json = r#"{"fault": "x", "on": "tools/list", "times": null, "executes": true}"#;
        let rule: Rule<char> = serde_json::from_str(json).unwrap();
        assert_eq!(
            rule,
            Rule::once('x')
                .on("tools/list")
                .until_cleared()
                .after_executing()
        );
    }
}

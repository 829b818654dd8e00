//! What the server will say: a script of turns, each a list of answers. Plain data, so that it
//! can also be a JSON file.

use serde::{Deserialize, Serialize};

use super::answer::Answer;

/// Everything the server knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub select: Select,
    /// Gives the last answer of a turn again when the turn has no more.
    pub repeat_last: bool,
    pub turns: Vec<Turn>,
    /// The names that the model lists show; `scripted` when empty.
    pub models: Vec<String>,
    /// The tokens that they are said to hold.
    pub context_length: Option<u64>,
    /// The ends of the paths that this server does not have: it answers 404 there.
    pub absent: Vec<String>,
    /// Everything that does not stand below `/v1` is absent.
    pub only_v1: bool,
}

/// How an answer is found for a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Select {
    /// Each request takes the next answer that nobody has had.
    ///
    /// `when` is looked for in the last user message and everything after it.
    #[default]
    InOrder,
    /// The answer's index is the number of assistant messages after the last user message.
    ///
    /// The server keeps no state, so a client that was killed and asks again is told the same.
    /// `when` is looked for in the last user message.
    ByStep,
}

/// Answers that belong together. A turn whose `when` matches goes before one without.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub when: Option<When>,
    pub answers: Vec<Answer>,
}

/// The requests that a turn is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    pub contains: String,
}

impl Script {
    /// Returns a script that gives these answers in order, to whoever asks.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::default().turn(answers)
    }

    /// Returns a script that gives the same answer to every request.
    pub fn always(answer: Answer) -> Self {
        Self::new([answer]).repeating_last()
    }

    /// Adds a turn for requests that no other turn claims.
    pub fn turn(mut self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.turns.push(Turn {
            when: None,
            answers: answers.into_iter().collect(),
        });
        self
    }

    /// Adds a turn for requests that contain `text`.
    pub fn when(
        mut self,
        text: impl Into<String>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        self.turns.push(Turn {
            when: Some(When {
                contains: text.into(),
            }),
            answers: answers.into_iter().collect(),
        });
        self
    }

    pub fn by_step(mut self) -> Self {
        self.select = Select::ByStep;
        self
    }

    pub fn repeating_last(mut self) -> Self {
        self.repeat_last = true;
        self
    }

    /// States in the list of models how many tokens fit into each of them.
    pub fn context_length(mut self, tokens: u64) -> Self {
        self.context_length = Some(tokens);
        self
    }

    /// Leaves out what stands at paths with this end, such as `/responses`.
    pub fn without(mut self, path_end: impl Into<String>) -> Self {
        self.absent.push(path_end.into());
        self
    }

    /// Answers under `/v1` only.
    pub fn at_v1(mut self) -> Self {
        self.only_v1 = true;
        self
    }

    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.models.push(name.into());
        self
    }
}

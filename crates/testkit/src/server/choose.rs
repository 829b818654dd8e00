//! Finds the answer for a request. The only state is how many answers each turn has given.

use super::{
    answer::Answer,
    conversation::Conversation,
    script::{Script, Select, Turn},
};

pub(crate) struct Chooser {
    script: Script,
    /// Answers given so far, per turn of the script; only used in order.
    given: Vec<usize>,
}

impl Chooser {
    pub(crate) fn new(script: Script) -> Self {
        let given = vec![0; script.turns.len()];
        Self { script, given }
    }

    /// Returns the answer, or `None` if the script has none for this request.
    pub(crate) fn choose(&mut self, conversation: &Conversation) -> Option<Answer> {
        match self.script.select {
            Select::InOrder => self.next_in_order(conversation),
            Select::ByStep => self.by_step(conversation),
        }
    }

    fn next_in_order(&mut self, conversation: &Conversation) -> Option<Answer> {
        let is_asked = |text: &str| {
            let messages = conversation.since_last_user();
            messages.iter().any(|message| message.text.contains(text))
        };
        let turns = self.matching_turns(is_asked);
        let has_more = |&index: &usize| self.given[index] < self.script.turns[index].answers.len();
        if let Some(index) = turns.iter().copied().find(has_more) {
            let answer = self.script.turns[index].answers[self.given[index]].clone();
            self.given[index] += 1;
            return Some(answer);
        }
        let &first = turns.first()?;
        self.repeated(&self.script.turns[first])
    }

    fn by_step(&self, conversation: &Conversation) -> Option<Answer> {
        let is_asked = |text: &str| conversation.last_user_text().contains(text);
        let &index = self.matching_turns(is_asked).first()?;
        let turn = &self.script.turns[index];
        match turn.answers.get(conversation.step()) {
            Some(answer) => Some(answer.clone()),
            None => self.repeated(turn),
        }
    }

    fn repeated(&self, turn: &Turn) -> Option<Answer> {
        let last = turn.answers.last().filter(|_| self.script.repeat_last);
        last.cloned()
    }

    /// Returns the turns whose `when` matches, then those that have none.
    fn matching_turns(&self, is_asked: impl Fn(&str) -> bool) -> Vec<usize> {
        let turns = || self.script.turns.iter().enumerate();
        let asked = turns().filter(|(_, turn)| {
            let when = turn.when.as_ref();
            when.is_some_and(|when| is_asked(&when.contains))
        });
        let default = turns().filter(|(_, turn)| turn.when.is_none());
        asked.chain(default).map(|(index, _)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::wire::Wire;

    fn ask(chooser: &mut Chooser, messages: &Value) -> Option<String> {
        let conversation = Conversation::read(Wire::Chat, &json!({"messages": messages}));
        chooser.choose(&conversation)?.whole_text()
    }

    fn user(text: &str) -> Value {
        json!([{"role": "user", "content": text}])
    }

    #[test]
    fn answers_are_given_in_order_and_then_no_more() {
        let script = Script::new([Answer::text("one"), Answer::text("two")]);
        let mut chooser = Chooser::new(script);
        assert_eq!(ask(&mut chooser, &user("a")).as_deref(), Some("one"));
        assert_eq!(ask(&mut chooser, &user("a")).as_deref(), Some("two"));
        assert_eq!(ask(&mut chooser, &user("a")), None);
    }

    #[test]
    fn the_last_answer_is_repeated_if_the_script_says_so() {
        let mut chooser = Chooser::new(Script::always(Answer::text("one")));
        assert_eq!(ask(&mut chooser, &user("a")).as_deref(), Some("one"));
        assert_eq!(ask(&mut chooser, &user("a")).as_deref(), Some("one"));
    }

    #[test]
    fn a_matching_turn_goes_before_the_default_and_keeps_its_own_place() {
        let script = Script::new([Answer::text("default")])
            .when("alpha", [Answer::text("a1"), Answer::text("a2")]);
        let mut chooser = Chooser::new(script);
        assert_eq!(ask(&mut chooser, &user("alpha?")).as_deref(), Some("a1"));
        assert_eq!(
            ask(&mut chooser, &user("beta?")).as_deref(),
            Some("default")
        );
        let after_tool = json!([{"role": "user", "content": "alpha?"},
            {"role": "assistant", "content": ""}, {"role": "tool", "content": "ok"}]);
        assert_eq!(ask(&mut chooser, &after_tool).as_deref(), Some("a2"));
    }

    #[test]
    fn by_step_the_same_question_gets_the_same_answer() {
        let script = Script::default()
            .when("alpha", [Answer::text("a1"), Answer::text("a2")])
            .turn([Answer::text("other")])
            .by_step();
        let mut chooser = Chooser::new(script);
        let second = json!([{"role": "user", "content": "alpha?"},
            {"role": "assistant", "content": ""}, {"role": "tool", "content": "ok"}]);
        for _ in 0..2 {
            assert_eq!(ask(&mut chooser, &user("alpha?")).as_deref(), Some("a1"));
            assert_eq!(ask(&mut chooser, &second).as_deref(), Some("a2"));
            assert_eq!(ask(&mut chooser, &user("x")).as_deref(), Some("other"));
        }
    }
}

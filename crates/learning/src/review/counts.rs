//! When a review is due: pure counting of what happens in a conversation.

use hermes_core::{Message, Origin, Role};

/// Tools whose use says that notes, or skills, are taken care of.
const KEEPS_NOTES: &str = crate::notes::TOOL_NAME;
const KEEPS_SKILLS: &str = crate::skills::tools::WRITER;
const LOADS_SKILLS: &str = crate::skills::tools::VIEWER;

/// After how much a review is due; 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// `memory.nudge_interval`: a person's messages without a note.
    pub turns: u64,
    /// `skills.creation_nudge_interval`: replies without a change of a skill.
    pub steps: u64,
}

/// What a review is to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub notes: bool,
    pub skills: bool,
}

/// How a turn came out for the skills it went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillOutcome {
    /// It came to its end, or says nothing.
    Fine,
    /// It got stuck, or the person stopped it.
    Misled,
}

/// What has happened since notes and skills were last thought of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    turns: u64,
    steps: u64,
    /// The agent went by a skill.
    went_by_skill: bool,
    /// And that did not come out well.
    was_misled: bool,
    /// And the person had something to say about it, which may be a correction.
    was_answered: bool,
}

impl Counts {
    /// Counts what a conversation has behind it that was not reviewed.
    pub fn of(messages: &[Message]) -> Self {
        let mut counts = Self::default();
        for message in messages {
            match (message.role, &message.origin) {
                (Role::User, Some(Origin::Person { .. })) => counts.count_turn(),
                (Role::Assistant, _) => {
                    counts.count_step();
                    message
                        .calls()
                        .for_each(|call| counts.count_call(&call.name));
                }
                _ => {}
            }
        }
        counts
    }

    /// A person said something.
    pub fn count_turn(&mut self) {
        self.turns += 1;
    }

    /// The model replied.
    pub fn count_step(&mut self) {
        self.steps += 1;
    }

    pub fn count_call(&mut self, tool: &str) {
        match tool {
            KEEPS_NOTES => self.turns = 0,
            KEEPS_SKILLS => self.steps = 0,
            LOADS_SKILLS => self.went_by_skill = true,
            _ => {}
        }
    }

    /// A turn went by skills: were their steps of use?
    pub fn count_skills(&mut self, outcome: SkillOutcome) {
        self.went_by_skill = true;
        self.was_misled |= outcome == SkillOutcome::Misled;
    }

    /// A person spoke again after a turn that went by a skill. What they said nobody has to understand for this: a review reads it.
    pub fn count_answer(&mut self) {
        self.went_by_skill = true;
        self.was_answered = true;
    }

    /// What a review would be for, if one is due. What it is about begins anew.
    pub fn take_due(&mut self, intervals: Intervals) -> Option<Wanted> {
        let is_due = |count: u64, interval: u64| interval > 0 && count >= interval;
        let notes = is_due(self.turns, intervals.turns);
        let misled = intervals.steps > 0 && (self.was_misled || self.was_answered);
        // Whether the person corrected a skill only a reader of the conversation sees, and one looks at it anyway.
        let looked_at = intervals.steps > 0 && notes && self.went_by_skill;
        let wanted = Wanted {
            notes,
            skills: is_due(self.steps, intervals.steps) || misled || looked_at,
        };
        if wanted.notes {
            self.turns = 0;
        }
        if wanted.skills {
            self.steps = 0;
            (self.went_by_skill, self.was_misled, self.was_answered) = (false, false, false);
        }
        (wanted.notes || wanted.skills).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVALS: Intervals = Intervals { turns: 2, steps: 3 };

    #[test]
    fn a_review_is_due_after_so_many_turns_or_steps() {
        let mut counts = Counts::default();
        counts.count_turn();
        counts.count_step();
        assert_eq!(counts.take_due(INTERVALS), None);
        counts.count_turn();
        counts.count_step();
        let notes = Wanted {
            notes: true,
            skills: false,
        };
        assert_eq!(counts.take_due(INTERVALS), Some(notes));
        assert_eq!(counts.take_due(INTERVALS), None, "it begins anew");
        counts.count_step();
        let skills = Wanted {
            notes: false,
            skills: true,
        };
        assert_eq!(counts.take_due(INTERVALS), Some(skills));
    }

    #[test]
    fn whoever_keeps_notes_need_not_be_reminded() {
        let mut counts = Counts::default();
        counts.count_turn();
        counts.count_call("memory");
        counts.count_turn();
        assert_eq!(counts.take_due(INTERVALS), None);
        let never = Intervals { turns: 0, steps: 0 };
        (0..99).for_each(|_| counts.count_turn());
        assert_eq!(counts.take_due(never), None);
    }

    #[test]
    fn what_a_conversation_has_behind_it_counts() {
        let messages = [
            Message::user("a"),
            Message::assistant("b"),
            Message::user("c"),
            Message::assistant("d"),
        ];
        let counts = Counts::of(&messages);
        assert_eq!((counts.turns, counts.steps), (2, 2));
    }

    #[test]
    fn a_skill_that_misled_makes_a_review_due() {
        let skills = Wanted {
            notes: false,
            skills: true,
        };
        let mut counts = Counts::default();
        counts.count_skills(SkillOutcome::Fine);
        assert_eq!(counts.take_due(INTERVALS), None);
        counts.count_skills(SkillOutcome::Misled);
        assert_eq!(counts.take_due(INTERVALS), Some(skills));
        assert_eq!(counts.take_due(INTERVALS), None, "once");
        counts.count_answer();
        assert_eq!(counts.take_due(INTERVALS), Some(skills));
        counts.count_answer();
        let never = Intervals { turns: 2, steps: 0 };
        assert_eq!(counts.take_due(never), None);
        assert_eq!(counts.take_due(INTERVALS), Some(skills), "and only once");
        // One that is due anyway asks about skills that were used.
        counts.count_call("skill_view");
        counts.count_turn();
        counts.count_turn();
        let both = Wanted {
            notes: true,
            skills: true,
        };
        assert_eq!(counts.take_due(INTERVALS), Some(both));
    }
}

//! What becomes of a model of the user when facts come and go: pure rules over [`Representation`].
//!
//! Of two that contradict each other the one that was said later counts; the other stays, marked. A conclusion counts as
//! long as everything it follows from does.

use std::collections::{BTreeMap, HashSet};

use hermes_core::{
    Conclusion, Evidence, FactId, Premise, PremiseKind, Representation, Superseded, Timestamp,
};

/// Premises that count. More would crowd out each other wherever they are shown.
pub const PREMISES_MAX: usize = 150;

/// Conclusions that count.
pub const CONCLUSIONS_MAX: usize = 60;

/// Facts that do not count any more; what was before them is in the learning log.
pub const SUPERSEDED_MAX: usize = 100;

/// Places where one premise was said. The last ones tell enough.
pub const EVIDENCE_MAX: usize = 5;

/// Characters of a fact: a sentence.
pub const TEXT_CHARS_MAX: usize = 200;

/// Characters of the words that a premise goes by.
pub const QUOTE_CHARS_MAX: usize = 300;

/// What is said again is surer by so much.
const SAID_AGAIN: u8 = 5;

/// A premise that is not known yet, or not from these words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPremise {
    pub text: String,
    pub kind: PremiseKind,
    pub evidence: Evidence,
    pub confidence: u8,
    /// Known ones that it contradicts.
    pub replaces: Vec<FactId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConclusion {
    pub text: String,
    pub premises: Vec<FactId>,
    pub confidence: u8,
    pub at: Timestamp,
    pub replaces: Vec<FactId>,
}

/// The premises that count, in the order they came.
pub fn premises(of: &Representation) -> impl Iterator<Item = &Premise> {
    of.premises.iter().filter(|fact| fact.superseded.is_none())
}

/// The conclusions that count.
pub fn conclusions(of: &Representation) -> impl Iterator<Item = &Conclusion> {
    of.conclusions
        .iter()
        .filter(|fact| fact.superseded.is_none())
}

pub fn is_empty(of: &Representation) -> bool {
    premises(of).next().is_none() && conclusions(of).next().is_none()
}

/// Whether two texts say the same, but for case, spaces and the full stop.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.join(" ").trim_end_matches(['.', '。']).to_owned()
    };
    plain(one) == plain(other)
}

fn next_number(model: &mut Representation) -> u32 {
    model.next += 1;
    model.next
}

/// Takes in a premise. Returns which one it is now.
pub fn add_premise(model: &mut Representation, new: NewPremise) -> FactId {
    let at = new.evidence.at;
    let known = model
        .premises
        .iter_mut()
        .find(|fact| fact.superseded.is_none() && is_same(&fact.text, &new.text));
    let id = match known {
        Some(known) => {
            say_again(known, new.evidence);
            known.id
        }
        None => {
            let id = FactId::Premise(next_number(model));
            model.premises.push(Premise {
                id,
                text: new.text,
                kind: new.kind,
                evidence: vec![new.evidence],
                confidence: new.confidence.min(100),
                at,
                superseded: None,
            });
            id
        }
    };
    for old in new.replaces {
        contradict(model, id, old);
    }
    settle_conclusions(model, at);
    id
}

/// The same words at the same place prove nothing new.
fn say_again(known: &mut Premise, evidence: Evidence) {
    let is_known =
        |one: &Evidence| one.session == evidence.session && one.message == evidence.message;
    if known.evidence.iter().any(is_known) {
        return;
    }
    known.at = known.at.max(evidence.at);
    known.confidence = known.confidence.saturating_add(SAID_AGAIN).min(100);
    known.evidence.push(evidence);
    known.evidence.sort_by_key(|evidence| evidence.at);
    if known.evidence.len() > EVIDENCE_MAX {
        known.evidence.remove(0);
    }
}

/// Of two premises that contradict each other the later one counts, whichever came first to us.
fn contradict(model: &mut Representation, new: FactId, old: FactId) {
    let said = |id: FactId| {
        let counts = |fact: &&Premise| fact.id == id && fact.superseded.is_none();
        model.premises.iter().find(counts).map(|fact| fact.at)
    };
    let (Some(new_at), Some(old_at)) = (said(new), said(old)) else {
        return;
    };
    if new == old {
        return;
    }
    let (loser, winner, at) = if new_at >= old_at {
        (old, new, new_at)
    } else {
        (new, old, old_at)
    };
    for fact in model.premises.iter_mut().filter(|fact| fact.id == loser) {
        fact.superseded = Some(Superseded {
            by: Some(winner),
            at,
        });
    }
}

/// A conclusion does not outlive what it follows from.
fn settle_conclusions(model: &mut Representation, at: Timestamp) {
    let counting: HashSet<FactId> = premises(model).map(|fact| fact.id).collect();
    for fact in &mut model.conclusions {
        let holds = fact.premises.iter().all(|id| counting.contains(id));
        if !holds && fact.superseded.is_none() {
            fact.superseded = Some(Superseded { by: None, at });
        }
    }
}

/// Takes in a conclusion. Returns which one it is now; nothing where nothing that counts bears it out.
pub fn add_conclusion(model: &mut Representation, new: NewConclusion) -> Option<FactId> {
    let counting: HashSet<FactId> = premises(model).map(|fact| fact.id).collect();
    let mut basis: Vec<FactId> = new
        .premises
        .into_iter()
        .filter(|id| counting.contains(id))
        .collect();
    basis.sort_unstable();
    basis.dedup();
    if basis.is_empty() {
        return None;
    }
    let known = model
        .conclusions
        .iter_mut()
        .find(|fact| fact.superseded.is_none() && is_same(&fact.text, &new.text));
    let id = match known {
        Some(known) => {
            known.premises.extend(basis);
            known.premises.sort_unstable();
            known.premises.dedup();
            known.confidence = known.confidence.max(new.confidence.min(100));
            known.id
        }
        None => {
            let id = FactId::Conclusion(next_number(model));
            model.conclusions.push(Conclusion {
                id,
                text: new.text,
                premises: basis,
                confidence: new.confidence.min(100),
                at: new.at,
                superseded: None,
            });
            id
        }
    };
    for fact in &mut model.conclusions {
        if new.replaces.contains(&fact.id) && fact.id != id && fact.superseded.is_none() {
            fact.superseded = Some(Superseded {
                by: Some(id),
                at: new.at,
            });
        }
    }
    Some(id)
}

/// Keeps a model within its limits: what is least sure and oldest goes first. Returns how many facts went.
pub fn trim(model: &mut Representation) -> usize {
    let before = model.premises.len() + model.conclusions.len();
    let weakest = |facts: Vec<(bool, u8, Timestamp, FactId)>, max: usize| -> HashSet<FactId> {
        let mut counting: Vec<_> = facts.iter().filter(|fact| fact.0).collect();
        counting.sort_by_key(|fact| (fact.1, fact.2, fact.3));
        let extra = counting.len().saturating_sub(max);
        counting
            .into_iter()
            .take(extra)
            .map(|fact| fact.3)
            .collect()
    };
    let of_premises = model
        .premises
        .iter()
        .map(|fact| (fact.superseded.is_none(), fact.confidence, fact.at, fact.id));
    let mut gone = weakest(of_premises.collect(), PREMISES_MAX);
    let of_conclusions = model
        .conclusions
        .iter()
        .map(|fact| (fact.superseded.is_none(), fact.confidence, fact.at, fact.id));
    gone.extend(weakest(of_conclusions.collect(), CONCLUSIONS_MAX));
    gone.extend(oldest_superseded(model));
    remove(model, &gone);
    before - model.premises.len() - model.conclusions.len()
}

fn oldest_superseded(model: &Representation) -> Vec<FactId> {
    let of_premises = model
        .premises
        .iter()
        .filter_map(|fact| Some((fact.superseded.as_ref()?.at, fact.id)));
    let of_conclusions = model
        .conclusions
        .iter()
        .filter_map(|fact| Some((fact.superseded.as_ref()?.at, fact.id)));
    let mut past: Vec<_> = of_premises.chain(of_conclusions).collect();
    past.sort_unstable();
    let extra = past.len().saturating_sub(SUPERSEDED_MAX);
    past.into_iter().take(extra).map(|(_, id)| id).collect()
}

/// Removes facts, and the conclusions that follow from them. Returns which went.
pub fn remove(model: &mut Representation, ids: &HashSet<FactId>) -> Vec<FactId> {
    let mut gone = Vec::new();
    model.premises.retain(|fact| {
        let goes = ids.contains(&fact.id);
        gone.extend(goes.then_some(fact.id));
        !goes
    });
    model.conclusions.retain(|fact| {
        let goes = ids.contains(&fact.id) || fact.premises.iter().any(|id| ids.contains(id));
        gone.extend(goes.then_some(fact.id));
        !goes
    });
    gone
}

/// A model without what a change did to it: what it added goes, what it took or marked is as it was. Facts that were changed
/// since stay. `None` when nothing of the change is left.
pub fn without_change(
    now: &Representation,
    before: &Representation,
    after: &Representation,
) -> Option<Representation> {
    let mut undone = now.clone();
    let premises = taken_back(
        &by_id(&now.premises, |fact| fact.id),
        &by_id(&before.premises, |fact| fact.id),
        &by_id(&after.premises, |fact| fact.id),
    );
    let conclusions = taken_back(
        &by_id(&now.conclusions, |fact| fact.id),
        &by_id(&before.conclusions, |fact| fact.id),
        &by_id(&after.conclusions, |fact| fact.id),
    );
    undone.premises = premises;
    undone.conclusions = conclusions;
    let known: HashSet<FactId> = undone.premises.iter().map(|fact| fact.id).collect();
    undone
        .conclusions
        .retain(|fact| fact.premises.iter().all(|id| known.contains(id)));
    (undone != *now).then_some(undone)
}

fn by_id<T: Clone>(facts: &[T], id: impl Fn(&T) -> FactId) -> BTreeMap<FactId, T> {
    facts.iter().map(|fact| (id(fact), fact.clone())).collect()
}

fn taken_back<T: Clone + PartialEq>(
    now: &BTreeMap<FactId, T>,
    before: &BTreeMap<FactId, T>,
    after: &BTreeMap<FactId, T>,
) -> Vec<T> {
    let mut facts = now.clone();
    for id in before.keys().chain(after.keys()) {
        let is_changed = before.get(id) != after.get(id);
        if !is_changed || now.get(id) != after.get(id) {
            continue;
        }
        match before.get(id) {
            Some(fact) => facts.insert(*id, fact.clone()),
            None => facts.remove(id),
        };
    }
    facts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_millis(day * 86_400_000)
    }

    fn premise(text: &str, day: i64, replaces: &[FactId]) -> NewPremise {
        NewPremise {
            text: text.to_owned(),
            kind: PremiseKind::Attribute,
            evidence: Evidence {
                session: Some("s1".into()),
                message: Some(day.unsigned_abs()),
                at: at(day),
                quote: text.to_owned(),
            },
            confidence: 80,
            replaces: replaces.to_vec(),
        }
    }

    fn conclusion(text: &str, premises: &[FactId]) -> NewConclusion {
        NewConclusion {
            text: text.to_owned(),
            premises: premises.to_vec(),
            confidence: 60,
            at: at(9),
            replaces: Vec::new(),
        }
    }

    fn texts(model: &Representation) -> Vec<&str> {
        let premises = premises(model).map(|fact| fact.text.as_str());
        premises
            .chain(conclusions(model).map(|fact| fact.text.as_str()))
            .collect()
    }

    #[test]
    fn the_later_word_counts_and_the_earlier_one_is_kept() {
        let mut model = Representation::default();
        let lyon = add_premise(&mut model, premise("lives in Lyon", 1, &[]));
        let near = add_conclusion(&mut model, conclusion("is near the Alps", &[lyon]));
        let oslo = add_premise(&mut model, premise("lives in Oslo", 5, &[lyon]));
        assert_eq!(texts(&model), ["lives in Oslo"]);
        let old = &model.premises[0];
        assert_eq!(old.superseded.as_ref().unwrap().by, Some(oslo));
        assert_eq!(model.conclusions[0].id, near.unwrap());
        assert_eq!(model.conclusions[0].superseded.as_ref().unwrap().by, None);
        // Words that were said before and heard later do not win.
        add_premise(&mut model, premise("lives in Bonn", 3, &[oslo]));
        assert_eq!(texts(&model), ["lives in Oslo"]);
        assert_eq!(model.premises.len(), 3);
    }

    #[test]
    fn what_is_said_again_is_surer_and_no_second_fact() {
        let mut model = Representation::default();
        let first = add_premise(&mut model, premise("Likes tea.", 1, &[]));
        for day in [2, 2, 3] {
            assert_eq!(
                add_premise(&mut model, premise("likes  TEA", day, &[])),
                first
            );
        }
        let known = &model.premises[0];
        assert_eq!((known.confidence, known.evidence.len()), (90, 3));
        assert_eq!(known.at, at(3));
        for day in 4..20 {
            add_premise(&mut model, premise("likes tea", day, &[]));
        }
        assert_eq!(model.premises[0].confidence, 100);
        assert_eq!(model.premises[0].evidence.len(), EVIDENCE_MAX);
    }

    #[test]
    fn a_conclusion_needs_something_to_follow_from() {
        let mut model = Representation::default();
        let tea = add_premise(&mut model, premise("likes tea", 1, &[]));
        let unknown = FactId::Premise(77);
        assert_eq!(
            add_conclusion(&mut model, conclusion("is rich", &[unknown])),
            None
        );
        let cups = add_conclusion(&mut model, conclusion("owns cups", &[tea, unknown]));
        assert_eq!(cups, Some(FactId::Conclusion(2)));
        remove(&mut model, &HashSet::from([tea]));
        assert!(is_empty(&model));
    }

    #[test]
    fn a_change_is_taken_back_and_what_came_since_stays() {
        let mut before = Representation::default();
        let lyon = add_premise(&mut before, premise("lives in Lyon", 1, &[]));
        let mut after = before.clone();
        add_premise(&mut after, premise("lives in Oslo", 2, &[lyon]));
        let mut now = after.clone();
        add_premise(&mut now, premise("likes tea", 3, &[]));
        let undone = without_change(&now, &before, &after).unwrap();
        assert_eq!(texts(&undone), ["lives in Lyon", "likes tea"]);
        assert_eq!(without_change(&undone, &before, &after), None);
    }

    #[test]
    fn a_model_does_not_outgrow_its_limits() {
        let mut model = Representation::default();
        for day in 0..400 {
            let number = add_premise(&mut model, premise(&format!("fact {day}"), day, &[]));
            if day % 2 == 0 {
                add_premise(
                    &mut model,
                    premise(&format!("other {day}"), day + 1, &[number]),
                );
            }
        }
        trim(&mut model);
        assert_eq!(premises(&model).count(), PREMISES_MAX);
        assert_eq!(model.premises.len(), PREMISES_MAX + SUPERSEDED_MAX);
        let last = premises(&model).last().unwrap();
        assert_eq!(last.text, "fact 399");
    }
}

//! Whose words a text is made of. What is kept must come from the person it is for, or from the agent's own steps; what a
//! page, a file, a tool or somebody else said first is theirs, whoever repeats it.
//!
//! No model is asked: the words of a text are compared with who said them first in the whole conversation, as people see it.
//! Only words of the texts in question are looked for, so that a conversation of a year costs no memory. The rules go by
//! where words stand, not by which words they are: they are the same for every language.
//!
//! Start at [`Grounding`]; [`Conversation`] reads one for it.

mod words;

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{
    Archive, Arguments, CallId, Message, Origin, Part, Role, SessionId, SpokenFrom, SpokenQuery,
    StoreError, ToolCall, steering,
};
use serde_json::Value;

use crate::threats;
pub use words::marks;
use words::{is_alike, is_telling, stem, words};

/// So many words in a row are no coincidence.
const RUN_WORDS: usize = 5;

/// The same for a file that the person has the agent work on: its words are what the work is about.
const PROJECT_RUN_WORDS: usize = 8;

/// As long as a sentence that tells somebody what to do. Within so few words, a text about something else shares little with
/// another one, in any language; all over a long page it shares much.
const PASSAGE_WORDS: usize = 30;

/// A text with so many words from one passage, and more than half of its words, is whose the passage is.
const STRANGE_MIN: usize = 2;

/// A long text is looked at in pieces of so many words at least, so that nothing hides in it.
const PIECE_WORDS: usize = 12;

/// Messages that are read from the store at once.
const PAGE: usize = 200;

/// Of the words that an objection names, this much is told.
const TOLD_CHARS_MAX: usize = 120;

/// Who says what came with the person's own words, and what others say in the conversation.
const BROUGHT: &str = "what was sent along";
const SOMEBODY: &str = "somebody else";

/// Calls of these do not make words the agent's own: what was refused once would be accepted the second time.
const WRITERS: [&str; 2] = [crate::notes::TOOL_NAME, crate::skills::tools::WRITER];

/// Tools that show files.
const FILE_READERS: [&str; 2] = ["read_file", "search_files"];

/// Why a text is not simply kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The words that are somebody else's.
    pub words: String,
    /// Whose they are.
    pub source: String,
}

impl std::fmt::Display for Objection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { words, source } = self;
        write!(
            f,
            "not kept: this comes from {source} (“{words}”), not from the user or from your own steps; leave it out"
        )
    }
}

/// Why a change of a note or a skill is not simply made.
#[derive(Debug, Clone)]
pub(crate) enum Doubt {
    /// It would keep what somebody else said.
    Strange(Objection),
    /// It would take away what the person did not speak of.
    Loss,
}

impl Doubt {
    /// In words for whoever decides.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Strange(Objection { words, source }) => {
                format!("these are words of {source} and not of the user (“{words}”)")
            }
            Self::Loss => "the user did not speak of what this would take away".to_owned(),
        }
    }
}

/// A row of words, by their numbers.
type Run = Box<[usize]>;

/// Finds out who said the words of some texts first.
#[derive(Debug, Default)]
pub struct Grounding {
    person: Option<String>,
    /// The folder whose files the person works on.
    project: Option<PathBuf>,
    words: Vec<Word>,
    /// Where a word stands in `words`.
    numbers: HashMap<String, usize>,
    /// The same by how words begin.
    stems: HashMap<String, Vec<usize>>,
    marks: HashSet<String>,
    own: Said,
    of_person: Said,
    strange_runs: HashMap<Run, usize>,
    strange_marks: HashMap<String, usize>,
    /// Where strangers said which word, in order.
    places: Vec<Place>,
    /// Words of strangers so far.
    heard: usize,
    sources: Vec<String>,
    /// The calls since the last reply that read files of the project.
    project_calls: HashSet<CallId>,
}

/// A word of the texts.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// It stands already in what a text is to change.
    is_known: bool,
    is_own: bool,
    is_strange: bool,
    is_of_person: bool,
    /// The person used it, in whatever form.
    is_used_by_person: bool,
}

/// What was said beside single words.
#[derive(Debug, Default)]
struct Said {
    runs: HashSet<Run>,
    marks: HashSet<String>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    word: usize,
    source: usize,
}

impl Grounding {
    /// For these texts, with nothing heard yet. `person` is who the conversation is held with, where several talk.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>, person: Option<&str>) -> Self {
        let mut grounding = Self {
            person: person.map(ToOwned::to_owned),
            ..Self::default()
        };
        for text in texts {
            grounding.marks.extend(marks(text));
            words(text)
                .into_iter()
                .for_each(|word| grounding.look_for(word));
        }
        grounding
    }

    fn look_for(&mut self, word: String) {
        if self.numbers.contains_key(&word) {
            return;
        }
        let number = self.words.len();
        let alike = self.stems.entry(stem(&word).to_owned());
        alike.or_default().push(number);
        self.numbers.insert(word.clone(), number);
        self.words.push(Word {
            text: word,
            ..Word::default()
        });
    }

    /// What the texts are to change says this already: it is nothing new, whoever said it.
    pub fn knowing(mut self, text: &str) -> Self {
        let numbered = self.numbered(text);
        for number in numbered.iter().flatten() {
            self.words[*number].is_known = true;
            self.words[*number].is_own = true;
        }
        let marks = self.wanted_marks(text);
        self.own.take(&numbered, &marks);
        self
    }

    /// Files below this folder are what the person has the agent work on: telling in its own words what they say is its work.
    pub fn working_in(mut self, folder: &Path) -> Self {
        self.project = Some(folder.to_owned());
        self
    }

    /// The same after these messages.
    pub fn after<'a>(mut self, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        for message in messages {
            self.hear(message);
        }
        self
    }

    /// Hears the next message of the conversation.
    pub fn hear(&mut self, message: &Message) {
        if crate::review::is_of_person(message, self.person.as_deref()) {
            return self.hear_person(message);
        }
        match message.role {
            // It stands for what was heard already.
            Role::User if message.origin == Some(Origin::Summary) => {}
            Role::User => self.hear_stranger(&message.text(), SOMEBODY),
            Role::Assistant => self.hear_agent(message),
            Role::Tool => self.hear_result(message),
        }
    }

    fn hear_person(&mut self, message: &Message) {
        let said = message.said();
        let is_quoted = |line: &&str| line.trim_start().starts_with('>');
        let (quoted, typed): (Vec<&str>, Vec<&str>) = said.lines().partition(is_quoted);
        let typed = typed.join("\n");
        for word in words(&typed) {
            let alike = self.stems.get(stem(&word)).map_or(&[][..], Vec::as_slice);
            for number in alike {
                let known = &mut self.words[*number];
                known.is_used_by_person |= is_alike(&known.text, &word);
            }
        }
        let numbered = self.numbered(&typed);
        for number in numbered.iter().flatten() {
            let word = &mut self.words[*number];
            (word.is_own, word.is_of_person) = (true, true);
        }
        let marks = self.wanted_marks(&typed);
        self.own.take(&numbered, &marks);
        self.of_person.take(&numbered, &marks);
        // What came along: documents, quotes, what was passed on, files, skills.
        self.hear_stranger(&quoted.join("\n"), BROUGHT);
        for text in texts(message).skip(1) {
            self.hear_stranger(text, BROUGHT);
        }
    }

    fn hear_result(&mut self, message: &Message) {
        let Some(result) = message.tool_result() else {
            return;
        };
        // What the user says meanwhile is not the tool's word.
        let text = steering::without(&result.text);
        let source = format!("`{}`", result.tool);
        if self.project_calls.contains(&result.call) {
            self.hear_rows(&text, &source, PROJECT_RUN_WORDS);
        } else {
            self.hear_stranger(&text, &source);
        }
    }

    fn hear_stranger(&mut self, text: &str, source: &str) {
        let numbered = self.hear_rows(text, source, RUN_WORDS);
        let source = self.source(source);
        for (at, number) in (self.heard..).zip(&numbered) {
            let Some(number) = *number else {
                continue;
            };
            let word = &mut self.words[number];
            word.is_strange |= !word.is_own;
            if word.is_strange && is_telling(&word.text) {
                self.places.push(Place {
                    at,
                    word: number,
                    source,
                });
            }
        }
        // The next one begins another passage.
        self.heard += numbered.len() + PASSAGE_WORDS;
    }

    /// Hears words in a row, and marks.
    fn hear_rows(&mut self, text: &str, source: &str, length: usize) -> Vec<Option<usize>> {
        let numbered = self.numbered(text);
        let source = self.source(source);
        for run in runs(&numbered, length) {
            if !self.own.runs.contains(&run) {
                self.strange_runs.entry(run).or_insert(source);
            }
        }
        for mark in self.wanted_marks(text) {
            if !self.own.marks.contains(&mark) {
                self.strange_marks.entry(mark).or_insert(source);
            }
        }
        numbered
    }

    /// The agent's words are its own unless a stranger said them first; what it does makes single words its own.
    fn hear_agent(&mut self, message: &Message) {
        self.project_calls.clear();
        let mut said = vec![message.text()];
        for call in message.calls() {
            if WRITERS.contains(&call.name.as_str()) {
                continue;
            }
            if self.reads_project(call) {
                self.project_calls.insert(call.id.clone());
            }
            let arguments = match &call.arguments {
                Arguments::Json(value) => strings(value).join("\n"),
                Arguments::Malformed(text) => text.clone(),
            };
            for number in self.numbered(&arguments).into_iter().flatten() {
                self.words[number].is_strange = false;
            }
            said.push(arguments);
        }
        for text in said {
            let numbered = self.numbered(&text);
            for number in numbered.iter().flatten() {
                let word = &mut self.words[*number];
                word.is_own |= !word.is_strange;
            }
            for length in [RUN_WORDS, PROJECT_RUN_WORDS] {
                let own = runs(&numbered, length);
                let own = own.filter(|run| !self.strange_runs.contains_key(run));
                self.own.runs.extend(own);
            }
            let mut marks = self.wanted_marks(&text);
            marks.retain(|mark| !self.strange_marks.contains_key(mark));
            self.own.marks.extend(marks);
        }
    }

    /// Whether a call reads what lies open in the folder that the person works in; hidden folders hold what others sent.
    fn reads_project(&self, call: &ToolCall) -> bool {
        let (Some(project), Arguments::Json(arguments)) = (&self.project, &call.arguments) else {
            return false;
        };
        let path = arguments["path"].as_str().unwrap_or(".");
        let path = project.join(path);
        let is_open = |part: Component<'_>| match part {
            Component::Normal(part) => !part.to_string_lossy().starts_with('.'),
            Component::CurDir => true,
            _ => false,
        };
        FILE_READERS.contains(&call.name.as_str())
            && path
                .strip_prefix(project)
                .is_ok_and(|below| below.components().all(is_open))
    }

    /// Objects to a text that is made of what strangers said. It must be one of those that were looked for.
    pub fn check(&self, text: &str) -> Result<(), Objection> {
        self.check_marks(text)?;
        let numbered = self.numbered(text);
        if numbered.contains(&None) {
            return Err(Objection {
                words: shorten(text, TOLD_CHARS_MAX),
                source: "nobody knows where".to_owned(),
            });
        }
        for length in [RUN_WORDS, PROJECT_RUN_WORDS] {
            let theirs = |run: &Run| !self.of_person.runs.contains(run);
            let found = runs(&numbered, length)
                .filter(theirs)
                .find_map(|run| self.strange_runs.get_key_value(&run));
            if let Some((run, source)) = found {
                let words: Vec<&str> = run
                    .iter()
                    .map(|word| self.words[*word].text.as_str())
                    .collect();
                return Err(self.objection(&words.join(" "), *source));
            }
        }
        let pieces = self.pieces(text);
        pieces.iter().try_for_each(|piece| self.check_piece(piece))
    }

    /// The same for what only names addresses, numbers and the like.
    pub fn check_marks(&self, text: &str) -> Result<(), Objection> {
        let theirs = |mark: &String| !self.of_person.marks.contains(mark);
        let found = marks(text)
            .filter(theirs)
            .find_map(|mark| self.strange_marks.get_key_value(&mark));
        match found {
            Some((mark, source)) => Err(self.objection(mark, *source)),
            None => Ok(()),
        }
    }

    /// The same for why a change is made: it quotes what the tools said, and must steer nobody who reads it.
    pub fn check_reason(&self, reason: &str) -> Result<(), Objection> {
        self.check_marks(reason)?;
        match threats::find(reason) {
            Some(threat) => Err(Objection {
                words: threat.excerpt,
                source: format!("a reason that {}", threat.what),
            }),
            None => Ok(()),
        }
    }

    /// The telling words of a text that are new, by pieces.
    fn pieces(&self, text: &str) -> Vec<HashSet<usize>> {
        let mut pieces: Vec<HashSet<usize>> = Vec::new();
        let mut piece = HashSet::new();
        for line in text.lines() {
            piece.extend(self.telling(line));
            if piece.len() >= PIECE_WORDS {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        match pieces.last_mut() {
            Some(last) => last.extend(piece),
            None => pieces.push(piece),
        }
        pieces
    }

    fn telling(&self, text: &str) -> Vec<usize> {
        let numbered = self.numbered(text).into_iter().flatten();
        let is_new = |number: &usize| {
            let word = &self.words[*number];
            !word.is_known && is_telling(&word.text)
        };
        numbered.filter(is_new).collect()
    }

    fn check_piece(&self, piece: &HashSet<usize>) -> Result<(), Objection> {
        let is_theirs = |place: &&Place| {
            let word = &self.words[place.word];
            piece.contains(&place.word) && word.is_strange && !word.is_of_person
        };
        let places: Vec<Place> = self.places.iter().filter(is_theirs).copied().collect();
        for (first, place) in places.iter().enumerate() {
            let passage = places[first..]
                .iter()
                .take_while(|other| other.at < place.at + PASSAGE_WORDS);
            let mut words: Vec<&str> = Vec::new();
            for other in passage {
                let word = self.words[other.word].text.as_str();
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            if words.len() >= STRANGE_MIN && words.len() * 2 > piece.len() {
                return Err(self.objection(&words.join(", "), place.source));
            }
        }
        Ok(())
    }

    /// Whether a change may take something away: it mends that in the agent's own words, or the person spoke of it, or of what
    /// is put in its place. All texts must be among those that were looked for; what is kept elsewhere is not taken away.
    pub fn allows_loss(&self, gone: &str, put: &str, kept: &str) -> bool {
        let [gone, put, kept] = [gone, put, kept].map(|text| self.all_telling(text));
        let lost: Vec<usize> = gone
            .iter()
            .filter(|word| !put.contains(word) && !kept.contains(word))
            .copied()
            .collect();
        let fresh: Vec<usize> = put.difference(&gone).copied().collect();
        let is_mended =
            lost.len() * 2 <= gone.len() && fresh.iter().any(|word| self.words[*word].is_own);
        let spoke_of = |words: &[usize]| {
            let used = words
                .iter()
                .filter(|word| self.words[**word].is_used_by_person);
            !words.is_empty() && used.count() * 2 >= words.len()
        };
        lost.is_empty() || is_mended || spoke_of(&lost) || spoke_of(&fresh)
    }

    fn all_telling(&self, text: &str) -> HashSet<usize> {
        let numbered = self.numbered(text).into_iter().flatten();
        numbered
            .filter(|number| is_telling(&self.words[*number].text))
            .collect()
    }

    fn numbered(&self, text: &str) -> Vec<Option<usize>> {
        let words = words(text).into_iter();
        words.map(|word| self.numbers.get(&word).copied()).collect()
    }

    fn wanted_marks(&self, text: &str) -> Vec<String> {
        marks(text)
            .filter(|mark| self.marks.contains(mark))
            .collect()
    }

    fn source(&mut self, name: &str) -> usize {
        let known = self.sources.iter().position(|source| source == name);
        known.unwrap_or_else(|| {
            self.sources.push(name.to_owned());
            self.sources.len() - 1
        })
    }

    fn objection(&self, words: &str, source: usize) -> Objection {
        Objection {
            words: shorten(words, TOLD_CHARS_MAX),
            source: self.sources[source].clone(),
        }
    }
}

impl Said {
    fn take(&mut self, numbered: &[Option<usize>], marks: &[String]) {
        for length in [RUN_WORDS, PROJECT_RUN_WORDS] {
            self.runs.extend(runs(numbered, length));
        }
        self.marks.extend(marks.iter().cloned());
    }
}

/// So many words in a row, all of them looked for.
fn runs(numbered: &[Option<usize>], length: usize) -> impl Iterator<Item = Run> + '_ {
    let rows = numbered.windows(length);
    rows.filter_map(|row| row.iter().copied().collect::<Option<Run>>())
}

/// All texts of a message.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    })
}

/// All texts in a value.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        Value::Array(values) => values.iter().flat_map(strings).collect(),
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// Where conversations can be read as people see them: also what a summary stands for.
#[derive(Clone)]
pub struct Conversations(Option<Arc<dyn Archive>>);

impl Conversations {
    pub fn of(archive: Arc<dyn Archive>) -> Self {
        Self(Some(archive))
    }

    /// For those who look at tools and call none.
    pub fn none() -> Self {
        Self(None)
    }

    /// Hears a whole conversation. One that is not stored yet has said nothing.
    pub async fn hear(
        &self,
        session: &SessionId,
        mut grounding: Grounding,
    ) -> Result<Grounding, StoreError> {
        let Some(archive) = &self.0 else {
            let detail = "nothing is written by looking".to_owned();
            return Err(StoreError::Refused { detail });
        };
        let mut last = 0;
        loop {
            let query = SpokenQuery {
                session: Some(session.clone()),
                from: SpokenFrom::After(last),
                with_results: true,
                limit: PAGE,
            };
            let page = match archive.spoken(query).await {
                Err(StoreError::NotFound { .. }) => return Ok(grounding),
                page => page?,
            };
            for one in &page {
                grounding.hear(&one.message);
                last = one.place;
            }
            if page.len() < PAGE {
                return Ok(grounding);
            }
        }
    }
}

#[cfg(test)]
mod tests;

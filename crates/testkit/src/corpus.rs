//! A long history with known questions: what recall is measured with.
//!
//! The same for every run. Most of it is chatter in invented words, as common as words of a language are; the *facts* that
//! questions ask for are hidden in it, each beside messages that have only some of its words. A question is right when its
//! first hit is the message that was meant.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hermes_core::{
    Arguments, Cost, Entry, FinishReason, Message, ModelName, NewSession, Part, Prefix, Random,
    ResultStatus, Role, SessionId, Store, Timestamp, ToolCall, ToolResult, TurnEnd, TurnId, Usage,
};

const MESSAGES_PER_TURN: usize = 4;
const TURNS_PER_SESSION: usize = 10;
const MESSAGES_PER_SESSION: usize = MESSAGES_PER_TURN * TURNS_PER_SESSION;

/// Questions of each kind.
const PER_KIND: usize = 20;

/// Messages with some of the words of a fact.
const DECOYS: usize = 6;

/// Two years, up to here.
const END_MILLIS: i64 = 1_794_777_845_000;
const SPAN_MILLIS: i64 = 2 * 365 * 86_400_000;

/// Words that are in most texts and all questions.
const COMMON: &[&str] = &[
    "the", "of", "and", "to", "a", "in", "is", "it", "what", "that", "was", "for", "on", "we",
    "with", "as", "did", "be", "at", "about", "this", "have", "from", "or", "say", "by", "when",
    "which", "you", "how", "do", "where", "there", "not", "are", "my", "i", "our", "who", "he",
];

/// A question with the one message that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub kind: &'static str,
    pub query: String,
    /// The text of the message.
    pub answer: String,
}

/// A session of the history.
pub struct PastSession {
    pub session: NewSession,
    pub entries: Vec<Entry>,
}

pub struct Corpus {
    random: Random,
    vocabulary: Vec<String>,
    scripts: Vec<Script>,
    sessions: usize,
    questions: Vec<Known>,
    /// What is said in which turn of all, instead of chatter: by whom, and what.
    planted: BTreeMap<usize, (Role, String)>,
}

/// A script that does not separate words, and its words.
struct Script {
    words: Vec<String>,
}

impl Corpus {
    /// A history of about so many messages, and its questions.
    pub fn new(messages: usize) -> Self {
        let random = Random::seeded(12);
        let scripts = [
            '\u{4e00}'..='\u{5200}', // Chinese
            '\u{ac00}'..='\u{b000}', // Korean
            '\u{0e01}'..='\u{0e2e}', // Thai
            '\u{0e94}'..='\u{0eb9}', // Lao
        ];
        let mut corpus = Self {
            vocabulary: vocabulary(),
            scripts: scripts.map(|letters| Script::new(&random, letters)).into(),
            random,
            sessions: messages.div_ceil(MESSAGES_PER_SESSION),
            questions: Vec::new(),
            planted: BTreeMap::new(),
        };
        corpus.plant();
        corpus
    }

    pub fn questions(&self) -> &[Known] {
        &self.questions
    }

    /// The sessions, oldest first.
    pub fn sessions(&self) -> impl Iterator<Item = PastSession> {
        (0..self.sessions).map(|number| self.session(number))
    }

    /// Writes all of it into a store.
    pub async fn fill(&self, store: &impl Store) {
        for PastSession { session, entries } in self.sessions() {
            store.create(session, entries).await.expect("written");
        }
    }

    fn turns(&self) -> usize {
        self.sessions * TURNS_PER_SESSION
    }

    fn plant(&mut self) {
        for _ in 0..PER_KIND {
            self.plant_words();
            self.plant_question();
            self.plant_phrase();
            self.plant_beginning();
            self.plant_typo();
            self.plant_newer();
            self.plant_beside_tools();
            self.plant_accents();
            self.plant_unspaced_words();
            self.plant_unspaced_question();
        }
    }

    /// All words of the question are in the message, most of them in many others too.
    fn plant_words(&mut self) {
        let [a, b, c] = self.topic();
        self.decoys(&[&a, &b, &c]);
        let answer = self.sentence(&[&a, &b, &c]);
        self.ask("words", format!("{c} {a} {b}"), answer);
    }

    /// The question has words that the message has not.
    fn plant_question(&mut self) {
        let [a, b, c] = self.topic();
        let other = self.content_word();
        self.decoys(&[&a, &b, &c, &other]);
        let answer = self.sentence(&[&a, &b, &c]);
        let query = format!("what did we say about the {a} of {b} when {other} was {c}");
        self.ask("question", query, answer);
    }

    fn plant_phrase(&mut self) {
        let [a, b, _] = self.topic();
        for _ in 0..DECOYS {
            let apart = format!(
                "{} {} {}",
                self.sentence(&[&b]),
                self.chatter(4),
                self.sentence(&[&a])
            );
            self.plant_somewhere(Role::User, apart);
        }
        let answer = self.sentence(&[&format!("{a} {b}")]);
        self.ask("phrase", format!("\"{a} {b}\""), answer);
    }

    fn plant_beginning(&mut self) {
        let [a, b, c] = self.topic();
        self.decoys(&[&a, &b, &c]);
        let answer = self.sentence(&[&a, &b, &c]);
        let cut = a.len() - 2;
        self.ask("beginning", format!("{}* {b} {c}", &a[..cut]), answer);
    }

    fn plant_typo(&mut self) {
        let [a, b, c] = self.topic();
        self.decoys(&[&a, &b, &c]);
        let answer = self.sentence(&[&a, &b, &c]);
        let wrong = self.misspelt(&a);
        self.ask("misspelt", format!("{wrong} {b} {c}"), answer);
    }

    /// Said again later with another value: the last word counts.
    fn plant_newer(&mut self) {
        let [a, b, c] = self.topic();
        let mut turns: Vec<usize> = (0..3).map(|_| self.free_turn(self.turns())).collect();
        turns.sort_unstable();
        let mut answer = String::new();
        for turn in turns {
            answer = self.sentence(&[&a, &b, &c]);
            self.planted.insert(turn, (Role::User, answer.clone()));
        }
        self.questions.push(Known {
            kind: "newer",
            query: format!("{a} {b} {c}"),
            answer,
        });
    }

    /// Tools print the same words.
    fn plant_beside_tools(&mut self) {
        let [a, b, c] = self.topic();
        for _ in 0..DECOYS {
            let printed = format!("{} {}", self.sentence(&[&a, &b, &c]), self.chatter(120));
            self.plant_somewhere(Role::Tool, printed);
        }
        let answer = self.sentence(&[&a, &b, &c]);
        self.ask("beside tools", format!("{a} {b} {c}"), answer);
    }

    fn plant_accents(&mut self) {
        let [a, b, c] = self.topic();
        self.decoys(&[&a, &b, &c]);
        let accented = a.replace('a', "á").replace('u', "ü");
        let answer = self.sentence(&[&accented, &b, &c]);
        self.ask("accents", format!("{a} {b} {c}"), answer);
    }

    fn plant_unspaced_words(&mut self) {
        let script = self.questions.len() % self.scripts.len();
        let words: Vec<String> = (0..3)
            .map(|_| self.scripts[script].rare_word(&self.random))
            .collect();
        for at in 0..DECOYS {
            let decoy = self.run(script, &words[at % 3..=at % 3]);
            self.plant_somewhere(Role::User, decoy);
        }
        let answer = self.run(script, &words);
        self.ask("words without spaces", words.join(" "), answer);
    }

    fn plant_unspaced_question(&mut self) {
        let script = self.questions.len() / 10 % self.scripts.len();
        let words: Vec<String> = (0..4)
            .map(|_| self.scripts[script].rare_word(&self.random))
            .collect();
        let answer = self.run(script, &words[..3]);
        let common = &self.scripts[script].words;
        let query = format!("{}{}{}{}", words[1], common[0], words[2], words[3]);
        self.ask("a question without spaces", query, answer);
    }

    fn ask(&mut self, kind: &'static str, query: String, answer: String) {
        let role = match self.random.below(3) {
            0 => Role::Assistant,
            _ => Role::User,
        };
        self.plant_somewhere(role, answer.clone());
        self.questions.push(Known {
            kind,
            query,
            answer,
        });
    }

    fn decoys(&mut self, words: &[&str]) {
        for at in 0..DECOYS {
            let some = [words[at % words.len()], words[(at + 1) % words.len()]];
            let decoy = self.sentence(&some[..1 + at % 2]);
            self.plant_somewhere(Role::User, decoy);
        }
    }

    fn plant_somewhere(&mut self, role: Role, text: String) {
        let turn = self.free_turn(self.turns());
        self.planted.insert(turn, (role, text));
    }

    fn free_turn(&self, turns: usize) -> usize {
        loop {
            let turn = self.random.below(turns as u64) as usize;
            if !self.planted.contains_key(&turn) {
                return turn;
            }
        }
    }

    /// Three words that are neither common nor unique.
    fn topic(&self) -> [String; 3] {
        [(); 3].map(|()| self.content_word())
    }

    fn content_word(&self) -> String {
        let rank = 300 + self.random.below(9000) as usize;
        self.vocabulary[rank].clone()
    }

    /// A sentence with these words, each somewhere.
    fn sentence(&self, words: &[&str]) -> String {
        let mut text = self.chatter(3);
        for word in words {
            text.push_str(&format!(" {word} {}", self.chatter(2)));
        }
        // Tells it from others with the same words.
        format!("{text} {}.", self.random.below(1_000_000))
    }

    fn chatter(&self, words: u64) -> String {
        let words = (0..1 + self.random.below(words)).map(|_| self.word());
        words.collect::<Vec<_>>().join(" ")
    }

    /// The word at rank `size ^ u`, `u` even in 0..1: rank n is about n times as rare as the first (Zipf's law).
    fn word(&self) -> &str {
        &self.vocabulary[zipf(&self.random, self.vocabulary.len())]
    }

    /// A sentence without spaces.
    fn run(&self, script: usize, words: &[String]) -> String {
        let script = &self.scripts[script];
        let mut text = script.chatter(&self.random, 3);
        for word in words {
            text.push_str(word);
            text.push_str(&script.chatter(&self.random, 3));
        }
        format!("{text} {}。", self.random.below(1_000_000))
    }

    fn misspelt(&self, word: &str) -> String {
        let mut letters: Vec<char> = word.chars().collect();
        loop {
            let at = self.random.below(letters.len() as u64 - 1) as usize;
            let before = letters.clone();
            match self.random.below(4) {
                0 => letters.swap(at, at + 1),
                1 => drop(letters.remove(at)),
                2 => letters.insert(at, 'q'),
                _ => letters[at] = 'x',
            }
            if letters != before {
                return letters.into_iter().collect();
            }
        }
    }

    fn session(&self, number: usize) -> PastSession {
        let id = SessionId::from(format!("s{number:06}"));
        let ago = SPAN_MILLIS / self.sessions as i64 * (self.sessions - number) as i64;
        let turns = (0..TURNS_PER_SESSION).map(|turn| number * TURNS_PER_SESSION + turn);
        PastSession {
            session: NewSession {
                id,
                created: Timestamp::from_millis(END_MILLIS - ago),
                source: "cli".into(),
                title: None,
                cwd: None,
                model: model(),
                parent: None,
                prefix: Prefix::default(),
            },
            entries: turns.flat_map(|turn| self.turn(turn)).collect(),
        }
    }

    fn turn(&self, number: usize) -> Vec<Entry> {
        let planted = self.planted.get(&number);
        let said = |role: Role, words: u64| match planted {
            Some((planted, text)) if *planted == role => text.clone(),
            _ => self.small_talk(number, words),
        };
        let turn = TurnId::from(format!("{number:08x}"));
        let call = ToolCall {
            id: format!("call_{number}").into(),
            name: "read_file".into(),
            arguments: Arguments::Json(serde_json::json!({"path": "notes"})),
            signatures: vec![],
        };
        let result = ToolResult::new(&call, ResultStatus::Ok, said(Role::Tool, 400));
        let calling = Message {
            role: Role::Assistant,
            origin: None,
            parts: vec![Part::text(self.chatter(12)), Part::ToolCall(call)],
        };
        vec![
            Entry::TurnStarted {
                turn: turn.clone(),
                message: Message::user(said(Role::User, 40)),
            },
            replied(&turn, calling),
            Entry::CallFinished {
                turn: turn.clone(),
                result,
            },
            replied(&turn, Message::assistant(said(Role::Assistant, 100))),
            Entry::TurnEnded {
                turn,
                end: TurnEnd::Finished,
                closing: None,
            },
        ]
    }

    /// Every tenth turn is in another script.
    fn small_talk(&self, turn: usize, words: u64) -> String {
        if turn.is_multiple_of(10) {
            let script = &self.scripts[turn / 10 % self.scripts.len()];
            script.chatter(&self.random, words.min(60))
        } else {
            self.chatter(words)
        }
    }
}

impl Script {
    fn new(random: &Random, letters: RangeInclusive<char>) -> Self {
        const WORDS: usize = 4000;
        let letters: Vec<char> = letters.collect();
        let letter = || letters[random.below(letters.len() as u64) as usize];
        // Scripts with few letters have long words.
        let length = if letters.len() > 100 { 2 } else { 6 };
        let word = || (0..length + random.below(2)).map(|_| letter()).collect();
        Self {
            words: (0..WORDS).map(|_| word()).collect(),
        }
    }

    fn chatter(&self, random: &Random, words: u64) -> String {
        let words = (0..1 + random.below(words)).map(|_| zipf(random, self.words.len()));
        words.map(|rank| self.words[rank].as_str()).collect()
    }

    fn rare_word(&self, random: &Random) -> String {
        self.words[200 + random.below(3000) as usize].clone()
    }
}

/// A rank below `size`: rank n is about n times as rare as the first.
fn zipf(random: &Random, size: usize) -> usize {
    let u = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    (size as f64).powf(u) as usize - 1
}

/// Common words of English, and then invented ones.
fn vocabulary() -> Vec<String> {
    const SYLLABLES: [&str; 20] = [
        "ba", "cor", "di", "fu", "gan", "he", "jil", "ko", "lum", "ma", "ne", "pos", "ra", "sin",
        "to", "vu", "wer", "ya", "zol", "kri",
    ];
    const WORDS: usize = 30_000;
    let common = COMMON.iter().map(|word| (*word).to_owned());
    let random = Random::seeded(3);
    let mut seen = std::collections::BTreeSet::new();
    let invented = std::iter::repeat_with(move || -> String {
        let syllables = 2 + random.below(3);
        (0..syllables)
            .map(|_| SYLLABLES[random.below(20) as usize])
            .collect()
    });
    let invented = invented.filter(move |word| seen.insert(word.clone()));
    common.chain(invented.take(WORDS)).collect()
}

fn replied(turn: &TurnId, message: Message) -> Entry {
    Entry::Replied {
        turn: turn.clone(),
        message,
        reason: FinishReason::Stop,
        usage: Usage::default(),
        cost: Cost::Included,
        model: model(),
    }
}

fn model() -> ModelName {
    ModelName {
        provider: "test".into(),
        model: "scripted".into(),
    }
}

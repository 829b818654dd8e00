//! People who write, change their minds, press buttons, leave and come back; and strangers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{Chat, ChatKind, Clock as _, MessageId, Random, Sender, Timestamp};
use tokio::time::sleep;

use super::clock::SimClock;
use super::lock;
use super::platform::SimPlatform;

/// The longest silence between two things that people do.
const GAP_MAX_MS: u64 = 30 * 60 * 1000;
/// What comes in a burst comes within this.
const BURST_MS: u64 = 8_000;

/// Everybody, on all platforms.
pub struct People {
    platforms: Vec<Arc<SimPlatform>>,
    clock: Arc<SimClock>,
    random: Arc<Random>,
    state: Mutex<Crowd>,
}

struct Crowd {
    persons: Vec<Person>,
    /// Who did something last.
    last: usize,
    next: Timestamp,
    /// Messages that were written.
    written: u64,
}

#[derive(Clone)]
struct Person {
    platform: usize,
    chat: Chat,
    sender: Sender,
    is_stranger: bool,
    /// Their last message, and its number.
    wrote: Option<(MessageId, u64)>,
    has_left: bool,
}

impl People {
    pub fn new(
        platforms: Vec<Arc<SimPlatform>>,
        clock: Arc<SimClock>,
        random: Arc<Random>,
    ) -> Self {
        let persons = (0..platforms.len()).flat_map(inhabitants).collect();
        let next = clock.now();
        Self {
            platforms,
            clock,
            random,
            state: Mutex::new(Crowd {
                persons,
                last: 0,
                next,
                written: 0,
            }),
        }
    }

    /// Who may ask.
    pub fn allowed() -> Vec<String> {
        let known = inhabitants(0).into_iter();
        let known = known.filter(|person| !person.is_stranger);
        known.map(|person| person.sender.id).collect()
    }

    pub(super) fn is_stranger(sender: &Sender) -> bool {
        sender.id.starts_with("stranger")
    }

    pub fn written(&self) -> u64 {
        lock(&self.state).written
    }

    /// Does things at their times, for ever.
    pub async fn live(&self) {
        loop {
            let next = lock(&self.state).next;
            sleep(self.clock.until(next)).await;
            // A clock that was set back makes it wait again.
            if self.clock.now() >= next {
                self.act();
            }
        }
    }

    /// One of them says something, now.
    pub fn say_something(&self) {
        let mut crowd = lock(&self.state);
        crowd.written += 1;
        let (person, words) = (crowd.persons[0].clone(), format!("m{}", crowd.written));
        self.platforms[person.platform].say(&person.chat, &person.sender, &words);
    }

    /// What would have been done while everybody slept is not done.
    pub fn oversleep(&self) {
        let mut crowd = lock(&self.state);
        crowd.next = crowd.next.max(self.clock.now());
    }

    fn act(&self) {
        let mut crowd = lock(&self.state);
        let is_burst = self.random.below(3) == 0;
        let gap = match is_burst {
            true => self.random.below(BURST_MS),
            false => self.random.below(GAP_MAX_MS),
        };
        crowd.next = self.clock.now().plus(Duration::from_millis(gap));
        let who = match self.random.below(2) == 0 {
            true => crowd.last,
            false => pick(&self.random, crowd.persons.len()),
        };
        crowd.last = who;
        let mut person = crowd.persons[who].clone();
        self.act_as(&mut person, &mut crowd.written);
        crowd.persons[who] = person;
    }

    fn act_as(&self, person: &mut Person, written: &mut u64) {
        let platform = Arc::clone(&self.platforms[person.platform]);
        let (chat, sender) = (person.chat.clone(), person.sender.clone());
        if self.random.below(150) == 0 {
            let minutes = 5 + self.random.below(180);
            platform.go_away(Duration::from_secs(minutes * 60));
        }
        if person.has_left {
            // Whoever writes again has let us in again.
            person.has_left = false;
            platform.set_left(&chat.id, false);
        }
        match self.random.below(100) {
            0..=69 => {
                *written += 1;
                let words = self.words(*written);
                let id = platform.say(&chat, &sender, &words);
                person.wrote = Some((id, *written));
            }
            70..=76 => {
                if let Some((id, number)) = &person.wrote {
                    platform.edit(&chat, &sender, id, &format!("m{number} edited"));
                }
            }
            77..=82 => _ = platform.say(&chat, &sender, "/stop"),
            83..=86 => _ = platform.say(&chat, &sender, "/new"),
            87..=88 => _ = platform.say(&chat, &sender, "/status"),
            89..=92 => platform.press(&chat, &sender, self.random.below(4)),
            93..=95 => _ = platform.say(&chat, &sender, "yes"),
            96..=97 => _ = platform.say(&chat, &sender, "no"),
            _ => {
                if chat.kind == ChatKind::Dm && !person.is_stranger {
                    person.has_left = true;
                    platform.set_left(&chat.id, true);
                }
            }
        }
    }

    fn words(&self, number: u64) -> String {
        let how = match self.random.below(20) {
            0..=5 => " slow",
            6..=7 => " tool",
            8 => " ask",
            9 => " ask slow",
            10 => " tool slow",
            11 => " fail",
            12 => " long",
            13 => " long slow",
            14 => " server",
            15 => " server slow",
            _ => "",
        };
        format!("m{number}{how}")
    }
}

fn pick(random: &Random, count: usize) -> usize {
    usize::try_from(random.below(count as u64)).unwrap_or_default()
}

/// Who is on every platform: three people alone, two in a group, and strangers in both places.
fn inhabitants(platform: usize) -> Vec<Person> {
    let group = Chat {
        kind: ChatKind::Group,
        ..Chat::direct("group")
    };
    let person = |id: &str, chat: Chat| Person {
        platform,
        chat,
        sender: Sender {
            id: id.to_owned(),
            name: Some(id.to_owned()),
            ..Sender::default()
        },
        is_stranger: id.starts_with("stranger"),
        wrote: None,
        has_left: false,
    };
    vec![
        person("ann", Chat::direct("dm-ann")),
        person("bob", Chat::direct("dm-bob")),
        person("cyd", Chat::direct("dm-cyd")),
        person("dan", group.clone()),
        person("eve", group.clone()),
        person("stranger-1", Chat::direct("dm-stranger-1")),
        person("stranger-2", group),
    ]
}

//! The interface with an echo behind it: the smallest program it can belong to, and what its tests run in a terminal.
//! Told `panic` it fails the way a bug would; told `quietly`, the way a bug in a tool would, which is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hermes_core::{Event, Op, Origin, Part, TurnEnd, TurnId, UserMessage};
use hermes_tui::{FromHost, Opened, Settings, ToHost};
use tokio::sync::mpsc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), hermes_tui::TuiError> {
    let (to_interface, told) = mpsc::channel(64);
    let (to_host, requests) = mpsc::channel(64);
    let interface = hermes_tui::run(Settings::default(), told, to_host);
    let (left, ()) = tokio::join!(interface, echo(to_interface, requests));
    left.map(|_| ())
}

async fn echo(to_interface: mpsc::Sender<FromHost>, mut requests: mpsc::Receiver<ToHost>) {
    let opened = Opened {
        id: "echo".into(),
        title: None,
        model: "echo".into(),
        context_window: Some(1_000),
        cwd: "/".into(),
        past: Vec::new(),
        earlier: 0,
        is_unasked: false,
        mode: None,
    };
    let _ = to_interface.send(FromHost::Opened(opened)).await;
    while let Some(request) = requests.recv().await {
        match request {
            ToHost::Op(Op::Say(message)) => say(&to_interface, &text_of(&message)).await,
            ToHost::Leave => {
                let _ = to_interface.send(FromHost::Leave).await;
            }
            _ => {}
        }
    }
}

async fn say(to_interface: &mpsc::Sender<FromHost>, words: &str) {
    match words {
        "panic" => panic!("the echo broke"),
        "quietly" => {
            let _ = catch_unwind(AssertUnwindSafe(|| panic!("a tool broke")));
        }
        _ => {}
    }
    let turn = TurnId::from("turn");
    let events = [
        Event::TurnStarted {
            turn: turn.clone(),
            origin: Origin::person(),
            text: words.to_owned(),
            images: 0,
            queued: None,
        },
        Event::Text {
            text: format!("you said: {words}"),
        },
        Event::TurnEnded {
            turn,
            end: TurnEnd::Finished,
        },
        Event::Idle,
    ];
    for event in events {
        let _ = to_interface.send(FromHost::Event(event)).await;
    }
}

fn text_of(message: &UserMessage) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

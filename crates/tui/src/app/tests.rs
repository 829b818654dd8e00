//! Keys and events in, screens and effects out.

mod sending;
mod suggesting;

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use hermes_core::command::Verb;
use hermes_core::{
    AnswerSource, ApprovalRequest, CompactionEnd, CompactionReason, CompactionReport, Cost,
    Elicitation, Event, Field, FieldKind, Message, ModelName, Notice, Op, Origin, Response,
    ResultStatus, Settled, SummarySource, TurnEnd, Usage, UserMessage, Verdict, WaitsFor, Wanted,
};
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;
use ratatui_core::text::Line;
use ratatui_core::widgets::Widget;
use serde_json::json;

use super::{App, Effect, Input};
use hermes_core::choice::Depth;

use crate::host::{BusyInput, Choice, EditMode, FromHost, Item, Opened, Settings, ToHost};
use crate::screen::Size;

/// An interface, and everything it has printed.
struct Scene {
    app: App,
    now: Duration,
    printed: Vec<Line<'static>>,
    columns: u16,
    rows: u16,
}

impl Scene {
    fn new(columns: u16, rows: u16) -> Self {
        Self::with(Settings::default(), columns, rows)
    }

    fn with(settings: Settings, columns: u16, rows: u16) -> Self {
        let mut scene = Self {
            app: App::new(settings, vec!["an older message".into()]),
            now: Duration::ZERO,
            printed: Vec::new(),
            columns,
            rows,
        };
        scene.host(FromHost::Opened(opened("s1", Vec::new())));
        scene
    }

    fn host(&mut self, told: FromHost) -> Vec<Effect> {
        self.app.update(Input::Host(told), self.now)
    }

    fn event(&mut self, event: Event) {
        self.host(FromHost::Event(event));
    }

    fn text(&mut self, text: &str) {
        self.event(Event::Text { text: text.into() });
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.app.update(Input::Tick, self.now);
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
        let key = KeyEvent::new(code, modifiers);
        self.app.update(Input::Key(key), self.now)
    }

    fn control(&mut self, letter: char) -> Vec<Effect> {
        self.press(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn write(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c), KeyModifiers::NONE);
        }
    }

    /// Types a line and sends it. Returns what the program is asked for.
    fn send(&mut self, text: &str) -> Vec<ToHost> {
        self.write(text);
        self.press(KeyCode::Esc, KeyModifiers::NONE);
        requests(self.press(KeyCode::Enter, KeyModifiers::NONE))
    }

    fn begin(&mut self, text: &str) {
        self.write(text);
        self.press(KeyCode::Enter, KeyModifiers::NONE);
        self.event(started(text));
    }

    /// Words that wait, as the session tells it.
    fn queued(&mut self, text: &str) {
        self.event(Event::Queued {
            queued: text.into(),
            waits_for: WaitsFor::NextTurn,
            origin: Origin::person(),
            text: text.into(),
            images: 0,
        });
    }

    fn call(&mut self, id: &str, tool: &str, arguments: serde_json::Value) {
        self.event(Event::CallStarted {
            call: id.into(),
            tool: tool.into(),
            arguments,
        });
    }

    fn end(&mut self, end: TurnEnd) {
        self.event(Event::TurnEnded {
            turn: "t".into(),
            end,
        });
        self.event(Event::Idle);
    }

    /// The last screenful: what was printed, and the live rows below it.
    fn screen(&mut self) -> String {
        let (columns, rows) = (self.columns, self.rows);
        let finished = self.app.take_finished(Size {
            columns: columns.into(),
            rows: rows.into(),
        });
        self.printed.extend(finished);
        let view = self.app.view(columns.into(), rows.into());
        assert!(view.rows.len() <= rows.into(), "it fits");
        let shown = usize::from(rows).saturating_sub(view.rows.len());
        let first = self.printed.len().saturating_sub(shown);
        let lines = self.printed[first..].iter().chain(&view.rows);
        let screen = Shown(lines.cloned().collect());
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal
            .draw(|frame| frame.render_widget(screen, frame.area()))
            .unwrap();
        terminal.backend().to_string()
    }
}

/// A turn begins with words of a person.
fn started(text: &str) -> Event {
    Event::TurnStarted {
        turn: "t".into(),
        origin: Origin::person(),
        text: text.into(),
        images: 0,
        queued: None,
    }
}

struct Shown(Vec<Line<'static>>);

impl Widget for Shown {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        for (line, row) in self.0.iter().zip(area.rows()) {
            line.render(row, buffer);
        }
    }
}

fn opened(id: &str, past: Vec<Message>) -> Opened {
    Opened {
        id: id.into(),
        title: None,
        model: "anthropic:claude".into(),
        context_window: Some(200_000),
        cwd: PathBuf::from("/home/me/project"),
        past,
        earlier: 0,
        is_unasked: false,
        mode: None,
    }
}

fn requests(effects: Vec<Effect>) -> Vec<ToHost> {
    let sent = effects.into_iter().filter_map(|effect| match effect {
        Effect::Send(told) => Some(told),
        _ => None,
    });
    sent.collect()
}

fn ops(told: Vec<ToHost>) -> Vec<Op> {
    let ops = told.into_iter().map(|told| match told {
        ToHost::Op(op) => op,
        other => panic!("{other:?} is no op"),
    });
    ops.collect()
}

fn say(text: &str) -> Op {
    Op::Say(UserMessage::text(text))
}

fn question() -> ApprovalRequest {
    ApprovalRequest {
        approval: "a1".into(),
        code: hermes_core::ApprovalCode::stored("k7m2pq".into()),
        call: "c1".into(),
        tool: "terminal".into(),
        what: "rm -r build\u{1b}[2K".into(),
        diff: None,
        folder: Some("/home/me/project".into()),
        patterns: vec!["rm -r *".into()],
        reason: "deletes folders and everything in them".into(),
        choices: Verdict::ALL.to_vec(),
        expires_in_ms: 60_000,
    }
}

/// A turn in full swing: a thought, a finished and a running call, an answer that is being written.
fn busy_scene(columns: u16, rows: u16) -> Scene {
    let mut scene = Scene::new(columns, rows);
    scene.begin("What does this project do?");
    scene.event(Event::Reasoning {
        text: "They want an overview.".into(),
    });
    scene.wait(2);
    scene.text("I will have a look.");
    scene.call(
        "c1",
        "terminal",
        json!({"command": "cargo test --workspace"}),
    );
    scene.event(Event::CallFinished {
        call: "c1".into(),
        tool: "terminal".into(),
        status: ResultStatus::Failed,
        text: "running\nexit code 101".into(),
        elapsed_ms: 12_000,
        images: 0,
    });
    scene.event(Event::ReplyFinished {
        usage: Usage {
            input: 12_000,
            output: 345,
            ..Usage::default()
        },
        cost: Cost::Estimated(41_000),
        model: ModelName {
            provider: "anthropic".into(),
            model: "claude".into(),
        },
        requests: 1,
    });
    scene.call("c2", "read_file", json!({"path": "src/main.rs"}));
    scene.event(Event::CallProgress {
        call: "c2".into(),
        text: "line one\nline two".into(),
    });
    scene.text("# Overview\n\nIt is **small**:\n\n- one part\n- another ");
    scene.write("and the te");
    scene.wait(1);
    scene
}

#[test]
fn each_subagent_has_a_row_that_says_what_it_does_now() {
    let mut scene = Scene::new(60, 12);
    scene.begin("find out");
    scene.call("c1", "delegate_task", json!({"goal": "both"}));
    for (subagent, text) in [
        (1, "started: left"),
        (2, "started: right"),
        (1, "read_file a"),
    ] {
        scene.event(Event::SubagentProgress {
            call: "c1".into(),
            subagent,
            text: text.into(),
        });
    }
    let screen = scene.screen();
    assert!(screen.contains("[1] read_file a"), "{screen}");
    assert!(screen.contains("[2] started: right"), "{screen}");
    assert!(!screen.contains("started: left"), "{screen}");
}

#[test]
fn a_compaction_shows_how_far_it_is_and_what_came_of_it() {
    let mut scene = Scene::new(140, 20);
    scene.begin("go on");
    scene.event(Event::CompactionStarted {
        reason: CompactionReason::Full,
        tokens: 160_000,
        window: Some(200_000),
    });
    scene.event(Event::CompactionProgress {
        text: "summarising: 120 words".into(),
    });
    let screen = scene.screen();
    assert!(
        screen.contains("fills 160k of 200k tokens (80 %)"),
        "{screen}"
    );
    assert!(screen.contains("summarising: 120 words"), "{screen}");
    let report = CompactionReport {
        summary: SummarySource::Model,
        tokens_before: 160_000,
        tokens_after: 42_000,
        summarised: 200,
        shortened: 3,
        kept: 17,
        elapsed_ms: 6_200,
        usage: Usage::default(),
        cost: Some(Cost::Estimated(20_000)),
        notes: vec!["that freed little".into()],
    };
    scene.event(Event::CompactionEnded {
        end: CompactionEnd::Done { report },
    });
    let screen = scene.screen();
    assert!(
        screen.contains("in 6.2 s: 160k tokens before, 42.0k after"),
        "{screen}"
    );
    assert!(
        screen.contains("200 messages summarised, 3 shortened, 17 kept"),
        "{screen}"
    );
    assert!(screen.contains("that freed little"), "{screen}");
    assert!(screen.contains("42.0k/200k (21 %)"), "{screen}");
    assert!(!screen.contains("120 words"), "{screen}");
}

fn asking_scene(columns: u16, rows: u16) -> Scene {
    let mut scene = Scene::new(columns, rows);
    scene.begin("clean up");
    scene.call("c1", "terminal", json!({"command": "rm -r build"}));
    scene.event(Event::ApprovalRequested(question()));
    scene.wait(3);
    scene
}

#[test]
fn a_turn_in_full_swing() {
    insta::assert_snapshot!("busy_80x24", busy_scene(80, 24).screen());
    insta::assert_snapshot!("busy_120x40", busy_scene(120, 40).screen());
    insta::assert_snapshot!("busy_40x12", busy_scene(40, 12).screen());
}

#[test]
fn a_question() {
    insta::assert_snapshot!("question_80x24", asking_scene(80, 24).screen());
    insta::assert_snapshot!("question_120x40", asking_scene(120, 40).screen());
    insta::assert_snapshot!("question_40x12", asking_scene(40, 12).screen());
}

/// A question about a change of a start file.
fn change_scene(columns: u16, rows: u16) -> Scene {
    let added: String = (1..=30)
        .map(|n| format!("+alias l{n}='ls -{n}'\n"))
        .collect();
    let header = "--- a/home/me/.bashrc\n+++ b/home/me/.bashrc\n@@ -1,3 +1,32 @@";
    let diff = format!("{header}\n export A=1\n-export B=2\n export C=\u{1b}[2K3\n{added}");
    let mut scene = Scene::new(columns, rows);
    scene.begin("add my aliases");
    let path = "/home/me/.bashrc";
    scene.call("c1", "write_file", json!({"path": path, "content": "…"}));
    scene.event(Event::ApprovalRequested(ApprovalRequest {
        tool: "write_file".into(),
        what: path.into(),
        diff: Some(diff),
        folder: None,
        patterns: Vec::new(),
        reason: "changes what runs when the user logs in".into(),
        choices: vec![Verdict::Once, Verdict::Session, Verdict::Deny],
        ..question()
    }));
    scene.wait(3);
    scene
}

#[test]
fn a_question_about_a_change() {
    insta::assert_snapshot!("change_80x24", change_scene(80, 24).screen());
    insta::assert_snapshot!("change_120x40", change_scene(120, 40).screen());
    insta::assert_snapshot!("change_40x12", change_scene(40, 12).screen());
}

#[test]
fn all_of_a_change_is_shown_once_and_the_question_stays() {
    let mut scene = change_scene(80, 60);
    let screen = scene.screen();
    assert!(screen.contains("press d to see all"), "{screen}");
    assert!(!screen.contains("alias l30="), "{screen}");
    for _ in 0..2 {
        scene.write("d");
        let screen = scene.screen();
        assert_eq!(screen.matches("alias l30=").count(), 1, "{screen}");
        assert!(screen.contains("allow? y once"), "{screen}");
    }
    let op = ops(requests(
        scene.press(KeyCode::Char('y'), KeyModifiers::NONE),
    ));
    assert!(matches!(op[..], [Op::Answer { .. }]), "{op:?}");
}

#[test]
fn suggestions_and_a_list_to_choose_from() {
    let screen = |columns, rows| {
        let mut scene = Scene::new(columns, rows);
        scene.write("/st");
        let suggestions = scene.screen();
        let item = |name: &str| Item {
            value: name.into(),
            label: name.into(),
            detail: "2026-11-15 · 4 messages".into(),
        };
        scene.host(FromHost::Choose(Choice {
            command: &hermes_core::command::COMMANDS[1],
            title: "Go on with".into(),
            items: vec![item("fix the build"), item("write the docs")],
            depth: Depth::Deep,
        }));
        let value = "write the docs".to_owned();
        let text = "› what is missing?\n  A page on terminals.".to_owned();
        scene.host(FromHost::Looked { value, text });
        scene.write("do");
        format!("{suggestions}\n{}", scene.screen())
    };
    insta::assert_snapshot!("choosing_80x24", screen(80, 24));
    insta::assert_snapshot!("choosing_120x40", screen(120, 40));
    insta::assert_snapshot!("choosing_40x12", screen(40, 12));
}

#[test]
fn a_list_can_be_chosen_from_in_a_terminal_of_a_few_rows() {
    for rows in 3..8 {
        let mut scene = Scene::new(20, rows);
        scene.host(FromHost::Choose(Choice {
            command: &hermes_core::command::COMMANDS[1],
            title: "Go on with".into(),
            items: vec![Item {
                value: "a".into(),
                label: "the build".into(),
                detail: String::new(),
            }],
            depth: Depth::Flat,
        }));
        let screen = scene.screen();
        assert!(screen.contains("› the build"), "{rows} rows:\n{screen}");
    }
}

#[test]
fn while_it_works_and_nothing_is_typed_the_cursor_rests() {
    let mut scene = Scene::new(80, 24);
    let is_resting = |scene: &Scene| scene.app.view(80, 24).cursor.is_none();
    assert!(!is_resting(&scene));
    scene.begin("hi");
    assert!(is_resting(&scene));
    scene.write("x");
    assert!(!is_resting(&scene), "who types sees where");
    scene.press(KeyCode::Backspace, KeyModifiers::NONE);
    scene.press(KeyCode::Char('r'), KeyModifiers::CONTROL);
    assert!(!is_resting(&scene), "who searches too");
    scene.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(is_resting(&scene));
    scene.end(TurnEnd::Finished);
    assert!(!is_resting(&scene));
}

#[test]
fn a_conversation_that_goes_on_shows_its_end_and_how_much_came_before() {
    let past = vec![
        Message::user("a question"),
        Message::assistant("an *answer*"),
    ];
    let shown = |earlier| {
        let mut scene = Scene::new(80, 24);
        scene.host(FromHost::Opened(Opened {
            earlier,
            ..opened("s2", past.clone())
        }));
        scene.screen()
    };
    let whole = shown(0);
    assert!(whole.contains("› a question") && whole.contains("an answer"));
    assert!(whole.contains("going on where you stopped") && !whole.contains("came before"));
    let end = shown(49_998);
    assert!(end.contains("an answer"), "{end}");
    assert!(end.contains("49998 messages came before these; /history shows them"));
    assert!(shown(1).contains("1 message came before these; /history shows it"));
}

#[test]
fn nothing_moves_when_nothing_happens() {
    let mut scene = Scene::new(80, 24);
    assert!(!scene.app.is_moving());
    scene.begin("hi");
    assert!(scene.app.is_moving());
    scene.end(TurnEnd::Finished);
    assert!(!scene.app.is_moving());
}

#[test]
fn every_size_of_terminal_is_drawn_in() {
    for columns in [1, 2, 10, 200] {
        for rows in [1, 2, 3, 5, 9] {
            busy_scene(columns, rows).screen();
            asking_scene(columns, rows).screen();
        }
    }
}

#[test]
fn letters_answer_a_question() {
    let answered = |letter| {
        let mut scene = asking_scene(80, 24);
        let op = ops(requests(scene.press(letter, KeyModifiers::NONE))).pop();
        assert!(!scene.screen().contains("allow?"));
        match op {
            Some(Op::Answer { answer, .. }) => answer.verdict,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answered(KeyCode::Char('y')), Verdict::Once);
    assert_eq!(answered(KeyCode::Char('S')), Verdict::Session);
    assert_eq!(answered(KeyCode::Char('n')), Verdict::Deny);
    assert_eq!(answered(KeyCode::Esc), Verdict::Deny);
}

#[test]
fn a_question_that_is_over_leaves_the_screen_and_says_how_it_ended() {
    let closed = |how| {
        let mut scene = asking_scene(80, 24);
        let approval = "a1".into();
        scene.event(Event::ApprovalClosed { approval, how });
        let screen = scene.screen();
        assert!(!screen.contains("allow?"), "{screen}");
        screen
    };
    let verdict = Verdict::Deny;
    let by = AnswerSource::Command;
    let elsewhere = closed(Settled::Answered { verdict, by });
    assert!(elsewhere.contains("answered elsewhere (with `hermes approvals`): refused"));
    assert!(closed(Settled::Expired).contains("nobody answered in time"));
    let by = AnswerSource::Chat;
    let here = closed(Settled::Answered { verdict, by });
    assert!(!here.contains("answered elsewhere"), "{here}");
}

#[test]
fn only_what_a_question_offers_answers_it() {
    let mut scene = Scene::new(80, 24);
    scene.begin("clean up");
    let choices = vec![Verdict::Once, Verdict::Deny];
    scene.event(Event::ApprovalRequested(ApprovalRequest {
        choices,
        ..question()
    }));
    assert!(!scene.screen().contains("for this session"));
    let op = ops(requests(
        scene.press(KeyCode::Char('s'), KeyModifiers::NONE),
    ));
    assert!(op.is_empty(), "{op:?}");
    assert!(scene.screen().contains("allow?"));
}

/// A form with its first field filled in.
fn form_scene(columns: u16, rows: u16) -> Scene {
    let mut scene = Scene::new(columns, rows);
    scene.begin("go");
    scene.write("draft");
    scene.wait(2);
    let field = |name: &str| {
        let kind = FieldKind::Integer {
            min: Some(1),
            max: None,
            default: None,
        };
        Field::new(name, kind)
    };
    scene.event(Event::ElicitationRequested(Elicitation {
        id: "q1".into(),
        call: "c1".into(),
        tool: "book".into(),
        asker: "the travel server".into(),
        message: "How many?".into(),
        wanted: Wanted::Form {
            fields: vec![field("adults"), field("children")],
        },
        expires_in_ms: 60_000,
    }));
    scene.write("none");
    assert!(requests(scene.press(KeyCode::Enter, KeyModifiers::NONE)).is_empty());
    scene.control('u');
    scene.write("2");
    scene.press(KeyCode::Enter, KeyModifiers::NONE);
    scene
}

#[test]
fn a_form_is_filled_in_field_by_field_and_the_draft_stays() {
    insta::assert_snapshot!("form_80x24", form_scene(80, 24).screen());
    insta::assert_snapshot!("form_120x40", form_scene(120, 40).screen());
    insta::assert_snapshot!("form_40x12", form_scene(40, 12).screen());
    let mut scene = form_scene(80, 24);
    let op = ops(requests(scene.press(KeyCode::Enter, KeyModifiers::NONE)));
    let values = json!({"adults": 2}).as_object().unwrap().clone();
    let response = Response::Accepted { values };
    let elicitation = "q1".into();
    assert_eq!(
        op,
        [Op::Respond {
            elicitation,
            response
        }]
    );
    assert_eq!(scene.app.draft(), "draft");
}

#[test]
fn who_is_typing_does_not_answer_by_accident() {
    let mut scene = Scene::new(80, 24);
    scene.begin("clean up");
    scene.write("wh");
    scene.event(Event::ApprovalRequested(question()));
    scene.write("y not");
    assert_eq!(scene.app.draft(), "why not");
    scene.wait(2);
    let op = ops(requests(
        scene.press(KeyCode::Char('n'), KeyModifiers::NONE),
    ));
    assert!(matches!(op[..], [Op::Answer { .. }]), "{op:?}");
}

#[test]
fn ctrl_c_stops_then_leaves_and_never_loses_a_draft() {
    let mut scene = Scene::new(80, 24);
    scene.begin("go");
    assert_eq!(ops(requests(scene.control('c'))), [Op::Interrupt]);
    assert!(matches!(requests(scene.control('c'))[..], [ToHost::Leave]));
    let mut scene = Scene::new(80, 24);
    scene.write("a draft");
    let effects = scene.control('c');
    assert!(matches!(&effects[..], [Effect::Remember(text)] if text == "a draft"));
    scene.press(KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(scene.app.draft(), "a draft");
}

#[test]
fn ctrl_d_deletes_and_leaves_when_there_is_nothing_to_delete() {
    let mut scene = Scene::new(80, 24);
    scene.write("ab");
    scene.control('a');
    assert!(scene.control('d').is_empty());
    assert_eq!(scene.app.draft(), "b");
    scene.control('d');
    assert!(matches!(requests(scene.control('d'))[..], [ToHost::Leave]));
}

#[test]
fn commands_go_to_the_program_and_a_wrong_one_stays_in_the_input() {
    let mut scene = Scene::new(80, 24);
    match &scene.send("/title  a name ")[..] {
        [ToHost::Command { command, arguments }] => {
            assert_eq!((command.verb, arguments.as_str()), (Verb::Title, "a name"));
        }
        other => panic!("{other:?}"),
    }
    assert!(scene.send("/titel x").is_empty());
    assert_eq!(scene.app.draft(), "/titel x");
    assert!(scene.screen().contains("did you mean /title?"));
}

#[test]
fn a_command_that_has_to_wait_stays_in_the_input() {
    let mut scene = Scene::new(80, 24);
    scene.begin("go");
    assert!(scene.send("/model other").is_empty());
    assert_eq!(scene.app.draft(), "/model other");
}

fn image_scene(columns: u16, rows: u16) -> Scene {
    let mut scene = Scene::new(columns, rows);
    scene.write("see ");
    let pasted = Input::PastedImages {
        text: "/tmp/a\\ cat.png".to_owned(),
        images: vec![PathBuf::from("/tmp/a cat.png")],
    };
    scene.app.update(pasted, scene.now);
    scene
}

#[test]
fn images_are_chips_and_go_beside_the_words() {
    insta::assert_snapshot!("image_80x24", image_scene(80, 24).screen());
    insta::assert_snapshot!("image_120x40", image_scene(120, 40).screen());
    insta::assert_snapshot!("image_40x12", image_scene(40, 12).screen());
    let mut scene = image_scene(80, 24);
    let requests = requests(scene.press(KeyCode::Enter, KeyModifiers::NONE));
    match &requests[..] {
        [
            ToHost::Accompanied {
                op, images: sent, ..
            },
        ] => {
            assert_eq!(*op, say("see [image: /tmp/a cat.png]"));
            assert_eq!(*sent, [PathBuf::from("/tmp/a cat.png")]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_clipboard_is_asked_for_and_its_image_attached_or_what_is_wrong_told() {
    let mut scene = Scene::new(80, 24);
    let asked = requests(scene.control('v'));
    assert!(matches!(asked[..], [ToHost::Clipboard]), "{asked:?}");
    scene.host(FromHost::Image(Ok("/tmp/clip.png".into())));
    assert!(scene.screen().contains("› [image clip.png]"));
    scene.host(FromHost::Image(Err("there is none".into())));
    assert!(scene.screen().contains("there is none"));
}

#[test]
fn the_status_row_names_the_mode_of_vi_keys() {
    let screen = |columns, rows| {
        let settings = Settings {
            edit_mode: EditMode::Vi,
            ..Settings::default()
        };
        let mut scene = Scene::with(settings, columns, rows);
        scene.write("some words");
        let insert = scene.screen();
        scene.press(KeyCode::Esc, KeyModifiers::NONE);
        scene.write("bD");
        format!("{insert}\n{}", scene.screen())
    };
    insta::assert_snapshot!("vi_80x24", screen(80, 24));
    insta::assert_snapshot!("vi_120x40", screen(120, 40));
    insta::assert_snapshot!("vi_40x12", screen(40, 12));
}

#[test]
fn a_call_says_how_many_pictures_it_showed() {
    let mut scene = Scene::new(80, 24);
    scene.begin("go");
    scene.call("c1", "read_file", json!({"path": "cat.png"}));
    scene.event(Event::CallFinished {
        call: "c1".into(),
        tool: "read_file".into(),
        status: ResultStatus::Ok,
        text: "cat.png: PNG image, 64×48, 1 KB".into(),
        elapsed_ms: 1,
        images: 1,
    });
    scene.screen();
    let printed: String = scene.printed.iter().map(ToString::to_string).collect();
    assert!(
        printed.contains("✓ read_file cat.png (1 picture)"),
        "{printed}"
    );
}

#[test]
fn nothing_a_model_says_reaches_the_terminal_as_an_order() {
    let mut scene = Scene::new(80, 24);
    scene.begin("go");
    scene.text("a\u{1b}]0;owned\u{7}b\u{1b}[2J\u{202e}c\td\r");
    scene.call("c1", "to\u{1b}[31mol", json!({"x": "\u{1b}[2J"}));
    scene.event(Event::CallFinished {
        call: "c1".into(),
        tool: "to\u{1b}[31mol".into(),
        status: ResultStatus::Failed,
        text: "no\u{1b}[2J\u{9b}1m".into(),
        elapsed_ms: 1,
        images: 0,
    });
    scene.host(FromHost::Told("told\u{1b}[2J".into()));
    scene.end(TurnEnd::Finished);
    scene.screen();
    let printed: String = scene.printed.iter().map(ToString::to_string).collect();
    assert!(printed.contains("abc    d"), "{printed}");
    assert!(!printed.contains(char::is_control), "{printed:?}");
    assert!(!printed.contains('\u{202e}'));
}

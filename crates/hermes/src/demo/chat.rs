//! The act with a chat: a real gateway, killed in the middle of an answer, and a job that tells its result there.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_core::{JobDesk as _, JobDraft, Random};
use hermes_exec::ProgramOutput;
use hermes_runtime::schedules::Desk;
use hermes_runtime::{SystemClock, open_store};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Stage, phone};
use crate::args::GatewayRunArgs;
use crate::base::Base;
use crate::commands::gateway;
use crate::failure::{Failure, Outcome};

const QUESTION: &str = "What is open on Tuesday?";
const ANSWER: &str = "Water the laurel, and answer Penelope.";
const MEANWHILE: &str = "And on Monday?";
const SECOND_ANSWER: &str = "Book the train to Delphi.";
const JOB: &str = "Say whether the laurel needs water.";
const REPORT: &str = "The laurel is dry: please water it.";
/// Where the second gateway finds what it is to do soon.
const JOB_FILE: &str = "job.txt";
/// How long the model thinks, so that there is a middle to be killed in.
const THINKING: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

impl Stage {
    pub(super) async fn chat_act(&self) -> Outcome<()> {
        let model = ChatModel::start().await.map_err(|error| failed(&error))?;
        let home = self.home.join("gateway");
        let phone = home.join("phone");
        std::fs::create_dir_all(&phone).map_err(|error| failed(&error))?;
        std::fs::write(home.join("config.yaml"), model.config(&phone))
            .map_err(|error| failed(&error))?;
        self.say("`hermes gateway run` serves a phone. Penelope writes:")?;
        let first = self.gateway(&home);
        self.person(&phone, QUESTION)?;
        tokio::select! {
            () = model.asked(1) => {}
            ended = first => return Err(ended_early(ended)),
        }
        self.say(
            "The model was answering, and the gateway was just killed with SIGKILL. She writes on:",
        )?;
        self.person(&phone, MEANWHILE)?;
        std::fs::write(home.join(JOB_FILE), JOB).map_err(|error| failed(&error))?;
        self.say("Another gateway is started, and has a job for the next seconds:")?;
        let second = self.gateway(&home);
        let told = async {
            let is_there = |words: &str| {
                let answers = phone::answers(&phone);
                answers.iter().any(|(_, text)| text.contains(words))
            };
            while ![ANSWER, SECOND_ANSWER, REPORT].into_iter().all(is_there) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            told = tokio::time::timeout(PATIENCE, told) => told.map_err(|_| Failure::new("the phone was not answered"))?,
            ended = second => return Err(ended_early(ended)),
        }
        for (_, text) in phone::answers(&phone) {
            self.say(&format!("  hermes: {}", text.trim()))?;
        }
        self.say("Every message was answered once, in order, and the job told its result in the same chat.")
    }

    fn person(&self, phone: &std::path::Path, text: &str) -> Outcome<()> {
        phone::say(phone, text).map_err(|error| failed(&error))?;
        self.user(text)
    }

    /// Runs a gateway in its home; dropping the future kills it with SIGKILL.
    async fn gateway(
        &self,
        home: &std::path::Path,
    ) -> Result<ProgramOutput, hermes_core::TerminalError> {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("hermes"));
        let program = program.to_string_lossy();
        let mut environment = self.child_environment();
        environment.retain(|(name, _)| name != "HERMES_HOME");
        environment.push(("HERMES_HOME".into(), home.into()));
        let args = ["demo", "--serve"];
        hermes_exec::output(&program, args, &environment, home, PATIENCE).await
    }
}

/// The gateway's part of the act: a real one, in a home of the demo's.
pub(crate) async fn serve(base: Arc<Base>) -> Outcome<()> {
    let home = base.home.directory().to_owned();
    // What runs below a conversation may start a demo, and nothing that serves a real home.
    let is_of_demo = home.starts_with(std::env::temp_dir()) && home.join("phone").is_dir();
    if !is_of_demo {
        return Err(Failure::usage(
            "this is a part of `hermes demo`, and works in its home alone",
        ));
    }
    if let Ok(prompt) = std::fs::read_to_string(home.join(JOB_FILE)) {
        let store = Arc::new(open_store(&base)?);
        let random = Arc::new(Random::from_system());
        let draft = JobDraft {
            prompt: Some(prompt),
            schedule: Some("in 2 seconds".to_owned()),
            deliver: Some(phone::NAME.to_owned()),
            ..JobDraft::default()
        };
        let desk = Desk::new(Arc::clone(&base), store, Arc::new(SystemClock), random);
        desk.add(draft).await.map_err(|error| failed(&error))?;
    }
    gateway::serve::serve(base, GatewayRunArgs::default()).await
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

fn ended_early(ended: Result<ProgramOutput, hermes_core::TerminalError>) -> Failure {
    let told = ended.map_or_else(|error| error.to_string(), |output| output.stderr);
    Failure::new(format!("the gateway of the demo ended: {told}"))
}

/// A model behind HTTP, as the gateway of the demo knows one.
struct ChatModel {
    url: String,
    asked: Arc<AtomicUsize>,
    /// Ends with it.
    _serving: JoinSet<()>,
}

impl ChatModel {
    async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer_all(stream, Arc::clone(&counter)));
            }
        });
        Ok(Self {
            url,
            asked,
            _serving: serving,
        })
    }

    /// Waits until it was asked so often.
    async fn asked(&self, times: usize) {
        while self.asked.load(Ordering::Acquire) < times {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn config(&self, phone: &std::path::Path) -> String {
        let config = json!({
            "model": {"provider": "custom", "default": "scripted", "base_url": self.url, "api_key": "sk-of-the-demo-alone"},
            "auxiliary": {"title_generation": {"enabled": false}},
            "learning": {"enabled": false},
            "display": {"busy_input_mode": "queue"},
            "platforms": {(phone::NAME): {
                "folder": phone, "allowed_users": phone::PERSON, "home_channel": phone::PERSON,
            }},
        });
        // JSON is YAML.
        config.to_string()
    }
}

async fn answer_all(stream: TcpStream, asked: Arc<AtomicUsize>) {
    let mut stream = BufReader::new(stream);
    while let Some(body) = read_request(&mut stream).await {
        let reply = match answer(&body) {
            Some(text) => {
                asked.fetch_add(1, Ordering::AcqRel);
                tokio::time::sleep(THINKING).await;
                streamed(text)
            }
            None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        if stream.get_mut().write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The body of the next request; `None` at the end.
async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(body)
}

/// What the model says to the last words of the person.
fn answer(body: &[u8]) -> Option<&'static str> {
    let request: Value = serde_json::from_slice(body).ok()?;
    let messages = request["messages"].as_array()?;
    let last = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user")?;
    let said = last.to_string();
    let lines = [
        (QUESTION, ANSWER),
        (MEANWHILE, SECOND_ANSWER),
        (JOB, REPORT),
    ];
    let fitting = lines.iter().find(|(question, _)| said.contains(question));
    Some(fitting.map_or("I do not know that line.", |(_, answer)| answer))
}

fn streamed(text: &str) -> String {
    let chunk = |delta: Value, reason: Value| {
        json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
               "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let body = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        chunk(json!({"role": "assistant", "content": text}), Value::Null),
        chunk(json!({}), json!("stop"))
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

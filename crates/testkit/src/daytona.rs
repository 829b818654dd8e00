//! Stands in for Daytona's cloud: its HTTP API over a real socket, with sandboxes that are folders of this machine.
//!
//! Knows the calls Hermes makes and refuses all others. A command is taken apart as the simplest toolbox does it, at spaces
//! and quotes, and runs in the folder of its sandbox. Putting a sandbox to sleep kills what runs in it.

#![expect(clippy::expect_used, reason = "a failed helper is a failed test")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What callers must show.
pub const KEY: &str = "daytona-test-key";

/// Marks the processes of a sandbox.
const MARK: &str = "DAYTONA_EMULATOR";

/// The service. It serves until the program ends.
#[derive(Debug, Clone)]
pub struct DaytonaServer {
    address: String,
    cloud: Arc<Mutex<Cloud>>,
}

#[derive(Debug)]
struct Cloud {
    folder: PathBuf,
    /// The one sandbox, as it is told to callers.
    sandbox: Option<Value>,
    /// What was asked for when it was made, and how often it was started.
    wanted: Value,
    starts: u32,
}

impl DaytonaServer {
    /// Sandboxes keep their files in `folder`.
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Self {
            address: format!("http://127.0.0.1:{port}/api"),
            cloud: Arc::new(Mutex::new(Cloud {
                folder: folder.to_owned(),
                sandbox: None,
                wanted: Value::Null,
                starts: 0,
            })),
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Puts the sandbox to sleep, as Daytona does after a while, and kills what runs in it.
    pub fn put_to_sleep(&self) {
        let mut cloud = self.cloud();
        if let Some(sandbox) = &mut cloud.sandbox {
            sandbox["state"] = json!("stopped");
        }
        let mark = format!("{MARK}={}", cloud.folder.display());
        drop(cloud);
        kill_marked(&mark);
    }

    /// How often a sandbox was made or woken.
    pub fn starts(&self) -> u32 {
        self.cloud().starts
    }

    /// What the sandbox was asked to be.
    pub fn wanted(&self) -> Value {
        self.cloud().wanted.clone()
    }

    fn cloud(&self) -> std::sync::MutexGuard<'_, Cloud> {
        self.cloud.lock().expect("no panic before")
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            let (status, body) = self.answer(&request);
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let stream = reader.get_mut();
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> (u16, Value) {
        if request.key != KEY {
            return (401, json!({"message": "Unauthorized"}));
        }
        let path = request.path.strip_prefix("/api/").unwrap_or_default();
        match (request.method.as_str(), path) {
            ("POST", "sandbox") => self.create(&request.body),
            ("POST", "sandbox/box-1/start") => self.wake(),
            ("POST", "toolbox/box-1/toolbox/process/execute") => self.execute(&request.body),
            ("GET", path) if path.starts_with("sandbox/") => match &mut self.cloud().sandbox {
                Some(sandbox) if sandbox["name"] == path["sandbox/".len()..] => {
                    let seen = sandbox.clone();
                    // It takes its time to wake, and is up when somebody looks again.
                    if sandbox["state"] == "starting" {
                        sandbox["state"] = json!("started");
                    }
                    (200, seen)
                }
                _ => (404, json!({"message": "Sandbox not found"})),
            },
            _ => (404, json!({"message": "no such call"})),
        }
    }

    fn create(&self, wanted: &Value) -> (u16, Value) {
        let mut cloud = self.cloud();
        let sandbox = json!({"id": "box-1", "name": wanted["name"], "state": "starting"});
        cloud.sandbox = Some(sandbox.clone());
        cloud.wanted = wanted.clone();
        cloud.starts += 1;
        (200, sandbox)
    }

    fn wake(&self) -> (u16, Value) {
        let mut cloud = self.cloud();
        cloud.starts += 1;
        match &mut cloud.sandbox {
            Some(sandbox) if sandbox["state"] == "stopped" => {
                sandbox["state"] = json!("starting");
                (200, sandbox.clone())
            }
            _ => (400, json!({"message": "Sandbox is not stopped"})),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "runs commands for a test")]
    fn execute(&self, request: &Value) -> (u16, Value) {
        let folder = {
            let cloud = self.cloud();
            let state = cloud.sandbox.as_ref().map(|sandbox| &sandbox["state"]);
            if state != Some(&json!("started")) {
                return (400, json!({"message": "Sandbox is not running"}));
            }
            cloud.folder.clone()
        };
        let words = words_of(request["command"].as_str().unwrap_or_default());
        let Some((program, args)) = words.split_first() else {
            return (400, json!({"message": "empty command"}));
        };
        let output = Command::new(program)
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &folder)
            .env("TMPDIR", &folder)
            .env(MARK, &folder)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .expect("a command runs");
        let result = [output.stdout, output.stderr].concat();
        let result = String::from_utf8_lossy(&result);
        (
            200,
            json!({"exitCode": output.status.code().unwrap_or(-1), "result": result}),
        )
    }
}

struct Request {
    method: String,
    path: String,
    key: String,
    body: Value,
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let (mut key, mut body_bytes) = (String::new(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim().split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => body_bytes = value.parse().ok()?,
                "authorization" => key = value.trim_start_matches("Bearer ").to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; body_bytes];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Some(Self {
            method,
            path,
            key,
            body,
        })
    }
}

/// Takes a command apart at spaces that are not in quotes.
fn words_of(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.push(String::new()),
            (c, _) => words.last_mut().expect("a word").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(crate) fn kill_marked(mark: &str) {
    let processes = Path::new("/proc").read_dir().into_iter().flatten();
    for process in processes.flatten() {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let pid = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let is_marked = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes());
        if let (true, Some(pid)) = (is_marked, pid.and_then(rustix::process::Pid::from_raw)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        kill_marked(&format!("{MARK}={}", self.folder.display()));
    }
}

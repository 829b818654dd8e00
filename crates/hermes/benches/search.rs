//! How long `search_files` takes beside `rg` itself, on a tree of 60,000 files. Prints one JSON object per figure;
//! `scripts/bench` reads them. `--quick` searches a tenth of the tree.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "its figures")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_core::{Terminal, Tool};
use hermes_exec::{Background, Local, ProcessFolder};
use hermes_testkit::TestClock;
use hermes_testkit::contract::tool::context;
use hermes_tools::{
    CodePlace, CodeSettings, EditReview, FileLedger, FilePlace, ToolLimits, ToolPorts, WebSettings,
};
use serde_json::{Value, json};

const FOLDERS: usize = 600;
const FILES_PER_FOLDER: usize = 100;
const LINES_PER_FILE: usize = 300;
const ROUNDS: usize = 9;

/// The most a search may take, as a multiple of what `rg` needs.
const RATIO_MAX: f64 = 1.2;

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    generate(&tree, if is_quick { FOLDERS / 10 } else { FOLDERS });
    let search = search_tool(place.path());
    for (what, arguments, rg) in [
        (
            "a rare word",
            json!({"pattern": "needle_in_the_haystack"}),
            vec!["-n", "needle_in_the_haystack"],
        ),
        (
            "an expression",
            json!({"pattern": "value_\\d+7 = .*\\b29\\)"}),
            vec!["-n", "value_\\d+7 = .*\\b29\\)"],
        ),
        (
            "every line, counted",
            json!({"pattern": "static", "output_mode": "count"}),
            vec!["-c", "static"],
        ),
        (
            "names of files",
            json!({"pattern": "file7*.c", "target": "files"}),
            vec!["--files", "-g", "file7*.c"],
        ),
    ] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(searched(&search, &arguments, &tree).await);
            theirs.push(ripgrep(&tree, &rg));
        }
        let ratio = median(ours).as_secs_f64() / median(theirs).as_secs_f64();
        let what = format!("search_files beside rg: {what}");
        let figure = json!({ "what": what, "value": ratio, "unit": "×", "budget": RATIO_MAX });
        println!("{figure}");
    }
}

fn search_tool(home: &Path) -> Arc<dyn Tool> {
    let terminal: Arc<dyn Terminal> = Arc::new(Local::new(Vec::new(), home.join("shells")));
    let processes = Background::new(
        Arc::clone(&terminal),
        ProcessFolder::Here(home.join("processes")),
        home.join("records"),
        Arc::new(TestClock::default()),
    );
    let tools = hermes_tools::built_in(&ToolPorts {
        terminal,
        processes: Arc::new(processes),
        limits: ToolLimits::default(),
        code: CodeSettings::at(CodePlace::Elsewhere),
        home: None,
        secret: Vec::new(),
        private: None,
        protected: Vec::new(),
        settings: Vec::new(),
        edit_review: EditReview::default(),
        fence: hermes_tools::ToolFence::Off,
        file_place: FilePlace::here(),
        files: FileLedger::default(),
        commands: Arc::new(hermes_policy::CommandLists::default()),
        web: WebSettings::new(home.join("web")),
    });
    let mut tools = tools.into_iter();
    tools
        .find(|tool| tool.spec().name == "search_files")
        .unwrap()
}

fn generate(tree: &Path, folders: usize) {
    for folder in 0..folders {
        let path = tree.join(format!("drivers/group{}/part{folder}", folder % 40));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..FILES_PER_FOLDER {
            let mut text = String::new();
            for line in 0..LINES_PER_FILE {
                let value = folder * 31 + file * 7 + line;
                text.push_str(&format!(
                    "static int value_{value} = compute(device, {line}); /* {file} */\n"
                ));
            }
            if file == folder % FILES_PER_FOLDER {
                text.push_str("int needle_in_the_haystack(void);\n");
            }
            std::fs::write(path.join(format!("file{file}.c")), text).unwrap();
        }
    }
}

async fn searched(search: &Arc<dyn Tool>, arguments: &Value, tree: &Path) -> Duration {
    let started = Instant::now();
    search.run(arguments.clone(), &context(tree)).await.unwrap();
    started.elapsed()
}

#[expect(clippy::disallowed_methods, reason = "`rg` is what we compare with")]
fn ripgrep(tree: &Path, arguments: &[&str]) -> Duration {
    let started = Instant::now();
    let output = Command::new("rg")
        .args(arguments)
        .current_dir(tree)
        .output();
    assert!(
        !output.unwrap().stdout.is_empty(),
        "rg finds what we look for"
    );
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

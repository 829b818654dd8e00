//! `search_files`: finds lines or files, on ripgrep's own libraries.
//!
//! `walk` goes through the files, `content` searches one, `page` keeps what will be shown, `glob` says which files are
//! meant. Files that are not on this machine are searched `there`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hermes_core::{
    Brief, CancellationToken, Effect, Exposure, Parallel, Plan, PlanContext, Scripts, Subagents,
    Surfaces, Tool, ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::here::Here;
use crate::files::there::There;
use crate::files::{FileSystem, FileSystems, Files};
use crate::guard::PinnedGuard;
use crate::{BuiltIn, ToolPorts, arguments, neighbours};

mod content;
mod extended;
mod glob;
mod page;
mod there;
mod walk;
mod watch;

use content::{FileMatches, MatchedLine};
use glob::FileGlob;
use page::{Hits, Page};
use there::{Lines, ThereSearch};
use walk::{Count, LeftOut, LineSearch, Name, SearchScope, shown};
use watch::Watch;

const NAME: &str = "search_files";

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 1000;

/// Results up to the end of a page, which are held in memory.
const WANTED_MAX: usize = 100_000;

const CONTEXT_MAX: usize = 20;

/// After this time what was found so far is the answer.
const TIME_MAX: Duration = Duration::from_secs(60);

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("file"),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::Yes,
    for_small_models: Some(Brief {
        description: "Find which files contain a text.",
        parameters: &["pattern"],
        example: None,
    }),
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(SearchFiles {
        chars_max: ports.limits.read_chars_max,
        systems: FileSystems::new(ports),
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Search file contents by regular expression, or find files by name. Hidden files and those that \
                      git ignores are left out. Prefer this to `grep`, `rg`, `find` or `ls` in `terminal`."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "content: regular expression, line by line, `(?i)` to ignore case. files: glob such as `*.rs` or `src/**/test_*`, or a part of a name",
                },
                "target": {"type": "string", "description": "content (default) or files (newest first)"},
                "path": {"type": "string", "description": "Folder or file to search (default: working directory)"},
                "file_glob": {"type": "string", "description": "content: only files like `*.py`"},
                "output_mode": {"type": "string", "description": "content: matching lines (content, default), files_only, or count per file"},
                "context": {"type": "integer", "minimum": 0, "description": "Lines shown around each match (default 0)"},
                "limit": {"type": "integer", "minimum": 1, "description": format!("Results at most (default {LIMIT_DEFAULT})")},
                "offset": {"type": "integer", "minimum": 0, "description": "Results to skip (default 0)"},
            },
            "required": ["pattern"],
        }),
    }
}

struct SearchFiles {
    chars_max: usize,
    systems: FileSystems,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    target: Option<String>,
    path: Option<String>,
    file_glob: Option<String>,
    output_mode: Option<String>,
    context: Option<usize>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// What the answer consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Lines,
    FilesWithLines,
    Counts,
    Files,
}

impl Wanted {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        match arguments.target.as_deref() {
            None | Some("content" | "grep") => {}
            Some("files" | "find") => return Ok(Self::Files),
            Some(other) => {
                return Err(format!(
                    "there is no target `{other}`; use content or files"
                ));
            }
        }
        match arguments.output_mode.as_deref() {
            None | Some("content") => Ok(Self::Lines),
            Some("files_only") => Ok(Self::FilesWithLines),
            Some("count") => Ok(Self::Counts),
            Some(other) => Err(format!(
                "there is no output_mode `{other}`; use content, files_only or count"
            )),
        }
    }
}

impl Tool for SearchFiles {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let path = arguments::text(arguments, "path").unwrap_or(".");
        let parallel = self.systems.parallel(&[path], cx.cwd, Parallel::Reads);
        let arguments = arguments::parse(NAME, arguments);
        Plan::doing(Effect::Read, parallel, move |cx| {
            Box::pin(async move { self.search(arguments?, cx).await })
        })
    }
}

impl SearchFiles {
    async fn search(
        &self,
        arguments: Arguments,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".").to_owned();
        let system = self.systems.to_read(&path, cx);
        let mut searching = Searching {
            arguments,
            path: PathBuf::new(),
            cwd: cx.cwd.clone(),
            chars_max: self.chars_max,
            stop: cx.stop.clone(),
        };
        let pass = self.systems.pass_to_read(&path, &cx.cwd);
        let place = (cx.cwd.as_path(), &cx.stop);
        let searched = self.systems.work(place, pass, move || {
            let absolute = system.files().absolute(&path, &searching.cwd);
            searching.path =
                absolute.map_err(|error| format!("cannot search `{path}`: {error}"))?;
            match &system {
                FileSystem::Here(here) => searching.run_here(here),
                FileSystem::There(there) => searching.run_there(there),
            }
        });
        match searched.await {
            Some(Ok(text)) => Ok(ToolOutput::text(text)),
            Some(Err(answer)) => Err(ToolError::Answer(answer)),
            None => Err(ToolError::Stopped(
                "stopped while searching; nothing was changed".to_owned(),
            )),
        }
    }
}

/// One call, on a thread that may wait for the disk.
struct Searching {
    arguments: Arguments,
    path: PathBuf,
    cwd: PathBuf,
    chars_max: usize,
    stop: CancellationToken,
}

impl Searching {
    /// Searches and presents what was found; an error is written for the model.
    fn run_here(&self, here: &Here) -> Result<String, String> {
        let wanted = Wanted::new(&self.arguments)?;
        let guard = here.guard().map_err(|error| error.to_string())?;
        let root = self.root(here, &guard)?;
        let place = SearchScope {
            root,
            glob: self.glob(wanted)?,
        };
        let watch = Watch::new(self.stop.clone(), TIME_MAX);
        let answer = match wanted {
            Wanted::Files => self.present_files(&place.find_files(self.end(), &watch)),
            wanted => self.find_lines(wanted, &place, guard, &watch)?,
        };
        Ok(if watch.has_timed_out() {
            format!(
                "{answer}\n[the search was ended after {} s and is not complete; search a smaller folder]",
                TIME_MAX.as_secs()
            )
        } else {
            answer
        })
    }

    /// Does the same where commands run.
    fn run_there(&mut self, there: &There) -> Result<String, String> {
        let wanted = Wanted::new(&self.arguments)?;
        let bearings = there.bearings().map_err(|error| error.to_string())?;
        self.cwd.clone_from(&bearings.folder);
        let glob = self.glob(wanted)?;
        let search = ThereSearch {
            there,
            path: &self.path,
            glob: glob.as_ref(),
        };
        let (answer, is_complete) = match wanted {
            Wanted::Files => {
                let found = search.find_files(self.end())?;
                (self.present_files(&found.found), found.is_complete)
            }
            wanted => self.find_lines_there(wanted, &search)?,
        };
        Ok(if is_complete {
            answer
        } else {
            format!(
                "{answer}\n[the search took too long or found too much and is not complete; search a smaller folder]"
            )
        })
    }

    fn find_lines_there(
        &self,
        wanted: Wanted,
        search: &ThereSearch<'_>,
    ) -> Result<(String, bool), String> {
        let lines = Lines {
            pattern: &self.arguments.pattern,
            matcher: &content::pattern(&self.arguments.pattern)?.matcher,
            context: self.context(wanted),
        };
        if wanted == Wanted::Lines {
            let found = search.find_lines(&lines, self.end())?;
            let (page, left_out) = &found.found;
            let answer = self.present_lines(page, lines.context);
            return Ok((with_left_out(answer, left_out), found.is_complete));
        }
        let found = search.count_lines(&lines, self.end())?;
        let (page, left_out) = &found.found;
        let answer = self.present_counts(wanted, page);
        Ok((with_left_out(answer, left_out), found.is_complete))
    }

    /// Returns which files are meant, if not all.
    fn glob(&self, wanted: Wanted) -> Result<Option<FileGlob>, String> {
        match (wanted, &self.arguments.file_glob) {
            (Wanted::Files, _) => FileGlob::of_name(&self.arguments.pattern).map(Some),
            (_, Some(glob)) => FileGlob::new(glob).map(Some),
            (_, None) => Ok(None),
        }
    }

    /// Returns where to search, without links.
    fn root(&self, here: &Here, guard: &PinnedGuard) -> Result<PathBuf, String> {
        let shown = self.path.display();
        let root = self
            .path
            .canonicalize()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => neighbours::describe_missing(here, &self.path),
                _ => format!("cannot search `{shown}`: {error}"),
            })?;
        let refusal = guard.refuse_read(&self.path);
        match refusal.or_else(|| guard.refuse_read(&root)) {
            Some(refusal) => Err(refusal),
            None if root.is_dir() || root.is_file() => Ok(root),
            None => Err(format!("`{shown}` is neither a folder nor a regular file")),
        }
    }

    fn offset(&self) -> usize {
        self.arguments.offset.unwrap_or(0).min(WANTED_MAX)
    }

    fn limit(&self) -> usize {
        let limit = self.arguments.limit.unwrap_or(LIMIT_DEFAULT);
        limit.clamp(1, LIMIT_MAX)
    }

    /// Returns the number of the first result after the page.
    fn end(&self) -> usize {
        self.offset() + self.limit()
    }

    fn context(&self, wanted: Wanted) -> usize {
        match wanted {
            Wanted::Lines => self.arguments.context.unwrap_or(0).min(CONTEXT_MAX),
            _ => 0,
        }
    }

    fn find_lines(
        &self,
        wanted: Wanted,
        place: &SearchScope,
        guard: PinnedGuard,
        watch: &Watch,
    ) -> Result<String, String> {
        let pattern = content::pattern(&self.arguments.pattern)?;
        let context = self.context(wanted);
        let search = LineSearch {
            pattern,
            context,
            guard,
            watch,
        };
        let (answer, left_out) = if wanted == Wanted::Lines {
            let (page, left_out) = place.find_lines(&search, self.end());
            (self.present_lines(&page, context), left_out)
        } else {
            let (page, left_out) = place.count_lines(&search, self.end());
            (self.present_counts(wanted, &page), left_out)
        };
        Ok(with_left_out(answer, &left_out))
    }

    fn present_lines(&self, page: &Page<FileMatches>, context: usize) -> String {
        let mut text = String::new();
        let mut seen = 0;
        let mut last = self.offset();
        for (path, file) in page.files() {
            let first = self.offset().saturating_sub(seen).min(file.kept());
            let end = self.end().saturating_sub(seen).clamp(first, file.kept());
            seen += file.kept();
            if first == end {
                continue;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", shown(path, &self.cwd));
            let mut above = None;
            for lines in &file.matches[first..end] {
                push_lines(&mut text, lines, context > 0, &mut above);
                last += 1;
                if text.len() >= self.chars_max {
                    return text + &self.footer("matches", last, page);
                }
            }
        }
        text + &self.footer("matches", last, page)
    }

    fn present_files(&self, page: &Page<Name>) -> String {
        let files = page
            .files()
            .map(|(path, _)| shown(path, &self.cwd).to_string());
        self.present_list("files", files, page)
    }

    fn present_counts(&self, wanted: Wanted, page: &Page<Count>) -> String {
        let files = page.files().map(|(path, count)| match wanted {
            Wanted::Counts => format!("{}: {}", shown(path, &self.cwd), count.0),
            _ => shown(path, &self.cwd).to_string(),
        });
        self.present_list("files", files, page)
    }

    fn present_list<H: Hits>(
        &self,
        what: &str,
        entries: impl Iterator<Item = String>,
        page: &Page<H>,
    ) -> String {
        let mut text = String::new();
        let mut last = self.offset();
        for entry in entries.skip(self.offset()).take(self.limit()) {
            text.push_str(&entry);
            text.push('\n');
            last += 1;
        }
        text + &self.footer(what, last, page)
    }

    /// Says what is not shown, or that there is nothing.
    fn footer<H: Hits>(&self, what: &str, last: usize, page: &Page<H>) -> String {
        let (total, files) = (page.total, page.files_total);
        let in_files = match what {
            "files" => String::new(),
            _ => format!(" in {files} files"),
        };
        let first = self.offset() + 1;
        if total == 0 {
            return format!(
                "no {what} for `{}` in `{}` (hidden files and those that git ignores are not searched)\n",
                self.arguments.pattern,
                self.path.display()
            );
        }
        if last < first {
            return format!(
                "[there are only {total} {what}{in_files}; offset {} is past the end]\n",
                self.offset()
            );
        }
        if last < total {
            format!("[{what} {first}-{last} of {total}{in_files}; continue with offset={last}]\n")
        } else if first > 1 {
            format!("[{what} {first}-{last} of {total}{in_files}; the last]\n")
        } else {
            String::new()
        }
    }
}

/// Appends a match with its context; `above` is the number of the line before it, if it is of the same file.
fn push_lines(
    text: &mut String,
    lines: &[MatchedLine],
    has_context: bool,
    above: &mut Option<u64>,
) {
    for line in lines {
        if has_context && above.is_some_and(|above| above + 1 < line.number) {
            text.push_str("  --\n");
        }
        let mark = if line.is_match { ':' } else { '-' };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}{mark} {}", line.number, line.text);
        *above = Some(line.number);
    }
}

/// Adds to an answer what is not in it.
fn with_left_out(mut answer: String, left_out: &LeftOut) -> String {
    answer.push_str(&describe(left_out));
    answer.truncate(answer.trim_end().len());
    answer
}

fn describe(left_out: &LeftOut) -> String {
    let mut text = String::new();
    if left_out.secret > 0 {
        text.push_str(&format!(
            "[{} files that hold secrets also match and are not shown]\n",
            left_out.secret
        ));
    }
    if left_out.long_line > 0 {
        text.push_str(&format!(
            "[{} files have a line too long to be searched]\n",
            left_out.long_line
        ));
    }
    if left_out.binary {
        text.push_str("[the file is binary and was not searched]\n");
    }
    text
}

//! Searches one file for lines that match.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish,
    SinkMatch,
};
use hermes_core::text::shorten;
use rustix::fs::OFlags;

use super::page::Hits;
use super::watch::Watch;

/// Characters shown of a line, and how many of them stand before the match when it is cut.
const LINE_CHARS_MAX: usize = 500;
const LEAD_CHARS: usize = 100;

/// Bytes of a pattern: more than anybody writes, and little enough to be repeated in an error.
const PATTERN_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a compiled pattern: `\w{200}` fits. `(a{1000}){1000}` is as short and needs ten times as much.
const COMPILED_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Bytes of what each thread remembers of a search, so that it goes faster.
const CACHE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A pattern that is larger than this may take a step for each of its parts at every byte.
const LIGHT_BYTES_MAX: usize = 512 * 1024;

/// A search holds whole lines in memory, and cannot be stopped inside one; a file with a longer one is left out.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
const LINE_BYTES_MAX_HEAVY: usize = 256 * 1024;

/// A pattern, and how long lines may be for it.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) matcher: RegexMatcher,
    line_bytes_max: usize,
}

/// Compiles a pattern. An error is written for the model.
pub(super) fn pattern(pattern: &str) -> Result<Pattern, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!(
            "the pattern has {} bytes, and {PATTERN_BYTES_MAX} are allowed; search for a part of it",
            pattern.len()
        ));
    }
    let light = compile(pattern, LIGHT_BYTES_MAX).map(|matcher| Pattern {
        matcher,
        line_bytes_max: LINE_BYTES_MAX,
    });
    let heavy = |_| {
        compile(pattern, COMPILED_BYTES_MAX).map(|matcher| Pattern {
            matcher,
            line_bytes_max: LINE_BYTES_MAX_HEAVY,
        })
    };
    light.or_else(heavy)
}

fn compile(pattern: &str, bytes_max: usize) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    // Lines may end in `\r\n`, and `$` means their end all the same.
    builder.multi_line(true).crlf(true).ban_byte(Some(0));
    builder
        .size_limit(bytes_max)
        .dfa_size_limit(CACHE_BYTES_MAX);
    builder.build(pattern).map_err(|error| match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => "the search goes line by line, so the pattern cannot contain a line \
                                                 break; search for one of its lines and set `context`"
            .to_owned(),
        grep_regex::ErrorKind::Regex(reason) if reason.contains("size limit") => format!(
            "`{pattern}` is too large when it is compiled ({bytes_max} bytes are allowed); write smaller numbers in \
             {{}}, or `+` and `*` for them"
        ),
        _ => format!(
            "`{pattern}` is not a valid regular expression; to find it literally, put a backslash before each of \
             .+*?()[]{{}}|^$\\: {error}"
        ),
    })
}

/// A line of a file, as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MatchedLine {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) is_match: bool,
}

/// What one file has: for each match kept its line and the context around it.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    pub(super) matches: Vec<Vec<MatchedLine>>,
    pub(super) total: usize,
}

impl Hits for FileMatches {
    fn kept(&self) -> usize {
        self.matches.len()
    }

    fn total(&self) -> usize {
        self.total
    }
}

/// What became of the search of one file.
pub(super) enum Searched {
    Found(FileMatches),
    Nothing,
    Binary,
    /// It has a line too long to be held in memory.
    LongLine,
    /// It could not be read, or there is no time left.
    Unread,
}

/// Whether lines get their number, which costs time in large files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Counted,
    Unknown,
}

/// Searches files one after the other, with the same memory.
pub(super) struct FileSearch {
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl FileSearch {
    pub(super) fn new(pattern: Pattern, context: usize, numbers: Numbers) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(numbers == Numbers::Counted)
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(pattern.line_bytes_max))
            .before_context(context)
            .after_context(context)
            .build();
        Self {
            matcher: pattern.matcher,
            searcher,
        }
    }

    /// Searches a file and keeps its first `kept_max` matches; the others are counted.
    pub(super) fn search(&mut self, path: &Path, kept_max: usize, watch: &Watch) -> Searched {
        let Ok(file) = open(path) else {
            return Searched::Unread;
        };
        let mut collector = Collector {
            matcher: &self.matcher,
            kept_max,
            found: FileMatches::default(),
            before: Vec::new(),
            is_binary: false,
        };
        let watched = Watched { file, watch };
        let searched = self
            .searcher
            .search_reader(&self.matcher, watched, &mut collector);
        match searched {
            _ if collector.is_binary => Searched::Binary,
            Ok(()) if collector.found.total == 0 => Searched::Nothing,
            Ok(()) => Searched::Found(collector.found),
            Err(_) if watch.is_over() => Searched::Unread,
            Err(error) if error.kind() == io::ErrorKind::Other => Searched::LongLine,
            Err(_) => Searched::Unread,
        }
    }
}

/// Opens what was a regular file when it was listed; does not wait should it be a pipe by now.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}

/// A file that ends early when nobody waits for it any more.
struct Watched<'a> {
    file: File,
    watch: &'a Watch,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_over() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            self.file.read(buffer)
        }
    }
}

struct Collector<'a> {
    matcher: &'a RegexMatcher,
    kept_max: usize,
    found: FileMatches,
    /// Context that belongs to the next match.
    before: Vec<MatchedLine>,
    is_binary: bool,
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.total += 1;
        if self.found.matches.len() < self.kept_max {
            let mut lines = std::mem::take(&mut self.before);
            lines.push(MatchedLine {
                number: found.line_number().unwrap_or_default(),
                text: shown(found.bytes(), self.matcher),
                is_match: true,
            });
            self.found.matches.push(lines);
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let is_before = matches!(context.kind(), SinkContextKind::Before);
        // The context after the last match that is kept still belongs to it.
        if self.found.total > self.found.matches.len()
            || (is_before && self.found.total >= self.kept_max)
        {
            return Ok(true);
        }
        let line = MatchedLine {
            number: context.line_number().unwrap_or_default(),
            text: cut(&text_of(context.bytes())),
            is_match: false,
        };
        match self.found.matches.last_mut() {
            Some(lines) if !is_before => lines.push(line),
            _ => self.before.push(line),
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

pub(super) fn text_of(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}

pub(super) fn cut(line: &str) -> String {
    shorten(line, LINE_CHARS_MAX)
}

/// Returns the line, or of a long one the part with the match.
pub(super) fn shown(line: &[u8], matcher: &RegexMatcher) -> String {
    // No character is shorter than a byte, so most lines are not counted.
    if line.len() <= LINE_CHARS_MAX {
        return text_of(line);
    }
    let start = matcher.find(line).ok().flatten();
    let start = start.map_or(0, |found| found.start());
    let before = String::from_utf8_lossy(&line[..start]);
    let skipped = before.chars().count().saturating_sub(LEAD_CHARS);
    let skipped = if before.chars().count() < LINE_CHARS_MAX - LEAD_CHARS {
        0
    } else {
        skipped
    };
    let text = text_of(line);
    let visible: String = text
        .chars()
        .skip(skipped)
        .take(LINE_CHARS_MAX + 1)
        .collect();
    let lead = if skipped > 0 { "…" } else { "" };
    format!("{lead}{}", cut(&visible))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hermes_core::CancellationToken;

    use super::*;

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let matcher = pattern("needle").unwrap().matcher;
        let line = format!("{}needle{}\r\n", "ä".repeat(3000), "b".repeat(3000));
        let text = shown(line.as_bytes(), &matcher);
        assert!(text.starts_with('…') && text.ends_with('…'));
        assert!(text.contains("ääneedlebb"));
        assert_eq!(text.chars().count(), LINE_CHARS_MAX + 1);
        assert_eq!(shown(b"a needle\n", &matcher), "a needle");
    }

    #[test]
    fn a_search_that_is_over_reads_no_further() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        std::fs::write(&path, "needle\n").unwrap();
        let mut search = FileSearch::new(pattern("needle").unwrap(), 0, Numbers::Counted);
        let stop = CancellationToken::new();
        let watch = Watch::new(stop.clone(), Duration::from_secs(60));
        assert!(matches!(
            search.search(&path, 1, &watch),
            Searched::Found(_)
        ));
        stop.cancel();
        assert!(matches!(search.search(&path, 1, &watch), Searched::Unread));
        let watch = Watch::new(CancellationToken::new(), Duration::ZERO);
        assert!(matches!(search.search(&path, 1, &watch), Searched::Unread));
        assert!(watch.has_timed_out());
    }

    #[test]
    fn a_pattern_that_cannot_be_searched_for_is_explained() {
        let error = pattern("a\nb").unwrap_err();
        assert!(error.contains("line by line"), "{error}");
        let error = pattern("foo(").unwrap_err();
        assert!(error.contains("to find it literally"), "{error}");
    }

    #[test]
    fn the_size_of_a_pattern_is_bounded() {
        for large in [
            "(a{1000}){1000}",
            "((a{100}){100}){100}",
            "(?:(?:(?:(?:[a-z]?){99}){99}){99}){99}",
            "\\p{L}{5000}",
            "(?i)(\\w{1,500}\\s){1,500}",
            &format!("{}a{}", "(".repeat(90), "{1,9})".repeat(90)),
        ] {
            let error = pattern(large).unwrap_err();
            assert!(error.contains("too large"), "{large}: {error}");
        }
        let long = "a|".repeat(PATTERN_BYTES_MAX);
        assert!(pattern(&long).unwrap_err().contains("bytes"));
        for usual in [
            "needle",
            "\\w+\\s+=\\s+\\d{1,20}",
            "(?i)error|warn(ing)?",
            "^.{80,120}$",
        ] {
            let pattern = pattern(usual).unwrap();
            assert_eq!(pattern.line_bytes_max, LINE_BYTES_MAX, "{usual}");
        }
        let heavy = pattern("\\w{100}").unwrap();
        assert_eq!(heavy.line_bytes_max, LINE_BYTES_MAX_HEAVY);
    }

    #[test]
    fn a_search_is_stopped_inside_a_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        // Minutes of work for this pattern.
        let line = format!("{}\n", "ab".repeat(100));
        std::fs::write(&path, line.repeat(200_000)).unwrap();
        let pattern = pattern("(?:a|b|ab|ba){40}(?:\\w{1,3}){9}[^a-z]x").unwrap();
        let mut search = FileSearch::new(pattern, 0, Numbers::Counted);
        let stop = CancellationToken::new();
        let watch = Watch::new(stop.clone(), Duration::from_secs(600));
        let stopping = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            stop.cancel();
        });
        let searched = search.search(&path, 1, &watch);
        stopping.join().unwrap();
        assert!(matches!(searched, Searched::Unread | Searched::Nothing));
    }
}

//! What is piped into a question: `cat log | hermes -z "why?"`.
//!
//! Standard input belongs to the question when it is a pipe or a socket, or a file that nobody has read from yet: a loop
//! such as `while read line; do hermes -z "$line"; done < list` keeps its list. A terminal, `/dev/null` and a closed
//! input are nothing. A pipe need not end: programs that start others often leave one open. One that only our own
//! ancestors could write to is given [`FROM_ANCESTORS`]; one that another program of the pipeline holds may be silent for
//! `agent.stdin_silence` seconds. What came until then is the input, and its reader hears that it may go on.

use std::io::{IsTerminal as _, Seek as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use hermes_os::pipeline;
use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncReadExt as _, Stdin};
use tokio::time::{Instant, timeout};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::note;
use hermes_runtime::piped::{End, Piped};

/// How long a pipe that nobody but our ancestors holds may take to give anything. Who starts us with something to read
/// writes it at once; who left the pipe open by accident should not wait long for an answer.
const FROM_ANCESTORS: Duration = Duration::from_secs(3);
/// How long all of it may take: `tail -f` never ends.
const TOTAL: Duration = Duration::from_secs(3600);
/// Bytes read at most. Only the beginning and the end of so much are shown; `yes` would fill any memory.
const READ_BYTES_MAX: usize = 64 << 20;
const CHUNK_BYTES: usize = 64 << 10;

/// Reads what is piped into this process; nothing when nothing is.
pub async fn read(base: &Base) -> Outcome<Option<Piped>> {
    let is_pipe = match kind() {
        Kind::Nothing => return Ok(None),
        Kind::File => false,
        Kind::Pipe => true,
    };
    let silence = if is_pipe {
        base.settings.seconds("agent.stdin_silence")?
    } else {
        TOTAL
    };
    let mut reader = Reader {
        stdin: tokio::io::stdin(),
        silence,
        is_told: false,
    };
    let piped = reader.collect().await?;
    Ok(Some(piped).filter(|piped| !piped.bytes.is_empty() || piped.end != End::Complete))
}

enum Kind {
    Nothing,
    File,
    Pipe,
}

fn kind() -> Kind {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Kind::Nothing;
    }
    let Ok(stat) = fstat(stdin.as_fd()) else {
        return Kind::Nothing;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket => Kind::Pipe,
        FileType::RegularFile if is_unread() => Kind::File,
        _ => Kind::Nothing,
    }
}

/// Whether the file stands at its beginning. Who reads a list line by line and asks about each has moved it on.
fn is_unread() -> bool {
    let Ok(file) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return false;
    };
    std::fs::File::from(file)
        .stream_position()
        .is_ok_and(|at| at == 0)
}

struct Reader {
    stdin: Stdin,
    /// How long nothing may come.
    silence: Duration,
    /// Somebody was told that we wait.
    is_told: bool,
}

impl Reader {
    async fn collect(&mut self) -> Outcome<Piped> {
        let begun = Instant::now();
        let mut piped = Piped::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match self.next(&mut chunk, piped.bytes.is_empty()).await? {
                Ok(0) => return Ok(piped),
                Ok(count) => piped.bytes.extend_from_slice(&chunk[..count]),
                Err(silent) => {
                    piped.end = End::Silent(silent);
                    return Ok(piped);
                }
            }
            if piped.bytes.len() >= READ_BYTES_MAX || begun.elapsed() >= TOTAL {
                piped.end = End::TooMuch;
                return Ok(piped);
            }
        }
    }

    /// Returns how many bytes came, or how long none did.
    async fn next(&mut self, chunk: &mut [u8], is_first: bool) -> Outcome<Result<usize, Duration>> {
        let given_up = Instant::now() + self.silence;
        loop {
            let left = given_up.saturating_duration_since(Instant::now());
            match timeout(left.min(FROM_ANCESTORS), self.stdin.read(chunk)).await {
                Ok(read) => return Ok(Ok(read.map_err(unreadable)?)),
                Err(_) if left <= FROM_ANCESTORS => return Ok(Err(self.silence)),
                Err(_) if is_first && !pipeline::is_in_pipeline() => {
                    return Ok(Err(FROM_ANCESTORS));
                }
                Err(_) => self.tell(),
            }
        }
    }

    fn tell(&mut self) {
        if !std::mem::replace(&mut self.is_told, true) {
            note("waiting for standard input (give it `< /dev/null` when nothing will come)");
        }
    }
}

fn unreadable(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot read standard input: {error}"))
        .hint("give it `< /dev/null` when the question is all there is")
}

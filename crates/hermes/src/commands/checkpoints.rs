//! `hermes checkpoints`: what was kept before turns changed it, and how to get it back.

use hermes_core::{SessionId, Timestamp};
use hermes_exec::{Checkpoint, Restored, Tidied};
use serde_json::{Value, json};

use super::layout::{count, print_json, size};
use crate::args::{CheckpointsArgs, CheckpointsCommand, JsonFlag};
use crate::base::Base;
use crate::checkpoints::{Checkpoints, store, told};
use crate::failure::Outcome;
use crate::output::println;

const RESTORE: &str = "hermes checkpoints restore";

pub(crate) async fn run(base: &Base, args: CheckpointsArgs) -> Outcome<()> {
    let command = args.command.unwrap_or(CheckpointsCommand::List {
        all: false,
        json: JsonFlag { json: false },
    });
    match command {
        CheckpointsCommand::List { all: true, json } => list_all(base, json.json).await,
        CheckpointsCommand::List { all: false, json } => {
            let here = Checkpoints::around(base, &base.cwd)?;
            if json.json {
                print_json(&listed(&here.all().await?))
            } else {
                println(&here.list(RESTORE).await?)
            }
        }
        CheckpointsCommand::Diff { checkpoint, json } => {
            let here = Checkpoints::around(base, &base.cwd)?;
            let diff = here.diff(&checkpoint).await?;
            if json.json {
                print_json(&json!({ "diff": diff }))
            } else {
                println(&diff)
            }
        }
        CheckpointsCommand::Restore {
            checkpoint,
            file,
            json,
        } => {
            let here = Checkpoints::around(base, &base.cwd)?;
            // Nobody's session: a person at a prompt.
            let session = SessionId::from("cli");
            let (checkpoint, restored) =
                here.restore(&checkpoint, file.as_deref(), &session).await?;
            if json.json {
                print_json(&done(&checkpoint, &restored))
            } else {
                println(&told(&checkpoint, &restored, RESTORE))
            }
        }
        CheckpointsCommand::Prune { json } => {
            let tidied = store(base)?.prune().await?;
            if json.json {
                print_json(&tidy(&tidied))
            } else {
                println(&format!(
                    "{} dropped, {} kept; {} of {} are left",
                    count(tidied.dropped as u64, "checkpoint"),
                    tidied.kept,
                    size(tidied.bytes_after),
                    size(tidied.bytes_before),
                ))
            }
        }
    }
}

async fn list_all(base: &Base, as_json: bool) -> Outcome<()> {
    let list = store(base)?.list_all().await?;
    if as_json {
        return print_json(&listed(&list));
    }
    let mut projects: Vec<_> = list.iter().filter_map(|one| one.project.as_ref()).collect();
    projects.sort();
    projects.dedup();
    if projects.is_empty() {
        return println("no checkpoints");
    }
    for project in projects {
        let of = list
            .iter()
            .filter(|one| one.project.as_ref() == Some(project));
        let number = count(of.count() as u64, "checkpoint");
        println(&format!("{number:>16}  {}", project.display()))?;
    }
    Ok(())
}

fn listed(list: &[Checkpoint]) -> Value {
    let shown = |one: &Checkpoint| {
        json!({
            "id": one.id,
            "at": Timestamp::to_text(one.at),
            "reason": one.reason,
            "session": one.session,
            "project": one.project,
        })
    };
    list.iter().map(shown).collect()
}

fn done(checkpoint: &Checkpoint, restored: &Restored) -> Value {
    let names = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect()
    };
    json!({
        "restored": checkpoint.id,
        "written": names(&restored.written),
        "removed": names(&restored.removed),
        "undo": restored.undo.id,
    })
}

fn tidy(tidied: &Tidied) -> Value {
    json!({
        "dropped": tidied.dropped,
        "kept": tidied.kept,
        "bytes_before": tidied.bytes_before,
        "bytes_after": tidied.bytes_after,
    })
}

//! Whether copies of projects can be kept, and how much room they take.

use super::{Check, find_program};
use crate::base::Base;
use crate::checkpoints::store;
use crate::error::Result;
use crate::layout::{count, size};

const NAME: &str = "checkpoints";
const MEGABYTE: u64 = 1024 * 1024;

pub(super) async fn check(base: &Base) -> Check {
    match look(base).await {
        Ok(check) => check,
        Err(error) => {
            let fix = error.hint();
            let fix = fix.unwrap_or_else(|| "`hermes config explain checkpoints`".to_owned());
            Check::broken(NAME, error.to_string(), fix)
        }
    }
}

async fn look(base: &Base) -> Result<Check> {
    let is_on = base.settings.bool("checkpoints.enabled")?;
    if find_program(&base.environment, "git").is_none() {
        return Ok(if is_on {
            Check::broken(
                NAME,
                "are on, but there is no git on PATH to keep them with",
                "install git, or `hermes config set checkpoints.enabled false`",
            )
        } else {
            Check::good(NAME, "off; they would need git, which is not on PATH")
        });
    }
    let store = store(base)?;
    let bytes = store.bytes().await?;
    let state = if is_on { "on" } else { "off" };
    if bytes == 0 {
        return Ok(Check::good(NAME, format!("{state}; none kept")));
    }
    let kept = count(store.list_all().await?.len() as u64, "checkpoint");
    let text = format!("{state}; {kept}, {}", size(bytes));
    let bytes_max = base.settings.u64("checkpoints.max_total_size_mb")?;
    Ok(if bytes > bytes_max.saturating_mul(MEGABYTE) {
        Check::doubtful(
            NAME,
            format!("{text}, more than checkpoints.max_total_size_mb allows"),
            "`hermes checkpoints prune`",
        )
    } else {
        Check::good(NAME, text)
    })
}

//! What clients want of a job, in the several ways that they write it.

use std::cell::RefCell;
use std::collections::HashSet;

use hermes_core::text::shorten;
use hermes_core::{JobDraft, Misfire};
use serde_json::Value;

use crate::api::error::{ApiError, ApiResult};

/// What is wanted. What is not said stays as it is.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wish {
    pub(super) draft: JobDraft,
    pub(super) enabled: Option<bool>,
    /// Fields that nobody read.
    pub(super) unread: Vec<String>,
}

/// More is a mistake.
const COST_USD_MAX: f64 = 1e6;
/// Fields that are complained of.
const UNREAD_MAX: usize = 10;
const FIELD_CHARS_MAX: usize = 60;

impl Wish {
    pub(super) fn read(body: &Value) -> ApiResult<Self> {
        if !body.is_object() {
            return Err(ApiError::invalid("a job is an object with fields"));
        }
        let fields = Fields {
            body,
            read: RefCell::default(),
        };
        let skills = match fields.list("skills")? {
            None => fields.text("skill")?.map(|skill| vec![skill]),
            skills => skills,
        };
        let toolsets = match fields.list("enabled_toolsets")? {
            None => fields.list("toolsets")?,
            toolsets => toolsets,
        };
        let misfire = fields.text("misfire")?;
        Ok(Self {
            draft: JobDraft {
                name: fields.text("name")?,
                prompt: fields.text("prompt")?,
                schedule: fields.schedule()?,
                skills,
                model: fields.text("model")?,
                provider: fields.text("provider")?,
                toolsets,
                workdir: fields.text("workdir")?.map(Into::into),
                script: fields.text("script")?,
                no_agent: fields.flag("no_agent")?,
                context_from: fields.list("context_from")?,
                deliver: fields.list("deliver")?.map(|targets| targets.join(",")),
                repeat: fields.repeat()?,
                misfire: misfire.map(|word| misfire_of(&word)).transpose()?,
                jitter_s: fields.count("jitter_s")?,
                retries: fields.count("retries")?,
                time_max_s: fields.count("time_max_s")?,
                cost_max_micro_usd: match fields.micro_usd("cost_max_usd")? {
                    None => fields.micro_usd("max_cost")?,
                    cost => cost,
                },
                silent: fields.flag("silent")?,
                ..JobDraft::default()
            },
            enabled: fields.flag("enabled")?,
            unread: fields.unread(),
        })
    }
}

/// The fields of a request, and which of them somebody wanted to know.
struct Fields<'a> {
    body: &'a Value,
    read: RefCell<HashSet<&'static str>>,
}

impl Fields<'_> {
    fn get(&self, name: &'static str) -> Option<&Value> {
        self.written(name).filter(|value| !value.is_null())
    }

    /// Also what is written as `null`.
    fn written(&self, name: &'static str) -> Option<&Value> {
        self.read.borrow_mut().insert(name);
        self.body.get(name)
    }

    fn text(&self, name: &'static str) -> ApiResult<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(name, "a text")),
        }
    }

    fn flag(&self, name: &'static str) -> ApiResult<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(is_on)) => Ok(Some(*is_on)),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    fn count(&self, name: &'static str) -> ApiResult<Option<u32>> {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let read = |value| number(value).ok_or_else(|| wrong(name, "a whole number"));
        self.get(name).map(read).transpose()
    }

    /// US dollars; 0 takes the limit away.
    fn micro_usd(&self, name: &'static str) -> ApiResult<Option<u64>> {
        let expected = || wrong(name, "an amount in US dollars such as 0.50");
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let usd = value.as_f64().ok_or_else(expected)?;
        if !(0.0..=COST_USD_MAX).contains(&usd) {
            return Err(expected());
        }
        // Less than can be counted is a limit all the same.
        let least = u64::from(usd > 0.0);
        Ok(Some(((usd * 1e6).round() as u64).max(least)))
    }

    fn unread(&self) -> Vec<String> {
        let (read, fields) = (self.read.borrow(), self.body.as_object());
        let names = fields.into_iter().flatten().map(|(name, _)| name.as_str());
        let unread = names.filter(|name| !read.contains(name));
        let unread = unread.map(|name| shorten(name, FIELD_CHARS_MAX));
        unread.take(UNREAD_MAX).collect()
    }

    /// A list of texts, or a text with commas.
    fn list(&self, name: &'static str) -> ApiResult<Option<Vec<String>>> {
        let expected = || wrong(name, "a list of texts");
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => {
                let parts = text.split(',').map(|part| part.trim().to_owned());
                Ok(Some(parts.filter(|part| !part.is_empty()).collect()))
            }
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                Ok(Some(texts.collect::<Option<_>>().ok_or_else(expected)?))
            }
            Some(_) => Err(expected()),
        }
    }

    /// As people say it, or as it was told of a job.
    fn schedule(&self) -> ApiResult<Option<String>> {
        let expected = || wrong("schedule", "a text such as `every weekday at 9`");
        match self.get("schedule") {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Object(fields)) => {
                let texts = ["expr", "run_at", "display"];
                let text = texts.iter().find_map(|name| fields.get(*name)?.as_str());
                let minutes = || Some(format!("every {}m", fields.get("minutes")?.as_u64()?));
                let schedule = text.map(str::to_owned).or_else(minutes);
                Ok(Some(schedule.ok_or_else(expected)?))
            }
            Some(_) => Err(expected()),
        }
    }

    /// A number, or `{times}`; who writes `null` means for ever.
    fn repeat(&self) -> ApiResult<Option<i64>> {
        let Some(written) = self.written("repeat") else {
            return Ok(None);
        };
        let times = if written.is_object() {
            &written["times"]
        } else {
            written
        };
        match times {
            Value::Null => Ok(Some(0)),
            times => Ok(Some(
                times
                    .as_i64()
                    .ok_or_else(|| wrong("repeat", "a whole number"))?,
            )),
        }
    }
}

fn wrong(name: &str, expected: &str) -> ApiError {
    ApiError::invalid(format!("`{name}` must be {expected}")).param(name)
}

fn misfire_of(word: &str) -> ApiResult<Misfire> {
    let known = [Misfire::Once, Misfire::Skip, Misfire::All];
    let found = known.into_iter().find(|misfire| misfire.as_str() == word);
    found.ok_or_else(|| wrong("misfire", "one of `once`, `skip`, `all`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_is_read_in_the_ways_that_clients_write_it() {
        let wish = |body: Value| Wish::read(&body).unwrap();
        let first = wish(
            json!({"schedule": "every 2h", "prompt": "p", "skills": "a, b", "repeat": 3,
            "deliver": ["local", "origin"], "enabled_toolsets": ["web"]}),
        );
        assert_eq!(first.draft.skills, Some(vec!["a".into(), "b".into()]));
        assert_eq!(first.draft.deliver.as_deref(), Some("local,origin"));
        assert_eq!(first.draft.repeat, Some(3));
        let second = wish(
            json!({"schedule": {"kind": "interval", "minutes": 30}, "skill": "a",
            "repeat": {"times": null, "completed": 4}, "enabled": false}),
        );
        assert_eq!(second.draft.schedule.as_deref(), Some("every 30m"));
        assert_eq!(second.draft.skills, Some(vec!["a".into()]));
        assert_eq!(
            (second.draft.repeat, second.enabled),
            (Some(0), Some(false))
        );
        let nothing = wish(json!({"unknown": 1, "name": null}));
        assert_eq!(nothing.draft, JobDraft::default());
        assert_eq!(nothing.unread, ["unknown"]);
    }

    #[test]
    fn what_a_run_may_cost_is_read_in_dollars() {
        let cost = |body: Value| Wish::read(&body).map(|wish| wish.draft.cost_max_micro_usd);
        assert_eq!(cost(json!({"cost_max_usd": 1})).unwrap(), Some(1_000_000));
        assert_eq!(cost(json!({"max_cost": 0.1})).unwrap(), Some(100_000));
        assert_eq!(cost(json!({"max_cost": 1e-9})).unwrap(), Some(1));
        assert_eq!(cost(json!({"cost_max_usd": 0})).unwrap(), Some(0));
        assert_eq!(cost(json!({})).unwrap(), None);
        for wrong in [json!(-1), json!("1"), json!(1e9)] {
            let error = cost(json!({"cost_max_usd": wrong})).unwrap_err();
            assert_eq!(error.body()["error"]["param"], "cost_max_usd", "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_job_is_named() {
        for (body, phrase) in [
            (json!([]), "object"),
            (json!({"name": 7}), "`name`"),
            (json!({"skills": [7]}), "`skills`"),
            (json!({"schedule": {"kind": "cron"}}), "`schedule`"),
            (json!({"enabled": "yes"}), "`enabled`"),
            (json!({"retries": -1}), "`retries`"),
            (json!({"misfire": "never"}), "`misfire`"),
        ] {
            let error = Wish::read(&body).unwrap_err();
            assert!(error.body().to_string().contains(phrase), "{error:?}");
        }
    }
}

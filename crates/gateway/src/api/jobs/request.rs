//! What clients want of a job, in the several ways that they write it.

use hermes_core::{JobDraft, Misfire};
use serde_json::Value;

use crate::api::error::{ApiError, ApiResult};

/// What is wanted. What is not said stays as it is.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wish {
    pub(super) draft: JobDraft,
    pub(super) enabled: Option<bool>,
}

impl Wish {
    pub(super) fn read(body: &Value) -> ApiResult<Self> {
        if !body.is_object() {
            return Err(ApiError::invalid("a job is an object with fields"));
        }
        let fields = Fields(body);
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
                silent: fields.flag("silent")?,
                ..JobDraft::default()
            },
            enabled: fields.flag("enabled")?,
        })
    }
}

struct Fields<'a>(&'a Value);

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> ApiResult<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(name, "a text")),
        }
    }

    fn flag(&self, name: &str) -> ApiResult<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(is_on)) => Ok(Some(*is_on)),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    fn count(&self, name: &str) -> ApiResult<Option<u32>> {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let read = |value| number(value).ok_or_else(|| wrong(name, "a whole number"));
        self.get(name).map(read).transpose()
    }

    /// A list of texts, or a text with commas.
    fn list(&self, name: &str) -> ApiResult<Option<Vec<String>>> {
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
        let Some(written) = self.0.get("repeat") else {
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
        assert_eq!(wish(json!({"unknown": 1, "name": null})), Wish::default());
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

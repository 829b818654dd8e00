//! Which model answers: something that is there already, a login, a key, or an address.

use hermes_core::Secret;
use hermes_llm::providers::{self, CUSTOM, PROVIDERS, Provider};
use hermes_llm::resolve;

use super::{Ready, Then, after_failure};
use crate::base::Base;
use crate::commands::auth::{OpenBrowser, log_in};
use crate::commands::interview::{Choice, Interview};
use crate::commands::layout::one_line;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};
use hermes_runtime::models::found::{self as find, Found};
use hermes_runtime::models::settings::model_settings;
use hermes_runtime::models::try_out::{Candidate, Unlisted, listed, save, try_out};

/// More than anybody pages through; those of a server of one's own are fewer.
const MODELS_SHOWN_MAX: usize = 500;

enum Way {
    Keep,
    Found(Found),
    LogIn,
    PasteKey,
    Address,
    Demo,
}

/// Asks until a model answers, or `None` when the user wants none. `quick` takes the usual model without asking.
pub(super) async fn interview(
    base: &Base,
    interview: &mut Interview,
    quick: bool,
) -> Outcome<Option<Ready>> {
    interview.title("Which model should answer?");
    loop {
        let mut ways = ways(base).await;
        ways.extend(kept(base)?);
        let usual = ways.iter().position(|way| matches!(way.value, Way::Keep));
        let way = interview.choose_or_keep(ways, usual.unwrap_or(0))?;
        let mut is_named = quick;
        let candidate = match way {
            Way::Keep => return Ok(Some(Ready::Chat)),
            Way::Demo => return Ok(Some(Ready::Demo)),
            Way::Found(found) => of_provider(found.provider(), found.model(), None),
            Way::LogIn => match logged_in(base, interview).await? {
                Some(candidate) => candidate,
                None => continue,
            },
            Way::PasteKey => pasted(interview)?,
            Way::Address => match at_address(base, interview).await? {
                Some((candidate, is_picked)) => {
                    is_named |= is_picked;
                    candidate
                }
                None => continue,
            },
        };
        let candidate = with_model(interview, candidate, is_named)?;
        if settle(base, interview, &candidate).await? {
            return Ok(Some(Ready::Chat));
        }
    }
}

/// Takes the first thing that works, without a question.
pub(super) async fn choose_by_itself(base: &Base) -> Outcome<()> {
    let mut failures = Vec::new();
    for found in find::all(base).await {
        let candidate = of_provider(found.provider(), found.model(), None);
        match try_out(base, &candidate).await {
            Ok(_) => {
                keep(base, &candidate)?;
                let Candidate {
                    provider, model, ..
                } = candidate;
                return println(&format!("{provider}:{model} answers, and is now the model"));
            }
            Err(error) => failures.push(format!("{}: {error}", found.text())),
        }
    }
    failures.iter().for_each(|failure| note(failure));
    Err(Failure::new("nothing was found that answers").hint(
        "set a key such as OPENROUTER_API_KEY, or start a local server such as Ollama, and try again",
    ))
}

/// To leave the model that the settings name as it is.
fn kept(base: &Base) -> Outcome<Option<Choice<Way>>> {
    if base.settings.optional_string("model.default")?.is_none() {
        return Ok(None);
    }
    let resolved = resolve(&model_settings(base)?, &|name| base.variable(name));
    Ok(resolved.ok().map(|resolved| Choice {
        value: Way::Keep,
        text: format!("keep the one that answers now: {}", resolved.primary.name),
    }))
}

async fn ways(base: &Base) -> Vec<Choice<Way>> {
    let mut ways: Vec<Choice<Way>> = find::all(base)
        .await
        .into_iter()
        .map(|found| Choice {
            text: found.text(),
            value: Way::Found(found),
        })
        .collect();
    let more = [
        (
            Way::PasteKey,
            "paste an API key: OpenRouter, Anthropic, OpenAI, Gemini, …",
        ),
        (
            Way::Address,
            "a server of your own, by its address (vLLM, llama.cpp, a proxy, …)",
        ),
        (
            Way::LogIn,
            "log in with a browser: Nous Portal, or xAI with a Grok subscription",
        ),
        (
            Way::Demo,
            "none yet: watch the demo, which needs no key and no network",
        ),
    ];
    ways.extend(more.map(|(value, text)| Choice {
        value,
        text: text.to_owned(),
    }));
    ways
}

fn of_provider(provider: &Provider, model: String, key: Option<Secret>) -> Candidate {
    Candidate {
        provider: provider.id.to_owned(),
        model,
        key,
        ..Candidate::default()
    }
}

/// Logs in where the user wants to. The login stays, whatever becomes of the model. `None` leads back to the choice.
async fn logged_in(base: &Base, interview: &mut Interview) -> Outcome<Option<Candidate>> {
    interview.title("Where do you want to log in?");
    let logins = PROVIDERS
        .iter()
        .filter_map(|provider| Some((provider, provider.login?)));
    let options = logins.map(|value| Choice {
        text: format!("{:<24} {}", value.0.label, value.1.page),
        value,
    });
    let (provider, login) = interview.choose(options.collect())?;
    if let Err(failure) = log_in(base, provider, login, OpenBrowser::IfThereIsOne).await {
        interview.bad(failure.to_string().trim_start_matches("error: "));
        return Ok(None);
    }
    let model = provider.default_model.to_owned();
    Ok(Some(of_provider(provider, model, None)))
}

fn pasted(interview: &mut Interview) -> Outcome<Candidate> {
    loop {
        let key = interview.secret("paste the key")?;
        if key.is_empty() || key.contains(char::is_whitespace) {
            interview.bad("a key is one word without spaces; Ctrl-C leaves");
            continue;
        }
        let provider = match providers::find_by_key(&key) {
            Some(provider) => {
                interview.good(&format!("that is a key of {}", provider.label));
                provider
            }
            None => whose(interview)?,
        };
        let model = provider.default_model.to_owned();
        return Ok(of_provider(provider, model, Some(Secret::new(key))));
    }
}

fn whose(interview: &mut Interview) -> Outcome<&'static Provider> {
    interview.title("Whose key is it?");
    let hosted = PROVIDERS
        .iter()
        .filter(|provider| !provider.key_envs.is_empty());
    let options = hosted.map(|provider| Choice {
        value: provider,
        text: format!("{:<22} {}", provider.label, provider.key_page),
    });
    interview.choose(options.collect())
}

/// Asks for a server, and for one of its models where it has several. Returns whether that was picked from them.
async fn at_address(base: &Base, interview: &mut Interview) -> Outcome<Option<(Candidate, bool)>> {
    let url = loop {
        let url = with_scheme(interview.line("address", "http://localhost:8000/v1")?);
        if url.starts_with("http://") || url.starts_with("https://") {
            break url.trim_end_matches('/').to_owned();
        } else {
            interview.bad("an address begins with http:// or https://");
        }
    };
    let candidate = Candidate {
        provider: CUSTOM.to_owned(),
        base_url: Some(url),
        ..Candidate::default()
    };
    let Some((candidate, models)) = reached(base, interview, candidate).await? else {
        return Ok(None);
    };
    let key = interview.secret("key (Enter for none)")?;
    let candidate = Candidate {
        key: (!key.is_empty()).then(|| Secret::new(key)),
        ..candidate
    };
    let models = match (models, candidate.key.is_some()) {
        (Some(models), false) => models,
        _ => listed(base, &candidate).await.unwrap_or_default(),
    };
    let is_picked = models.len() > 1;
    let model = one_of(interview, models)?;
    Ok(Some((Candidate { model, ..candidate }, is_picked)))
}

/// Finds out whether a server is there before anything else is asked, with `/v1` behind the address if that is what it
/// lacks. Returns what it lists, if it does so without a key; nothing when the person wants another server.
async fn reached(
    base: &Base,
    interview: &mut Interview,
    candidate: Candidate,
) -> Outcome<Option<(Candidate, Option<Vec<String>>)>> {
    loop {
        note(&interview.style.dim("looking for the server …"));
        let unreached = match at_either_address(base, &candidate).await {
            Ok((candidate, models)) => return Ok(Some((candidate, Some(models)))),
            // It is there, and will say more when it gets a key or a question.
            Err(error) if error.is_an_answer() => return Ok(Some((candidate, None))),
            Err(error) => error,
        };
        interview.bad(&format!("{unreached}: is the server running?"));
        match interview.choose(after_failure())? {
            Then::Again => {}
            Then::SaveAnyway => return Ok(Some((candidate, None))),
            Then::Back => return Ok(None),
        }
    }
}

/// Lists the models at the address as it was typed, and else with the `/v1` that most servers want.
async fn at_either_address(
    base: &Base,
    candidate: &Candidate,
) -> Result<(Candidate, Vec<String>), Unlisted> {
    let typed = match listed(base, candidate).await {
        Ok(models) => return Ok((candidate.clone(), models)),
        Err(error) => error,
    };
    let url = candidate.base_url.clone().unwrap_or_default();
    if !typed.is_an_answer() || url.ends_with("/v1") {
        return Err(typed);
    }
    let with_version = Candidate {
        base_url: Some(format!("{url}/v1")),
        ..candidate.clone()
    };
    match listed(base, &with_version).await {
        Ok(models) => Ok((with_version, models)),
        Err(_) => Err(typed),
    }
}

/// Lets a person choose one of a server's models; empty when it has none, or when they want to write its name.
fn one_of(interview: &mut Interview, mut models: Vec<String>) -> Outcome<String> {
    if models.len() < 2 {
        return Ok(models.pop().unwrap_or_default());
    }
    interview.title("Which of its models?");
    models.truncate(MODELS_SHOWN_MAX);
    let models = models.into_iter().map(|model| Choice {
        text: one_line(&model),
        value: model,
    });
    let other = Choice {
        text: "another one, by its name".to_owned(),
        value: String::new(),
    };
    interview.choose(models.chain([other]).collect())
}

/// `localhost:8000` is what people write of their own machine. Others are not guessed: a key must not go out in the open.
fn with_scheme(address: String) -> String {
    let host = address.split([':', '/']).next().unwrap_or_default();
    match host {
        "localhost" | "127.0.0.1" => format!("http://{address}"),
        _ => address,
    }
}

fn with_model(
    interview: &mut Interview,
    candidate: Candidate,
    is_named: bool,
) -> Outcome<Candidate> {
    if is_named && !candidate.model.is_empty() {
        return Ok(candidate);
    }
    loop {
        let model = interview.line("model", &candidate.model)?;
        if !model.is_empty() {
            return Ok(Candidate { model, ..candidate });
        }
        interview.bad("write the model's name as the server knows it");
    }
}

/// Tries a candidate and saves it when it answers, or when the user insists. False leads back to the choice.
async fn settle(base: &Base, interview: &mut Interview, candidate: &Candidate) -> Outcome<bool> {
    loop {
        let Candidate {
            provider, model, ..
        } = candidate;
        note(&interview.style.dim(format!("asking {provider}:{model} …")));
        match try_out(base, candidate).await.map_err(Failure::from) {
            Ok(elapsed) => {
                keep(base, candidate)?;
                interview.good(&format!(
                    "it answered in {:.1} s, and is saved",
                    elapsed.as_secs_f64()
                ));
                return Ok(true);
            }
            Err(failure) => interview.bad(failure.to_string().trim_start_matches("error: ")),
        }
        match interview.choose(after_failure())? {
            Then::Again => {}
            Then::SaveAnyway => {
                keep(base, candidate)?;
                return Ok(true);
            }
            Then::Back => return Ok(false),
        }
    }
}

/// Saves what was tried, and says what of the model so far went with it.
fn keep(base: &Base, candidate: &Candidate) -> Outcome<()> {
    for removed in save(base, candidate)? {
        note(&removed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_needs_no_scheme() {
        let check = |typed: &str, url: &str| assert_eq!(with_scheme(typed.to_owned()), url);
        check("localhost:8000/v1", "http://localhost:8000/v1");
        check("127.0.0.1:8080", "http://127.0.0.1:8080");
        check("https://localhost:1", "https://localhost:1");
        check("models.example:8000", "models.example:8000");
    }
}

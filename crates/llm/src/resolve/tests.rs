//! Which model, where and with which keys, from settings and environment as people have them.

use super::*;
use crate::settings::{DeadlineSettings, ModelOptions, ProviderOptions};

fn resolve_with(settings: &ModelSettings, env: &[(&str, &str)]) -> Result<Resolved, ResolveError> {
    resolve(settings, &|name| {
        let found = env.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| Secret::new(*value))
    })
}

fn choosing(provider: &str, model: &str) -> ModelSettings {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ModelSettings {
        choice: ModelChoice {
            provider: some(provider),
            model: some(model),
            ..ModelChoice::default()
        },
        ..ModelSettings::default()
    }
}

fn route(settings: &ModelSettings, env: &[(&str, &str)]) -> Route {
    resolve_with(settings, env).unwrap().primary
}

#[test]
fn small_models_leave_nothing_to_chance_unless_the_user_does() {
    let temperature = |settings: &ModelSettings| {
        let route = route(settings, &[]);
        route.extra_body.get("temperature").cloned()
    };
    let small = choosing("ollama", "qwen2.5-coder:1.5b");
    assert_eq!(temperature(&small), Some(json!(0)));
    assert_eq!(temperature(&choosing("ollama", "qwen3:32b")), None);
    let mut own = small;
    let options = ProviderOptions {
        extra_body: json!({"temperature": 0.7}).as_object().unwrap().clone(),
        ..ProviderOptions::default()
    };
    own.provider_options.insert("ollama".into(), options);
    assert_eq!(temperature(&own), Some(json!(0.7)));
}

#[test]
fn a_short_name_finds_a_provider_that_has_it() {
    let ask = |model: &str, env: &[(&str, &str)]| {
        let resolved = resolve_with(&choosing("", model), env);
        resolved.map(|resolved| resolved.primary.name.to_string())
    };
    let both = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    assert_eq!(ask("opus", &both).unwrap(), "anthropic:claude-opus-4-6");
    assert_eq!(ask("gpt", &both).unwrap(), "openai-api:gpt-5.1");
    let router = [("OPENROUTER_API_KEY", "k")];
    let named = ask("sonnet", &router).unwrap();
    assert_eq!(named, "openrouter:anthropic/claude-sonnet-4.6");
    let error = ask("sonnet", &both[..1]).unwrap_err();
    assert!(
        error.hint().contains("-m anthropic:sonnet"),
        "{}",
        error.hint()
    );
}

#[test]
fn a_beginning_that_is_no_provider_is_an_error_and_names_with_makers_are_none() {
    let ask = |model: &str, key: &str| {
        let resolved = resolve_with(&choosing("", model), &[(key, "k")]);
        resolved.map(|resolved| resolved.primary.name.to_string())
    };
    for (model, key) in [
        ("nosuch:model", "OPENROUTER_API_KEY"),
        ("nosuch:model", "ANTHROPIC_API_KEY"),
        ("nosuch/model", "ANTHROPIC_API_KEY"),
    ] {
        let error = ask(model, key).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown model provider `nosuch`",
            "{model}"
        );
    }
    for model in [
        "anthropic/claude-x",
        "deepseek/r1:free",
        "ft:gpt-4o:org::id",
    ] {
        let named = format!("openrouter:{model}");
        assert_eq!(ask(model, "OPENROUTER_API_KEY").as_deref(), Ok(&*named));
    }
    let named = ask("models/gemini-x", "GEMINI_API_KEY");
    assert_eq!(named.as_deref(), Ok("gemini:models/gemini-x"));
    let named = ask("anthropic/claude-x", "ANTHROPIC_API_KEY");
    assert_eq!(named.as_deref(), Ok("anthropic:claude-x"));
    let local = resolve_with(&choosing("ollama", "qwen3:8b"), &[]).unwrap();
    assert_eq!(local.primary.name.model, "qwen3:8b");
}

#[test]
fn a_key_in_the_environment_selects_its_provider() {
    let check = |env: &[(&str, &str)], provider| {
        assert_eq!(
            route(&ModelSettings::default(), env).name.provider,
            provider
        );
    };
    check(&[("OPENAI_API_KEY", "k")], "openai-api");
    check(&[("GROQ_API_KEY", "k")], "groq");
    check(
        &[("OPENAI_API_KEY", "k"), ("OPENROUTER_API_KEY", "k")],
        "openrouter",
    );
    check(&[("GEMINI_API_KEY", "k"), ("LM_API_KEY", "k")], "gemini");
}

#[test]
fn nothing_configured_says_what_to_do() {
    let error = resolve_with(&ModelSettings::default(), &[]).unwrap_err();
    assert_eq!(error, ResolveError::NoProvider);
    let hint = error.hint();
    assert!(hint.contains("OPENROUTER_API_KEY") && hint.contains("hermes model list"));
    assert!(hint.len() < 160, "{hint}");
    // An empty variable is not a key.
    assert!(resolve_with(&ModelSettings::default(), &[("OPENAI_API_KEY", "")]).is_err());
}

#[test]
fn a_missing_key_names_its_variable_and_a_typo_its_neighbour() {
    let error = resolve_with(&choosing("deepseek", ""), &[]).unwrap_err();
    assert_eq!(error.to_string(), "there is no API key for DeepSeek");
    assert!(error.hint().contains("DEEPSEEK_API_KEY"));
    let error = resolve_with(&choosing("antropic", ""), &[]).unwrap_err();
    assert_eq!(error.hint(), "did you mean anthropic?");
}

#[test]
fn a_colon_names_the_provider_only_when_it_is_one() {
    let env = [("OPENROUTER_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let name = |model: &str| route(&choosing("", model), &env).name.to_string();
    assert_eq!(
        name("anthropic:claude-opus-4-6"),
        "anthropic:claude-opus-4-6"
    );
    assert_eq!(
        name("deepseek/deepseek-r1:free"),
        "openrouter:deepseek/deepseek-r1:free"
    );
    // With a provider named, the colon belongs to the model.
    let named = route(&choosing("openrouter", "anthropic:x"), &env);
    assert_eq!(named.name.model, "anthropic:x");
}

#[test]
fn wires_follow_the_mode_then_the_address_then_the_table() {
    let protocol = |provider: &str, url: Option<&str>, api_mode: Option<&str>| {
        let mut settings = choosing(provider, "m");
        settings.choice.base_url = url.map(str::to_owned);
        settings.choice.api_mode = api_mode.map(str::to_owned);
        settings.choice.api_key = Some(Secret::new("k"));
        route(&settings, &[]).protocol
    };
    assert_eq!(protocol("openai", None, None), Protocol::OpenAiResponses);
    assert_eq!(
        protocol("openai", None, Some("chat_completions")),
        Protocol::OpenAiChat
    );
    assert_eq!(protocol("openai-chat", None, None), Protocol::OpenAiChat);
    assert_eq!(
        protocol("custom", Some("https://api.openai.com/v1"), None),
        Protocol::OpenAiResponses
    );
    assert_eq!(
        protocol("custom", Some("https://x.example/anthropic/"), None),
        Protocol::Anthropic
    );
    assert_eq!(
        protocol("", Some("http://127.0.0.1:9/v1"), None),
        Protocol::OpenAiChat
    );
}

#[test]
fn a_base_url_alone_finds_who_lives_there() {
    let mut settings = choosing("", "m");
    settings.choice.base_url = Some("https://api.groq.com/openai/v1".into());
    assert_eq!(
        route(&settings, &[("GROQ_API_KEY", "k")]).name.provider,
        "groq"
    );
    settings.choice.base_url = Some("http://192.168.1.5:8080/v1/".into());
    let route = route(&settings, &[("OPENROUTER_API_KEY", "k")]);
    assert_eq!(
        (route.name.provider.as_str(), route.keys.len()),
        ("custom", 0)
    );
    assert_eq!(route.base_url, "http://192.168.1.5:8080/v1");
}

#[test]
fn endpoints_of_the_users_own_are_found_by_name() {
    let mut settings = choosing("custom:lab", "");
    let endpoint = Endpoint {
        base_url: "http://10.0.0.7:8000/v1".into(),
        key_env: Some("LAB_KEY".into()),
        default_model: Some("qwen3".into()),
        ..Endpoint::default()
    };
    settings.endpoints.insert("lab".into(), endpoint);
    let options = ProviderOptions {
        context_length: Some(32_768),
        ..ProviderOptions::default()
    };
    settings.provider_options.insert("lab".into(), options);
    let route = route(&settings, &[("LAB_KEY", "k")]);
    assert_eq!(route.name.to_string(), "lab:qwen3");
    assert_eq!(
        (route.context_window, route.local, route.keys.len()),
        (Some(32_768), true, 1)
    );
    assert_eq!(route.deadlines.idle, Duration::from_secs(900));
}

#[test]
fn options_are_those_of_the_model_then_of_the_provider_by_name_or_address() {
    let seconds = |total| DeadlineSettings {
        total: Some(Duration::from_secs(total)),
        ..DeadlineSettings::default()
    };
    let small = ModelOptions {
        context_length: Some(4_096),
        deadlines: seconds(5),
    };
    let options = ProviderOptions {
        context_length: Some(32_768),
        deadlines: seconds(60),
        models: [("small".to_owned(), small)].into(),
        ..ProviderOptions::default()
    };
    let endpoint = Endpoint {
        base_url: "http://10.0.0.7:8000/v1/".into(),
        ..Endpoint::default()
    };
    let found = |provider: &str, model: &str, url: Option<&str>| {
        let mut settings = choosing(provider, model);
        settings.choice.base_url = url.map(str::to_owned);
        settings.endpoints.insert("lab".into(), endpoint.clone());
        settings
            .provider_options
            .insert("lab".into(), options.clone());
        let route = route(&settings, &[]);
        (
            route.context_window.unwrap_or_default(),
            route.deadlines.total.as_secs(),
        )
    };
    assert_eq!(found("lab", "small", None), (4_096, 5));
    assert_eq!(found("lab", "big", None), (32_768, 60));
    let address = Some("http://10.0.0.7:8000/v1");
    assert_eq!(found("custom", "small", address), (4_096, 5));
    let elsewhere = Some("http://10.0.0.8:8000/v1");
    assert_eq!(found("custom", "small", elsewhere).1, 1_800);
}

#[test]
fn a_window_is_what_is_set_or_stated_or_known_and_never_a_guess() {
    let window = |url: &str, model: &str, stated: Option<u64>| {
        let mut settings = choosing("custom", model);
        settings.choice.base_url = Some(format!("{url}/"));
        let models = stated.map(|tokens| (model.to_owned(), tokens));
        let models = models.into_iter().collect();
        settings.stated_windows.insert(url.to_owned(), models);
        route(&settings, &[]).context_window
    };
    let (near, far) = ("http://127.0.0.1:8080/v1", "https://models.example/v1");
    assert_eq!(window(near, "qwen3:8b", None), None);
    assert_eq!(window(near, "qwen3:8b", Some(4_096)), Some(4_096));
    assert_eq!(window(far, "claude-haiku-4.5", None), Some(200_000));
    assert_eq!(
        window(far, "claude-haiku-4.5", Some(100_000)),
        Some(100_000)
    );
    assert_eq!(window(far, "who-knows", None), None);
}

#[test]
fn every_key_of_a_provider_joins_its_pool_once() {
    let mut settings = choosing("zai", "");
    settings
        .stored_keys
        .insert("zai".into(), vec![Secret::new("b"), Secret::new("c")]);
    let route = route(&settings, &[("GLM_API_KEY", "a"), ("ZAI_API_KEY", "b")]);
    let keys: Vec<_> = route.keys.iter().map(Secret::expose).collect();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[test]
fn a_login_stands_for_a_key_and_goes_to_its_provider_only() {
    let login = |settings: &ModelSettings, env: &[(&str, &str)]| {
        let route = route(settings, env);
        (route.name.provider, route.login.is_some())
    };
    let mut settings = choosing("", "");
    settings.logins = vec!["nous".into()];
    assert_eq!(login(&settings, &[]), ("nous".into(), true));
    // Who has a key wants it used.
    assert_eq!(login(&settings, &[("GROQ_API_KEY", "k")]).0, "groq");
    let with_key = [("NOUS_API_KEY", "k")];
    assert_eq!(login(&settings, &with_key), ("nous".into(), false));
    let mut at = |url: &str| {
        settings.choice.provider = Some("nous".into());
        settings.choice.base_url = Some(url.into());
        login(&settings, &[]).1
    };
    assert!(at("https://inference-api.nousresearch.com/v1/"));
    for url in [
        "http://inference-api.nousresearch.com/v1",
        "https://nousresearch.example/v1",
        "http://127.0.0.1:9/v1",
    ] {
        assert!(!at(url), "{url}");
    }
}

#[test]
fn who_is_not_logged_in_is_told_how_to() {
    let error = resolve_with(&choosing("xai-oauth", ""), &[("XAI_API_KEY", "k")]).unwrap_err();
    assert_eq!(error.hint(), "log in with `hermes auth add xai-oauth`");
    let error = resolve_with(&choosing("nous", ""), &[]).unwrap_err();
    assert!(error.hint().ends_with("or set NOUS_API_KEY"), "{error}");
}

#[test]
fn a_fallback_without_a_key_is_a_warning() {
    let mut settings = choosing("openrouter", "m");
    let fallback = |provider: &str| ModelChoice {
        provider: Some(provider.into()),
        ..ModelChoice::default()
    };
    settings.fallbacks = vec![fallback("groq"), fallback("anthropic")];
    let env = [("OPENROUTER_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let resolved = resolve_with(&settings, &env).unwrap();
    assert_eq!(resolved.fallbacks.len(), 1);
    assert!(resolved.warnings[0].contains("GROQ_API_KEY"));
}

#[test]
fn nonsense_is_refused_with_what_is_known() {
    let mut settings = choosing("ollama", "m");
    settings.reasoning_effort = Some("extreme".into());
    let error = resolve_with(&settings, &[]).unwrap_err();
    assert_eq!(error.to_string(), "unknown reasoning effort `extreme`");
    settings.reasoning_effort = None;
    settings.choice.base_url = Some("127.0.0.1:11434".into());
    let error = resolve_with(&settings, &[]).unwrap_err();
    assert!(error.hint().contains("http://"));
    assert!(matches!(
        resolve_with(&choosing("ollama", ""), &[]),
        Err(ResolveError::NoModel { .. })
    ));
    assert!(matches!(
        resolve_with(&choosing("custom", "m"), &[]),
        Err(ResolveError::NoBaseUrl { .. })
    ));
}

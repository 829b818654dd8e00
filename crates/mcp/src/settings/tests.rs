use super::*;
use serde_json::json;

fn parse(section: Value) -> ServerSettings {
    ServerSettings::parse("files", &section).unwrap()
}

fn error(section: Value) -> String {
    ServerSettings::parse("files", &section)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_url_is_enough_and_the_defaults_are_the_documented_ones() {
    let settings = parse(json!({ "url": "http://127.0.0.1:1/mcp" }));
    assert!(settings.enabled && !settings.trust_annotations && !settings.guests);
    assert!(settings.supports_parallel_tool_calls);
    assert_eq!(settings.concurrency_max, 8);
    assert_eq!(settings.call_timeout, Duration::from_secs(300));
    assert_eq!(settings.connect_timeout, Duration::from_secs(60));
    assert_eq!(settings.keepalive_interval, Some(Duration::from_secs(180)));
    assert_eq!(settings.breaker.strikes_max, 3);
    assert_eq!(settings.breaker.cooldown, Duration::from_secs(60));
    assert_eq!(settings.retry, Retry::Safe);
    assert!(settings.warnings.is_empty());
}

#[test]
fn zero_switches_keepalive_off_and_small_values_are_raised() {
    let interval = |seconds: Value| {
        parse(json!({ "url": "http://x", "keepalive_interval": seconds })).keepalive_interval
    };
    assert_eq!(interval(json!(0)), None);
    assert_eq!(interval(json!(1)), Some(Duration::from_secs(5)));
    assert_eq!(interval(json!("30")), Some(Duration::from_secs(30)));
}

#[test]
fn a_program_keeps_its_arguments_and_hides_its_environment() {
    let settings = parse(json!({
        "command": "npx", "args": ["-y", 8080], "env": { "API_KEY": "very-secret" }, "cwd": "/tmp",
    }));
    let TransportSettings::Stdio { args, env, .. } = &settings.transport else {
        panic!("{settings:?}");
    };
    assert_eq!(args, &["-y", "8080"]);
    assert_eq!(env["API_KEY"].expose(), "very-secret");
    assert!(!format!("{settings:?}").contains("very-secret"));
}

#[test]
fn both_transports_or_none_are_refused() {
    assert_eq!(
        error(json!({ "url": "http://x", "command": "npx" })),
        "MCP server `files` has both `url` and `command`; keep the one it is reached by"
    );
    assert!(error(json!({})).contains("neither `url`"));
}

#[test]
fn an_unknown_key_is_a_warning_that_names_the_nearest() {
    let settings = parse(json!({
        "url": "http://x", "time_out": 5, "on_outage": "keep", "tools": { "includes": ["a"] },
    }));
    assert_eq!(
        settings.warnings,
        [
            "`mcp_servers.files.tools.includes` is not a known key; did you mean `include`?",
            "`mcp_servers.files.time_out` is not a known key; did you mean `timeout`?",
            "`mcp_servers.files.on_outage` has no effect in this version",
        ]
    );
}

#[test]
fn wrong_values_say_where_they_are_and_what_belongs_there() {
    assert_eq!(
        error(json!({ "url": "http://x", "timeout": "soon" })),
        r#"`mcp_servers.files.timeout` must be a number of seconds, but it is `"soon"`"#
    );
    assert_eq!(
        error(json!({ "url": "http://x", "retry": "maybe" })),
        r#"`mcp_servers.files.retry` must be one of `safe`, `never`, `always`, but it is `"maybe"`"#
    );
    assert!(
        error(json!({ "url": "http://x", "breaker": { "cooldown": -1 } }))
            .contains("breaker.cooldown")
    );
    assert!(error(json!("http://x")).contains("must be a section"));
}

#[test]
fn a_wrong_header_is_reported_without_showing_it() {
    let message = error(json!({ "url": "http://x", "headers": ["Bearer very-secret"] }));
    assert!(message.contains("headers") && !message.contains("very-secret"));
}

#[test]
fn include_wins_over_exclude() {
    let settings = parse(json!({
        "url": "http://x", "tools": { "include": "a", "exclude": ["a", "b"] },
    }));
    assert!(settings.offers("a") && !settings.offers("b") && !settings.offers("c"));
    let settings = parse(json!({ "url": "http://x", "tools": { "exclude": ["b"] } }));
    assert!(settings.offers("a") && !settings.offers("b"));
}

#[test]
fn a_tool_can_have_its_own_retry_rule() {
    let settings = parse(json!({
        "url": "http://x", "retry": "never", "tools": { "retry": { "search": "always" } },
    }));
    assert_eq!(settings.retry_of("search"), Retry::Always);
    assert_eq!(settings.retry_of("delete"), Retry::Never);
}

#[test]
fn oauth_has_the_documented_defaults_and_hides_its_secret() {
    let settings = parse(json!({
        "url": "http://x", "auth": "oauth",
        "oauth": { "client_id": "us", "client_secret": "very-secret", "scope": "read write", "redirect_port": "0" },
    }));
    assert!(!format!("{settings:?}").contains("very-secret"));
    assert!(settings.warnings.is_empty());
    let oauth = settings.oauth.unwrap();
    assert_eq!(oauth.scopes, ["read", "write"]);
    assert_eq!(
        (oauth.redirect_port, oauth.redirect_host.as_str()),
        (None, "127.0.0.1")
    );
    assert_eq!(oauth.login_timeout, Duration::from_secs(300));
}

#[test]
fn an_unknown_oauth_key_is_a_warning_and_a_wrong_secret_is_not_shown() {
    let settings =
        parse(json!({ "url": "http://x", "auth": "oauth", "oauth": { "clientid": "us" } }));
    assert_eq!(
        settings.warnings,
        ["`mcp_servers.files.oauth.clientid` is not a known key; did you mean `client_id`?"]
    );
    let message = error(json!({
        "url": "http://x", "auth": "oauth", "oauth": { "client_secret": ["very-secret"] },
    }));
    assert!(
        message.contains("client_secret") && !message.contains("very-secret"),
        "{message}"
    );
    assert!(
        error(json!({ "url": "http://x", "oauth": { "redirect_port": 70_000 } }))
            .contains("a port up to 65535")
    );
}

#[test]
fn oauth_where_it_has_no_effect_is_a_warning() {
    let warnings = |section| parse(section).warnings.join("\n");
    assert!(warnings(json!({ "command": "npx", "auth": "oauth" })).contains("is a program"));
    assert!(
        warnings(json!({ "url": "http://x", "oauth": { "scope": "a" } }))
            .contains("without `auth: oauth`")
    );
    let both =
        json!({ "url": "http://x", "auth": "oauth", "headers": { "authorization": "Bearer x" } });
    assert!(warnings(both).contains("is not sent"));
}

#[test]
fn the_wire_is_found_out_unless_the_user_names_it() {
    let wire = |transport: Value| {
        let settings = parse(json!({ "url": "http://x", "transport": transport }));
        let TransportSettings::Http { wire, .. } = settings.transport else {
            panic!("{settings:?}");
        };
        wire
    };
    assert_eq!(wire(Value::Null), HttpWire::Auto);
    assert_eq!(wire(json!("sse")), HttpWire::Sse);
    assert_eq!(wire(json!("streamable-http")), HttpWire::Streamable);
    assert!(error(json!({ "url": "http://x", "transport": "carrier" })).contains("one of `sse`"));
    let settings = parse(json!({ "command": "npx", "transport": "sse" }));
    assert!(settings.warnings[0].contains("transport"), "{settings:?}");
}

#[test]
fn certificates_come_as_one_file_or_as_a_pair() {
    let tls = |mut section: Value| {
        section["url"] = json!("https://x");
        match parse(section).transport {
            TransportSettings::Http { tls, .. } => tls,
            other => panic!("{other:?}"),
        }
    };
    let identity = |certificate: &str, key: Option<&str>| {
        Some(ClientIdentity {
            certificate: certificate.into(),
            key: key.map(PathBuf::from),
        })
    };
    assert_eq!(tls(json!({})), TlsSettings::default());
    assert_eq!(tls(json!({ "ssl_verify": "no" })).verify, Verify::Nothing);
    assert_eq!(tls(json!({ "ssl_verify": true })).verify, Verify::System);
    assert_eq!(
        tls(json!({ "ssl_verify": "/ca.pem" })).verify,
        Verify::Authorities("/ca.pem".into())
    );
    assert_eq!(
        tls(json!({ "client_cert": "both.pem" })).identity,
        identity("both.pem", None)
    );
    let pair = identity("c.pem", Some("k.pem"));
    assert_eq!(
        tls(json!({ "client_cert": ["c.pem", "k.pem"] })).identity,
        pair
    );
    assert_eq!(
        tls(json!({ "client_cert": "c.pem", "client_key": "k.pem" })).identity,
        pair
    );
    let message = error(json!({ "url": "https://x", "client_cert": ["c", "k", "hunter2"] }));
    assert!(
        message.contains("passphrase") && !message.contains("hunter2"),
        "{message}"
    );
    assert!(error(json!({ "url": "https://x", "ssl_verify": 3 })).contains("ssl_verify"));
}

#[test]
fn a_missing_variable_is_named() {
    assert_eq!(
        error(json!({ "url": "https://x", "headers": { "Authorization": "Bearer ${TOKEN}" } })),
        "`mcp_servers.files.headers.Authorization` needs the variable `TOKEN`, which is not set; \
         set it in the environment, or as `TOKEN=…` in the `.env` file beside the settings"
    );
    assert!(error(json!({ "url": "https://${HOST}/mcp" })).contains("`HOST`"));
    assert!(error(json!({ "command": "x", "env": { "KEY": "${env:KEY}" } })).contains("`KEY`"));
    let shell = json!({ "command": "sh", "args": ["-c", "echo ${HOME}"] });
    assert!(parse(shell).warnings.is_empty());
}

#[test]
fn what_a_server_may_ask_is_limited_as_documented() {
    let settings = parse(json!({ "url": "http://x" }));
    assert!(settings.elicitation.is_enabled && settings.sampling.is_enabled);
    assert_eq!(settings.elicitation.timeout, Duration::from_secs(300));
    assert_eq!(settings.sampling.timeout, Duration::from_secs(30));
    assert_eq!(settings.sampling.tokens_max, 4096);
    assert_eq!(settings.sampling.per_minute_max, 10);
    assert_eq!(settings.sampling.tool_rounds_max, 5);
    assert_eq!(settings.log_level, None);
    let settings = parse(json!({
        "url": "http://x",
        "elicitation": { "enabled": false, "timeout": 60 },
        "sampling": { "model": "small", "allowed_models": ["large"], "max_tool_rounds": 0, "log_level": "debug" },
    }));
    assert!(!settings.elicitation.is_enabled && settings.warnings.is_empty());
    let named: Vec<&String> = settings.sampling.named_models().collect();
    assert_eq!(named, ["small", "large"]);
    assert_eq!(settings.sampling.log_level, LogLevel::Debug);
    assert!(error(json!({ "url": "http://x", "log_level": "loud" })).contains("`debug`, `info`"));
}

#[test]
fn a_connection_is_shared_unless_each_conversation_is_to_have_its_own() {
    let sharing = |section: Value| {
        let mut section = section;
        section["url"] = json!("http://localhost/mcp");
        ServerSettings::parse("s", &section).map(|settings| settings.sharing)
    };
    assert_eq!(sharing(json!({})).unwrap(), Sharing::Shared);
    let own = json!({ "sessions": "per_conversation" });
    assert_eq!(sharing(own).unwrap(), Sharing::PerConversation);
    let error = sharing(json!({ "sessions": "mine" }))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("shared") && error.contains("mine"),
        "{error}"
    );
}

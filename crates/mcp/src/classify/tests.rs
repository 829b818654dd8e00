use super::*;

fn rpc(message: &str) -> Failure {
    Failure::Rpc {
        code: -32602,
        message: message.to_owned(),
    }
}

fn is_session_lost(message: &str) -> bool {
    let reported = Failure::Reported {
        text: message.to_owned(),
    };
    let lost = classify(&rpc(message), SessionUse::Session) == Class::SessionDoubted;
    assert_eq!(
        lost,
        classify(&reported, SessionUse::Session) == Class::SessionDoubted,
        "an error and a reported error with the text {message:?} differ"
    );
    lost
}

// The seven classifier cases of the original reports.

#[test]
fn the_text_of_the_first_report_is_a_lost_session() {
    assert!(is_session_lost(
        "Invalid params: Invalid or expired session"
    ));
}

#[test]
fn expired_session_variants_are_lost_sessions() {
    for text in [
        "Session expired",
        "expired session",
        "Your session expired, please reconnect",
    ] {
        assert!(is_session_lost(text), "{text}");
    }
}

#[test]
fn session_not_found_variants_are_lost_sessions() {
    for text in [
        "Session not found",
        "unknown session",
        "Unknown session: abc",
        "Session terminated",
    ] {
        assert!(is_session_lost(text), "{text}");
    }
}

#[test]
fn the_case_of_the_letters_does_not_matter() {
    assert!(is_session_lost("SESSION EXPIRED"));
    assert!(is_session_lost("sEsSiOn NoT fOuNd"));
}

#[test]
fn unrelated_errors_are_not_lost_sessions() {
    for text in [
        "Tool failed to execute",
        "database connection closed",
        "401 Unauthorized",
        "broken pipe",
        "the user has no open sessions",
    ] {
        assert!(!is_session_lost(text), "{text}");
    }
}

#[test]
fn an_interruption_by_the_user_is_not_a_lost_session() {
    assert_eq!(
        classify(&Failure::Cancelled, SessionUse::Session),
        Class::Cancelled
    );
    assert_eq!(health(&Failure::Cancelled, Class::Cancelled), Health::Sound);
}

#[test]
fn an_empty_message_is_not_a_lost_session() {
    assert!(!is_session_lost(""));
    assert!(!is_session_lost("   "));
}

// Beyond the reports.

#[test]
fn a_long_text_that_mentions_an_expired_session_is_an_answer() {
    let page = format!(
        "{} session expired {}",
        "word ".repeat(30),
        "word ".repeat(30)
    );
    assert!(!is_session_lost(&page));
}

#[test]
fn without_a_session_only_the_texts_of_the_first_reports_mean_a_lost_one() {
    let class = |text| classify(&rpc(text), SessionUse::Sessionless);
    assert_eq!(class("Session not found"), Class::SessionLost);
    let report = "Invalid params: Invalid or expired session";
    assert_eq!(class(report), Class::SessionLost);
    assert_eq!(class("Unknown session: abc"), Class::Answered);
    assert_eq!(class("browser session not found"), Class::Answered);
}

fn http(status: u16, body: &str) -> HttpAnswer {
    HttpAnswer {
        status,
        session_sent: true,
        body: body.to_owned(),
        ..HttpAnswer::default()
    }
}

fn class_of(answer: HttpAnswer) -> Class {
    classify(&Failure::Http(answer), SessionUse::Session)
}

#[test]
fn every_shape_of_a_lost_session_seen_in_the_wild_is_recognised() {
    let with_rpc = |status, code, message: &str| HttpAnswer {
        rpc: Some((code, message.to_owned())),
        ..http(status, "")
    };
    for answer in [
        http(404, ""),
        http(404, "<html>gone</html>"),
        with_rpc(404, -32001, "Session not found"),
        with_rpc(404, -32600, "Session not found"),
        with_rpc(404, -32015, "no such thing"),
        with_rpc(400, -32000, "Bad Request: No valid session ID provided"),
        http(400, "Bad Request: Missing session ID"),
        http(401, "Session not found"),
        http(401, ""),
        http(409, "session conflict"),
        http(410, "gone"),
        http(503, "no such session on this node"),
        with_rpc(500, -32603, "Session not found"),
    ] {
        let class = class_of(answer.clone());
        let is_known = matches!(class, Class::SessionLost | Class::SessionDoubted);
        assert!(is_known, "{answer:?}: {class:?}");
    }
}

#[test]
fn only_the_status_of_the_protocol_and_a_good_credential_need_no_ping() {
    let with_rpc = |status, message: &str| HttpAnswer {
        rpc: Some((-32602, message.to_owned())),
        ..http(status, "")
    };
    for answer in [http(404, ""), http(410, "gone"), http(401, "")] {
        assert_eq!(class_of(answer.clone()), Class::SessionLost, "{answer:?}");
    }
    for answer in [
        with_rpc(404, "no such row"),
        with_rpc(400, "browser session not found"),
        with_rpc(500, "Session not found"),
        http(503, "no such session on this node"),
    ] {
        let class = class_of(answer.clone());
        assert_eq!(class, Class::SessionDoubted, "{answer:?}");
    }
}

#[test]
fn a_bare_401_is_about_credentials_that_are_refused_without_a_session_too() {
    let refused = HttpAnswer {
        credentials: Credentials::Refused,
        ..http(401, "session not found")
    };
    assert_eq!(class_of(refused), Class::Auth);
}

#[test]
fn what_is_not_about_the_session_is_what_its_status_says() {
    let otherwise = |status| classify_beside_session(&Failure::Http(http(status, "session")));
    assert_eq!(otherwise(400), Class::Answered);
    assert_eq!(otherwise(503), Class::OutcomeUnknown);
    assert_eq!(
        classify_beside_session(&rpc("session expired")),
        Class::Answered
    );
}

#[test]
fn the_same_answers_to_a_request_without_a_session_are_not_lost_sessions() {
    for status in [400, 401, 404, 409, 410, 503] {
        let answer = HttpAnswer {
            session_sent: false,
            ..http(status, "no valid session")
        };
        assert_ne!(class_of(answer), Class::SessionLost, "{status}");
    }
    let report = HttpAnswer {
        session_sent: false,
        ..http(400, "Invalid or expired session")
    };
    assert_eq!(class_of(report), Class::SessionLost, "the first report");
}

#[test]
fn a_challenge_is_about_credentials_and_is_looked_at_first() {
    for status in [401, 403] {
        let answer = HttpAnswer {
            challenge: Some("Bearer error=\"invalid_token\"".into()),
            ..http(status, "session not found")
        };
        assert_eq!(class_of(answer), Class::Auth);
    }
}

#[test]
fn a_rate_limit_keeps_the_time_the_server_asked_for() {
    let limited = |status, seconds: Option<u64>| HttpAnswer {
        retry_after: seconds.map(Duration::from_secs),
        ..http(status, "")
    };
    let after = |seconds| Class::RateLimited {
        after: Duration::from_secs(seconds),
    };
    assert_eq!(class_of(limited(429, Some(7))), after(7));
    assert_eq!(class_of(limited(429, None)), after(1));
    assert_eq!(class_of(limited(503, Some(3))), after(3));
    assert_eq!(class_of(limited(503, None)), Class::OutcomeUnknown);
}

#[test]
fn what_may_have_run_is_never_called_not_run() {
    let cut = Failure::Cut {
        cause: "reset".into(),
    };
    let timeout = Failure::Timeout {
        after: Duration::from_secs(1),
    };
    let page = Failure::NotMcp {
        content_type: "text/html".into(),
    };
    for failure in [cut, timeout, page] {
        let class = classify(&failure, SessionUse::Session);
        assert_eq!(class, Class::OutcomeUnknown, "{failure:?}");
        assert_eq!(health(&failure, class), Health::Doubtful);
    }
    for status in [408, 500, 502, 504] {
        assert_eq!(
            class_of(http(status, "")),
            Class::OutcomeUnknown,
            "{status}"
        );
    }
}

#[test]
fn what_never_left_is_not_executed_and_wants_a_new_connection() {
    let failure = Failure::Unreachable {
        cause: "refused".into(),
    };
    let class = classify(&failure, SessionUse::Session);
    assert_eq!(class, Class::NotExecuted);
    assert_eq!(health(&failure, class), Health::Lost);
}

#[test]
fn an_application_error_says_nothing_about_the_connection() {
    let failure = rpc("no such file");
    let class = classify(&failure, SessionUse::Session);
    assert_eq!(class, Class::Answered);
    assert_eq!(health(&failure, class), Health::Sound);
    let refused = HttpAnswer {
        rpc: Some((-32602, "no such argument".into())),
        ..http(400, "")
    };
    assert_eq!(class_of(refused), Class::Answered);
}

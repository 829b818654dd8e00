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
    let lost = classify(&rpc(message), SessionUse::Session) == Class::SessionLost;
    assert_eq!(
        lost,
        classify(&reported, SessionUse::Session) == Class::SessionLost,
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
fn without_a_session_no_text_means_a_lost_one() {
    let failure = rpc("Session not found");
    assert_eq!(classify(&failure, SessionUse::Sessionless), Class::Answered);
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
        assert_eq!(class_of(answer.clone()), Class::SessionLost, "{answer:?}");
    }
}

#[test]
fn the_same_answers_to_a_request_without_a_session_are_not_lost_sessions() {
    for status in [400, 401, 404, 409, 410, 503] {
        let answer = HttpAnswer {
            session_sent: false,
            ..http(status, "session not found")
        };
        assert_ne!(class_of(answer), Class::SessionLost, "{status}");
    }
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

//! Reads what a failed request means: whose fault it is, and what may be tried next. Pure.

use std::time::Duration;

use hermes_core::ModelErrorKind;
use serde_json::Value;

use crate::encode::Unseen;

/// The longest wait in the middle of a turn. Whoever wants more says "not now": somebody else may answer, and the user
/// would rather know than sit before a silent terminal.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// The longest wait we tell apart from never. Added to a clock it cannot overflow.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(365 * 86_400);

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ModelErrorKind,
    /// What the provider or the network said; not redacted yet.
    pub(crate) message: String,
    pub(crate) remedy: Remedy,
    /// How long the provider asked us to wait.
    pub(crate) retry_after: Option<Duration>,
    /// What a person can do, where that is more than what the kind suggests.
    pub(crate) hint: Option<&'static str>,
}

/// What may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The same request again, after a wait.
    Again,
    /// Another credential; the same one once more if only the rate is the matter.
    OtherKey,
    /// Another model: this one will refuse again.
    OtherModel,
    /// The same request without the signatures of earlier replies.
    Unsigned,
    /// The same request without its pictures.
    Unseen(Unseen),
    /// Only the caller can help, by sending less.
    SendLess,
}

impl Failure {
    pub(crate) fn new(kind: ModelErrorKind, remedy: Remedy, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            remedy,
            retry_after: None,
            hint: None,
        }
    }

    /// Returns whether the provider wants a wait that is not worth beginning.
    pub(crate) fn asks_too_much(&self) -> bool {
        self.retry_after.is_some_and(|wait| wait > WAIT_MAX)
    }

    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

/// An HTTP response that is not a success, as far as it matters here.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a str,
    pub(crate) retry_after: Option<&'a str>,
    pub(crate) retry_after_ms: Option<&'a str>,
    /// The server's own `Date`, against which a `Retry-After` date is measured.
    pub(crate) date: Option<&'a str>,
}

/// Reads an HTTP refusal.
pub(crate) fn refusal(refusal: Refusal<'_>) -> Failure {
    let message = message_of(refusal.body);
    let (kind, remedy) = judge(refusal.status, &refusal.body.to_lowercase());
    let message = if message.is_empty() {
        format!("HTTP status {} with an empty body", refusal.status)
    } else {
        format!("{message} (HTTP status {})", refusal.status)
    };
    let retry_after = retry_after(refusal);
    // In front, because the end of a long message is cut.
    let message = match retry_after {
        Some(wait) if wait > WAIT_MAX => format!("asks to wait {}: {message}", in_words(wait)),
        _ => message,
    };
    Failure {
        kind,
        message,
        remedy,
        retry_after,
        hint: None,
    }
}

/// Reads an error that came inside a stream: JSON text with a code or type instead of a status.
pub(crate) fn reported(body: &str) -> Failure {
    let text = body.to_lowercase();
    let status = status_of(body, &text);
    let (kind, remedy) = judge(status, &text);
    let message = match message_of(body) {
        message if message.is_empty() => "the provider broke the stream off with an error".into(),
        message => message,
    };
    Failure::new(kind, remedy, message)
}

/// Finds the HTTP status an error in a stream would have had.
fn status_of(body: &str, text: &str) -> u16 {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    if let Some(code) = value["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        && (400..600).contains(&code)
    {
        return code;
    }
    const NAMES: &[(&str, u16)] = &[
        ("overloaded", 529),
        ("rate_limit", 429),
        ("resource_exhausted", 429),
        ("authentication", 401),
        ("invalid_api_key", 401),
        ("permission", 403),
        ("billing", 402),
        ("insufficient_quota", 429),
        ("not_found", 404),
        ("invalid_request", 400),
        ("invalid_argument", 400),
        ("context_length_exceeded", 400),
    ];
    let known = NAMES.iter().find(|(name, _)| text.contains(name));
    known.map_or(500, |(_, status)| *status)
}

/// Decides by status and by the lower-case text of the body.
fn judge(status: u16, text: &str) -> (ModelErrorKind, Remedy) {
    use ModelErrorKind as Kind;
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if status == 413 || says(TOO_LONG) {
        return (Kind::ContextTooLong, Remedy::SendLess);
    }
    // Servers that run a model themselves call this an error of their own.
    let is_about_content = matches!(status, 400 | 404 | 415 | 422 | 500 | 501);
    if is_about_content && says(CANNOT_SEE) {
        return (Kind::BadRequest, Remedy::Unseen(Unseen::CannotSee));
    }
    if is_about_content && (says(BAD_PICTURE) || says(BAD_ORDER)) {
        return (Kind::BadRequest, Remedy::Unseen(Unseen::Refused));
    }
    match status {
        401 => (Kind::Auth, Remedy::OtherKey),
        402 if says(RESETS) => (Kind::RateLimit, Remedy::OtherKey),
        402 => (Kind::Billing, Remedy::OtherKey),
        403 if says(CREDIT) => (Kind::Billing, Remedy::OtherKey),
        403 if says(MODERATED) => (Kind::ContentFilter, Remedy::OtherModel),
        403 => (Kind::Auth, Remedy::OtherKey),
        429 if says(CREDIT) => (Kind::Billing, Remedy::OtherKey),
        429 if says(&["overloaded", "engine is busy", "server is busy"]) => {
            (Kind::Overloaded, Remedy::Again)
        }
        // The aggregator's own supplier is busy: another of our keys meets the same supplier.
        429 if says(&["upstream"]) => (Kind::RateLimit, Remedy::Again),
        429 => (Kind::RateLimit, Remedy::OtherKey),
        408 => (Kind::Network, Remedy::Again),
        400..=499 if says(BAD_SIGNATURE) => (Kind::BadRequest, Remedy::Unsigned),
        400..=499 if says(BAD_KEY) => (Kind::Auth, Remedy::OtherKey),
        400..=499 if says(CREDIT) => (Kind::Billing, Remedy::OtherKey),
        400..=499 if says(NO_MODEL) => (Kind::UnknownModel, Remedy::OtherModel),
        400..=499 if says(MODERATED) => (Kind::ContentFilter, Remedy::OtherModel),
        // A redirect is not followed: it would take the key along.
        300..=499 => (Kind::BadRequest, Remedy::OtherModel),
        _ => (Kind::Overloaded, Remedy::Again),
    }
}

/// How providers and servers say that a request does not fit the model's window.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "exceed_context_size",
    "exceeds the available context",
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
    "reduce the length of the messages",
    "request_too_large",
    "string_above_max_length",
];
const CREDIT: &[&str] = &[
    "insufficient_quota",
    "insufficient balance",
    "insufficient credit",
    "insufficient_credits",
    "credit balance",
    "exceeded your current quota",
    "payment required",
    "billing_hard_limit",
    "arrearage",
];
const RESETS: &[&str] = &["usage limit", "resets", "try again in"];
const MODERATED: &[&str] = &[
    "content policy",
    "content_policy",
    "content management policy",
    "content_filter",
    "moderation",
    "flagged",
    "safety",
];
const NO_MODEL: &[&str] = &[
    "model_not_found",
    "model not found",
    "no endpoints found",
    "is not a valid model",
    "does not exist",
    "is not found for api version",
    "unknown model",
    "not_found_error",
    "try pulling it first",
];
const BAD_KEY: &[&str] = &[
    "api_key_invalid",
    "invalid_api_key",
    "invalid api key",
    "api key not valid",
    "incorrect api key",
    "invalid x-api-key",
];
/// How providers and servers say that a model has no eyes.
const CANNOT_SEE: &[&str] = &[
    // "… does not support image input", "no endpoints found that support image input"
    "support image input",
    "not support images",
    "n't support images",
    "image input is not supported",
    "image inputs are not supported",
    "image input is not enabled",
    "image input modality is not enabled",
    "missing data required for image input",
    "support the image content block",
    "image_url is only supported by certain models",
    "image_url is not supported",
    "'image_url' is not supported",
    "unknown variant `image_url`",
    "unknown variant `image`",
    "].content must be a string",
    "is not a multimodal model",
    "does not support multimodal",
    "at most 0 image(s) may be provided",
    "`function_response.parts` is not supported",
];
/// How they say that a picture itself is wrong; the history would be refused with it for ever.
const BAD_PICTURE: &[&str] = &[
    "could not process image",
    "unable to process input image",
    "does not represent a valid image",
    "image dimensions exceed max allowed size",
    "image exceeds",
    "invalid_image",
    "invalid_base64_image",
    "image_parse_error",
    "image_too_large",
    "unsupported image",
    "failed to decode image",
    "failed to load image",
];
/// How they say that nothing of a user may follow results. The pictures of results do, on the wire that takes them from
/// users only; without them the order is one that everybody takes.
const BAD_ORDER: &[&str] = &[
    "unexpected role 'user' after role 'tool'",
    "conversation roles must alternate",
];
const BAD_SIGNATURE: &[&str] = &[
    "invalid `signature` in `thinking`",
    "invalid_encrypted_content",
    "encrypted content could not be verified",
    "thought signature is not valid",
    "corrupted thought signature",
];

/// Takes the human part out of an error body: `error.message`, or whatever else there is to read.
pub(crate) fn message_of(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return body.split_whitespace().collect::<Vec<_>>().join(" ");
    };
    let value = match &value {
        Value::Array(list) => list.first().unwrap_or(&value),
        _ => &value,
    };
    let spots = [
        // OpenRouter hides its supplier's words here.
        "/error/metadata/raw",
        "/metadata/raw",
        "/error/message",
        "/message",
        "/error",
        "/detail",
    ];
    let found = spots.iter().find_map(|spot| value.pointer(spot)?.as_str());
    found.map_or_else(|| body.trim().to_owned(), str::to_owned)
}

/// Reads how long to wait, in whichever way the server said it. More than [`RETRY_AFTER_MAX`] is that.
fn retry_after(refusal: Refusal<'_>) -> Option<Duration> {
    let millis = refusal
        .retry_after_ms
        .and_then(|text| text.trim().parse::<f64>().ok());
    let wait = match (millis, refusal.retry_after) {
        (Some(millis), _) => seconds(millis / 1000.0),
        (None, Some(text)) => match text.trim().parse::<f64>() {
            Ok(secs) => seconds(secs),
            Err(_) => Some(http_date(text)?.saturating_sub(http_date(refusal.date?)?)),
        },
        // Gemini says it only in the body.
        (None, None) => gemini_retry_delay(refusal.body),
    };
    wait.map(|wait| wait.min(RETRY_AFTER_MAX))
}

fn seconds(secs: f64) -> Option<Duration> {
    let secs_max = RETRY_AFTER_MAX.as_secs_f64();
    (secs >= 0.0).then(|| Duration::from_secs_f64(secs.min(secs_max)))
}

/// Says a long wait in its two largest units, rounded down: `27 h 46 min`, `3 d 3 h`.
fn in_words(wait: Duration) -> String {
    let minutes = wait.as_secs() / 60;
    let (large, small) = match minutes {
        0..60 => return format!("{minutes} min"),
        // "27 h" is easier to add to the time of day than "1 d 3 h".
        60..2880 => ((minutes / 60, "h"), (minutes % 60, "min")),
        _ => ((minutes / 1440, "d"), (minutes % 1440 / 60, "h")),
    };
    match small {
        (0, _) => format!("{} {}", large.0, large.1),
        (number, unit) => format!("{} {} {number} {unit}", large.0, large.1),
    }
}

fn gemini_retry_delay(body: &str) -> Option<Duration> {
    let value: Value = serde_json::from_str(body).ok()?;
    let details = value.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail["retryDelay"].as_str())?;
    seconds(delay.strip_suffix('s')?.parse().ok()?)
}

/// Reads `Sun, 15 Nov 2026 21:24:05 GMT` as the time since 1970.
fn http_date(text: &str) -> Option<Duration> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_whitespace().skip(1);
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words
        .next()?
        .split(':')
        .map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_before(year, month) + day - 1;
    Some(Duration::from_secs(
        days * 86_400 + hour * 3600 + minute * 60 + second,
    ))
}

/// Counts the days from 1970-01-01 to the first of a month; `month` counts from 0.
fn days_before(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let leap_day = u64::from(is_leap && month >= 2);
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + BEFORE[month as usize] + leap_day
}

#[cfg(test)]
mod tests {
    use super::*;
    use ModelErrorKind::*;

    #[test]
    fn refusals_mean_what_providers_mean_by_them() {
        let check = |status: u16, body: &str, kind, remedy| {
            let failure = refusal(Refusal {
                status,
                body,
                ..Refusal::default()
            });
            assert_eq!(
                (failure.kind, failure.remedy),
                (kind, remedy),
                "{status} {body}"
            );
        };
        // OpenAI
        check(
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-***","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Auth,
            Remedy::OtherKey,
        );
        check(
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-5 in organization org-x on tokens per min","type":"tokens","code":"rate_limit_exceeded"}}"#,
            RateLimit,
            Remedy::OtherKey,
        );
        check(
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Billing,
            Remedy::OtherKey,
        );
        check(
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","code":"context_length_exceeded"}}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        check(
            404,
            r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
            UnknownModel,
            Remedy::OtherModel,
        );
        check(
            400,
            r#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error"}}"#,
            BadRequest,
            Remedy::OtherModel,
        );
        check(
            400,
            r#"{"error":{"code":"invalid_encrypted_content","message":"The encrypted content could not be verified."}}"#,
            BadRequest,
            Remedy::Unsigned,
        );
        check(
            500,
            r#"{"error":{"message":"The server had an error while processing your request.","type":"server_error"}}"#,
            Overloaded,
            Remedy::Again,
        );
        // Anthropic
        check(
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
            Remedy::Again,
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Billing,
            Remedy::OtherKey,
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
            BadRequest,
            Remedy::Unsigned,
        );
        check(
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Auth,
            Remedy::OtherKey,
        );
        check(
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
            UnknownModel,
            Remedy::OtherModel,
        );
        check(
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        // OpenRouter
        check(
            402,
            r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#,
            Billing,
            Remedy::OtherKey,
        );
        check(
            402,
            r#"{"error":{"message":"You have reached your weekly usage limit. It resets on Monday."}}"#,
            RateLimit,
            Remedy::OtherKey,
        );
        check(
            429,
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x/y:free is temporarily rate-limited upstream","provider_name":"Chutes"}}}"#,
            RateLimit,
            Remedy::Again,
        );
        check(
            404,
            r#"{"error":{"message":"No endpoints found for x/y.","code":404}}"#,
            UnknownModel,
            Remedy::OtherModel,
        );
        check(
            403,
            r#"{"error":{"message":"Your chosen model requires moderation and your input was flagged","code":403}}"#,
            ContentFilter,
            Remedy::OtherModel,
        );
        check(
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.","code":400}}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        check(
            502,
            r#"{"error":{"message":"Provider returned error","code":502}}"#,
            Overloaded,
            Remedy::Again,
        );
        // Gemini
        check(
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            Auth,
            Remedy::OtherKey,
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        check(
            429,
            r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}"#,
            RateLimit,
            Remedy::OtherKey,
        );
        check(
            503,
            r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
            Overloaded,
            Remedy::Again,
        );
        check(
            404,
            r#"{"error":{"code":404,"message":"models/gemini-9 is not found for API version v1beta","status":"NOT_FOUND"}}"#,
            UnknownModel,
            Remedy::OtherModel,
        );
        // DeepSeek, Kimi
        check(
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#,
            Billing,
            Remedy::OtherKey,
        );
        check(
            429,
            r#"{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded"}}"#,
            Overloaded,
            Remedy::Again,
        );
        // llama.cpp, vLLM, Ollama
        check(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        check(
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            Overloaded,
            Remedy::Again,
        );
        check(
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}"#,
            ContextTooLong,
            Remedy::SendLess,
        );
        check(
            404,
            r#"{"error":{"message":"model \"llama9\" not found, try pulling it first","type":"api_error"}}"#,
            UnknownModel,
            Remedy::OtherModel,
        );
        // Models without eyes
        const CANNOT_SEE: Remedy = Remedy::Unseen(Unseen::CannotSee);
        for (status, body) in [
            (
                404,
                r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error","param":"messages.[0].content.[1].type","code":null}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 690848","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"this model does not support image input (ref: b8bd630e)"}}"#,
            ),
            (400, r#"{"error":"Model do not support image input."}"#),
            (
                400,
                r#"{"error":{"code":400,"message":"Image input modality is not enabled for models/gemma-3-1b-it","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"qwen3-8b is not a multimodal model","type":"BadRequestError","code":400}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"At most 0 image(s) may be provided in one prompt.","type":"BadRequestError","code":400}"#,
            ),
            (
                500,
                r#"{"error":{"message":"this model is missing data required for image input","type":"api_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"'messages.[2].content' : value must be a string; messages[2].content must be a string","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"Unable to submit request because `function_response.parts` is not supported for this model.","status":"INVALID_ARGUMENT"}}"#,
            ),
        ] {
            check(status, body, BadRequest, CANNOT_SEE);
        }
        // Pictures that nobody can read
        const REFUSED: Remedy = Remedy::Unseen(Unseen::Refused);
        for body in [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"At least one of the image dimensions exceed max allowed size: 8000 pixels"}}"#,
            r#"{"error":{"message":"The image data you provided does not represent a valid image.","code":"invalid_image"}}"#,
            r#"{"error":{"code":400,"message":"Unable to process input image. Please retry or report in the forum","status":"INVALID_ARGUMENT"}}"#,
        ] {
            check(400, body, BadRequest, REFUSED);
        }
        // The order that pictures of results make
        for (status, body) in [
            (
                400,
                r#"{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}"#,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"After the optional system message, conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}"#,
            ),
        ] {
            check(status, body, BadRequest, REFUSED);
        }
        // Words that are about something else
        check(
            400,
            r#"{"error":{"message":"Invalid value: 'image'. Supported values are: 'text'."}}"#,
            BadRequest,
            Remedy::OtherModel,
        );
        check(
            401,
            r#"{"error":{"message":"your plan does not support image input"}}"#,
            Auth,
            Remedy::OtherKey,
        );
        check(
            400,
            r#"{"error":{"message":"image/tiff is wrong: we support images of four kinds only"}}"#,
            BadRequest,
            Remedy::OtherModel,
        );
        check(
            429,
            r#"{"error":{"message":"Rate limit reached for requests that support image input"}}"#,
            RateLimit,
            Remedy::OtherKey,
        );
        // Proxies in between
        check(
            502,
            "<html><body><h1>502 Bad Gateway</h1></body></html>",
            Overloaded,
            Remedy::Again,
        );
        check(408, "", Network, Remedy::Again);
        check(404, "404 page not found", BadRequest, Remedy::OtherModel);
        check(308, "", BadRequest, Remedy::OtherModel);
        check(
            422,
            r#"{"detail":"Unprocessable"}"#,
            BadRequest,
            Remedy::OtherModel,
        );
    }

    #[test]
    fn errors_in_a_stream_mean_the_same_as_refusals() {
        let check = |body: &str, kind| assert_eq!(reported(body).kind, kind, "{body}");
        check(
            r#"{"type":"overloaded_error","message":"Overloaded"}"#,
            Overloaded,
        );
        check(
            r#"{"code":"rate_limit_exceeded","message":"slow down"}"#,
            RateLimit,
        );
        check(r#"{"code":429,"message":"slow down"}"#, RateLimit);
        check(
            r#"{"code":"context_length_exceeded","message":"too long"}"#,
            ContextTooLong,
        );
        check(r#"{"code":"server_error","message":"oops"}"#, Overloaded);
        check(r#"{"message":"oops","type":null}"#, Overloaded);
        check("null", Overloaded);
    }

    #[test]
    fn the_message_is_the_human_part() {
        let check = |body: &str, expected: &str| {
            let failure = refusal(Refusal {
                status: 400,
                body,
                ..Refusal::default()
            });
            assert_eq!(failure.message, expected);
        };
        check(r#"{"error":{"message":"no"}}"#, "no (HTTP status 400)");
        check(r#"[{"error":{"message":"no"}}]"#, "no (HTTP status 400)");
        check(r#"{"error":"no"}"#, "no (HTTP status 400)");
        check(
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"busy"}}}"#,
            "busy (HTTP status 400)",
        );
        check("plain\n  text", "plain text (HTTP status 400)");
        check("", "HTTP status 400 with an empty body");
    }

    #[test]
    fn the_wait_is_read_in_every_form() {
        let wait = |refusal| retry_after(refusal);
        let base = Refusal::default();
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(wait(base), None);
        let header = |text| Refusal {
            retry_after: Some(text),
            ..base
        };
        assert_eq!(wait(header("7")), secs(7));
        assert_eq!(wait(header("1.5")), Some(Duration::from_millis(1500)));
        assert_eq!(wait(header("86400")), secs(86_400));
        assert_eq!(wait(header("1e18")), Some(RETRY_AFTER_MAX));
        assert_eq!(wait(header("nan")), None);
        assert_eq!(wait(header("-3")), None);
        assert_eq!(wait(header("soon")), None);
        let millis = Refusal {
            retry_after_ms: Some("250"),
            ..header("7")
        };
        assert_eq!(wait(millis), Some(Duration::from_millis(250)));
        let dated = Refusal {
            date: Some("Sun, 15 Nov 2026 23:59:55 GMT"),
            ..header("Mon, 16 Nov 2026 00:00:05 GMT")
        };
        assert_eq!(wait(dated), secs(10));
        let past = Refusal {
            date: Some("Mon, 16 Nov 2026 00:00:05 GMT"),
            ..header("Sun, 15 Nov 2026 23:59:55 GMT")
        };
        assert_eq!(wait(past), secs(0));
        let gemini = Refusal {
            body: r#"{"error":{"details":[{"@type":"x"},{"retryDelay":"34s"}]}}"#,
            ..base
        };
        assert_eq!(wait(gemini), secs(34));
    }

    #[test]
    fn a_wait_that_is_too_long_is_part_of_the_message() {
        let check = |text: &str, expected: &str| {
            let failure = refusal(Refusal {
                status: 429,
                body: "slow down",
                retry_after: Some(text),
                ..Refusal::default()
            });
            let begin = failure.message.strip_suffix("slow down (HTTP status 429)");
            assert_eq!(begin, Some(expected), "{text}");
            assert_eq!(failure.asks_too_much(), !expected.is_empty(), "{text}");
        };
        check("7", "");
        check("600", "");
        check("601", "asks to wait 10 min: ");
        check("3599", "asks to wait 59 min: ");
        check("3600", "asks to wait 1 h: ");
        check("100000", "asks to wait 27 h 46 min: ");
        check("172800", "asks to wait 2 d: ");
        check("270000", "asks to wait 3 d 3 h: ");
        check("1e30", "asks to wait 365 d: ");
    }

    #[test]
    fn http_dates_agree_with_the_calendar() {
        let check = |text, secs| assert_eq!(http_date(text), Some(Duration::from_secs(secs)));
        check("Thu, 01 Jan 1970 00:00:00 GMT", 0);
        check("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400);
        check("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800);
        check("Sun, 15 Nov 2026 21:24:05 GMT", 1_794_777_845);
        for nonsense in [
            "",
            "Sun, 99 Nov 2026 00:00:00 GMT",
            "Sun, 15 Foo 2026 00:00:00 GMT",
            "1",
        ] {
            assert_eq!(http_date(nonsense), None);
        }
    }
}

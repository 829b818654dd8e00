//! What the refusals of real providers mean.

use super::wait::RETRY_AFTER_MAX;
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
        assert!(failure.is_wait_stated());
        let failure = failure.saying_wait();
        let begin = failure.message.strip_suffix("slow down (HTTP status 429)");
        assert_eq!(begin, Some(expected), "{text}");
    };
    check("7", "asks to wait 7 s: ");
    check("601", "asks to wait 10 min: ");
    check("3599", "asks to wait 59 min: ");
    check("3600", "asks to wait 1 h: ");
    check("100000", "asks to wait 27 h 46 min: ");
    check("172800", "asks to wait 2 d: ");
    check("270000", "asks to wait 3 d 3 h: ");
    check("1e30", "asks to wait 365 d: ");
}

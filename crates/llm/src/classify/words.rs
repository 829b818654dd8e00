//! How providers and servers word their refusals, in lower case.

/// How providers and servers say that a request does not fit the model's window.
pub(super) const TOO_LONG: &[&str] = &[
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
pub(super) const CREDIT: &[&str] = &[
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
pub(super) const RESETS: &[&str] = &["usage limit", "resets", "try again in"];
pub(super) const MODERATED: &[&str] = &[
    "content policy",
    "content_policy",
    "content management policy",
    "content_filter",
    "moderation",
    "flagged",
    "safety",
];
pub(super) const NO_MODEL: &[&str] = &[
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
pub(super) const BAD_KEY: &[&str] = &[
    "api_key_invalid",
    "invalid_api_key",
    "invalid api key",
    "api key not valid",
    "incorrect api key",
    "invalid x-api-key",
];
/// How providers and servers say that a model has no eyes.
pub(super) const CANNOT_SEE: &[&str] = &[
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
pub(super) const BAD_PICTURE: &[&str] = &[
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
pub(super) const BAD_ORDER: &[&str] = &[
    "unexpected role 'user' after role 'tool'",
    "conversation roles must alternate",
];
pub(super) const BAD_SIGNATURE: &[&str] = &[
    "invalid `signature` in `thinking`",
    "invalid_encrypted_content",
    "encrypted content could not be verified",
    "thought signature is not valid",
    "corrupted thought signature",
];

//! Who gets in: the key, the origins of pages, and what every answer says to browsers.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ORIGIN, REFERRER_POLICY, VARY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::error::ApiError;
use super::{Api, metrics};

const SECURITY_HEADERS: [(HeaderName, HeaderValue); 5] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

const CORS_METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
/// For browsers that do not say which ones they mean to send.
const CORS_HEADERS: &str =
    "Authorization, Content-Type, Idempotency-Key, X-Hermes-Session-Id, X-Hermes-Session-Key";
const VARIES: &str = "Origin, Access-Control-Request-Headers";
const CORS_EXPOSED: &str = "X-Hermes-Session-Id, X-Hermes-Completed, X-Hermes-Partial, X-Hermes-Error, Retry-After, X-Should-Retry";

/// Routes that only who has the key may use.
pub(super) fn with_key(api: &Arc<Api>, router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    router.route_layer(from_fn_with_state(Arc::clone(api), require_key))
}

/// What holds for every route, also for those that are not there.
pub(super) fn for_all(api: &Arc<Api>, router: Router<Arc<Api>>) -> Router<Arc<Api>> {
    router
        .fallback(async || ApiError::not_found("there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            ApiError::invalid("this address takes another method")
                .with_status(StatusCode::METHOD_NOT_ALLOWED)
        })
        .layer(from_fn_with_state(Arc::clone(api), check_origin))
        .layer(from_fn_with_state(Arc::clone(api), metrics::counted))
}

async fn require_key(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    if !admits(&api, request.headers()) {
        let mut response = ApiError::unauthorised().into_response();
        let challenge = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        return response;
    }
    next.run(request).await
}

fn admits(api: &Api, headers: &HeaderMap) -> bool {
    let is_key = |given: &HeaderValue| {
        let given = given.as_bytes().split_first_chunk::<7>();
        given.is_some_and(|(scheme, key)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && api.settings.key.is(key.trim_ascii())
        })
    };
    let mut given = headers.get_all(AUTHORIZATION).iter().peekable();
    given.peek().is_some() && given.all(is_key)
}

/// Pages of other origins are kept out, unless the settings name them.
async fn check_origin(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match &origin {
        Some(origin) if !is_allowed(&api.settings.cors_origins, origin) => {
            let message = "pages of this origin may not use the API; \
                 `platforms.api_server.cors_origins` lists those that may";
            ApiError::forbidden(message)
                .code("origin_not_allowed")
                .into_response()
        }
        Some(_) if request.method() == Method::OPTIONS => preflight(request.headers()),
        _ => next.run(request).await,
    };
    let is_refused = response.status() == StatusCode::FORBIDDEN;
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(value);
    }
    if let Some(origin) = origin.filter(|_| !is_refused) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(CORS_EXPOSED),
        );
        headers.insert(VARY, HeaderValue::from_static(VARIES));
    }
    response
}

fn is_allowed(origins: &[String], origin: &HeaderValue) -> bool {
    let is_it = |allowed: &String| {
        allowed == "*" || allowed.trim_end_matches('/').as_bytes() == origin.as_bytes()
    };
    origins.iter().any(is_it)
}

/// Pages that may ask may send what they like along: official clients have headers of their own, and new ones come.
fn preflight(asked: &HeaderMap) -> Response {
    let fixed = HeaderValue::from_static;
    let wanted = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, fixed(CORS_METHODS)),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            wanted.unwrap_or(fixed(CORS_HEADERS)),
        ),
        (ACCESS_CONTROL_MAX_AGE, fixed("600")),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

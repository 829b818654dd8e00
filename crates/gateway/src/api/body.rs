//! Reads what clients send: not too much of it, and not for ever.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::error::{ApiError, ApiResult};

/// As the known program has it: a few pictures, and far more text than a model takes.
pub(crate) const BODY_BYTES_MAX: usize = 10_000_000;
/// A body of the largest size over a slow line takes as long; smaller ones a part of it.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
const BODY_TIMEOUT_MIN: Duration = Duration::from_secs(10);

/// Reads the body as JSON of a shape.
pub(crate) async fn json<T: DeserializeOwned>(request: Request<Body>) -> ApiResult<T> {
    parsed(&bytes(request, BODY_BYTES_MAX).await?)
}

/// Reads JSON of a shape.
pub(crate) fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let what = if error.is_data() {
            "not what is expected"
        } else {
            "not JSON"
        };
        ApiError::invalid(format!("the body is {what}: {error}")).code("invalid_json")
    })
}

pub(crate) async fn bytes(request: Request<Body>, bytes_max: usize) -> ApiResult<Bytes> {
    let too_large = || ApiError::too_large(format!("a body may have {bytes_max} bytes"));
    let announced = request.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let reading = Limited::new(request.into_body(), bytes_max).collect();
    let share = bytes_max as f64 / BODY_BYTES_MAX as f64;
    let time_max = BODY_TIMEOUT.mul_f64(share.min(1.0)).max(BODY_TIMEOUT_MIN);
    match timeout(time_max, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(ApiError::invalid(format!("the body broke off: {error}"))),
        Err(_) => Err(ApiError::too_slow()),
    }
}

//! What an address says, refused in the same shape as everything else.

use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The one name in an address.
pub(crate) struct Id(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let path = path.map_err(|error| ApiError::invalid(error.body_text()))?;
        Ok(Self(path.0))
    }
}

/// What stands behind the question mark.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let query = query.map_err(|error| ApiError::invalid(error.body_text()))?;
        Ok(Self(query.0))
    }
}

//! What an address says, refused in the same shape as everything else.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use super::error::{ApiError, ApiResult};

/// The one name in an address.
pub(crate) struct Id(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let path = path.map_err(|_| ApiError::invalid("the name in this address is not UTF-8"))?;
        Ok(Self(path.0))
    }
}

/// What stands behind the question mark.
pub(crate) struct Asked(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let fields = form_urlencoded::parse(query.as_bytes());
        Ok(Self(fields.into_owned().collect()))
    }
}

impl Asked {
    pub(crate) fn text(&self, name: &str) -> ApiResult<Option<&str>> {
        let mut values = self.0.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        if values.any(|(_, other)| Some(other.as_str()) != value) {
            return Err(ApiError::invalid(format!("`{name}` says two things")).param(name));
        }
        Ok(value)
    }

    pub(crate) fn count(&self, name: &str) -> ApiResult<Option<usize>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let wrong = || ApiError::invalid(format!("`{name}` must be a whole number")).param(name);
        text.parse().map(Some).map_err(|_| wrong())
    }
}

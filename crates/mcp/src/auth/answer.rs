//! Reads what a browser came back with from a login: by itself, or by way of a person's clipboard.

use hermes_core::Secret;

use super::login::{LoginError, clean};

/// What the browser came back with. The code is a secret until it is used.
pub(super) struct AuthorizationResponse {
    pub(super) code: Secret,
    pub(super) issuer: Option<String>,
}

impl AuthorizationResponse {
    pub(super) fn read(text: &str, state: &str) -> Result<Self, LoginError> {
        let text = text.trim();
        let query = match (text.split_once('?'), text.contains('=')) {
            (Some((_, query)), _) => query,
            (None, true) => text,
            (None, false) if text.is_empty() || text.contains(char::is_whitespace) => {
                return Err(LoginError::NotTheAnswer);
            }
            (None, false) => {
                return Ok(Self {
                    code: Secret::new(text),
                    issuer: None,
                });
            }
        };
        let query = query.split('#').next().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        if value("state").as_deref() != Some(state) {
            return Err(LoginError::NotTheAnswer);
        }
        if let Some(error) = value("error") {
            let reason = match value("error_description") {
                Some(text) => format!("{error}: {text}"),
                None => error,
            };
            return Err(LoginError::Refused {
                reason: clean(&reason),
            });
        }
        Ok(Self {
            code: value("code")
                .map(Secret::new)
                .ok_or(LoginError::NotTheAnswer)?,
            issuer: value("iss"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, Option<String>), LoginError> {
        let answer = AuthorizationResponse::read(text, "st")?;
        Ok((answer.code.expose().to_owned(), answer.issuer))
    }

    #[test]
    fn an_address_a_query_and_a_bare_code_are_answers() {
        let code = || "a b".to_owned();
        let address = "http://127.0.0.1:1/callback?state=st&code=a%20b&iss=https%3A%2F%2Fas#x";
        assert_eq!(
            read(address).unwrap(),
            (code(), Some("https://as".to_owned()))
        );
        assert_eq!(read(" ?code=a+b&state=st\n").unwrap(), (code(), None));
        assert_eq!(read("code=a+b&state=st").unwrap(), (code(), None));
        assert_eq!(read("abc-123").unwrap().0, "abc-123");
    }

    #[test]
    fn an_answer_to_another_login_is_not_taken() {
        for text in [
            "",
            "two words",
            "http://x/?code=a&state=other",
            "http://x/?code=a",
            "http://x/?state=st",
        ] {
            assert!(
                matches!(read(text), Err(LoginError::NotTheAnswer)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let error = read("http://x/?error=access_denied&error_description=not+you&state=st");
        assert_eq!(
            error.unwrap_err().to_string(),
            "the server refused the login: access_denied: not you"
        );
    }
}

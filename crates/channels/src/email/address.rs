//! Addresses of people.

/// As long as mail allows.
const ADDRESS_BYTES_MAX: usize = 254;

/// An address without its name, in lower case: what people are known by. `None` if it is none that can be written to.
pub(super) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(start), Some(rest)) => rest.get(start + 1..)?,
        _ => text,
    };
    let address = inner.to_lowercase();
    let (local, domain) = address.split_once('@')?;
    let is_right = |part: &str, is_of: fn(char) -> bool| {
        let is_dotted = !part.starts_with('.') && !part.ends_with('.') && !part.contains("..");
        !part.is_empty() && is_dotted && part.chars().all(is_of)
    };
    let is_whole = is_right(local, is_of_local) && is_right(domain, is_of_domain);
    (is_whole && address.len() <= ADDRESS_BYTES_MAX).then_some(address)
}

fn is_of_local(c: char) -> bool {
    is_letter(c) || "!#$%&'*+-/=?^_`{|}~.".contains(c)
}

fn is_of_domain(c: char) -> bool {
    is_letter(c) || matches!(c, '.' | '-')
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric())
}

pub(super) fn domain(address: &str) -> &str {
    address.split_once('@').map_or("", |(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn people_are_known_by_their_address_alone() {
        let check = |text, expected| assert_eq!(canonical(text).as_deref(), expected, "{text:?}");
        check("Alice@Example.ORG", Some("alice@example.org"));
        check("Alice <alice@example.org>", Some("alice@example.org"));
        check("a.b+tag@x-y.example", Some("a.b+tag@x-y.example"));
        check("jürgen@müller.example", Some("jürgen@müller.example"));
        for wrong in [
            "",
            "alice",
            "@example.org",
            "alice@",
            "a@b@c",
            "a b@c",
            "a@b\r\nBcc: x@y",
            "\"a b\"@c.d",
            "a..b@c.d",
            ".a@c.d",
            "a@c.",
            "a@[127.0.0.1]",
            "a,b@c.d",
        ] {
            check(wrong, None);
        }
        check(&format!("{}@example.org", "a".repeat(300)), None);
    }

    proptest! {
        #[test]
        fn whatever_is_an_address_has_one_line_and_stays_the_same(text in ".{0,60}@.{0,60}") {
            if let Some(address) = canonical(&text) {
                prop_assert!(!address.contains(|c: char| c.is_whitespace() || c.is_control() || "<>,;:\"".contains(c)));
                prop_assert_eq!(canonical(&address), Some(address));
            }
        }
    }
}

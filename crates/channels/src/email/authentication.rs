//! Whether a mail is from whom it says: what our server wrote into Authentication-Results (RFC 8601).
//!
//! Anybody can write such a header into their own mail. A server puts its own above everything that came, so only the
//! topmost counts; and what is not proven is not so.

use super::settings::Proof;

/// Says why an address is not proven; `Ok` if it is. `results` are the values of all Authentication-Results, topmost first.
pub(super) fn check(proof: &Proof, domain: &str, results: &[&str]) -> Result<(), String> {
    let read: Vec<Results> = results.iter().map(|text| Results::read(text)).collect();
    let trusted = match proof {
        Proof::Trusted => return Ok(()),
        Proof::Missing => return Err(unnamed(read.first())),
        Proof::Topmost => read.first(),
        Proof::Of(server) => read.iter().find(|results| results.server == *server),
    };
    let trusted = trusted.ok_or("our server wrote no Authentication-Results")?;
    if trusted.prove(domain) {
        return Ok(());
    }
    Err(format!(
        "neither DMARC nor an aligned DKIM or SPF proves `{domain}`"
    ))
}

fn unnamed(topmost: Option<&Results>) -> String {
    match topmost.filter(|results| !results.server.is_empty()) {
        Some(results) => format!(
            "nobody said what our mail server calls itself; if it is `{0}`, set EMAIL_AUTHSERV_ID={0}",
            hermes_core::text::escaped(&results.server)
        ),
        None => "our mail server wrote no Authentication-Results; it must check senders, or EMAIL_TRUST_FROM_HEADER=true lets anybody pretend to be anybody".to_owned(),
    }
}

/// What one server found out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Results {
    /// As the server calls itself; some do not.
    server: String,
    found: Vec<Finding>,
}

/// `dkim=pass header.d=example.org`
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    method: String,
    result: String,
    /// `header.d` and the like, and what they are.
    properties: Vec<(String, String)>,
}

impl Results {
    fn read(text: &str) -> Self {
        let parts = split(text);
        let mut parts = parts.iter();
        let Some(first) = parts.next() else {
            return Self::default();
        };
        let mut results = Self::default();
        match first.first() {
            // Some leave their name out, and begin with what they found.
            Some(word) if word.contains('=') => results.found.extend(Finding::read(first)),
            Some(word) => results.server = word.clone(),
            None => {}
        }
        results
            .found
            .extend(parts.filter_map(|words| Finding::read(words)));
        results
    }

    fn prove(&self, domain: &str) -> bool {
        let mut dmarc = self.of("dmarc").peekable();
        if let Some(first) = dmarc.peek() {
            match first.result.as_str() {
                "pass" => return self.of("dmarc").all(|found| found.proves_dmarc(domain)),
                // The domain's owner has a rule, and the mail is against it.
                "fail" | "permerror" | "temperror" => return false,
                _ => {}
            }
        }
        let aligned = |method, names: &'static [&'static str]| {
            self.of(method)
                .any(|found| found.result == "pass" && found.is_aligned(names, domain))
        };
        aligned("dkim", &["header.d", "header.i"])
            || aligned("spf", &["smtp.mailfrom", "smtp.from"])
    }

    fn of(&self, method: &'static str) -> impl Iterator<Item = &Finding> {
        self.found
            .iter()
            .filter(move |found| found.method == method)
    }
}

impl Finding {
    fn read(words: &[String]) -> Option<Self> {
        let (method, result) = words.first()?.split_once('=')?;
        let method = method.split('/').next().unwrap_or_default();
        let property = |word: &String| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Some(Self {
            method: method.to_owned(),
            result: result.to_owned(),
            properties: words[1..].iter().filter_map(property).collect(),
        })
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_it = move |(key, _): &&(String, String)| key == name;
        self.properties
            .iter()
            .filter(is_it)
            .map(|(_, value)| domain_of(value))
    }

    /// It says of which domain, and only of ours.
    fn proves_dmarc(&self, domain: &str) -> bool {
        let mut from = self.values("header.from").peekable();
        self.result == "pass" && from.peek().is_some() && from.all(|from| from == domain)
    }

    /// The domain itself, or one that it is below. Without a list of public suffixes the other direction is not safe.
    fn is_aligned(&self, names: &[&str], domain: &str) -> bool {
        let is_above = |above: &str| {
            above.contains('.')
                && domain
                    .strip_suffix(above)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let name = names.iter().find(|name| self.values(name).next().is_some());
        name.is_some_and(|name| self.values(name).all(is_above))
    }
}

/// `user@domain`, `@domain` and `domain` are all of a domain.
fn domain_of(value: &str) -> &str {
    value.rsplit('@').next().unwrap_or(value)
}

/// Splits a header at its semicolons, and each part into words, in lower case: comments go, and what is quoted stays together.
fn split(text: &str) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    let mut word = String::new();
    let mut comments = 0_usize;
    let mut is_quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_quoted || comments > 0 => {
                let escaped = chars.next();
                word.extend(escaped.filter(|_| comments == 0));
            }
            '"' if comments == 0 => is_quoted = !is_quoted,
            c if is_quoted => word.push(c),
            '(' => comments += 1,
            ')' => comments = comments.saturating_sub(1),
            _ if comments > 0 => {}
            ';' => {
                end_word(&mut word, &mut parts);
                parts.push(Vec::new());
            }
            c if c.is_whitespace() => end_word(&mut word, &mut parts),
            c => word.push(c),
        }
    }
    end_word(&mut word, &mut parts);
    parts
}

/// Ends a word. Blanks are allowed around `=`, so a word that ends or begins with one belongs to its neighbour.
fn end_word(word: &mut String, parts: &mut [Vec<String>]) {
    let word = std::mem::take(word).to_lowercase();
    let Some(part) = parts.last_mut().filter(|_| !word.is_empty()) else {
        return;
    };
    match part.last_mut() {
        Some(last) if last.ends_with('=') || (word.starts_with('=') && !last.contains('=')) => {
            last.push_str(&word);
        }
        _ => part.push(word),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: &str = "mx.example.net";

    fn is_proven(domain: &str, results: &[&str]) -> bool {
        check(&Proof::Of(OURS.to_owned()), domain, results).is_ok()
    }

    #[test]
    fn what_the_server_proves_is_proven() {
        let check = |result: &str, expected| {
            let header = format!("{OURS}; {result}");
            assert_eq!(is_proven("example.org", &[&header]), expected, "{result}");
        };
        check(
            "dmarc=pass (p=NONE sp=QUARANTINE) header.from=example.org",
            true,
        );
        check("dmarc=pass header.from=EXAMPLE.org", true);
        check("dmarc = pass header.from = example.org", true);
        check("dmarc=pass header.from=evil.example", false);
        check("dmarc=pass", false);
        check(
            "dmarc=fail header.from=example.org; dkim=pass header.d=example.org",
            false,
        );
        check("dmarc=temperror; dkim=pass header.d=example.org", false);
        check("dmarc=none; dkim=pass header.d=example.org", true);
        check("dkim=pass header.d=example.org", true);
        check("dkim/1=pass header.i=@example.org", true);
        check(
            "dkim=pass header.d=evil.example header.i=@example.org",
            false,
        );
        check("dkim=pass header.d=mail.example.org", false);
        check("dkim=pass header.d=org", false);
        check("dkim=pass header.d=notexample.org", false);
        check("dkim=fail header.d=example.org", false);
        check(
            "dkim=fail header.d=example.org; dkim=pass header.d=example.org",
            true,
        );
        check("spf=pass smtp.mailfrom=bounce@example.org", true);
        check("spf=pass smtp.mailfrom=example.org", true);
        check("spf=pass smtp.helo=example.org", false);
        check("spf=softfail smtp.mailfrom=example.org", false);
        check("none", false);
        check("", false);
        // Words of a sender in a comment or in quotes are no results.
        check(
            "spf=fail (dmarc=pass header.from=example.org) smtp.mailfrom=x",
            false,
        );
        check(
            "spf=fail reason=\"; dmarc=pass header.from=example.org\"",
            false,
        );
        check(
            "spf=fail reason=\"a\\\"; dmarc=pass header.from=example.org\"",
            false,
        );
        check(
            "dmarc=pass header.from=example.org; dmarc=pass header.from=evil.example",
            false,
        );
    }

    #[test]
    fn parents_vouch_for_what_is_below_them() {
        let below = format!("{OURS}; dkim=pass header.d=example.org");
        assert!(is_proven("mail.example.org", &[&below]));
        assert!(!is_proven("xexample.org", &[&below]));
    }

    #[test]
    fn only_the_topmost_of_our_server_counts() {
        let pass = format!("{OURS}; dmarc=pass header.from=example.org");
        let fail = format!("{OURS}; dmarc=fail header.from=example.org");
        let other = "evil.example; dmarc=pass header.from=example.org";
        assert!(is_proven("example.org", &[&pass, &fail]));
        assert!(!is_proven("example.org", &[&fail, &pass]));
        assert!(!is_proven("example.org", &[other]));
        assert!(is_proven("example.org", &[other, &pass]));
        assert!(!is_proven("example.org", &[]));
        let topmost = |results: &[&str]| check(&Proof::Topmost, "example.org", results).is_ok();
        assert!(!topmost(&[&fail, &pass]));
        assert!(topmost(&[other, &fail]));
        // As one large provider writes them.
        assert!(topmost(&[
            "spf=pass (sender IP is 192.0.2.1) smtp.mailfrom=example.org; dkim=pass (signature was verified) header.d=example.org;dmarc=pass action=none header.from=example.org;compauth=pass reason=100"
        ]));
    }

    #[test]
    fn what_our_server_is_called_must_be_known() {
        let pass = format!("{OURS}; dmarc=pass header.from=example.org");
        let error = super::check(&Proof::Missing, "example.org", &[&pass]).expect_err("unproven");
        assert!(
            error.contains("EMAIL_AUTHSERV_ID=mx.example.net"),
            "{error}"
        );
        let error = super::check(&Proof::Missing, "example.org", &[]).expect_err("unproven");
        assert!(error.contains("EMAIL_TRUST_FROM_HEADER"), "{error}");
        assert!(super::check(&Proof::Trusted, "example.org", &[]).is_ok());
    }

    proptest! {
        #[test]
        fn no_header_of_a_sender_outdoes_the_one_of_the_server(forged in "[ -~\\r\\n\\t]{0,200}") {
            let fail = format!("{OURS}; dmarc=fail header.from=example.org");
            prop_assert!(!is_proven("example.org", &[&fail, &forged]));
            let commented = format!("{OURS}; spf=fail ({})", forged.replace(['(', ')', '\\'], ""));
            prop_assert!(!is_proven("example.org", &[&commented]));
        }

        #[test]
        fn anything_can_be_read(text in "\\PC{0,200}") {
            let _ = is_proven("example.org", &[&text]);
        }
    }
}

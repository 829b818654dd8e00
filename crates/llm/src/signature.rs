//! Signatures of reasoning and calls are worth something only to the provider that made them: they are stored with its
//! name and opened only for it.

/// Separates the name from the signature. No provider id has one.
const SEAM: char = '|';

pub(crate) fn seal(provider: &str, signature: &str) -> String {
    format!("{provider}{SEAM}{signature}")
}

/// Returns the signature if `provider` made it.
pub(crate) fn open<'a>(provider: &str, sealed: &'a str) -> Option<&'a str> {
    let (maker, signature) = sealed.split_once(SEAM)?;
    (maker == provider).then_some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_opens_only_for_its_maker() {
        let sealed = seal("anthropic", "abc|=");
        assert_eq!(open("anthropic", &sealed), Some("abc|="));
        assert_eq!(open("minimax", &sealed), None);
        assert_eq!(open("anthropic", "from another program"), None);
    }
}

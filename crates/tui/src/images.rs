//! Paths of images among what is pasted: terminals paste the path of a file that is dropped on them.

use std::path::{Path, PathBuf};

/// What an image's name ends with. Whether it is one is told by its contents, when it is sent.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// Longer pastes are no paths.
const PASTE_BYTES_MAX: usize = 16 * 1024;

/// Returns the images that a paste names, if it names nothing else.
pub(crate) fn pasted(
    text: &str,
    home: Option<&Path>,
    is_file: impl Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.len() > PASTE_BYTES_MAX {
        return Vec::new();
    }
    let image = |word: &str| {
        let path = path(word, home)?;
        (has_ending(&path) && is_file(&path)).then_some(path)
    };
    // A path with spaces in it may be pasted as it is.
    if let Some(path) = image(text) {
        return vec![path];
    }
    let images: Option<_> = words(text).iter().map(|word| image(word)).collect();
    images.unwrap_or_default()
}

/// A whole path, as terminals and file managers write it.
fn path(word: &str, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(address) = word.strip_prefix("file://") {
        let path = PathBuf::from(decoded(
            address.strip_prefix("localhost").unwrap_or(address),
        ));
        return path.is_absolute().then_some(path);
    }
    match (word.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        _ => Path::new(word).is_absolute().then(|| word.into()),
    }
}

fn has_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| {
        ENDINGS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(ending))
    })
}

/// Splits at spaces and line breaks, except in quotes and behind a backslash.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.extend(letters.next()),
            (letter, Some(open)) if letter == open => quote = None,
            (letter, Some(_)) => word.push(letter),
            ('\'' | '"', None) => quote = Some(letter),
            (letter, None) if letter.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (letter, None) => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Resolves `%20` and the like.
fn decoded(address: &str) -> String {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address;
    while let Some(first) = rest.bytes().next() {
        let code = rest.get(1..3).filter(|_| first == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            None => {
                let letter = rest.chars().next().map_or(1, char::len_utf8);
                bytes.extend_from_slice(&rest.as_bytes()[..letter]);
                rest = &rest[letter..];
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 10] = [
        "/a/b.png",
        "/a/b.JPG",
        "/a/b.gif",
        "/a/b.txt",
        "/a/my shot.png",
        "/a/my shot.webp",
        "/a/my ä.png",
        "/home/me/b.png",
        "/b c.png",
        "/d.png",
    ];

    fn found(text: &str) -> Vec<String> {
        let home = Path::new("/home/me");
        let is_file = |path: &Path| FILES.iter().any(|file| path == Path::new(file));
        let images = pasted(text, Some(home), is_file);
        let images = images.iter().map(|path| path.display().to_string());
        images.collect()
    }

    #[test]
    fn a_dropped_image_is_found_however_its_path_is_written() {
        for (text, path) in [
            ("/a/b.png", "/a/b.png"),
            (" /a/b.JPG \n", "/a/b.JPG"),
            ("/a/my shot.png", "/a/my shot.png"),
            (r"/a/my\ shot.png", "/a/my shot.png"),
            ("'/a/my shot.webp'", "/a/my shot.webp"),
            ("\"/a/b.gif\"", "/a/b.gif"),
            ("~/b.png", "/home/me/b.png"),
            ("file:///a/my%20%C3%A4.png", "/a/my ä.png"),
        ] {
            assert_eq!(found(text), [path], "{text}");
        }
        assert_eq!(
            found("/d.png '/b c.png'\n/a/b.png"),
            ["/d.png", "/b c.png", "/a/b.png"]
        );
    }

    #[test]
    fn other_pastes_are_text() {
        for text in [
            "",
            "hello",
            "b.png",
            "/a/b.txt",
            "/a/gone.png",
            "see /a/b.png",
            "https://host/b.png",
            "file://%ff%zz%",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}

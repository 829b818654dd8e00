//! `/image`: an image for the next message.

use std::path::{Path, PathBuf};

use super::{Conversation, Done, Then, blocking};
use crate::error::{Error, Result};
use crate::image;

impl Conversation {
    /// Looks whether there is such an image, before anything is said of it.
    pub(super) async fn attach(&self, arguments: &str) -> Result<Done> {
        if arguments.is_empty() {
            return Err(Error::asked("/image needs the path of an image")
                .with_hint("for example: /image ~/cat.png what is this?"));
        }
        let cwd = self.setup.settings.cwd.clone();
        let home = self.base.environment.user_home();
        let arguments = arguments.to_owned();
        let found = blocking(move || {
            let place = |path: &str| placed(path, &cwd, home.as_deref());
            let (image, words) = split(&arguments, |path| place(path).is_file());
            let image = place(&image);
            image::read(&image).map(|_| (image, words))
        });
        let (image, words) = found.await??;
        Ok(attached(image, words))
    }
}

fn attached(image: PathBuf, words: String) -> Done {
    Done::then(Then::Attach { image, words })
}

fn placed(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(path),
    }
}

/// Splits a path from the words behind it. It may have spaces in it: in quotes, behind backslashes, or just so when such a
/// file is there and nothing follows.
fn split(arguments: &str, is_file: impl Fn(&str) -> bool) -> (String, String) {
    if is_file(arguments) {
        return (arguments.to_owned(), String::new());
    }
    let quote = arguments.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote
        && let Some((path, words)) = arguments[1..].split_once(quote)
    {
        return (path.to_owned(), words.trim().to_owned());
    }
    let mut path = String::new();
    let mut letters = arguments.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => path.extend(letters.next()),
            letter if letter.is_whitespace() => break,
            letter => path.push(letter),
        }
    }
    (path, letters.as_str().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_spaces_and_words_behind_it() {
        let is_file = |path: &str| path == "/a/my cat.png";
        for (arguments, path, words) in [
            ("/a/cat.png", "/a/cat.png", ""),
            ("/a/cat.png  what is it?", "/a/cat.png", "what is it?"),
            ("/a/my cat.png", "/a/my cat.png", ""),
            (r"/a/my\ cat.png who?", "/a/my cat.png", "who?"),
            ("'/a/my cat.png' who?", "/a/my cat.png", "who?"),
            ("\"/a/b.png\"", "/a/b.png", ""),
            ("'open", "'open", ""),
        ] {
            let expected = (path.to_owned(), words.to_owned());
            assert_eq!(split(arguments, is_file), expected, "{arguments}");
        }
    }

    #[test]
    fn a_path_is_meant_from_here() {
        let (cwd, home) = (Path::new("/work"), Some(Path::new("/home/me")));
        assert_eq!(placed("a.png", cwd, home), Path::new("/work/a.png"));
        assert_eq!(placed("~/a.png", cwd, home), Path::new("/home/me/a.png"));
        assert_eq!(placed("/a.png", cwd, home), Path::new("/a.png"));
    }
}

//! Which pictures of a conversation are sent, and the words that stand in the place of the others.

use std::borrow::Cow;

use hermes_core::{Media, MediaSource, Message, Part, Role, ToolResult};

use crate::providers::Protocol;

/// Pictures of one request: of more, Anthropic wants each within 2,000 pixels instead of 8,000.
const COUNT_MAX: usize = 20;
/// Their base64 together: Anthropic takes requests of 32 MB, and the words need room too.
const BYTES_MAX: usize = 24 * 1024 * 1024;
/// What is kept of too many is half of it. The beginning of the conversation changes only then, so that the provider
/// finds it in its cache until as many have come again.
const COUNT_KEPT: usize = COUNT_MAX / 2;
const BYTES_KEPT: usize = BYTES_MAX / 2;

/// Why a provider gets none of the pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// The model cannot see.
    CannotSee,
    /// One of them was refused, and nobody said which.
    Refused,
}

/// Returns the messages as they are sent. Those whose pictures all are, and that is nearly always all, are the same.
pub(super) fn sent(
    messages: &[Message],
    protocol: Protocol,
    unseen: Option<Unseen>,
) -> Vec<Cow<'_, Message>> {
    let sizes: Vec<usize> = messages
        .iter()
        .flat_map(Message::images)
        .map(size)
        .collect();
    let too_old = left_out(&sizes);
    let mut position = 0;
    let mut absence = |media: &Media| {
        position += 1;
        match unseen {
            Some(Unseen::CannotSee) => Some("this model cannot see"),
            Some(Unseen::Refused) => Some("the provider refuses the pictures of this conversation"),
            None if position <= too_old => {
                Some("only the newest pictures are shown; look at it again if you need it")
            }
            None if protocol == Protocol::Gemini && media.mime == "image/gif" => {
                Some("this model does not read GIF; convert it to PNG to look at it")
            }
            None => None,
        }
    };
    let as_sent = messages
        .iter()
        .map(|message| as_sent(message, &mut absence));
    as_sent.collect()
}

fn size(media: &Media) -> usize {
    match &media.source {
        MediaSource::Base64(data) => data.len(),
        MediaSource::Url(_) => 0,
    }
}

/// Counts the oldest pictures that are not sent any more. The newest always is.
fn left_out(sizes: &[usize]) -> usize {
    let (mut first, mut bytes) = (0, 0);
    for (newest, size) in sizes.iter().enumerate() {
        bytes += size;
        if newest - first < COUNT_MAX && bytes <= BYTES_MAX {
            continue;
        }
        while first < newest && (newest - first >= COUNT_KEPT || bytes > BYTES_KEPT) {
            bytes -= sizes[first];
            first += 1;
        }
    }
    first
}

fn as_sent<'a>(
    message: &'a Message,
    absence: &mut impl FnMut(&Media) -> Option<&'static str>,
) -> Cow<'a, Message> {
    let absences: Vec<Option<&str>> = message.images().map(absence).collect();
    if absences.iter().all(Option::is_none) || message.role == Role::Assistant {
        return Cow::Borrowed(message);
    }
    let mut absences = absences.into_iter();
    let parts = message.parts.iter().map(|part| match part {
        Part::Image(media) => match absences.next().flatten() {
            Some(why) => Part::text(words(media, why)),
            None => part.clone(),
        },
        Part::ToolResult(result) => Part::ToolResult(with_words(result, &mut absences)),
        other => other.clone(),
    });
    Cow::Owned(Message {
        role: message.role,
        origin: None,
        parts: parts.collect(),
    })
}

fn with_words<'a>(
    result: &ToolResult,
    absences: &mut impl Iterator<Item = Option<&'a str>>,
) -> ToolResult {
    let mut text = result.text.clone();
    let mut images = Vec::new();
    for (media, absence) in result.images.iter().zip(absences) {
        match absence {
            Some(why) => text.push_str(&format!("\n{}", words(media, why))),
            None => images.push(media.clone()),
        }
    }
    ToolResult {
        call: result.call.clone(),
        tool: result.tool.clone(),
        text,
        status: result.status,
        images,
    }
}

fn words(media: &Media, why: &str) -> String {
    format!("[a picture ({}) is left out here: {why}]", media.mime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::ResultStatus;

    fn picture(mime: &str, data: &str) -> Media {
        Media {
            mime: mime.into(),
            source: MediaSource::Base64(data.into()),
        }
    }

    fn result(text: &str, images: Vec<Media>) -> Message {
        Message::result(ToolResult {
            call: "c".into(),
            tool: "read_file".into(),
            text: text.into(),
            status: ResultStatus::Ok,
            images,
        })
    }

    /// A conversation in which so many pictures were looked at.
    fn looked(count: usize) -> Vec<Message> {
        let look = |number: usize| {
            let data = number.to_string();
            result(&data, vec![picture("image/png", &data)])
        };
        (0..count).map(look).collect()
    }

    fn pictures(messages: &[Message]) -> Vec<String> {
        let sent = sent(messages, Protocol::Anthropic, None);
        let images = sent.iter().flat_map(|message| message.images());
        let data = |media: &Media| match &media.source {
            MediaSource::Base64(data) => data.clone(),
            MediaSource::Url(url) => url.clone(),
        };
        images.map(data).collect()
    }

    #[test]
    fn a_conversation_with_few_pictures_is_not_even_copied() {
        let messages = looked(COUNT_MAX);
        let sent = sent(&messages, Protocol::Anthropic, None);
        assert!(sent.iter().all(|sent| matches!(sent, Cow::Borrowed(_))));
    }

    #[test]
    fn of_many_pictures_the_newest_are_sent_and_the_beginning_rarely_changes() {
        let mut changes = 0;
        for count in 1..100 {
            let (shorter, longer) = (looked(count), looked(count + 1));
            let seen = pictures(&longer);
            assert!((COUNT_KEPT..=COUNT_MAX).contains(&seen.len()) || count < COUNT_KEPT);
            assert_eq!(seen.last(), Some(&count.to_string()));
            let before = sent(&shorter, Protocol::Anthropic, None);
            let after = sent(&longer, Protocol::Anthropic, None);
            changes += usize::from(!after.starts_with(&before));
        }
        assert_eq!(
            changes, 8,
            "once for every {COUNT_KEPT} after the first {COUNT_MAX}"
        );
    }

    #[test]
    fn pictures_that_are_too_large_together_make_room_for_the_newest() {
        let third = BYTES_MAX / 3;
        assert_eq!(left_out(&[third; 3]), 0);
        assert_eq!(left_out(&[third; 4]), 3);
        assert_eq!(left_out(&[BYTES_MAX + 1]), 0, "the newest is always sent");
        assert_eq!(left_out(&[1, BYTES_MAX + 1]), 1);
        assert_eq!(left_out(&[]), 0);
    }

    #[test]
    fn words_stand_where_a_picture_was() {
        let image = || picture("image/png", "AAAA");
        let messages = [
            Message {
                role: Role::User,
                origin: None,
                parts: vec![Part::text("look"), Part::Image(image())],
            },
            result("a.png", vec![image(), image()]),
            Message::user("and?"),
        ];
        let sent = sent(&messages, Protocol::OpenAiChat, Some(Unseen::CannotSee));
        let words = "[a picture (image/png) is left out here: this model cannot see]";
        assert_eq!(sent[0].text(), format!("look{words}"));
        let expected = format!("a.png\n{words}\n{words}");
        assert_eq!(*sent[1], result(&expected, vec![]));
        assert_eq!(*sent[2], messages[2]);
    }

    #[test]
    fn gemini_is_not_sent_what_it_does_not_read() {
        let both = vec![picture("image/gif", "AAAA"), picture("image/png", "BBBB")];
        let messages = [result("two", both)];
        let images = |protocol| {
            let sent = sent(&messages, protocol, None);
            sent[0].images().count()
        };
        assert_eq!(images(Protocol::Anthropic), 2);
        assert_eq!(images(Protocol::Gemini), 1);
    }
}

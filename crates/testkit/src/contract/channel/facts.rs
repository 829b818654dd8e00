//! What a channel says of itself.

use std::time::Duration;

use hermes_core::ChatCommand;

use super::{Bench, PlatformSide, Played};

/// Every request to a model carries it.
const HINT_BYTES_MAX: usize = 600;

pub(super) async fn the_platform_has_a_name<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let name = bench.channel.facts().platform;
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!(!name.is_empty() && name.chars().all(is_word), "{name}");
    Ok(())
}

pub(super) async fn everything_has_a_limit<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let facts = bench.channel.facts();
    assert!(facts.length_max >= 100);
    assert!(facts.file_bytes_max > 0);
    assert!(facts.silence_max >= Duration::from_secs(1));
    assert!(facts.joining <= Duration::from_secs(15));
    assert!(facts.split_length <= facts.length_max.max(facts.split_length));
    assert!(
        facts
            .edit_interval
            .is_none_or(|interval| interval <= Duration::from_secs(10))
    );
    Ok(())
}

pub(super) async fn the_account_is_the_same_after_a_restart<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    let again = bench.side.open();
    assert!(!again.facts().account.is_empty());
    assert_eq!(again.facts().account, bench.channel.facts().account);
    Ok(())
}

pub(super) async fn plain_words_are_as_long_as_they_are<S: PlatformSide>(
    bench: &Bench<S>,
) -> Played {
    assert_eq!(bench.channel.length(""), 0);
    assert_eq!(bench.channel.length("hello you"), 9);
    Ok(())
}

pub(super) async fn longer_text_is_never_shorter<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let length = |text: &str| bench.channel.length(text);
    assert!(length("one two three") > length("one two"));
    assert!(length(&"word ".repeat(1000)) > length(&"word ".repeat(999)));
    Ok(())
}

pub(super) async fn the_hint_is_short<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let hint = bench.channel.facts().hint;
    assert!(hint.len() <= HINT_BYTES_MAX, "{} bytes", hint.len());
    Ok(())
}

pub(super) async fn a_probe_says_that_all_is_well<S: PlatformSide>(bench: &Bench<S>) -> Played {
    bench.channel.probe().await.unwrap();
    Ok(())
}

pub(super) async fn commands_are_taken<S: PlatformSide>(bench: &Bench<S>) -> Played {
    let command = |name: &str, description: &str| ChatCommand {
        name: name.to_owned(),
        description: description.to_owned(),
    };
    let commands = [
        command("new", "Begin a new conversation"),
        command("reload-mcp", ""),
        command("Ungewöhnlich!", &"long ".repeat(200)),
    ];
    bench.channel.set_commands(&commands).await.unwrap();
    bench.channel.set_commands(&[]).await.unwrap();
    Ok(())
}

//! `/init`: asks the model to write down what every conversation in this folder should begin with.

use hermes_core::UserMessage;

const INIT_PROMPT: &str = "\
Write `AGENTS.md` for this folder: what somebody needs to know who works here for the first time. Look around first: the \
README, how it is built, tested and run, how the code is laid out, what the tests and the latest commits say about the way \
things are done here. Then write it, in at most 60 lines: what this is; the commands to build, check and test, one test alone \
included; where things are; rules that cannot be guessed from the code. Leave out what is obvious, and what holds everywhere. \
Do not invent anything: what you have not seen is not in it. If there is an `AGENTS.md` already, mend what is wrong or missing \
in it and keep the rest.";

pub(super) fn message(words: &str) -> UserMessage {
    match words {
        "" => UserMessage::text(INIT_PROMPT),
        words => UserMessage::text(format!("{INIT_PROMPT}\n\nAlso: {words}")),
    }
}

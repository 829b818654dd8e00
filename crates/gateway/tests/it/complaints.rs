//! What people complained of in gateways before this one, and the test that keeps each of it from happening here.

use std::path::Path;

const SIMULATION: &str =
    "gateway/tests/it/simulation.rs: nothing_is_lost_or_doubled_in_days_of_storms_and_crashes";
const TORTURE: &str =
    "hermes/tests/torture/gateway.rs: every_message_is_answered_once_and_in_order_under_kill_9";

/// The complaint, and where its test is: a file below `crates/`, and a function in it.
const COMPLAINTS: &[(&str, &[&str])] = &[
    (
        "1: polling stalls silently after sleep or a change of network",
        &[
            SIMULATION,
            "testkit/src/contract/channel/faults.rs: after_a_lost_connection_it_goes_on",
        ],
    ),
    (
        "2: messages sent while the gateway was down are lost",
        &[
            SIMULATION,
            "hermes/tests/it/gateway/platform.rs: what_was_written_while_it_was_down_is_answered_once",
        ],
    ),
    (
        "3: replies are there twice: the stream and the final text, or after flood control",
        &[
            SIMULATION,
            TORTURE,
            "testkit/src/contract/channel/edits.rs: a_preview_becomes_the_final_text",
        ],
    ),
    (
        "4: a reply is frozen or cut under a flood wait",
        &[
            SIMULATION,
            "testkit/src/contract/channel/faults.rs: after_a_throttle_it_is_sent_once",
        ],
    ),
    (
        "5: the answer to the message before comes after an interrupt",
        &[
            SIMULATION,
            "hermes/tests/it/gateway/platform.rs: what_comes_while_it_works_stops_it_or_waits_as_set",
        ],
    ),
    (
        "6: a stuck session is resumed for ever, or dropped in silence",
        &[
            SIMULATION,
            TORTURE,
            "hermes/tests/it/gateway/platform.rs: a_turn_that_a_crash_cut_short_is_answered_once",
        ],
    ),
    (
        "7: a restart blocks, or what was acknowledged before it is discarded",
        &[
            SIMULATION,
            "hermes/tests/it/gateway/lifecycle.rs: told_to_end_it_answers_what_it_has_begun_and_takes_nothing_new",
            "hermes/tests/it/gateway/lifecycle.rs: told_twice_it_ends_at_once",
        ],
    ),
    (
        "8: approvals are not understood, lost or bypassed",
        &[
            "hermes/tests/it/gateway/platform.rs: consent_is_asked_in_the_chat_and_given_with_a_button",
            "hermes/tests/it/gateway/hostile_chats.rs: only_who_asked_for_something_allows_it",
        ],
    ),
    (
        "9: a job counts as delivered, and nothing arrived",
        &[
            SIMULATION,
            "gateway/tests/it/crashes.rs: a_crash_at_any_commit_loses_nothing_and_doubles_nothing",
        ],
    ),
    (
        "10: an answer goes to another topic or thread",
        &[
            "testkit/src/contract/channel/receiving.rs: an_answer_finds_the_thread",
            "testkit/src/contract/channel/sending.rs: a_message_goes_to_its_thread",
        ],
    ),
    (
        "11: access is open where a setting is missing",
        &[
            SIMULATION,
            "hermes/tests/it/gateway/platform.rs: a_stranger_gets_a_code_and_is_answered_once_it_is_approved",
        ],
    ),
    (
        "13: memory, files and threads leak in a process that lives for long",
        &[SIMULATION],
    ),
    (
        "14: the id of a session is stale after a compaction",
        &["hermes/tests/it/gateway/chat.rs: the_name_of_a_conversation_outlives_its_compactions"],
    ),
    (
        "15: conversations never begin anew, and grow without bound",
        &[
            "hermes/tests/it/gateway/resets.rs: after_a_silence_a_new_conversation_begins_and_the_last_can_be_resumed",
        ],
    ),
    (
        "16: queued messages meet a state that is gone",
        &[
            SIMULATION,
            "testkit/src/contract/store/gateway.rs: no_entry_begins_two_turns",
        ],
    ),
    ("17: results of tools leak into the chat", &[SIMULATION]),
    (
        "19: threads of Discord: who is answered in them without being named",
        &[
            "hermes/tests/it/gateway/socket_platform.rs: a_conversation_in_a_channel_goes_on_in_a_thread_without_our_name",
            "channels/tests/it/discord/against_fake.rs: threads_are_not_opened_where_nobody_wants_them",
        ],
    ),
    (
        "21: replays and duplicates after a restart",
        &[
            SIMULATION,
            TORTURE,
            "testkit/src/contract/channel/answers.rs: nothing_comes_twice_after_a_restart",
            "testkit/src/contract/store/gateway.rs: an_update_is_kept_once_whoever_brings_it_again",
        ],
    ),
    (
        "22: markup that a platform refuses loses the message; limits of length do",
        &[
            "testkit/src/contract/channel/sending.rs: whatever_models_write_arrives",
            "testkit/src/contract/channel/sending.rs: a_text_of_the_greatest_length_arrives",
        ],
    ),
];

#[test]
fn every_complaint_has_a_test_that_is_there() {
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for (complaint, tests) in COMPLAINTS {
        assert!(!tests.is_empty(), "{complaint}: no test");
        for test in *tests {
            let (file, name) = test.split_once(": ").unwrap();
            let text = std::fs::read_to_string(crates.join(file)).unwrap_or_default();
            let is_there = [format!("fn {name}("), format!("fn {name}<")]
                .iter()
                .any(|function| text.contains(function));
            assert!(is_there, "{complaint}: {file} has no test `{name}`");
        }
    }
}

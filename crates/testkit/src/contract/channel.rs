//! The promises of [`Channel`], checked on an implementation from outside, against the platform's side of it.
//!
//! A platform joins with a [`PlatformSide`]: what people do there, what they see, and what goes wrong. What a side cannot do
//! is left out, and counted: a strict fake of our own leaves out only what its platform does not have. Start at
//! [`channel_contract`].

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

mod answers;
mod bench;
mod edits;
mod facts;
mod faults;
mod files;
mod inlet;
mod receiving;
mod sending;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use hermes_core::{Address, AttachmentKind, Button, Channel, MessageId, WebRequest, WebResponse};

pub use bench::Bench;
pub use inlet::{HeldInlet, Kept};

/// A platform that a test holds in its hand. Each case has one of its own.
pub trait PlatformSide: Send + Sync + 'static {
    /// Opens a channel, as a process that starts does.
    fn open(&self) -> Arc<dyn Channel>;

    /// Where something can be said; `None` where the platform has no such place.
    fn place(&self, place: Place) -> Option<Address>;

    /// Somebody says something. Returns what it is called; `None` if this side cannot do that.
    fn say(&self, place: Place, said: Said) -> impl Future<Output = Option<MessageId>> + Send;

    /// Somebody puts other words in place of theirs; whether this side can do that.
    fn edit(&self, place: Place, id: &MessageId, text: &str) -> impl Future<Output = bool> + Send;

    /// Somebody presses a button of ours; whether this side can do that.
    fn press(
        &self,
        place: Place,
        message: &MessageId,
        data: &str,
    ) -> impl Future<Output = bool> + Send;

    /// Our messages in a place, as people see them now, in the order they came.
    fn seen(&self, place: Place) -> impl Future<Output = Vec<Seen>> + Send;

    /// How many marks of ours a message of somebody's has; `None` if this side cannot tell.
    fn marks(&self, place: Place, id: &MessageId) -> impl Future<Output = Option<usize>> + Send;

    /// How often typing was shown in a place; `None` if this side cannot tell.
    fn typing(&self, place: Place) -> impl Future<Output = Option<usize>> + Send;

    /// How many updates the platform still holds for us; `None` if this side cannot tell.
    fn waiting(&self) -> impl Future<Output = Option<usize>> + Send;

    /// Lets something go wrong; whether this side can do that.
    fn fault(&self, fault: Fault) -> impl Future<Output = bool> + Send;

    /// Cases that this side is too lenient for, or plays too slowly.
    fn lacks(&self) -> &'static [&'static str] {
        &[]
    }

    /// What must never be seen in an error.
    fn secret(&self) -> String;

    /// The next request that the platform makes of us, where it does; it comes again until it is answered well.
    fn next_request(&self) -> impl Future<Output = Option<WebRequest>> + Send {
        async { None }
    }

    /// What a request of [`PlatformSide::next_request`] was answered with.
    fn answered(&self, response: &WebResponse) -> impl Future<Output = ()> + Send {
        let _ = response;
        async {}
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    Direct,
    Group,
    Thread,
}

/// What somebody says.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub text: String,
    pub file: Option<SaidFile>,
    pub replies_to: Option<MessageId>,
    pub mentions_us: bool,
    pub album: Option<String>,
}

#[derive(Debug, Clone)]
pub struct SaidFile {
    pub kind: AttachmentKind,
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Said {
    pub fn words(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// A message of ours, as people see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub id: String,
    /// Without signs of markup.
    pub text: String,
    pub buttons: Vec<Vec<Button>>,
    /// The name and the bytes of a file.
    pub file: Option<(String, Vec<u8>)>,
    pub replies_to: Option<String>,
    pub is_silent: bool,
}

/// What goes wrong between a platform and us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// What was told last comes twice.
    Duplicate,
    /// What waits comes in another order.
    Reorder,
    /// The connection that receives ends.
    Disconnect,
    /// Among the updates is something that is none.
    Malformed,
    /// Among the updates is a kind that does not exist yet.
    UnknownKind,
    /// Somebody else receives with the same account.
    Conflict,
    /// The account's password is another one from now on.
    WrongPassword,
    /// The next send is refused for now.
    Throttle(Duration),
    /// The next send is done, and nobody is told.
    LoseAnswer,
    /// The next send is not done, and nobody is told.
    LoseCall,
    /// Something else answers the next send.
    Garbage,
    /// The platform does not like how the next send is written.
    BadFormat,
    /// We may not write to [`Place::Direct`] any more.
    Block,
}

/// A case that this side cannot play.
#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut;

pub type Played = Result<(), LeftOut>;

/// What was played, and what was not.
#[derive(Debug, Default)]
pub struct ChannelReport {
    pub played: Vec<&'static str>,
    pub left_out: Vec<&'static str>,
    /// What was not as promised; each said why when it panicked.
    pub failed: Vec<&'static str>,
}

/// How long one case may take on a busy machine.
const CASE_MAX: Duration = Duration::from_secs(60);

impl ChannelReport {
    async fn play(&mut self, name: &'static str, case: impl Future<Output = Played>) {
        // Whoever reads a failure wants to know in which case.
        let mut case = std::pin::pin!(std::panic::AssertUnwindSafe(case).catch_unwind());
        let Ok(played) = tokio::time::timeout(CASE_MAX, &mut case).await else {
            panic!("the case `{name}` does not end");
        };
        match played {
            Ok(Ok(())) => self.played.push(name),
            Ok(Err(LeftOut)) => self.left_out.push(name),
            Err(panic) => {
                self.failed.push(name);
                drop(panic);
            }
        }
    }
}

macro_rules! cases {
    ($report:ident, $make:ident, $($module:ident: $($case:ident)*;)*) => {$($(
        let name = concat!(stringify!($module), "::", stringify!($case));
        let case = async {
            let side = $make().await;
            if side.lacks().contains(&name) {
                return Err(LeftOut);
            }
            $module::$case(&Bench::new(side)).await
        };
        $report.play(name, case).await;
    )*)*};
}

/// Plays all cases, each on a platform that `make` makes for it.
pub async fn channel_contract<S: PlatformSide>(make: impl AsyncFn() -> S) -> ChannelReport {
    let mut report = ChannelReport::default();
    cases! { report, make,
        facts:
            the_platform_has_a_name
            everything_has_a_limit
            the_account_is_the_same_after_a_restart
            plain_words_are_as_long_as_they_are
            longer_text_is_never_shorter
            the_hint_is_short
            a_probe_says_that_all_is_well
            commands_are_taken;
        receiving:
            connecting_proves_who_we_are
            a_message_arrives_with_its_words
            a_message_has_the_platforms_id
            a_sender_has_an_id_and_a_name
            a_direct_chat_is_one
            a_group_is_a_group
            a_thread_is_a_thread
            what_is_said_in_different_places_is_told_apart
            a_reply_names_what_it_replies_to
            a_reply_to_us_is_known_as_one
            a_mention_of_us_is_seen
            words_without_a_mention_have_none
            updates_have_numbers_of_their_own
            order_is_kept
            odd_letters_arrive
            long_words_arrive_whole
            lines_stay_lines
            the_platform_says_when
            the_raw_update_is_kept
            the_platform_is_heard
            what_was_said_while_nobody_listened_arrives
            an_answer_finds_the_direct_chat
            an_answer_finds_the_group
            an_answer_finds_the_thread;
        answers:
            what_is_taken_is_acknowledged
            what_is_not_taken_is_not_acknowledged
            what_was_not_taken_comes_again
            nothing_comes_twice_after_a_restart
            receiving_can_stop_and_begin_again
            a_request_with_a_wrong_secret_is_refused
            a_request_that_makes_no_sense_does_no_harm;
        edits:
            an_edit_of_somebodys_arrives_as_one
            an_edit_of_ours_is_seen
            the_same_again_is_no_error
            an_edit_of_what_is_not_there_is_said
            an_edit_takes_buttons_away
            a_preview_becomes_the_final_text
            many_edits_end_with_the_last
            a_deleted_message_is_gone
            deleting_twice_is_no_error
            buttons_are_seen
            a_press_comes_back_with_its_data
            a_press_is_acknowledged_once_or_twice
            buttons_take_as_much_as_they_may
            buttons_with_too_much_are_refused;
        files:
            a_file_arrives_with_its_bytes
            a_picture_arrives_as_one
            a_voice_arrives_as_one
            a_file_and_its_words_come_together
            an_album_is_told_as_one
            a_file_that_is_not_there_is_an_error
            a_file_of_ours_is_seen
            a_picture_of_ours_is_seen
            a_picture_that_is_none_is_still_sent
            a_caption_is_seen
            a_missing_file_is_refused;
        sending:
            a_text_is_seen
            messages_have_ids_of_their_own
            a_message_goes_to_its_thread
            a_reply_refers
            a_reply_to_what_is_gone_still_arrives
            markup_is_not_seen
            whatever_models_write_arrives
            a_text_of_the_greatest_length_arrives
            greatest_lengths_count_odd_letters_too
            a_text_beyond_it_is_refused
            a_preview_of_anything_arrives
            a_silent_message_is_silent
            sends_at_once_all_arrive
            order_of_sends_is_kept
            sending_needs_no_receiving
            typing_is_seen
            a_mark_is_seen_and_taken_away
            a_thread_is_opened_and_written_to;
        faults:
            duplicates_have_the_same_number
            another_order_loses_nothing
            nonsense_stops_nothing
            unknown_kinds_stop_nothing
            a_lost_connection_is_said
            after_a_lost_connection_it_goes_on
            a_second_receiver_is_said
            a_wrong_password_is_said_with_what_to_do
            a_probe_notices_a_wrong_password
            a_throttle_says_how_long
            after_a_throttle_it_is_sent_once
            a_lost_answer_leaves_doubt
            a_lost_call_may_be_tried_again
            garbage_is_no_answer
            a_bad_format_is_sent_plainly
            being_blocked_is_said
            a_chat_that_is_none_is_said
            no_error_tells_the_secret;
    }
    assert!(
        report.failed.is_empty(),
        "not as promised: {:#?}",
        report.failed
    );
    report
}

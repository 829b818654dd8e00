//! The shared words of Hermes, the ports its parts meet at, and the pure rules several of them share.
//!
//! Nothing here does I/O, and no crate of ours is known here: whoever implements a port is told by it, never the other way
//! round. Start at [`session`] for what goes into the agent ([`Op`]) and what comes out
//! ([`Event`]), then [`message`] for what a conversation is made of, then the ports: [`model`], [`tool`], [`store`],
//! [`terminal`], [`checkpoint`], [`clock`].

pub mod command;
pub mod session;
pub mod sessions;

pub mod approval;
pub mod approval_code;
pub mod around;
pub mod call_channel;
pub mod channel;
pub mod chats;
pub mod choice;
pub mod compaction;
pub mod delegation;
pub mod deliver;
pub mod elicitation;
pub mod follow;
pub mod id;
pub mod inbox;
pub mod interview;
pub mod learning;
pub mod lease;
pub mod login;
pub mod message;
pub mod mode;

pub mod checkpoint;
pub mod clock;
pub mod command_policy;
pub mod model;
pub mod offers;
pub mod outbox;
pub mod pairing;
pub mod people;
pub mod process;
pub mod quick;
pub mod records;
pub mod reference;
pub mod schedule;
pub mod store;
pub mod terminal;
pub mod tool;
pub mod toolbox;
pub mod user_model;

pub mod backoff;
pub mod breaker;
pub mod effect;
pub mod exact;
pub mod exposure;
pub mod fence;
pub mod fuzzy;
pub mod hidden_keys;
pub mod history;
pub mod json_lines;
pub mod picture;
pub mod random;
pub mod redact;
pub mod reply;
pub mod report;
pub mod review;
mod safety;
pub mod secret;
pub mod sensitive;
pub mod skill;
pub mod split;
pub mod steering;
pub mod text;
pub mod threats;
pub mod turn_counts;
pub mod wildcard;
pub mod wording;

pub use approval::{
    AnswerSource, Approval, ApprovalAnswer, Approvals, Said, Settled, Settlement, Settling, Verdict,
};
pub use approval_code::ApprovalCode;
pub use call_channel::{CallMessage, CallMessages, CallSender, call_channel};
pub use channel::{
    Address, Arrival, Attachment, AttachmentKind, Body, Button, Channel, ChannelError,
    ChannelFacts, ChannelPorts, Chat, ChatCommand, ChatKind, EarlierMessage, FileBytes, Forwarded,
    Identity, Incoming, IncomingMessage, Inlet, InletError, Mentions, Outgoing, Platform,
    PlatformSetting, PlatformSettingError, PlatformSettings, Press, Reaction, RepliedTo, Sender,
    Thread, Trouble, Update, Updates, WebRequest, WebResponse, WebhookPlace,
};
pub use chats::{ChatChoices, Chats, KnownChat};
pub use checkpoint::{Change, CheckpointError, Checkpoints};
pub use clock::{Clock, Timestamp};
pub use command_policy::{BeyondFence, CommandPlace, CommandPolicy, FenceSetting, JudgedCommand};
pub use compaction::{
    CompactionEnd, CompactionReason, CompactionReport, Shortened, SummarySource, SummaryUse,
};
pub use delegation::{
    Delegated, Delegates, Delegation, Dispatched, Manner, SubagentReport, SubagentRole,
    SubagentStatus, SubagentTask, SubagentTokens, TracedCall,
};
pub use effect::Effect;
pub use elicitation::{
    Elicitation, ElicitationRequest, Field, FieldKind, FieldOption, PendingElicitation, Person,
    Response, TextFormat, Wanted,
};
pub use exposure::{Brief, Example, Exposure, Scripts, Subagents, Surfaces, ToolGroup};
pub use fence::{Checkout, FenceArea, Fencing, Pass, PrivateFolder};
pub use follow::{FollowFrom, Followed, NumberedEvent};
pub use hidden_keys::HiddenKeys;
pub use id::{ApprovalId, CallId, ElicitationId, JobId, MessageId, QueuedId, SessionId, TurnId};
pub use inbox::{
    Accepted, Answers, Closed, Inbox, InboxDepth, InboxEntry, InboxId, NewUpdate, NewUpdates, Taken,
};
pub use learning::{
    Author, COMPACTION_USE, ChangeFilter, ChangeId, DueReview, LEARNED_MARK, LearnedChange,
    LearningLedger, LearningLog, LearningUse, NOTES_MARK, NewLearnedChange, NewLearningUse,
    ReservationId, Reviews, Subject, TakenReview,
};
pub use lease::{Lease, Leases, WantedLease};
pub use login::LoginTokens;
pub use message::{
    Arguments, Media, MediaSource, Message, Mirrored, Origin, Part, Reasoning, ResultStatus, Role,
    ToolCall, ToolResult,
};
pub use mode::{Mode, ModeSwitch};
pub use model::{
    Cost, Delta, FinishReason, Finished, Model, ModelDeadlines, ModelError, ModelErrorKind,
    ModelName, ModelNotice, ModelRequest, Usage,
};
pub use offers::{KnownOffer, KnownOffers};
pub use outbox::{
    DeadAddress, NewOutboxEntry, Outbox, OutboxChange, OutboxDepth, OutboxEntry, OutboxId,
    OutboxPart, OutboxStep, Stage,
};
pub use pairing::{AskRules, Asked, PairedPerson, PairingRequest, Pairings};
pub use people::{Had, People};
pub use process::{NotifyOn, ProcessError, ProcessName, ProcessState, ProcessStatus, Processes};
pub use random::Random;
pub use records::{Claimed, Record, RecordKey, Records};
pub use reference::{Changes, References};
pub use reply::{Reply, ReplyBuilder};
pub use review::{Agreement, Preview, PreviewContext, Review};
pub use safety::{AllowList, Scanner};
pub use schedule::{
    ClaimOutcome, Delivery, DeliveryStatus, Job, JobDesk, JobDraft, JobError, JobReading, JobSpec,
    JobState, Misfire, NextRun, Removed, Run, RunClaim, RunEnd, RunFilter, RunId, RunLease,
    RunPhase, RunStatus, RunStep, RunTrigger, Schedules, ToldFailure,
};
pub use secret::Secret;
pub use session::{
    ApprovalRequest, Event, Notice, Op, QueuedMessage, TurnEnd, UserMessage, WaitsFor,
};
pub use sessions::{
    Audience, ConsentOption, Events, Import, LeavesOut, OpenError, OpenSession, Resumed,
    RunningSession, SessionFacts, SessionHandle, SessionOptions, Sessions, Warning, WarningAbout,
};
pub use store::{
    Archive, Claim, Counted, Ending, Entry, HourUse, Insights, Intent, LearningCost,
    LearningInsights, LoadedSession, ModelUse, NewSession, OpenTurn, Prefix, SearchHit,
    SearchQuery, SessionFilter, SessionRecord, Spoken, SpokenFrom, SpokenQuery, Store, StoreError,
    StoreStats, ToolStates, TranscriptLine, Used,
};
pub use terminal::{CommandExit, CommandOutput, Found, ShellCommand, Terminal, TerminalError};
pub use tokio_util::sync::CancellationToken;
pub use tool::{
    Action, BoxFuture, Consent, Need, Parallel, Plan, PlanContext, Progress, Reader, Spending,
    Tool, ToolContext, ToolError, ToolOutput, ToolSpec,
};
pub use toolbox::{InnerCall, OfferedTool, Toolbox, Use};
pub use turn_counts::{SurfaceCounts, TurnCounts};
pub use user_model::{
    Conclusion, DueHearing, Evidence, FactId, Heard, MoreToHear, Premise, PremiseKind,
    Representation, StoredUserModel, Superseded, TakenHearing, UserAnswer, UserBlock, UserModel,
    UserModels,
};

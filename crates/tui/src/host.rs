//! What the interface and the program around it tell each other. The program opens conversations and answers commands;
//! the interface shows and asks.

use std::path::PathBuf;

use hermes_core::command::{Command, List};
use hermes_core::quick::QuickCommands;
use hermes_core::skill::SkillNames;
use hermes_core::{Event, Message, Mode, Op, SessionId};

pub(crate) use hermes_core::around::Around;
pub(crate) use hermes_core::choice::{Choice, Item};

/// What the program tells the interface.
#[derive(Debug)]
pub enum FromHost {
    /// From here on a conversation is talked in: a new one, or one that goes on.
    Opened(Opened),
    Event(Event),
    /// The answer to a command, laid out as it is to be shown.
    Told(String),
    /// Something the person should know.
    Warned(String),
    /// A control sequence for the terminal itself, which shows nothing: one that fills its clipboard.
    Signal(String),
    /// Text for the input line, such as a message that was taken back. It goes before what is typed there.
    Fill(String),
    /// A list to choose from; the choice comes back as the arguments of its command.
    Choose(Choice),
    /// What came of [`ToHost::Look`]: the item as its preview shows it.
    Looked {
        value: String,
        text: String,
    },
    /// What came of [`ToHost::Search`]: items in which the words stand.
    Found {
        words: String,
        items: Vec<Item>,
    },
    /// How the things beside the conversation are.
    Around(Around),
    /// What came of [`ToHost::Edit`]: the text as the editor left it, or why there is none.
    Edited(Result<String, String>),
    /// What came of [`ToHost::Clipboard`]: a file with the image, or why there is none.
    Image(Result<PathBuf, String>),
    /// The skills that can be named behind a slash.
    Skills(SkillNames),
    /// What came of [`ToHost::List`]. May come several times, as more is known; the last one counts.
    Listed {
        list: List,
        items: Vec<Item>,
    },
    BusyInput(BusyInput),
    Reasoning(ShowReasoning),
    /// What the person said on the command line: it is sent as if it were typed.
    Say(String),
    /// The conversation has another title.
    Titled(String),
    /// A change of files to look at.
    Diff(String),
    /// How freely calls may act from now on, and whether that is what the settings say.
    Mode {
        mode: Mode,
        is_usual: bool,
    },
    /// The pager is closed, or there is none: [`ToHost::Page`].
    Paged(Result<(), String>),
    /// The program is done: the interface gives the terminal back.
    Leave,
}

/// What the interface asks of the program.
#[derive(Debug)]
pub enum ToHost {
    Op(Op),
    /// Words with images and skills beside them: the program reads the files and adds them to the message.
    Accompanied {
        op: Op,
        images: Vec<PathBuf>,
        /// Their slash names.
        skills: Vec<String>,
    },
    /// The person wants the image in the clipboard.
    Clipboard,
    Command {
        command: &'static Command,
        arguments: String,
    },
    /// The person wants a command of their own run in a shell; what it prints is told.
    Shell(String),
    /// A command that the person typed behind a `!`; what it prints is told, and goes along with the next message.
    Own(String),
    /// The person wants calls to act more or less freely.
    NextMode,
    /// The person wants to read all of the conversation. The terminal is theirs until [`FromHost::Paged`].
    Page,
    /// The person begins to type a name of this list.
    List(List),
    /// The person looks at an item of a [`Choice`] that can be looked into.
    Look(String),
    /// The person looks for words in the items of such a [`Choice`].
    Search(String),
    /// The person wants this text in their own editor. The terminal is theirs until [`FromHost::Edited`].
    Edit(String),
    /// The person leaves.
    Leave,
}

/// A conversation as the interface sees it.
#[derive(Debug, Clone)]
pub struct Opened {
    pub id: SessionId,
    pub title: Option<String>,
    pub model: String,
    /// Tokens that fit into one request and its answer, as far as that is known.
    pub context_window: Option<u64>,
    pub cwd: PathBuf,
    /// What was said last, when it goes on.
    pub past: Vec<Message>,
    /// How many messages there are before those.
    pub earlier: usize,
    /// Everything runs without a question.
    pub is_unasked: bool,
    /// How freely calls may act, where that is not what the settings say.
    pub mode: Option<Mode>,
}

/// What a line does that is sent while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BusyInput {
    /// Stops the turn and is the next one.
    #[default]
    Interrupt,
    /// Waits for the end of the turn.
    Queue,
    /// Is told to the turn that runs.
    Steer,
}

/// Which keys edit what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditMode {
    #[default]
    Emacs,
    Vi,
}

/// How much of what a model thinks is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShowReasoning {
    Hidden,
    /// The latest words while it thinks, one line when it is done.
    #[default]
    Collapsed,
    Full,
}

/// What a terminal that gets narrower does to rows that are too wide for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Narrowing {
    /// It breaks them anew, as most do.
    #[default]
    Breaks,
    /// It cuts them off.
    Cuts,
}

/// What the interface needs to know before it starts.
#[derive(Debug, Clone)]
pub struct Settings {
    pub is_coloured: bool,
    pub narrowing: Narrowing,
    pub busy_input: BusyInput,
    pub edit_mode: EditMode,
    pub reasoning: ShowReasoning,
    pub shows_cost: bool,
    pub rings_bell: bool,
    pub quick_commands: QuickCommands,
    /// A paste of more lines, or of more characters, becomes one chip.
    pub paste_lines_max: usize,
    pub paste_chars_max: usize,
    /// Where what was sent is remembered; nowhere without it.
    pub history_file: Option<PathBuf>,
    /// Shortened to `~` where folders are shown.
    pub user_home: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            is_coloured: true,
            narrowing: Narrowing::default(),
            busy_input: BusyInput::default(),
            edit_mode: EditMode::default(),
            reasoning: ShowReasoning::default(),
            shows_cost: true,
            rings_bell: false,
            quick_commands: QuickCommands::default(),
            paste_lines_max: 5,
            paste_chars_max: 2_000,
            history_file: None,
            user_home: None,
        }
    }
}

/// Why the interface ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The person left, or the program ended the conversation.
    Asked,
    /// The terminal is gone.
    Closed,
}

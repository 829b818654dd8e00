//! What a line is made of once it is read: the parts of words, and the commands that words make.

/// Commands one after another.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Script {
    pub(super) items: Vec<Item>,
}

impl Script {
    /// Returns whether this is one simple command.
    pub(super) fn is_simple(&self) -> bool {
        let [item] = self.items.as_slice() else {
            return false;
        };
        let [node] = item.first.commands.as_slice() else {
            return false;
        };
        item.rest.is_empty() && !item.is_background && matches!(node.kind, Kind::Simple { .. })
    }
}

/// Pipelines joined by `&&` and `||`, up to `;`, `&` or the end of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) first: Pipeline,
    /// What runs or not depending on what came before it.
    pub(super) rest: Vec<Pipeline>,
    pub(super) is_background: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    Subshell(Script),
    Group(Script),
    /// Conditions and what follows each; the last may have no condition.
    If(Vec<(Option<Script>, Script)>),
    /// `while` and `until`.
    While(Script, Script),
    For {
        name: String,
        /// None: the positional parameters.
        words: Option<Vec<Word>>,
        body: Script,
    },
    Count {
        parts: Vec<Arithmetic>,
        body: Script,
    },
    Case {
        word: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
    Function {
        name: String,
        body: Box<Node>,
    },
    Condition(Vec<Word>),
    Arithmetic(Arithmetic),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) appends: bool,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Word(Word),
    Array(Vec<Word>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    /// The stream that is led elsewhere, when it is named.
    pub(super) stream: Option<char>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RedirectKind {
    Read(Word),
    Write(Word),
    /// `2>&1`, `>&-`.
    Copy,
    /// `<&3`: what is read is what another stream reads.
    CopyInput,
    Text(Word),
    Document(usize),
}

/// What a here-document holds: its text, and the parts of it that a shell replaces.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Document {
    pub(super) parts: Word,
}

pub(super) type Word = Vec<Part>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Means itself, and may be a word of the shell's grammar.
    Bare(String),
    /// Means itself: it was quoted.
    Quoted(String),
    /// Stands for names of files, unquoted.
    Glob(char),
    /// `{`, `}` or `,` where words may be multiplied.
    Brace(char),
    /// `~`.
    Home,
    Expansion {
        expansion: Expansion,
        is_quoted: bool,
    },
    Substitution {
        script: Script,
        is_quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process(Script),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expansion {
    Variable(String),
    /// `$?`, `$#`, `$$` and `$!`; lengths: numbers all of them.
    Number,
    /// `$1`, `$0`, `$-`, `$_`.
    Positional,
    /// `$@`, `${name[@]}` and the like.
    Several,
    /// `${name%…}`: what the value begins with stays what it was, or nothing is left.
    Shortened(String),
    /// Any other change of a value.
    Changed,
    /// `${name:-word}`; the name is set by `${name:=word}`.
    Default {
        name: Option<String>,
        word: Word,
        sets: bool,
    },
    Arithmetic(Arithmetic),
}

/// An expression over numbers: the names it uses, in order, and those it sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Arithmetic {
    pub(super) names: Vec<ArithmeticName>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArithmeticName {
    pub(super) name: String,
    /// `name = …`, which does not look at what it was.
    pub(super) is_set: bool,
}

//! Writes paragraphs, lists and quotes. White space is not written when it comes but before what follows it, and so are
//! opening marks: an empty element leaves no trace.

/// Deeper lists are written as deep as this.
const INDENTS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// A piece of text that is being written.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) text: String,
    gap: Gap,
    /// Marks that stand before the next word.
    opening: Vec<String>,
    /// What lines begin with, for each list and quote around them.
    indents: Vec<&'static str>,
    /// The mark of a list's item that has no words yet.
    bullet: Option<String>,
    /// How many links are open: in one, everything is one line.
    links: usize,
}

impl Sheet {
    /// Asks for at least so much distance between what is there and what comes.
    pub(super) fn gap(&mut self, gap: Gap) {
        if self.bullet.is_some() {
            // The first words of an item stand beside its mark.
            return;
        }
        let gap = match self.links {
            0 => gap,
            _ => gap.min(Gap::Space),
        };
        self.gap = self.gap.max(gap);
    }

    /// Writes words; white space in them counts as one space.
    pub(super) fn words(&mut self, text: &str) {
        let mut pieces = text.split(|c: char| c.is_ascii_whitespace());
        let mut word = pieces.next();
        while let Some(piece) = word {
            if !piece.is_empty() {
                self.begin();
                self.text.push_str(piece);
            }
            word = pieces.next();
            if word.is_some() {
                self.gap(Gap::Space);
            }
        }
    }

    /// Writes text as it is, at the end of the line.
    pub(super) fn exactly(&mut self, text: &str) {
        self.begin();
        self.text.push_str(text);
    }

    /// Writes lines as they are.
    pub(super) fn lines(&mut self, lines: &str) {
        for line in lines.lines() {
            self.gap(Gap::Line);
            self.exactly(line);
        }
    }

    pub(super) fn open(&mut self, mark: impl Into<String>) {
        self.opening.push(mark.into());
    }

    /// Ends what the last mark opened. Returns whether there was anything in it.
    pub(super) fn close(&mut self, mark: &str) -> bool {
        if self.opening.pop().is_some() {
            return false;
        }
        self.text.push_str(mark);
        true
    }

    pub(super) fn open_link(&mut self) {
        self.open("[");
        self.links += 1;
    }

    pub(super) fn close_link(&mut self, mark: &str) {
        self.links -= 1;
        self.close(mark);
    }

    pub(super) fn is_in_link(&self) -> bool {
        self.links > 0
    }

    pub(super) fn open_item(&mut self, bullet: String) {
        if self.bullet.is_some() {
            // The item around it has no words of its own.
            self.begin();
        }
        self.gap(Gap::Line);
        self.bullet = Some(bullet);
        self.indents.push("  ");
    }

    pub(super) fn close_item(&mut self) {
        self.bullet = None;
        self.indents.pop();
        // Items of a list stand line under line, also when there are paragraphs in them.
        self.gap = Gap::Line;
    }

    pub(super) fn open_quote(&mut self) {
        self.gap(Gap::Paragraph);
        self.indents.push("> ");
    }

    pub(super) fn close_quote(&mut self) {
        self.indents.pop();
        self.gap(Gap::Paragraph);
    }

    /// Writes what must stand before the next word.
    fn begin(&mut self) {
        match std::mem::take(&mut self.gap) {
            _ if self.text.is_empty() => self.indent(),
            Gap::None => {}
            Gap::Space => self.text.push(' '),
            Gap::Line => self.new_line(),
            Gap::Paragraph => {
                self.text.push('\n');
                let quotes = self.indents.iter().filter(|indent| **indent == "> ");
                self.text.extend(quotes.take(INDENTS_MAX).map(|_| '>'));
                self.new_line();
            }
        }
        for mark in std::mem::take(&mut self.opening) {
            self.text.push_str(&mark);
        }
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.indent();
    }

    fn indent(&mut self) {
        let bullet = self.bullet.take();
        let levels = self.indents.len() - usize::from(bullet.is_some());
        for indent in &self.indents[..levels.min(INDENTS_MAX)] {
            self.text.push_str(indent);
        }
        self.text.push_str(bullet.as_deref().unwrap_or_default());
    }
}

//! What a page says: follows its drawing far enough to know where text stands, and so where words and lines end.

use std::collections::HashMap;
use std::rc::Rc;

use super::file::{Document, Page};
use super::font::Font;
use super::object::{Dictionary, Object, Reader, is_space};

/// Drawings inside of drawings.
const FORM_DEPTH_MAX: usize = 8;
const OPERANDS_MAX: usize = 64;
const STATES_MAX: usize = 256;
/// In parts of the font's size. Letters are moved by less to look well, and words apart by more.
const GAP_OF_WORDS: f64 = 0.18;
/// Lines are further apart, raised and lowered letters are not.
const GAP_OF_LINES: f64 = 0.45;

/// Follows pages one after another; fonts are read once.
pub(super) struct Painter<'a> {
    document: &'a Document<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    states: Vec<State>,
    state: State,
    text_matrix: Matrix,
    line_matrix: Matrix,
    text: String,
    /// Where the last letter ended, on the page.
    pen: Option<(f64, f64)>,
    /// Text was shown in a font that does not say what its codes mean.
    pub(super) has_unknown: bool,
}

#[derive(Clone)]
struct State {
    matrix: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    leading: f64,
    letter_space: f64,
    word_space: f64,
    stretch: f64,
}

#[derive(Clone, Copy)]
struct Matrix([f64; 6]);

impl<'a> Painter<'a> {
    pub(super) fn new(document: &'a Document<'a>) -> Self {
        Self {
            document,
            fonts: HashMap::new(),
            states: Vec::new(),
            state: State::new(),
            text_matrix: Matrix::IDENTITY,
            line_matrix: Matrix::IDENTITY,
            text: String::new(),
            pen: None,
            has_unknown: false,
        }
    }

    /// Returns the text of a page, at most so many bytes and a little more.
    pub(super) fn page(&mut self, page: &Page, bytes_max: usize) -> String {
        self.states.clear();
        self.state = State::new();
        self.pen = None;
        let mut content = Vec::new();
        for number in &page.contents {
            if let Some((_, bytes)) = self.document.stream(*number) {
                content.extend(bytes);
                content.push(b'\n');
            }
        }
        self.draw(&content, &page.resources, FORM_DEPTH_MAX, bytes_max);
        std::mem::take(&mut self.text)
    }

    fn draw(&mut self, content: &[u8], resources: &Dictionary, depth: usize, bytes_max: usize) {
        let mut reader = Reader::new(content, 0, self.document.budget);
        let mut operands: Vec<Object> = Vec::new();
        while self.text.len() < bytes_max
            && let Some(object) = reader.next()
        {
            let Object::Keyword(operator) = object else {
                if operands.len() < OPERANDS_MAX {
                    operands.push(object);
                }
                continue;
            };
            match operator.as_slice() {
                b"ID" => reader.skip(image_bytes(reader.rest())),
                b"Do" => self.draw_form(&operands, resources, depth, bytes_max),
                b"Tf" => self.choose_font(&operands, resources),
                b"q" if self.states.len() < STATES_MAX => self.states.push(self.state.clone()),
                b"Q" => {
                    if let Some(state) = self.states.pop() {
                        self.state = state;
                    }
                }
                operator => self.obey(operator, &operands),
            }
            operands.clear();
        }
    }

    fn obey(&mut self, operator: &[u8], operands: &[Object]) {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        let matrix = || Matrix(std::array::from_fn(number));
        match operator {
            b"cm" => self.state.matrix = matrix().then(self.state.matrix),
            b"BT" => self.set_text_matrix(Matrix::IDENTITY),
            b"Tm" => self.set_text_matrix(matrix()),
            b"Td" => self.move_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            b"T*" => self.move_line(0.0, -self.state.leading),
            b"TL" => self.state.leading = number(0),
            b"Tc" => self.state.letter_space = number(0),
            b"Tw" => self.state.word_space = number(0),
            b"Tz" => self.state.stretch = number(0) / 100.0,
            b"Tj" => self.show(operands.first()),
            b"'" => {
                self.move_line(0.0, -self.state.leading);
                self.show(operands.first());
            }
            b"\"" => {
                self.state.word_space = number(0);
                self.state.letter_space = number(1);
                self.move_line(0.0, -self.state.leading);
                self.show(operands.get(2));
            }
            b"TJ" => {
                let Some(Object::Array(pieces)) = operands.first() else {
                    return;
                };
                for piece in pieces {
                    match piece {
                        Object::Number(back) => self.advance(-back / 1000.0 * self.state.size),
                        piece => self.show(Some(piece)),
                    }
                }
            }
            _ => {}
        }
    }

    fn draw_form(
        &mut self,
        operands: &[Object],
        resources: &Dictionary,
        depth: usize,
        bytes_max: usize,
    ) {
        let document = self.document;
        let name = operands.first().and_then(Object::name);
        let forms = document.get(resources, "XObject").dictionary();
        let (Some(name), Some(forms)) = (name, forms) else {
            return;
        };
        let (Some(depth), Some(Object::Reference(number))) =
            (depth.checked_sub(1), forms.get(name))
        else {
            return;
        };
        let kind = document.resolve(Object::Reference(*number)).dictionary();
        if !kind.is_some_and(|kind| kind.has_name("Subtype", "Form")) {
            return;
        }
        let Some((form, content)) = document.stream(*number) else {
            return;
        };
        let own = document.get(&form, "Resources").dictionary();
        let before = self.state.clone();
        if let Some(matrix) = document.get(&form, "Matrix").array() {
            let number = |at: usize| matrix.get(at).and_then(Object::number).unwrap_or(0.0);
            self.state.matrix = Matrix(std::array::from_fn(number)).then(self.state.matrix);
        }
        self.draw(
            &content,
            own.as_ref().unwrap_or(resources),
            depth,
            bytes_max,
        );
        self.state = before;
    }

    fn choose_font(&mut self, operands: &[Object], resources: &Dictionary) {
        let document = self.document;
        let size = operands.get(1).and_then(Object::number);
        self.state.size = size.unwrap_or(0.0);
        let fonts = document.get(resources, "Font").dictionary();
        let name = operands.first().and_then(Object::name);
        let found = fonts.as_ref().zip(name);
        let found = found.and_then(|(fonts, name)| fonts.get(name));
        self.state.font = match found {
            Some(Object::Reference(number)) => match self.fonts.get(number) {
                Some(font) => Some(Rc::clone(font)),
                None => {
                    let font = self.read_font(Object::Reference(*number));
                    self.fonts
                        .extend(font.as_ref().map(|font| (*number, Rc::clone(font))));
                    font
                }
            },
            Some(font) => self.read_font(font.clone()),
            None => None,
        };
    }

    fn read_font(&self, font: Object) -> Option<Rc<Font>> {
        let font = self.document.resolve(font).dictionary()?;
        Some(Rc::new(Font::read(self.document, &font)))
    }

    fn set_text_matrix(&mut self, matrix: Matrix) {
        self.text_matrix = matrix;
        self.line_matrix = matrix;
    }

    fn move_line(&mut self, x: f64, y: f64) {
        let moved = Matrix([1.0, 0.0, 0.0, 1.0, x, y]).then(self.line_matrix);
        self.set_text_matrix(moved);
    }

    fn advance(&mut self, distance: f64) {
        let step = Matrix([1.0, 0.0, 0.0, 1.0, distance * self.state.stretch, 0.0]);
        self.text_matrix = step.then(self.text_matrix);
    }

    fn show(&mut self, string: Option<&Object>) {
        let (Some(Object::Text(string)), Some(font)) = (string, self.state.font.clone()) else {
            return;
        };
        self.separate();
        for glyph in font.glyphs(string) {
            match &glyph.text {
                Some(text) => push_readable(&mut self.text, text),
                None => self.has_unknown = true,
            }
            let mut distance = glyph.width * self.state.size + self.state.letter_space;
            if glyph.is_space {
                distance += self.state.word_space;
            }
            self.advance(distance);
        }
        self.pen = Some(self.placed().origin());
    }

    /// Puts a space or a line's end between the last letter and the next, if they stand apart.
    fn separate(&mut self) {
        let placed = self.placed();
        let Some((pen_x, pen_y)) = self.pen else {
            return;
        };
        let (x, y) = placed.origin();
        let Matrix([a, b, c, d, ..]) = placed;
        let (along_x, along_y) = unit(a, b);
        let size = (self.state.size * c.hypot(d)).abs().max(f64::MIN_POSITIVE);
        let (right, up) = (x - pen_x, y - pen_y);
        let along = (right * along_x + up * along_y) / size;
        let across = (right * along_y - up * along_x) / size;
        if across.abs() > GAP_OF_LINES || along < -1.0 {
            end_line(&mut self.text);
        } else if along > GAP_OF_WORDS && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn placed(&self) -> Matrix {
        self.text_matrix.then(self.state.matrix)
    }
}

impl State {
    fn new() -> Self {
        Self {
            matrix: Matrix::IDENTITY,
            font: None,
            size: 0.0,
            leading: 0.0,
            letter_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
        }
    }
}

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Does this, then the other.
    fn then(self, Self([a, b, c, d, e, f]): Self) -> Self {
        let Self([p, q, r, s, t, u]) = self;
        Self([
            p * a + q * c,
            p * b + q * d,
            r * a + s * c,
            r * b + s * d,
            t * a + u * c + e,
            t * b + u * d + f,
        ])
    }

    fn origin(self) -> (f64, f64) {
        let Self([.., x, y]) = self;
        (x, y)
    }
}

/// The direction of a vector; to the right if it has none.
fn unit(x: f64, y: f64) -> (f64, f64) {
    let length = x.hypot(y);
    if length > 0.0 && length.is_finite() {
        (x / length, y / length)
    } else {
        (1.0, 0.0)
    }
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

/// Adds text without what only printers need: letters joined into one, soft hyphens, controls.
fn push_readable(text: &mut String, more: &str) {
    for character in more.chars() {
        match character {
            'ﬀ' => text.push_str("ff"),
            'ﬁ' => text.push_str("fi"),
            'ﬂ' => text.push_str("fl"),
            'ﬃ' => text.push_str("ffi"),
            'ﬄ' => text.push_str("ffl"),
            '\u{a0}' | '\t' | '\n' | '\r' => text.push(' '),
            '\u{ad}' => text.push('-'),
            character if character.is_control() => {}
            character => text.push(character),
        }
    }
}

/// Returns the length of an image inside of a page, with the word that ends it.
fn image_bytes(rest: &[u8]) -> usize {
    let is_end =
        |window: &[u8]| is_space(window[0]) && &window[1..3] == b"EI" && is_space(window[3]);
    let end = rest.windows(4).position(is_end);
    end.map_or(rest.len(), |end| end + 3)
}

//! Tables: of data, which stay tables, and of layout, which are only a way to put text beside text.

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn open_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, text: String) {
        match self.rows.last_mut() {
            Some(row) => row.push(text),
            None => self.rows.push(vec![text]),
        }
    }

    /// The table as markdown; for a layout, its cells one after the other.
    pub(super) fn text(mut self) -> String {
        self.rows
            .retain(|row| row.iter().any(|cell| !cell.trim().is_empty()));
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        if columns < 2 || self.is_layout() {
            let cells = self.rows.iter().flatten().map(|cell| cell.trim());
            let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
            return cells.join("\n\n");
        }
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            text.push_str(&line(row, columns));
            if at == 0 {
                text.push_str(&format!("|{}\n", " --- |".repeat(columns)));
            }
        }
        text
    }

    /// Data have no paragraphs, and no tables inside.
    fn is_layout(&self) -> bool {
        let mut cells = self.rows.iter().flatten();
        cells.any(|cell| cell.trim().contains("\n\n") || cell.contains("| --- |"))
    }
}

fn line(row: &[String], columns: usize) -> String {
    let mut line = "|".to_owned();
    for at in 0..columns {
        let cell = row.get(at).map(String::as_str).unwrap_or_default();
        let words: Vec<&str> = cell.split_whitespace().collect();
        line.push_str(&format!(" {} |", words.join(" ").replace('|', "\\|")));
    }
    line.push('\n');
    line
}

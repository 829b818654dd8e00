-- Schema 12: search in scripts that do not separate words, and for words that are misspelt.

-- Messages with such scripts, and all their words. It has no text of its own, only what was made of it. Marks count as
-- letters: in some of these scripts they are vowels.
CREATE VIRTUAL TABLE unspaced USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co'"
);

ALTER TABLE search_progress ADD COLUMN unspaced INTEGER NOT NULL DEFAULT 0; -- as `indexed`, for this index and `spellings`

-- The words that people and models said, in lower case, each once.
CREATE TABLE spellings (
    word TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Schema 18: prompts and tools that many sessions begin with are there once.

CREATE TABLE prefix_texts (
    number INTEGER PRIMARY KEY,
    text   TEXT    NOT NULL UNIQUE
) STRICT;

INSERT INTO prefix_texts (text) SELECT system FROM prefixes UNION SELECT tools FROM prefixes;

CREATE TABLE prefixes_18 (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    epoch   INTEGER NOT NULL,
    system  INTEGER NOT NULL, -- prefix_texts.number
    tools   INTEGER NOT NULL, -- the same; JSON
    PRIMARY KEY (session, epoch)
) STRICT;

INSERT INTO prefixes_18
    SELECT session, epoch,
        (SELECT number FROM prefix_texts WHERE text = system), (SELECT number FROM prefix_texts WHERE text = tools)
    FROM prefixes;

DROP TABLE prefixes;
ALTER TABLE prefixes_18 RENAME TO prefixes;

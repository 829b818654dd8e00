-- Schema 11: what was learned, with what it was before; the reviews of conversations; what learning used.

-- It outlives the sessions that it was learned in.
CREATE TABLE learned_changes (
    number   INTEGER PRIMARY KEY AUTOINCREMENT, -- what people type to take it back
    at       INTEGER NOT NULL, -- milliseconds since 1970
    kind     TEXT    NOT NULL, -- notes, skill, user_model
    subject  TEXT    NOT NULL, -- JSON
    author   TEXT    NOT NULL, -- JSON
    session  TEXT,
    turn     TEXT,
    summary  TEXT    NOT NULL,
    before   TEXT,             -- NULL where there was nothing
    after    TEXT,             -- NULL where nothing is left
    undoes   INTEGER,          -- learned_changes.number
    finished INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX learned_changes_by_subject ON learned_changes (subject, number);
CREATE INDEX learned_changes_undoing ON learned_changes (undoes) WHERE undoes IS NOT NULL;

CREATE TABLE reviews (
    session     INTEGER PRIMARY KEY REFERENCES sessions (number) ON DELETE CASCADE,
    person      TEXT,                       -- who talks there, where several do
    due         INTEGER,                    -- since when; NULL when it is not
    notes       INTEGER NOT NULL DEFAULT 0, -- what for
    skills      INTEGER NOT NULL DEFAULT 0,
    taken_until INTEGER NOT NULL DEFAULT 0, -- somebody is at it until then
    tries       INTEGER NOT NULL DEFAULT 0,
    reviewed    INTEGER NOT NULL DEFAULT 0  -- messages there were at the last review
) STRICT;

CREATE INDEX reviews_due ON reviews (due) WHERE due IS NOT NULL;

CREATE TABLE learning_use (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    day       TEXT    NOT NULL, -- 2026-11-18
    purpose   TEXT    NOT NULL,
    session   TEXT,
    tokens    INTEGER NOT NULL, -- at most, until it is settled
    micro_usd INTEGER NOT NULL,
    settled   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX learning_use_by_day ON learning_use (day);

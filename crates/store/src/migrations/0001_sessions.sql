-- Schema 1: sessions, their turns, messages, calls and steps, and the two indexes for search.
--
-- Rows refer to each other by number; the text ids people see are stored once.
-- Deleting a session deletes everything below it.

PRAGMA application_id = 0x4865726d; -- "Herm"

CREATE TABLE sessions (
    number             INTEGER PRIMARY KEY,
    id                 TEXT    NOT NULL UNIQUE,
    title              TEXT    UNIQUE,
    preview            TEXT    NOT NULL DEFAULT '',
    source             TEXT    NOT NULL,
    cwd                TEXT,
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    parent             TEXT,              -- an id, not a reference: it outlives the parent
    created            INTEGER NOT NULL,  -- every time is in milliseconds since 1970
    updated            INTEGER NOT NULL,
    epoch              INTEGER NOT NULL DEFAULT 1,
    messages           INTEGER NOT NULL DEFAULT 0,
    calls              INTEGER NOT NULL DEFAULT 0,
    requests           INTEGER NOT NULL DEFAULT 0,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens   INTEGER NOT NULL DEFAULT 0,
    cost_micro_usd     INTEGER DEFAULT 0, -- NULL: the price of at least one request is unknown
    open_turn          INTEGER            -- turns.number of the turn that has not ended
) STRICT;

CREATE INDEX sessions_by_update ON sessions (updated);
CREATE INDEX sessions_unfinished ON sessions (open_turn) WHERE open_turn IS NOT NULL;

-- What every request of a session begins with, per epoch.
CREATE TABLE prefixes (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    epoch   INTEGER NOT NULL,
    system  TEXT    NOT NULL,
    tools   TEXT    NOT NULL, -- JSON
    PRIMARY KEY (session, epoch)
) STRICT;

CREATE TABLE turns (
    number  INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    id      TEXT    NOT NULL,
    reply   INTEGER,          -- messages.number of its latest reply, the one whose calls are being answered
    UNIQUE (session, id)
) STRICT;

-- `text` is all that can be searched, stored once. `parts` is NULL when the message is one piece of text; otherwise it
-- is a JSON list that says how `text` is divided and holds everything else.
-- Numbers are never used twice, so that `search_progress` can be one number.
CREATE TABLE messages (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    turn    INTEGER NOT NULL, -- turns.number; both go with the session
    role    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    parts   TEXT
) STRICT;

CREATE INDEX messages_by_session ON messages (session);

-- One row per call of a reply: what was about to happen, and its one result.
CREATE TABLE calls (
    reply    INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    id       TEXT    NOT NULL,
    tool     TEXT    NOT NULL,
    effect   TEXT,    -- NULL until it is about to run
    intended INTEGER, -- steps.seq
    result   INTEGER, -- messages.number
    PRIMARY KEY (reply, id)
) STRICT, WITHOUT ROWID;

-- The step log: one row per entry, in order, never changed.
CREATE TABLE steps (
    turn    INTEGER NOT NULL REFERENCES turns (number) ON DELETE CASCADE,
    seq     INTEGER NOT NULL, -- 1, 2, 3 … in its turn
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    message INTEGER,          -- messages.number, if the entry brought one
    data    TEXT,             -- JSON: how a turn ended; which model was asked, if not the session's own
    PRIMARY KEY (turn, seq)
) STRICT, WITHOUT ROWID;

-- What each answered request used.
CREATE TABLE requests (
    reply              INTEGER PRIMARY KEY REFERENCES messages (number) ON DELETE CASCADE,
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    reason             TEXT    NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_micro_usd     INTEGER -- NULL: unknown
) STRICT;

-- Both indexes read the text from `messages` and are filled from it later, many messages at a time: FTS5 writes
-- something for every transaction that touches it, and that would cost a small append three times what it costs now.
-- That, and because a trigger makes each insert a nested transaction, is why no triggers fill them.
CREATE TABLE search_progress (
    indexed INTEGER NOT NULL -- messages up to this number are in both indexes
) STRICT;

INSERT INTO search_progress VALUES (0);

-- Relevance is computed from the text of the candidates, so neither index needs sizes.
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    content = 'messages',
    content_rowid = 'number',
    tokenize = 'unicode61 remove_diacritics 2',
    columnsize = 0
);

-- Parts of words, and scripts without spaces. It only names candidates, which are checked against the text, so it needs
-- no positions either: that makes it a fifth as large.
CREATE VIRTUAL TABLE trigrams USING fts5 (
    text,
    content = 'messages',
    content_rowid = 'number',
    tokenize = 'trigram',
    detail = none,
    columnsize = 0
);

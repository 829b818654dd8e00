PRAGMA application_id = 0x4865726d;
CREATE TABLE sessions (
    number             INTEGER PRIMARY KEY,
    id                 TEXT    NOT NULL UNIQUE,
    title              TEXT    UNIQUE,
    preview            TEXT    NOT NULL DEFAULT '',
    source             TEXT    NOT NULL,
    cwd                TEXT,
    provider           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    parent             TEXT,
    created            INTEGER NOT NULL,
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
    cost_micro_usd     INTEGER DEFAULT 0,
    open_turn          INTEGER
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated);
CREATE INDEX sessions_unfinished ON sessions (open_turn) WHERE open_turn IS NOT NULL;
CREATE TABLE prefixes (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    epoch   INTEGER NOT NULL,
    system  TEXT    NOT NULL,
    tools   TEXT    NOT NULL,
    PRIMARY KEY (session, epoch)
) STRICT;
CREATE TABLE turns (
    number  INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    id      TEXT    NOT NULL,
    reply   INTEGER,
    taken_back INTEGER,
    UNIQUE (session, id)
) STRICT;
CREATE INDEX turns_taken_back ON turns (session, number) WHERE taken_back IS NOT NULL;
CREATE TABLE messages (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    turn    INTEGER NOT NULL,
    role    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    parts   TEXT,
    origin  TEXT
) STRICT;
CREATE INDEX messages_by_session ON messages (session);
CREATE TABLE calls (
    reply    INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    id       TEXT    NOT NULL,
    tool     TEXT    NOT NULL,
    effect   TEXT,
    intended INTEGER,
    result   INTEGER,
    PRIMARY KEY (reply, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE steps (
    turn    INTEGER NOT NULL REFERENCES turns (number) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    message INTEGER,
    data    TEXT,
    PRIMARY KEY (turn, seq)
) STRICT, WITHOUT ROWID;
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
    cost_micro_usd     INTEGER
) STRICT;
CREATE TABLE search_progress (
    indexed INTEGER NOT NULL
) STRICT;
INSERT INTO search_progress VALUES (0);
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    content = 'messages',
    content_rowid = 'number',
    tokenize = 'unicode61 remove_diacritics 2',
    columnsize = 0
);
CREATE VIRTUAL TABLE trigrams USING fts5 (
    text,
    content = 'messages',
    content_rowid = 'number',
    tokenize = 'trigram',
    detail = none,
    columnsize = 0
);
CREATE TABLE approvals (
    id      TEXT    PRIMARY KEY,
    reply   INTEGER NOT NULL,
    call    TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    choices TEXT    NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    settled INTEGER,
    how     TEXT,
    tool    TEXT,
    preview TEXT,
    code    TEXT,
    tries   INTEGER NOT NULL DEFAULT 0,
    folder  TEXT,
    patterns TEXT,
    said    TEXT,
    FOREIGN KEY (reply, call) REFERENCES calls (reply, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_call ON approvals (reply, call);
CREATE INDEX approvals_open ON approvals (created) WHERE settled IS NULL;
CREATE TABLE mcp_offers (
    server   TEXT NOT NULL,
    settings TEXT NOT NULL, -- tells the settings it was asked with from others
    offer    TEXT NOT NULL, -- JSON
    seen     INTEGER NOT NULL, -- milliseconds since 1970
    PRIMARY KEY (server, settings)
) STRICT, WITHOUT ROWID;
CREATE TABLE tool_states (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    tool    TEXT    NOT NULL,
    turn    INTEGER NOT NULL REFERENCES turns (number) ON DELETE CASCADE,
    state   TEXT    NOT NULL, -- JSON
    PRIMARY KEY (session, tool, turn)
) STRICT, WITHOUT ROWID;
CREATE TABLE compactions (
    session  INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    epoch    INTEGER NOT NULL, -- the one it opened; never used twice
    covers   INTEGER NOT NULL, -- messages.number: the last one that the summary stands for
    summary  TEXT    NOT NULL, -- JSON: a message
    at       INTEGER NOT NULL,
    reverted INTEGER,          -- when turns were taken back that it covers
    shortened TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (session, epoch)
) STRICT, WITHOUT ROWID;
CREATE TABLE queued (
    number    INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order they were said
    session   INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    id        TEXT    NOT NULL,
    waits_for TEXT    NOT NULL, -- next_turn, tool_result
    at        INTEGER NOT NULL, -- milliseconds since 1970
    message   TEXT    NOT NULL, -- JSON
    UNIQUE (session, id)
) STRICT;
PRAGMA user_version = 10;
INSERT INTO sessions (number, id, title, preview, source, provider, model, created, updated, messages, requests)
VALUES (1, 's1', 'kept', 'a question', 'cli', 'test', 'scripted', 1794777845000, 1794777845000, 2, 1);
INSERT INTO prefixes VALUES (1, 1, 'system', '[{"name":"t","description":"d","parameters":{}}]');
INSERT INTO turns VALUES (1, 1, 't1', 2, NULL);
INSERT INTO messages VALUES (1, 1, 1, 'user', 1794777845000, 'a question', NULL, NULL);
INSERT INTO messages VALUES (2, 1, 1, 'assistant', 1794777845000, 'an answer', '[{"other":{"type":"reasoning","text":"hm"}},{"text":9}]', NULL);
INSERT INTO steps VALUES (1, 1, 'turn_started', 1794777845000, 1, NULL);
INSERT INTO steps VALUES (1, 2, 'model_asked', 1794777845000, NULL, NULL);
INSERT INTO steps VALUES (1, 3, 'replied', 1794777845000, 2, NULL);
INSERT INTO requests VALUES (2, 'test', 'scripted', 'stop', 1, 2, 0, 0, 0, 7);
INSERT INTO steps VALUES (1, 4, 'turn_ended', 1794777845000, NULL, '{"how":"finished"}');

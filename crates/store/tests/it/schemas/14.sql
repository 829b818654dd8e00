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
CREATE TABLE inbox (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    platform  TEXT    NOT NULL,
    account   TEXT    NOT NULL,
    update_id TEXT    NOT NULL,
    lane      TEXT    NOT NULL,
    received  INTEGER NOT NULL,
    sent      INTEGER,
    raw       TEXT,
    incoming  TEXT    NOT NULL,
    session   TEXT,
    turn      TEXT,
    closed    TEXT,
    closed_at INTEGER,
    UNIQUE (platform, account, update_id)
) STRICT;
CREATE INDEX inbox_open ON inbox (lane, number) WHERE closed IS NULL;
CREATE INDEX inbox_raw ON inbox (closed_at) WHERE closed IS NOT NULL AND raw IS NOT NULL;
CREATE TABLE cursors (
    platform TEXT NOT NULL,
    account  TEXT NOT NULL,
    cursor   TEXT NOT NULL,
    PRIMARY KEY (platform, account)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT    NOT NULL UNIQUE,
    platform TEXT    NOT NULL,
    stage    TEXT    NOT NULL,
    updated  INTEGER NOT NULL,
    entry    TEXT    NOT NULL
) STRICT;
CREATE INDEX outbox_open ON outbox (platform, number) WHERE stage IN ('writing', 'pending', 'sending');
CREATE INDEX outbox_ended ON outbox (updated) WHERE stage IN ('sent', 'failed');
CREATE TABLE dead_addresses (
    address TEXT    NOT NULL PRIMARY KEY,
    since   INTEGER NOT NULL,
    error   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
    name   TEXT    NOT NULL PRIMARY KEY,
    token  INTEGER NOT NULL,
    holder TEXT    NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE lease_tokens (
    token INTEGER NOT NULL
) STRICT;
INSERT INTO lease_tokens VALUES (0);
CREATE TABLE chats (
    key      TEXT    NOT NULL PRIMARY KEY,
    platform TEXT    NOT NULL,
    session  TEXT,
    updated  INTEGER NOT NULL,
    chat     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX chats_by_update ON chats (platform, updated);
CREATE INDEX chats_by_session ON chats (session, updated) WHERE session IS NOT NULL;
CREATE TABLE pairing_requests (
    id       TEXT    NOT NULL PRIMARY KEY,
    platform TEXT    NOT NULL,
    user     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    request  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE paired_people (
    platform TEXT    NOT NULL,
    user     TEXT    NOT NULL,
    name     TEXT,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, user)
) STRICT, WITHOUT ROWID;
CREATE TABLE pairing_asked (
    platform TEXT    NOT NULL,
    user     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, user)
) STRICT, WITHOUT ROWID;
CREATE TABLE pairing_failures (
    number   INTEGER PRIMARY KEY,
    platform TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE INDEX pairing_failures_by_time ON pairing_failures (platform, at);
CREATE TABLE records (
    scope       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    value       TEXT,
    created     INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;
CREATE INDEX records_by_end ON records (expires);
PRAGMA user_version = 14;
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

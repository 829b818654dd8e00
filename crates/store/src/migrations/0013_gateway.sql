-- Schema 13: what a gateway needs to lose nothing: what platforms said, what is to be said there, who was let in.

-- A row is here before its platform is told that we have it, and stays: the same update is known for ever.
CREATE TABLE inbox (
    number    INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order they came
    platform  TEXT    NOT NULL,
    account   TEXT    NOT NULL,
    update_id TEXT    NOT NULL,
    lane      TEXT    NOT NULL,
    received  INTEGER NOT NULL, -- every time is in milliseconds since 1970
    sent      INTEGER,          -- by the platform's clock
    raw       TEXT,             -- JSON, as the platform told it; forgotten some time after the end
    incoming  TEXT    NOT NULL, -- JSON
    session   TEXT,             -- ids of the session and the turn that began with it
    turn      TEXT,
    closed    TEXT,             -- how it ended; NULL: it has not
    closed_at INTEGER,
    UNIQUE (platform, account, update_id)
) STRICT;

CREATE INDEX inbox_open ON inbox (lane, number) WHERE closed IS NULL;
CREATE INDEX inbox_raw ON inbox (closed_at) WHERE closed IS NOT NULL AND raw IS NOT NULL;

-- How far each account was read.
CREATE TABLE cursors (
    platform TEXT NOT NULL,
    account  TEXT NOT NULL,
    cursor   TEXT NOT NULL,
    PRIMARY KEY (platform, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    number   INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order they are sent
    key      TEXT    NOT NULL UNIQUE,
    platform TEXT    NOT NULL,
    stage    TEXT    NOT NULL, -- writing, pending, sending, sent, failed
    updated  INTEGER NOT NULL,
    entry    TEXT    NOT NULL  -- JSON
) STRICT;

CREATE INDEX outbox_open ON outbox (platform, number) WHERE stage IN ('writing', 'pending', 'sending');
CREATE INDEX outbox_ended ON outbox (updated) WHERE stage IN ('sent', 'failed');

-- Where nothing can be delivered to, until something is.
CREATE TABLE dead_addresses (
    address TEXT    NOT NULL PRIMARY KEY, -- JSON
    since   INTEGER NOT NULL,
    error   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name   TEXT    NOT NULL PRIMARY KEY,
    token  INTEGER NOT NULL,
    holder TEXT    NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The highest token that was ever given.
CREATE TABLE lease_tokens (
    token INTEGER NOT NULL
) STRICT;

INSERT INTO lease_tokens VALUES (0);

CREATE TABLE chats (
    key      TEXT    NOT NULL PRIMARY KEY,
    platform TEXT    NOT NULL,
    session  TEXT,             -- the id of the conversation it is in
    updated  INTEGER NOT NULL,
    chat     TEXT    NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;

CREATE INDEX chats_by_update ON chats (platform, updated);
CREATE INDEX chats_by_session ON chats (session, updated) WHERE session IS NOT NULL;

CREATE TABLE pairing_requests (
    id       TEXT    NOT NULL PRIMARY KEY,
    platform TEXT    NOT NULL,
    user     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    request  TEXT    NOT NULL -- JSON; of its code only a salted digest
) STRICT, WITHOUT ROWID;

CREATE TABLE paired_people (
    platform TEXT    NOT NULL,
    user     TEXT    NOT NULL,
    name     TEXT,
    at       INTEGER NOT NULL,
    PRIMARY KEY (platform, user)
) STRICT, WITHOUT ROWID;

-- When strangers asked last, and when codes were wrong: who tries too often has to wait.
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

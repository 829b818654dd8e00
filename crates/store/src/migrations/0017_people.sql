-- Schema 17: people with accounts on several platforms, and what they had, so that limits hold over restarts.

CREATE TABLE links (
    account TEXT    NOT NULL PRIMARY KEY, -- PLATFORM:USER
    person  TEXT    NOT NULL,             -- the account that the person is known by
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX links_by_person ON links (person, at);

CREATE TABLE person_use (
    person    TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    turns     INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL
) STRICT;

CREATE INDEX person_use_by_time ON person_use (person, at);

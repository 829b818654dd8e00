-- Schema 3: questions that wait for a person's consent, and how they were settled.

CREATE TABLE approvals (
    id      TEXT    PRIMARY KEY,
    reply   INTEGER NOT NULL,
    call    TEXT    NOT NULL,
    what    TEXT    NOT NULL, -- what would run
    reason  TEXT    NOT NULL, -- why it is asked
    choices TEXT    NOT NULL, -- JSON: the answers it takes
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    settled INTEGER,          -- when; NULL while it is open
    how     TEXT,             -- JSON; NULL while it is open
    FOREIGN KEY (reply, call) REFERENCES calls (reply, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_by_call ON approvals (reply, call);
CREATE INDEX approvals_open ON approvals (created) WHERE settled IS NULL;

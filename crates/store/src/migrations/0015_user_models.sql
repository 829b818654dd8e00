-- Schema 15: what is known of people, and the conversations that it has not heard yet.

CREATE TABLE user_models (
    number   INTEGER PRIMARY KEY,
    person   TEXT    NOT NULL UNIQUE, -- empty for whoever sits at the terminal
    version  INTEGER NOT NULL,        -- rises with every change
    document TEXT                     -- JSON; NULL where nothing is known any more
) STRICT;

CREATE TABLE hearings (
    session     INTEGER PRIMARY KEY REFERENCES sessions (number) ON DELETE CASCADE,
    person      TEXT,                       -- who talks there, where several do
    due         INTEGER,                    -- when somebody last spoke; NULL when it is not
    taken_until INTEGER NOT NULL DEFAULT 0, -- somebody is at it until then
    tries       INTEGER NOT NULL DEFAULT 0,
    heard       INTEGER NOT NULL DEFAULT 0  -- messages.number of the last one that was heard
) STRICT;

CREATE INDEX hearings_due ON hearings (due) WHERE due IS NOT NULL;

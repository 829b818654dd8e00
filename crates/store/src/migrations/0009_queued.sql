-- Schema 9: words that wait for the turn that runs, so that a crash does not lose them.

-- A row goes when a turn begins with the words, a tool result brings them along, or an interrupt forgets them.
CREATE TABLE queued (
    number    INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order they were said
    session   INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    id        TEXT    NOT NULL,
    waits_for TEXT    NOT NULL, -- next_turn, tool_result
    at        INTEGER NOT NULL, -- milliseconds since 1970
    message   TEXT    NOT NULL, -- JSON
    UNIQUE (session, id)
) STRICT;

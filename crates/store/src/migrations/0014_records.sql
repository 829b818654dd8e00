-- Schema 14: what surfaces keep beside conversations.
--
-- What surfaces keep beside conversations: requests that may come again and their answers, names that were given out,
-- deliveries that were taken. Everything here has an end.
CREATE TABLE records (
    scope       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    value       TEXT,             -- NULL while there is nothing to keep yet
    created     INTEGER NOT NULL, -- milliseconds since 1970
    expires     INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;

CREATE INDEX records_by_end ON records (expires);

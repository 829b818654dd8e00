-- Schema 16: jobs of schedules, their runs, and where the results of those went.

CREATE TABLE jobs (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    revision       INTEGER NOT NULL DEFAULT 1, -- counts changes
    created        INTEGER NOT NULL,           -- milliseconds since 1970
    spec           TEXT    NOT NULL,           -- JSON: what it is
    state          TEXT    NOT NULL,           -- active, paused, completed
    next_scheduled INTEGER,                    -- the time that its schedule says
    next_due       INTEGER,                    -- when it really begins
    wanted         INTEGER,                    -- somebody wants it to run beside its schedule
    runs           INTEGER NOT NULL DEFAULT 0, -- those by schedule
    failures       INTEGER NOT NULL DEFAULT 0, -- one after another, up to now
    told_at        INTEGER,                    -- the last failure somebody was told of
    told_error     TEXT
) STRICT;

CREATE INDEX jobs_due ON jobs (next_due) WHERE next_due IS NOT NULL;
CREATE INDEX jobs_wanted ON jobs (wanted) WHERE wanted IS NOT NULL;

-- They outlive their job for a while.
CREATE TABLE job_runs (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    job            TEXT    NOT NULL,           -- jobs.id
    name           TEXT    NOT NULL,
    scheduled      INTEGER NOT NULL,
    by_person      INTEGER NOT NULL DEFAULT 0, -- whether somebody wanted it beside the schedule
    status         TEXT    NOT NULL,           -- running, waiting, succeeded, failed, skipped, unknown
    attempt        INTEGER NOT NULL DEFAULT 1,
    token          INTEGER NOT NULL DEFAULT 1, -- grows with every taking; older ones write nothing
    holder         TEXT    NOT NULL,
    lease_until    INTEGER NOT NULL,           -- 0 once it is over
    claimed        INTEGER NOT NULL,
    ended          INTEGER,
    phase          TEXT    NOT NULL,           -- claimed, scripting, asking
    prompt         TEXT,
    session        TEXT,                       -- sessions.id, which may be gone
    output         TEXT,
    error          TEXT,
    hint           TEXT,
    cost_micro_usd INTEGER,
    missed         INTEGER NOT NULL DEFAULT 0,
    UNIQUE (job, scheduled)
) STRICT;

CREATE INDEX job_runs_open ON job_runs (job) WHERE status IN ('running', 'waiting');

CREATE TABLE job_deliveries (
    run    INTEGER NOT NULL REFERENCES job_runs (number) ON DELETE CASCADE,
    place  INTEGER NOT NULL, -- from 0, in the order of the targets
    target TEXT    NOT NULL,
    text   TEXT    NOT NULL,
    status TEXT    NOT NULL, -- pending, handed, delivered, unknown, failed
    proof  TEXT,             -- what it is known by where it went
    why    TEXT,             -- of unknown and failed
    PRIMARY KEY (run, target)
) STRICT;

CREATE INDEX job_deliveries_open ON job_deliveries (run) WHERE status IN ('pending', 'handed');

-- Jobs that came from another program: each comes once.
CREATE TABLE imported_jobs (
    id TEXT NOT NULL PRIMARY KEY
) STRICT;

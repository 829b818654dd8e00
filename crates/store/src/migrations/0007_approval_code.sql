-- Schema 7: the code that an answer from elsewhere takes, where a question would run, and what was said with an answer.

ALTER TABLE approvals ADD COLUMN code TEXT;     -- NULL in questions from before: they are answered in their conversation
ALTER TABLE approvals ADD COLUMN tries INTEGER NOT NULL DEFAULT 0; -- wrong codes while it was open
ALTER TABLE approvals ADD COLUMN folder TEXT;   -- NULL where it does not matter
ALTER TABLE approvals ADD COLUMN patterns TEXT; -- JSON; NULL without any
ALTER TABLE approvals ADD COLUMN said TEXT;     -- JSON; NULL while it is open

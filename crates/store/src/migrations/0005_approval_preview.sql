-- Schema 5: the change that a question is about.

ALTER TABLE approvals ADD COLUMN preview TEXT; -- JSON; NULL in questions that are about no change

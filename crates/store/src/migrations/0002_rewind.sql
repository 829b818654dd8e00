-- Schema 2: turns that the user took back stay in the log and leave the conversation.

ALTER TABLE turns ADD COLUMN taken_back INTEGER; -- when; NULL for those that stand

CREATE INDEX turns_taken_back ON turns (session, number) WHERE taken_back IS NOT NULL;

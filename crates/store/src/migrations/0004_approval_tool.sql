-- Schema 4: which tool a question is about, where a call makes others.

ALTER TABLE approvals ADD COLUMN tool TEXT; -- NULL in questions from before: then it is the tool of the call

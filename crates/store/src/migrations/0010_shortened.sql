-- Schema 10: what a model sees in place of some messages since a compaction.

-- JSON: a list of pairs, messages.number and a message. The summary is `null` where nothing is summarised yet.
ALTER TABLE compactions ADD COLUMN shortened TEXT NOT NULL DEFAULT '[]';

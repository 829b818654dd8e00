-- Schema 8: state that used to be guessed from the text: where words in the user's role came from, what tools keep for
-- their next call, and which part of a conversation a summary stands for.

ALTER TABLE messages ADD COLUMN origin TEXT; -- JSON; NULL for a person on the session's own surface, and in other roles

-- Reports of subagents were told from words of a person by how they begin.
UPDATE messages
SET origin = json_object('from', 'subagent_report',
                         'delegation', substr(text, 13, instr(text, ': your background subagents') - 13))
WHERE role = 'user'
  AND text GLOB '[[]Delegation *: your background subagents have come to rest. The user did not write this.]*';

-- What a tool kept in a turn. The newest turn that was not taken back counts.
CREATE TABLE tool_states (
    session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    tool    TEXT    NOT NULL,
    turn    INTEGER NOT NULL REFERENCES turns (number) ON DELETE CASCADE,
    state   TEXT    NOT NULL, -- JSON
    PRIMARY KEY (session, tool, turn)
) STRICT, WITHOUT ROWID;

-- Lists of things to do were read out of the last result of `todo`.
INSERT OR REPLACE INTO tool_states (session, tool, turn, state)
SELECT m.session, 'todo', m.turn, m.text
FROM calls c JOIN messages m ON m.number = c.result
WHERE c.tool = 'todo' AND CASE WHEN json_valid(m.text) THEN json_type(m.text, '$.todos') END = 'array'
ORDER BY m.number;

-- Subagents in the background were waited for as long as their dispatch stood in the text, and no report.
INSERT INTO tool_states (session, tool, turn, state)
SELECT m.session, 'delegate_task', max(m.turn),
       json_group_array(json_object('call', c.id, 'delegation_id', json_extract(m.text, '$.delegation_id'),
                                    'sessions', json_extract(m.text, '$.sessions')))
FROM calls c JOIN messages m ON m.number = c.result JOIN turns t ON t.number = m.turn
WHERE c.tool = 'delegate_task' AND t.taken_back IS NULL
  AND CASE WHEN json_valid(m.text) THEN json_extract(m.text, '$.status') END = 'dispatched'
  AND NOT EXISTS (
      SELECT 1 FROM messages r JOIN turns rt ON rt.number = r.turn
      WHERE r.session = m.session AND rt.taken_back IS NULL
        AND json_extract(r.origin, '$.delegation') = json_extract(m.text, '$.delegation_id'))
GROUP BY m.session;

-- From here on a model sees the summary and what came after `covers`; people and search see everything.
CREATE TABLE compactions (
    session  INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
    epoch    INTEGER NOT NULL, -- the one it opened; never used twice
    covers   INTEGER NOT NULL, -- messages.number: the last one that the summary stands for
    summary  TEXT    NOT NULL, -- JSON: a message
    at       INTEGER NOT NULL,
    reverted INTEGER,          -- when turns were taken back that it covers
    PRIMARY KEY (session, epoch)
) STRICT, WITHOUT ROWID;

-- The whole persistent state of one device: a wallet of enrolments. One file, mode 0600: it holds secrets.
--
-- Debits, promises, forgotten moments and pins say for which enrolments they count: those whose id is from
-- first_id to last_id. While a stream is enrolled, that is its own id. When it is left, they count for all
-- enrolments that are made later: joining again, under whatever name, is no way around the ledger.

CREATE TABLE device (
  one          INTEGER PRIMARY KEY CHECK (one = 1),  -- one device per file
  secret       BLOB NOT NULL CHECK (length(secret) = 32),  -- from which those of new enrolments are derived; never leaves the device
  rejoins      INTEGER NOT NULL,  -- how often the device has left a stream
  past_known   INTEGER NOT NULL CHECK (past_known IN (0, 1)),  -- 1 if debits and forgotten moments are all there are
  own_ms       INTEGER NOT NULL,  -- own time at the last commit ...
  wall_ms      INTEGER NOT NULL,  -- ... and what the clocks said then
  steady_ms    INTEGER NOT NULL,
  boot         TEXT,              -- NULL where the platform names none
  stamp        TEXT NOT NULL      -- of the last commit, for the witness
) STRICT;

CREATE TABLE enrolment (
  id           INTEGER PRIMARY KEY CHECK (id > 0),  -- no two enrolments of a file ever have the same
  url          TEXT NOT NULL,     -- of the collector
  terms        TEXT NOT NULL,     -- canonical JSON; their hash is the pin
  level        TEXT NOT NULL,     -- of privacy; '' is the stream's own
  successor    TEXT,              -- terms that were accepted, for timestamps from their start on
  renamed      TEXT NOT NULL,     -- JSON: what labels of earlier terms are called now
  secret       BLOB NOT NULL CHECK (length(secret) = 32),  -- of coins and of the number
  rejoins      INTEGER NOT NULL,  -- that of the device when it enrolled: the number depends on it
  number       BLOB NOT NULL CHECK (length(number) = 16),  -- the collector knows the device by this
  key          BLOB NOT NULL CHECK (length(key) = 32),  -- signs reports
  slot_key     BLOB NOT NULL CHECK (length(slot_key) = 32),  -- of slots and moments; it outlives a renewed key
  policy       TEXT NOT NULL,     -- JSON: which successors the application agrees to
  reserve_nano INTEGER NOT NULL CHECK (reserve_nano >= 0),  -- of the limit, kept free for this stream ...
  reserved_ms  INTEGER NOT NULL,  -- ... since this own time
  at_ms        INTEGER NOT NULL,  -- by the wall clock
  other_keys   BLOB CHECK (length(other_keys) = 64)  -- key and slot_key of before or after a renewal, while it is not known which are good
) STRICT;

-- The terms that enrolments have agreed to, and those that these follow. No other enrolment may have them: it
-- would have a second ledger for the same promise.
CREATE TABLE pins (
  pin        TEXT NOT NULL,
  first_id   INTEGER NOT NULL,
  last_id    INTEGER NOT NULL,
  PRIMARY KEY (pin, first_id, last_id)
) STRICT;

-- Promises other than those of an enrolment's terms. With first_id and last_id 0: the limit over all streams,
-- in force if until_ms is NULL. Others bind until their span has passed: after their end, or after the last
-- report under a successor.
CREATE TABLE promises (
  epsilon_nano INTEGER NOT NULL,
  span_ms      INTEGER NOT NULL,
  since_ms     INTEGER NOT NULL,  -- own time
  until_ms     INTEGER,           -- own time
  first_id     INTEGER NOT NULL,
  last_id      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_limit ON promises (first_id) WHERE until_ms IS NULL;

-- A debit is the row of its report: neither can be on disk without the other. The reports of a stream
-- that was left, or of terms that have a successor, are deleted, and their debits stay.
CREATE TABLE ledger (
  t          INTEGER NOT NULL,  -- as asked; 0 where the past is unknown and counts as spent
  round      TEXT NOT NULL,     -- '' where the past is unknown
  nano       INTEGER NOT NULL CHECK (nano > 0),
  report     BLOB,              -- what was sent, and will be sent again if asked again
  own_ms     INTEGER NOT NULL,  -- own time after the value was read: budgets are kept by it
  at_ms      INTEGER NOT NULL,  -- the same by the wall clock, for people
  first_id   INTEGER NOT NULL,
  last_id    INTEGER NOT NULL,
  CHECK (round <> '' OR report IS NULL)
) STRICT;
CREATE UNIQUE INDEX one_report_a_round ON ledger (first_id, t, round) WHERE report IS NOT NULL OR round = '';

-- The newest own time whose debits are not known, or not any more: a longer promise may still depend on them.
CREATE TABLE forgotten (
  own_ms     INTEGER NOT NULL,
  first_id   INTEGER NOT NULL,
  last_id    INTEGER NOT NULL,
  PRIMARY KEY (first_id, last_id)
) STRICT;

-- What was refused, by stream (0: none) and reason; for people to read.
CREATE TABLE refusals (
  enrolment  INTEGER NOT NULL,
  code       TEXT NOT NULL,
  times      INTEGER NOT NULL,
  last_ms    INTEGER NOT NULL,
  detail     TEXT NOT NULL,     -- of the last refusal
  PRIMARY KEY (enrolment, code)
) STRICT;

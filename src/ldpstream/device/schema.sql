-- The whole persistent state of one device. One file, mode 0600: it holds two secrets.

CREATE TABLE device (
  one          INTEGER PRIMARY KEY CHECK (one = 1),  -- one device per file
  secret       BLOB NOT NULL CHECK (length(secret) = 32),  -- of coins, moments and numbers; never leaves the device
  rejoins      INTEGER NOT NULL,  -- how often the device has left a stream
  past_known   INTEGER NOT NULL CHECK (past_known IN (0, 1)),  -- 1 if the debits are all there are: an installer said so, or the device has left a stream
  own_ms       INTEGER NOT NULL,  -- own time at the last commit ...
  wall_ms      INTEGER NOT NULL,  -- ... and what the clocks said then
  steady_ms    INTEGER NOT NULL,
  boot         TEXT,              -- NULL where the platform names none
  forgotten_ms INTEGER,           -- the newest own time whose debits are not in the ledger any more
  stamp        TEXT NOT NULL      -- of the last commit, for the witness
) STRICT;

CREATE TABLE enrolment (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  url        TEXT NOT NULL,     -- of the collector
  terms      TEXT NOT NULL,     -- canonical JSON; their hash is the pin
  number     BLOB NOT NULL CHECK (length(number) = 16),  -- the collector knows the device by this
  key        BLOB NOT NULL CHECK (length(key) = 32),  -- signs reports
  at_ms      INTEGER NOT NULL   -- by the wall clock
) STRICT;

-- Promises that ended when the device left a stream. They bind until their span has passed.
CREATE TABLE ended (
  epsilon_nano INTEGER NOT NULL,
  span_ms      INTEGER NOT NULL,
  until_ms     INTEGER NOT NULL   -- own time
) STRICT;

-- A debit is the row of its report: neither can be on disk without the other. The reports of a stream
-- that was left are deleted, and their debits stay.
CREATE TABLE ledger (
  t          INTEGER NOT NULL,  -- as asked; 0 where the past is unknown and counts as spent
  round      TEXT NOT NULL,     -- '' where the past is unknown
  nano       INTEGER NOT NULL CHECK (nano > 0),
  report     BLOB,              -- what was sent, and will be sent again if asked again
  own_ms     INTEGER NOT NULL,  -- own time after the value was read: budgets are kept by it
  at_ms      INTEGER NOT NULL,  -- the same by the wall clock, for people
  CHECK (round <> '' OR report IS NULL)
) STRICT;
CREATE UNIQUE INDEX one_report_a_round ON ledger (t, round) WHERE report IS NOT NULL OR round = '';

-- What was refused, by reason; for people to read.
CREATE TABLE refusals (
  code       TEXT PRIMARY KEY,
  times      INTEGER NOT NULL,
  last_ms    INTEGER NOT NULL,
  detail     TEXT NOT NULL      -- of the last refusal
) STRICT;

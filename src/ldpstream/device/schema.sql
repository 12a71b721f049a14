-- The whole persistent state of one device. One file, mode 0600: it holds two secrets.

CREATE TABLE device (
  one          INTEGER PRIMARY KEY CHECK (one = 1),  -- one device per file
  number       BLOB NOT NULL CHECK (length(number) = 16),  -- drawn by the device; the collector knows it by this
  secret       BLOB NOT NULL CHECK (length(secret) = 32),  -- keys the coin tosses; never leaves the device
  first        INTEGER NOT NULL CHECK (first IN (0, 1)),  -- 1 if an installer said that the device has no past
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
  key        BLOB NOT NULL CHECK (length(key) = 32),  -- signs reports
  selection  TEXT NOT NULL,     -- 'open' or 'roster'
  at_ms      INTEGER NOT NULL   -- by the wall clock
) STRICT;

-- A debit is the row of its report: neither can be on disk without the other.
CREATE TABLE ledger (
  t          INTEGER NOT NULL,  -- as asked; 0 where the past is unknown and counts as spent
  round      TEXT NOT NULL,     -- '' where the past is unknown
  nano       INTEGER NOT NULL CHECK (nano > 0),
  report     BLOB,              -- what was sent, and will be sent again if asked again
  own_ms     INTEGER NOT NULL,  -- own time after the value was read: budgets are kept by it
  at_ms      INTEGER NOT NULL,  -- the same by the wall clock, for people
  PRIMARY KEY (t, round),
  CHECK ((round = '') = (report IS NULL))
) STRICT, WITHOUT ROWID;

-- What was refused, by reason; for people to read.
CREATE TABLE refusals (
  code       TEXT PRIMARY KEY,
  times      INTEGER NOT NULL,
  last_ms    INTEGER NOT NULL,
  detail     TEXT NOT NULL      -- of the last refusal
) STRICT;

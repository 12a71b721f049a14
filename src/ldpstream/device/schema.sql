-- The whole memory of one device. One file, mode 0600: it holds two secrets.

CREATE TABLE device (
  one        INTEGER PRIMARY KEY CHECK (one = 1),  -- a file is one device
  number     BLOB NOT NULL CHECK (length(number) = 16),  -- drawn by the device; the collector knows it by this
  secret     BLOB NOT NULL CHECK (length(secret) = 32),  -- under which coins are tossed; never leaves
  commits    INTEGER NOT NULL,  -- counts commits, so that two processes notice each other
  stamp      INTEGER NOT NULL   -- of the last commit, for the witness
) STRICT;

CREATE TABLE enrolment (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  url        TEXT NOT NULL,     -- of the collector
  terms      TEXT NOT NULL,     -- canonical JSON; their hash is the pin
  key        BLOB NOT NULL CHECK (length(key) = 32),  -- signs reports
  selection  TEXT NOT NULL,     -- 'open' or 'roster'
  offset_ms  INTEGER NOT NULL,  -- correction of the own clock, fixed for good
  at_ms      INTEGER NOT NULL   -- by the own clock
) STRICT;

-- A debit is the row of its report: neither can be on disk without the other.
CREATE TABLE ledger (
  t          INTEGER NOT NULL,
  round      TEXT NOT NULL,     -- '' where the past is unknown and counts as spent
  nano       INTEGER NOT NULL CHECK (nano > 0),
  report     BLOB,              -- what was sent, and will be sent again if asked again
  at_ms      INTEGER NOT NULL,
  PRIMARY KEY (t, round),
  CHECK ((round = '') = (report IS NULL))
) STRICT, WITHOUT ROWID;

-- For people: what was refused, by reason.
CREATE TABLE refusals (
  code       TEXT PRIMARY KEY,
  times      INTEGER NOT NULL,
  last_ms    INTEGER NOT NULL,
  detail     TEXT NOT NULL      -- of the last one
) STRICT;

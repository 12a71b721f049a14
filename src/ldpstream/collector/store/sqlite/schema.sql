-- Version 1. Invariants are CHECKs and triggers, so that a bug stops here and not in a release.

CREATE TABLE stream (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    terms     TEXT NOT NULL CHECK (json_valid(terms)), -- public and pinned by devices: never changes
    serial    INTEGER NOT NULL DEFAULT 0 CHECK (serial >= 0), -- grows when rounds open or close
    last_t    INTEGER NOT NULL DEFAULT 0 CHECK (last_t >= 0), -- the last timestamp released
    mechanism TEXT CHECK (mechanism IS NULL OR json_valid(mechanism)) -- the mechanism's state after last_t; NULL before the first
) STRICT;

CREATE TRIGGER terms_never_change BEFORE UPDATE OF terms ON stream
WHEN new.terms <> old.terms
BEGIN SELECT raise(ABORT, 'the terms of a stream never change'); END;

CREATE TRIGGER time_goes_forward BEFORE UPDATE OF last_t, serial ON stream
WHEN new.last_t < old.last_t OR new.serial < old.serial
BEGIN SELECT raise(ABORT, 'timestamps and serials only grow'); END;

-- The roster: which devices may be asked. Streams with open selection have none.
CREATE TABLE device (
    stream INTEGER NOT NULL REFERENCES stream,
    number INTEGER NOT NULL CHECK (number >= 0),      -- place on the roster, from 0, without gaps
    device BLOB NOT NULL CHECK (length(device) = 16), -- what the device calls itself
    PRIMARY KEY (stream, number),
    UNIQUE (stream, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE round (
    id           INTEGER PRIMARY KEY,       -- in the order in which rounds were opened
    stream       INTEGER NOT NULL REFERENCES stream,
    t            INTEGER NOT NULL CHECK (t >= 1),
    name         TEXT NOT NULL,             -- as devices know it: t and purpose
    purpose      TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed', 'tallied')),
    epsilon_nano INTEGER NOT NULL CHECK (epsilon_nano >= 1), -- what one report costs a device
    users        INTEGER NOT NULL CHECK (users >= 0),        -- how many the mechanism asked for
    rate_share   INTEGER NOT NULL CHECK (rate_share >= 0),
    rate_whole   INTEGER NOT NULL CHECK (rate_whole >= 1 AND rate_share <= rate_whole),
    report_bytes INTEGER NOT NULL CHECK (report_bytes >= 1), -- length of a report of this round
    opened_ms    INTEGER NOT NULL,
    deadline_ms  INTEGER NOT NULL,
    closed_ms    INTEGER CHECK ((closed_ms IS NULL) = (state = 'open')),
    roster_size  INTEGER NOT NULL CHECK (roster_size >= 0),  -- devices enrolled when it was opened
    asked        BLOB,    -- numbers of those asked, 4 bytes each; NULL: all of roster_size, or forgotten
    counts       BLOB CHECK ((counts IS NULL) = (state <> 'tallied')), -- support of each label, 8 bytes each
    reports      INTEGER CHECK ((reports IS NULL) = (state <> 'tallied')), -- how many were counted
    UNIQUE (stream, name)
) STRICT;

CREATE INDEX round_by_time ON round (stream, t);

CREATE TRIGGER rounds_go_forward BEFORE UPDATE OF state ON round
WHEN (old.state = 'closed' AND new.state = 'open') OR (old.state = 'tallied' AND new.state <> 'tallied')
BEGIN SELECT raise(ABORT, 'a round goes from open to closed to tallied'); END;

CREATE TRIGGER a_tally_is_final BEFORE UPDATE OF counts, reports ON round
WHEN old.state = 'tallied'
BEGIN SELECT raise(ABORT, 'a tally never changes'); END;

-- Accepted reports of rounds that are not tallied yet, many to a row: appending is all the disk has to do.
-- That a device counts once is seen to in memory, by a table that is read back from here after a crash.
CREATE TABLE report_batch (
    id      INTEGER PRIMARY KEY,
    round   INTEGER NOT NULL REFERENCES round,
    number  INTEGER NOT NULL CHECK (number >= 1), -- of records in this row
    records BLOB NOT NULL CHECK (length(records) % number = 0) -- device, code, report, as on the wire
) STRICT;

CREATE INDEX report_batch_by_round ON report_batch (round);

CREATE TRIGGER only_open_rounds_take_reports BEFORE INSERT ON report_batch
WHEN (SELECT state FROM round WHERE id = new.round) IS NOT 'open'
BEGIN SELECT raise(ABORT, 'the round is not open'); END;

CREATE TABLE release (
    stream   INTEGER NOT NULL REFERENCES stream,
    t        INTEGER NOT NULL CHECK (t >= 1),
    at_ms    INTEGER NOT NULL,
    content  TEXT NOT NULL CHECK (json_valid(content)), -- values, variance, fresh: what the mechanism gave
    asked    INTEGER NOT NULL CHECK (asked >= 0),       -- users, over all rounds of t
    received INTEGER NOT NULL CHECK (received >= 0),    -- reports, over all rounds of t
    missed   INTEGER NOT NULL CHECK (missed IN (0, 1)), -- 1: the collector was away, nobody was asked
    PRIMARY KEY (stream, t)
) STRICT;

CREATE TRIGGER a_release_never_changes BEFORE UPDATE ON release
BEGIN SELECT raise(ABORT, 'a release never changes'); END;

CREATE TRIGGER a_release_stays BEFORE DELETE ON release
BEGIN SELECT raise(ABORT, 'a release stays'); END;

CREATE TRIGGER releases_in_order BEFORE INSERT ON release
WHEN new.t <= (SELECT last_t FROM stream WHERE id = new.stream)
BEGIN SELECT raise(ABORT, 'that timestamp is released'); END;

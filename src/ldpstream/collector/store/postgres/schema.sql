-- Version 1. Invariants are CHECKs and triggers, so that a bug stops here and not in a release.

CREATE TABLE stream (
    id        integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name      text NOT NULL UNIQUE,
    terms     json NOT NULL,                                -- public and pinned by devices: never changes
    serial    bigint NOT NULL DEFAULT 0 CHECK (serial >= 0), -- grows when rounds open or close
    last_t    bigint NOT NULL DEFAULT 0 CHECK (last_t >= 0), -- the last timestamp released
    mechanism json                                           -- the mechanism's state after last_t; NULL before the first
);

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;

CREATE TRIGGER terms_never_change BEFORE UPDATE OF terms ON stream
FOR EACH ROW WHEN (new.terms::text <> old.terms::text)
EXECUTE FUNCTION refuse('the terms of a stream never change');

CREATE TRIGGER time_goes_forward BEFORE UPDATE OF last_t, serial ON stream
FOR EACH ROW WHEN (new.last_t < old.last_t OR new.serial < old.serial)
EXECUTE FUNCTION refuse('timestamps and serials only grow');

-- Which collector leads a stream. The token is a fencing token, given out once: the writes of a collector with an
-- older one are refused, even if it still believes in its lease. Times are by this server's clock.
CREATE TABLE lease (
    stream  integer PRIMARY KEY REFERENCES stream,
    holder  text NOT NULL,
    token   bigint NOT NULL CHECK (token >= 1),
    expires timestamptz NOT NULL
);

CREATE TRIGGER a_new_holder_has_a_new_token BEFORE UPDATE ON lease
FOR EACH ROW WHEN (new.token < old.token OR (new.holder <> old.holder AND new.token = old.token))
EXECUTE FUNCTION refuse('a token is given out once');

-- The roster: which devices may be asked. Streams with open selection have none.
CREATE TABLE device (
    stream integer NOT NULL REFERENCES stream,
    number integer NOT NULL CHECK (number >= 0), -- place on the roster, from 0, without gaps
    device uuid NOT NULL,                        -- what the device calls itself: 16 bytes, not an RFC 9562 UUID
    PRIMARY KEY (stream, number),
    UNIQUE (stream, device)
);

CREATE TABLE round (
    id           bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, -- in the order in which rounds were opened
    stream       integer NOT NULL REFERENCES stream,
    t            bigint NOT NULL CHECK (t >= 1),
    name         text NOT NULL,             -- as devices know it: t and purpose
    purpose      text NOT NULL,
    state        text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed', 'tallied')),
    epsilon_nano bigint NOT NULL CHECK (epsilon_nano >= 1), -- what one report costs a device
    users        bigint NOT NULL CHECK (users >= 0),        -- how many the mechanism asked for
    rate_share   bigint NOT NULL CHECK (rate_share >= 0),
    rate_whole   bigint NOT NULL CHECK (rate_whole >= 1 AND rate_share <= rate_whole),
    report_bytes integer NOT NULL CHECK (report_bytes >= 1), -- length of a report of this round
    opened_ms    bigint NOT NULL,
    deadline_ms  bigint NOT NULL,
    closed_ms    bigint CHECK ((closed_ms IS NULL) = (state = 'open')),
    roster_size  bigint NOT NULL CHECK (roster_size >= 0),  -- devices enrolled when it was opened
    asked        bytea,   -- numbers of those asked, 4 bytes each; NULL: all of roster_size, or forgotten
    counts       bytea CHECK ((counts IS NULL) = (state <> 'tallied')), -- support of each label, 8 bytes each
    reports      bigint CHECK ((reports IS NULL) = (state <> 'tallied')), -- how many were counted
    UNIQUE (stream, name)
);

CREATE INDEX round_by_time ON round (stream, t);

CREATE TRIGGER rounds_go_forward BEFORE UPDATE OF state ON round
FOR EACH ROW WHEN ((old.state = 'closed' AND new.state = 'open') OR (old.state = 'tallied' AND new.state <> 'tallied'))
EXECUTE FUNCTION refuse('a round goes from open to closed to tallied');

CREATE TRIGGER a_tally_is_final BEFORE UPDATE OF counts, reports ON round
FOR EACH ROW WHEN (old.state = 'tallied')
EXECUTE FUNCTION refuse('a tally never changes');

-- Accepted reports of a round that is not tallied yet stand in a table of its own, report_<round>, like this one,
-- which stays empty. Its key is what lets a device count once, whichever collectors its reports come to. A table of
-- its own can be dropped: the reports are off the disk at once, where deleted rows would wait for a vacuum.
CREATE TABLE report (
    device uuid PRIMARY KEY,
    code   uuid NOT NULL, -- the report's authentication code: 16 bytes
    report bytea NOT NULL
);

ALTER TABLE report ADD CONSTRAINT only_a_pattern CHECK (false) NO INHERIT;

-- How many reports each transaction has inserted: counting those of a round is adding up a few numbers.
CREATE TABLE taken (
    round  bigint NOT NULL REFERENCES round,
    number bigint NOT NULL CHECK (number >= 1)
);

CREATE INDEX taken_by_round ON taken (round);

CREATE FUNCTION begin_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- It lives for minutes and only grows. A vacuum would hold up the end of the round.
    EXECUTE format('CREATE TABLE report_%s (LIKE report INCLUDING INDEXES INCLUDING STORAGE)'
                   ' WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)', new.id);
    RETURN NULL;
END $$;

-- Waits for the transactions that are inserting reports; afterwards the table refuses every row.
CREATE FUNCTION end_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE report_%s ADD CONSTRAINT round_is_closed CHECK (false) NOT VALID', new.id);
    RETURN NULL;
END $$;

CREATE FUNCTION forget_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE report_%s', new.id);
    DELETE FROM taken WHERE round = new.id;
    RETURN NULL;
END $$;

CREATE TRIGGER an_open_round_takes_reports AFTER INSERT ON round
FOR EACH ROW EXECUTE FUNCTION begin_reports();

CREATE TRIGGER a_closed_round_takes_none AFTER UPDATE OF state ON round
FOR EACH ROW WHEN (old.state = 'open' AND new.state <> 'open')
EXECUTE FUNCTION end_reports();

CREATE TRIGGER a_tallied_round_has_none AFTER UPDATE OF state ON round
FOR EACH ROW WHEN (old.state <> 'tallied' AND new.state = 'tallied')
EXECUTE FUNCTION forget_reports();

CREATE TABLE release (
    stream   integer NOT NULL REFERENCES stream,
    t        bigint NOT NULL CHECK (t >= 1),
    at_ms    bigint NOT NULL,
    content  json NOT NULL,                             -- values, variance, fresh: what the mechanism gave
    asked    bigint NOT NULL CHECK (asked >= 0),        -- users, over all rounds of t
    received bigint NOT NULL CHECK (received >= 0),     -- reports, over all rounds of t
    missed   boolean NOT NULL,                          -- the collector was away, nobody was asked
    PRIMARY KEY (stream, t)
);

CREATE TRIGGER a_release_never_changes BEFORE UPDATE ON release
FOR EACH ROW EXECUTE FUNCTION refuse('a release never changes');

CREATE TRIGGER a_release_stays BEFORE DELETE ON release
FOR EACH ROW EXECUTE FUNCTION refuse('a release stays');

CREATE FUNCTION check_release() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.t <= (SELECT last_t FROM stream WHERE id = new.stream) THEN
        RAISE EXCEPTION 'that timestamp is released' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER releases_in_order BEFORE INSERT ON release
FOR EACH ROW EXECUTE FUNCTION check_release();

-- What parts of the collector keep for themselves, such as the states of alerts.
CREATE TABLE note (
    stream  integer NOT NULL REFERENCES stream,
    name    text NOT NULL,  -- of the part that keeps it
    content json NOT NULL,  -- replaced as a whole
    PRIMARY KEY (stream, name)
);

-- What is true of the whole store, such as which master secret its devices' keys come from.
CREATE TABLE property (
    name  text PRIMARY KEY,
    value text NOT NULL
);

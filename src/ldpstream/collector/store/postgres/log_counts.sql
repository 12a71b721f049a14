-- Version 2. What has been counted of report logs. Written by an engine, read by the coordinator.

CREATE TABLE log_progress (
    stream  text PRIMARY KEY,
    counted bigint NOT NULL CHECK (counted >= 0) -- messages up to this sequence are in the tallies
);

-- The support of a round, as far as it is counted. It is final once the round's end is counted.
CREATE TABLE log_tally (
    stream      text NOT NULL,
    round       text NOT NULL,
    counts      bytea NOT NULL,           -- support of each label, 8 bytes each, little-endian
    reports     bigint NOT NULL,          -- devices that were counted
    repeated    bigint NOT NULL,          -- the same report of a device again: not counted
    conflicting bigint NOT NULL,          -- another report of a device: not counted
    late        bigint NOT NULL,          -- behind the round's end: not counted
    ended       bigint,                   -- sequence of the round's end
    PRIMARY KEY (stream, round)
);

-- Who has been counted in a round that has not ended: runs of devices, many to a row.
CREATE TABLE log_run (
    stream  text NOT NULL,
    round   text NOT NULL,
    shard   smallint NOT NULL,
    attempt uuid NOT NULL,                -- at the batch; it holds only if log_batch has it
    devices bytea STORAGE EXTERNAL NOT NULL, -- device and fingerprint, 24 bytes each
    PRIMARY KEY (stream, round, shard, attempt)
);

-- Attempts that were committed: those whose runs hold.
CREATE TABLE log_batch (
    attempt uuid PRIMARY KEY,
    stream  text NOT NULL,
    first   bigint NOT NULL,              -- behind this sequence
    last    bigint NOT NULL CHECK (last > first)
);

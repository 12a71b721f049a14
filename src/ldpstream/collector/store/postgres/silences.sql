-- Version 8, silences. Alert rules that send nothing for a time (store/admin_tables.py).

CREATE TABLE silence (
    stream   text NOT NULL REFERENCES stream (name),
    rule     text NOT NULL CHECK (length(rule) = 16), -- its fingerprint; the rule may be gone
    until_ms bigint NOT NULL,
    PRIMARY KEY (stream, rule)
);

-- Version 8, silences. Alert rules that send nothing for a time (store/admin_tables.py).

CREATE TABLE silence (
    stream   TEXT NOT NULL REFERENCES stream (name),
    rule     TEXT NOT NULL CHECK (length(rule) = 16), -- its fingerprint; the rule may be gone
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (stream, rule)
) STRICT, WITHOUT ROWID;

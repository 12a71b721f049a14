-- Version 7, keys. Enrolment tokens, the deny list, and the log of what administrators did (store/admin_tables.py).

CREATE TABLE enrolment_token (
    name       TEXT PRIMARY KEY,                                  -- as the log calls it: never given twice
    digest     BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),  -- SHA-256 of the token, which is shown once
    stream     TEXT REFERENCES stream (name),                     -- NULL: it is good for every stream
    made_ms    INTEGER NOT NULL,
    expires_ms INTEGER,                                           -- NULL: never
    most_uses  INTEGER CHECK (most_uses >= 1),                    -- NULL: any number
    uses       INTEGER NOT NULL DEFAULT 0 CHECK (uses >= 0 AND (most_uses IS NULL OR uses <= most_uses)),
    revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TRIGGER a_token_stays BEFORE DELETE ON enrolment_token
BEGIN SELECT raise(ABORT, 'a token stays'); END;

CREATE TRIGGER a_revoked_token_stays_revoked BEFORE UPDATE ON enrolment_token
WHEN old.revoked_ms IS NOT NULL OR new.uses < old.uses
BEGIN SELECT raise(ABORT, 'a token that is revoked stays so, and its uses only grow'); END;

-- Who has used a token: a device that enrols again does not use it twice. The row is a hash, and names no device.
CREATE TABLE token_use (
    token  TEXT NOT NULL REFERENCES enrolment_token,
    device BLOB NOT NULL CHECK (length(device) = 32), -- of stream and device number
    PRIMARY KEY (token, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE denied (
    stream    TEXT NOT NULL REFERENCES stream (name),
    device    BLOB NOT NULL CHECK (length(device) = 16),
    denied_ms INTEGER NOT NULL,
    PRIMARY KEY (stream, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE admin_log (
    id      INTEGER PRIMARY KEY,  -- from 1, in order
    at_ms   INTEGER NOT NULL,
    who     TEXT NOT NULL,
    action  TEXT NOT NULL,
    details TEXT NOT NULL CHECK (json_valid(details)),    -- what it was done to; never a secret
    link    BLOB NOT NULL CHECK (length(link) = 32)       -- authenticates the entry, and all before it
) STRICT;

-- Links are made anew when an operator accepts damage; nothing else of an entry ever changes.
CREATE TRIGGER the_log_never_changes BEFORE UPDATE OF id, at_ms, who, action, details ON admin_log
BEGIN SELECT raise(ABORT, 'the admin log never changes'); END;

CREATE TRIGGER the_log_stays BEFORE DELETE ON admin_log
BEGIN SELECT raise(ABORT, 'the admin log stays'); END;

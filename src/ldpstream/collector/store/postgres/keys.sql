-- Version 7, keys. Enrolment tokens, the deny list, and the log of what administrators did (store/admin_tables.py).

CREATE TABLE enrolment_token (
    name       text PRIMARY KEY,                                        -- as the log calls it: never given twice
    digest     bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32), -- SHA-256 of the token, which is shown once
    stream     text REFERENCES stream (name),                           -- NULL: it is good for every stream
    made_ms    bigint NOT NULL,
    expires_ms bigint,                                                  -- NULL: never
    most_uses  bigint CHECK (most_uses >= 1),                           -- NULL: any number
    uses       bigint NOT NULL DEFAULT 0 CHECK (uses >= 0 AND (most_uses IS NULL OR uses <= most_uses)),
    revoked_ms bigint
);

CREATE TRIGGER a_token_stays BEFORE DELETE ON enrolment_token
FOR EACH ROW EXECUTE FUNCTION refuse('a token stays');

CREATE TRIGGER a_revoked_token_stays_revoked BEFORE UPDATE ON enrolment_token
FOR EACH ROW WHEN (old.revoked_ms IS NOT NULL OR new.uses < old.uses)
EXECUTE FUNCTION refuse('a token that is revoked stays so, and its uses only grow');

-- Who has used a token: a device that enrols again does not use it twice. The row is a hash, and names no device.
CREATE TABLE token_use (
    token  text NOT NULL REFERENCES enrolment_token,
    device bytea NOT NULL CHECK (octet_length(device) = 32), -- of stream and device number
    PRIMARY KEY (token, device)
);

CREATE TABLE denied (
    stream    text NOT NULL REFERENCES stream (name),
    device    bytea NOT NULL CHECK (octet_length(device) = 16),
    denied_ms bigint NOT NULL,
    PRIMARY KEY (stream, device)
);

CREATE TABLE admin_log (
    id      bigint PRIMARY KEY,   -- from 1, in order
    at_ms   bigint NOT NULL,
    who     text NOT NULL,
    action  text NOT NULL,
    details text NOT NULL,        -- JSON: what it was done to; never a secret
    link    bytea NOT NULL CHECK (octet_length(link) = 32) -- authenticates the entry, and all before it
);

-- Links are made anew when an operator accepts damage; nothing else of an entry ever changes.
CREATE TRIGGER the_log_never_changes BEFORE UPDATE OF id, at_ms, who, action, details ON admin_log
FOR EACH ROW EXECUTE FUNCTION refuse('the admin log never changes');

CREATE TRIGGER the_log_stays BEFORE DELETE ON admin_log
FOR EACH ROW EXECUTE FUNCTION refuse('the admin log stays');

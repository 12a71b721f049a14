-- Version 6. Terms may be followed by others; each version stays as it is.

CREATE TABLE successor (
    stream  INTEGER NOT NULL REFERENCES stream,
    version INTEGER NOT NULL CHECK (version >= 2), -- the first is in the stream's row
    terms   TEXT NOT NULL CHECK (json_valid(terms)), -- public and pinned by devices: never changes
    PRIMARY KEY (stream, version)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER versions_follow_each_other BEFORE INSERT ON successor
WHEN new.version <> (SELECT coalesce(max(version), 1) + 1 FROM successor WHERE stream = new.stream)
BEGIN SELECT raise(ABORT, 'versions of terms follow each other'); END;

CREATE TRIGGER terms_of_a_version_never_change BEFORE UPDATE ON successor
BEGIN SELECT raise(ABORT, 'the terms of a stream never change'); END;

CREATE TRIGGER terms_stay BEFORE DELETE ON successor
BEGIN SELECT raise(ABORT, 'the terms of a stream stay'); END;

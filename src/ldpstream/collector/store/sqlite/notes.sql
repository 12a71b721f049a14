-- Version 2. What parts of the collector keep for themselves, such as the states of alerts.

CREATE TABLE note (
    stream  INTEGER NOT NULL REFERENCES stream,
    name    TEXT NOT NULL,                              -- of the part that keeps it
    content TEXT NOT NULL CHECK (json_valid(content)),  -- replaced as a whole
    PRIMARY KEY (stream, name)
) STRICT, WITHOUT ROWID;

-- Version 9, summaries. Of releases that were pruned, summaries of hours and days stay for a while (releases/retention.py).

ALTER TABLE stream ADD COLUMN summaries BLOB NOT NULL DEFAULT x''; -- authenticates the list of summaries; x'': there is none

CREATE TABLE summary (
    stream    INTEGER NOT NULL REFERENCES stream,
    first_t   INTEGER NOT NULL CHECK (first_t >= 1),
    last_t    INTEGER NOT NULL CHECK (last_t >= first_t),
    start_ms  INTEGER NOT NULL,                             -- of the hour or day
    period_ms INTEGER NOT NULL CHECK (period_ms >= 1),      -- its length
    content   TEXT NOT NULL CHECK (json_valid(content)),    -- means, extremes and numbers of what was released
    link      BLOB NOT NULL CHECK (length(link) = 32),      -- authenticates this row
    PRIMARY KEY (stream, first_t)
) STRICT, WITHOUT ROWID;

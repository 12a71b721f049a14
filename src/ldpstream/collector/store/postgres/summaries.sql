-- Version 9, summaries. Of releases that were pruned, summaries of hours and days stay for a while (releases/retention.py).

ALTER TABLE stream ADD COLUMN summaries bytea NOT NULL DEFAULT ''; -- authenticates the list of summaries; '': there is none

CREATE TABLE summary (
    stream    integer NOT NULL REFERENCES stream,
    first_t   bigint NOT NULL CHECK (first_t >= 1),
    last_t    bigint NOT NULL CHECK (last_t >= first_t),
    start_ms  bigint NOT NULL,                             -- of the hour or day
    period_ms bigint NOT NULL CHECK (period_ms >= 1),      -- its length
    content   json NOT NULL,                               -- means, extremes and numbers of what was released
    link      bytea NOT NULL CHECK (octet_length(link) = 32), -- authenticates this row
    PRIMARY KEY (stream, first_t)
);

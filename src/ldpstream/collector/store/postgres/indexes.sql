-- Version 3. What is done with each release, or each batch of a log, does not grow with the age of a stream.

-- A release forgets who was asked: only rounds of which that is still known are looked at.
CREATE INDEX round_by_asked ON round (stream, t) WHERE asked IS NOT NULL;

-- An engine looks up where the latest rounds end.
CREATE INDEX log_tally_by_end ON log_tally (stream, ended);

-- Version 3. Each release forgets who was asked; it looks only at rounds of which that is still known.

CREATE INDEX round_by_asked ON round (stream, t) WHERE asked IS NOT NULL;

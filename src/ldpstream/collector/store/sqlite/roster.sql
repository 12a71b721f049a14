-- Version 5. A device may leave: its row stays as a tombstone, so that its number is never given to another. One that
-- does not answer is asked ever more rarely.

ALTER TABLE device ADD COLUMN has_left INTEGER NOT NULL DEFAULT 0 CHECK (has_left IN (0, 1));
ALTER TABLE device ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0 CHECK (unanswered >= 0); -- asks, in a row
ALTER TABLE device ADD COLUMN rests_until INTEGER NOT NULL DEFAULT 0; -- the first timestamp at which it may be asked

CREATE INDEX device_by_leaving ON device (stream, number) WHERE has_left = 1;
CREATE INDEX device_by_silence ON device (stream, number) WHERE unanswered > 0;

CREATE TRIGGER who_left_stays_away BEFORE UPDATE OF has_left ON device
WHEN old.has_left = 1 AND new.has_left = 0
BEGIN SELECT raise(ABORT, 'who has left stays away'); END;

CREATE TRIGGER a_number_is_never_reused BEFORE DELETE ON device
BEGIN SELECT raise(ABORT, 'a row of the roster stays'); END;

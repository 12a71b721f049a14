-- Version 5. A device may leave: its row stays as a tombstone, so that its number is never given to another. One that
-- does not answer is asked ever more rarely.

ALTER TABLE device ADD COLUMN has_left boolean NOT NULL DEFAULT false;
ALTER TABLE device ADD COLUMN unanswered integer NOT NULL DEFAULT 0 CHECK (unanswered >= 0); -- asks, in a row
ALTER TABLE device ADD COLUMN rests_until bigint NOT NULL DEFAULT 0; -- the first timestamp at which it may be asked

CREATE INDEX device_by_leaving ON device (stream, number) WHERE has_left;
CREATE INDEX device_by_silence ON device (stream, number) WHERE unanswered > 0;

CREATE TRIGGER who_left_stays_away BEFORE UPDATE OF has_left ON device
FOR EACH ROW WHEN (old.has_left AND NOT new.has_left)
EXECUTE FUNCTION refuse('who has left stays away');

CREATE TRIGGER a_number_is_never_reused BEFORE DELETE ON device
FOR EACH ROW EXECUTE FUNCTION refuse('a row of the roster stays');

-- Version 4. Releases are chained (store/chain.py); the chain's key is a property of the store, sealed.

ALTER TABLE stream ADD COLUMN checkpoint_t bigint NOT NULL DEFAULT 0 CHECK (checkpoint_t >= 0); -- pruned up to here
ALTER TABLE stream ADD COLUMN checkpoint bytea NOT NULL DEFAULT ''; -- the link that the first release continues
ALTER TABLE stream ADD COLUMN head bytea NOT NULL DEFAULT '';       -- the link of the last release
ALTER TABLE stream ADD COLUMN seal bytea NOT NULL DEFAULT '';       -- authenticates terms, state and the three above
ALTER TABLE release ADD COLUMN link bytea NOT NULL DEFAULT '';      -- authenticates the release, and all before it
-- A collector of an earlier version that still runs must not add releases without a link.
ALTER TABLE release ALTER COLUMN link DROP DEFAULT;

-- Links are made anew when an operator accepts damage; nothing else of a release ever changes.
DROP TRIGGER a_release_never_changes ON release;
CREATE TRIGGER a_release_never_changes BEFORE UPDATE OF stream, t, at_ms, content, asked, received, missed ON release
FOR EACH ROW EXECUTE FUNCTION refuse('a release never changes');

CREATE FUNCTION check_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF old.t > (SELECT checkpoint_t FROM stream WHERE id = old.stream) THEN
        RAISE EXCEPTION 'a release stays' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN old;
END $$;

DROP TRIGGER a_release_stays ON release;
CREATE TRIGGER a_release_stays BEFORE DELETE ON release
FOR EACH ROW EXECUTE FUNCTION check_removal();

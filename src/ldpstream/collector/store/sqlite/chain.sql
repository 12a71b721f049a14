-- Version 4. Releases are chained (store/chain.py), and the store knows its master secret.

-- What is true of the whole store: which master secret its devices' keys come from, and the chain's key, sealed.
CREATE TABLE property (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE stream ADD COLUMN checkpoint_t INTEGER NOT NULL DEFAULT 0 CHECK (checkpoint_t >= 0); -- pruned up to here
ALTER TABLE stream ADD COLUMN checkpoint BLOB NOT NULL DEFAULT x''; -- the link that the first release continues
ALTER TABLE stream ADD COLUMN head BLOB NOT NULL DEFAULT x'';       -- the link of the last release
ALTER TABLE stream ADD COLUMN seal BLOB NOT NULL DEFAULT x'';       -- authenticates terms, state and the three above
ALTER TABLE release ADD COLUMN link BLOB NOT NULL DEFAULT x'';      -- authenticates the release, and all before it

-- Links are made anew when an operator accepts damage; nothing else of a release ever changes.
DROP TRIGGER a_release_never_changes;
CREATE TRIGGER a_release_never_changes BEFORE UPDATE OF stream, t, at_ms, content, asked, received, missed ON release
BEGIN SELECT raise(ABORT, 'a release never changes'); END;

DROP TRIGGER a_release_stays;
CREATE TRIGGER a_release_stays BEFORE DELETE ON release
WHEN old.t > (SELECT checkpoint_t FROM stream WHERE id = old.stream)
BEGIN SELECT raise(ABORT, 'a release stays'); END;

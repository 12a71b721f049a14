-- Version 6. Terms may be followed by others; each version stays as it is.

CREATE TABLE successor (
    stream  integer NOT NULL REFERENCES stream,
    version integer NOT NULL CHECK (version >= 2), -- the first is in the stream's row
    terms   json NOT NULL,                         -- public and pinned by devices: never changes
    PRIMARY KEY (stream, version)
);

CREATE FUNCTION check_successor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.version <> (SELECT coalesce(max(version), 1) + 1 FROM successor WHERE stream = new.stream) THEN
        RAISE EXCEPTION 'versions of terms follow each other' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER versions_follow_each_other BEFORE INSERT ON successor
FOR EACH ROW EXECUTE FUNCTION check_successor();

CREATE TRIGGER terms_of_a_version_never_change BEFORE UPDATE ON successor
FOR EACH ROW EXECUTE FUNCTION refuse('the terms of a stream never change');

CREATE TRIGGER terms_stay BEFORE DELETE ON successor
FOR EACH ROW EXECUTE FUNCTION refuse('the terms of a stream stay');

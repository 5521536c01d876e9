-- The database of a replicated log and who may do what in it (docs/replication.md). Once, on the primary, as a superuser:
--   psql -X -v ON_ERROR_STOP=1 -f roles.sql postgres
-- Then set the passwords (\password cairnlog_a), and run `cairnlog replicate init` as cairnlog_owner.

-- Groups, whose rights `cairnlog replicate init` sets.
-- Nodes that may lead. They read and write everything of the journal, private rows too.
CREATE ROLE cairnlog_leader NOLOGIN;
CREATE ROLE cairnlog_candidate NOLOGIN;
-- Nodes that only serve readers (`cairnlog serve --read-only`): entries and heads, no private rows.
CREATE ROLE cairnlog_public NOLOGIN;

-- Makes the tables. No node needs it.
CREATE ROLE cairnlog_owner LOGIN CONNECTION LIMIT 4;
CREATE DATABASE cairnlog OWNER cairnlog_owner;
REVOKE ALL ON DATABASE cairnlog FROM PUBLIC;
GRANT CONNECT ON DATABASE cairnlog TO cairnlog_leader, cairnlog_candidate, cairnlog_public;

-- One login for each node, so that PostgreSQL's log says who it was.
CREATE ROLE cairnlog_a LOGIN IN ROLE cairnlog_candidate CONNECTION LIMIT 20;
CREATE ROLE cairnlog_b LOGIN IN ROLE cairnlog_candidate CONNECTION LIMIT 20;
CREATE ROLE cairnlog_reader LOGIN IN ROLE cairnlog_public CONNECTION LIMIT 20;

-- The standbys.
CREATE ROLE replicator LOGIN REPLICATION;

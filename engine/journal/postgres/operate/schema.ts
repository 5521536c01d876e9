/**
 * The journal's tables in PostgreSQL. Records stay for ever and hold nothing private. Private rows are in tables of their
 * own, as they are now, and for some minutes with the record that changed them, so that a node that follows gets each
 * record whole. A row that is deleted leaves nothing behind after that.
 */

export const SCHEMA_SQL = `
CREATE SCHEMA cairnlog;

-- One row: who may append, and behind what. Every append changes it under the condition that it is as its writer knows it.
CREATE TABLE cairnlog.lead (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  epoch bigint NOT NULL,
  holder text,
  url text,
  sequence bigint NOT NULL,
  hash bytea NOT NULL,
  size bigint NOT NULL,
  acked bigint NOT NULL,
  swept bigint NOT NULL DEFAULT 0,
  beat bigint NOT NULL DEFAULT 0,
  mark text,
  wanted text,
  checkpoint text
) WITH (fillfactor = 10);

CREATE TABLE cairnlog.record (
  sequence bigint PRIMARY KEY,
  hash bytea NOT NULL,
  epoch bigint NOT NULL,
  first_index bigint NOT NULL,
  bytes integer NOT NULL,
  body bytea NOT NULL,
  rows text
);
ALTER TABLE cairnlog.record ALTER COLUMN body SET STORAGE EXTERNAL;
-- Statistics would keep short bodies, also of payloads that are withheld.
ALTER TABLE cairnlog.record ALTER COLUMN body SET STATISTICS 0;
CREATE INDEX record_first_index ON cairnlog.record (first_index);

CREATE TABLE cairnlog.private_change (
  sequence bigint PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  rows text NOT NULL
);

CREATE TABLE cairnlog.private_row (
  tbl text NOT NULL,
  key text NOT NULL,
  sequence bigint NOT NULL,
  row text NOT NULL,
  PRIMARY KEY (tbl, key)
);
`;

/** What each role may do. A candidate becomes a leader without anybody's help, so it may do the same. */
const GRANTS: Readonly<Record<string, string>> = {
  cairnlog_leader:
    "SELECT, INSERT, UPDATE, DELETE ON cairnlog.lead, cairnlog.record, cairnlog.private_change, cairnlog.private_row",
  cairnlog_candidate:
    "SELECT, INSERT, UPDATE, DELETE ON cairnlog.lead, cairnlog.record, cairnlog.private_change, cairnlog.private_row",
  cairnlog_public: "SELECT ON cairnlog.lead, cairnlog.record",
};

/** Gives the roles that exist their rights; the others can be made and given theirs later. */
export const GRANTS_SQL = Object.entries(GRANTS)
  .map(
    ([role, rights]) => `
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = '${role}') THEN
    GRANT USAGE ON SCHEMA cairnlog TO ${role};
    GRANT ${rights} TO ${role};
  END IF;
END $$;`,
  )
  .join("\n");

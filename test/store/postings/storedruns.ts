import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import type { StoredRun } from "#cairnlog/engine/store/postings/runs.js";

/** The runs on disk, in the order of their ids. */
export const storedRuns = (tables: PostingTables): StoredRun[] => tables.runIds().map((id) => tables.run(id));

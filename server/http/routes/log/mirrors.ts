/** For mirrors and witnesses: the newest checkpoint, and the trees as static tiles (`docs/tiles.md`). */

import { CairnlogError } from "../../../../engine/base/error.js";
import { CheckpointNote, PartialTileParams, Tile, TileParams } from "../../../../engine/contract/log/log.js";
import type { Log } from "../../../../engine/log/log.js";
import type { Checkpoints } from "../../../../engine/log/tlog/checkpoints.js";
import { TILE_WIDTH } from "../../../../engine/log/tree/tree.js";
import type { TreeVersion } from "../../../../engine/verify/tree/merkle.js";
import { type Route, route } from "../../route/route.js";
import { Answer } from "../../transport/answer.js";

const NOTE_TYPE = "text/plain; charset=utf-8";
const TILE_TYPE = "application/octet-stream";

export function mirrorRoutes(log: Log, checkpoints: Pick<Checkpoints, "newest">): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/log/checkpoint",
      summary: "The newest tree head as a signed note; of logs whose operator key is Ed25519",
      answer: CheckpointNote,
      answerType: NOTE_TYPE,
      refusals: [404],
      limit: "general",
      keep: () => "revalidate",
      handle: async () => new Answer(Buffer.from(await checkpoints.newest()), { contentType: NOTE_TYPE }),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/tile/{version}/{level}/{index}",
      summary: "A full tile: 256 hashes of one level of the tree",
      params: TileParams,
      answer: Tile,
      answerType: TILE_TYPE,
      refusals: [404],
      limit: "general",
      reached: ({ params: { level, index } }) => leavesOf(level, index, TILE_WIDTH) <= log.size,
      keep: () => "forever",
      handle: ({ params: { version, level, index } }) =>
        tileAnswer(log.tile(version as TreeVersion, level, index), level, index),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/tile/{version}/{level}/{index_p}/{width}",
      summary: "A partial tile: the first hashes of a tile, as many as `width` says",
      params: PartialTileParams,
      answer: Tile,
      answerType: TILE_TYPE,
      refusals: [404],
      limit: "general",
      reached: ({ params: { level, index_p, width } }) =>
        leavesOf(level, Number.parseInt(index_p, 10), width) <= log.size,
      keep: () => "forever",
      handle({ params: { version, level, index_p, width } }) {
        const index = Number.parseInt(index_p, 10);
        return tileAnswer(log.tile(version as TreeVersion, level, index, width), level, index);
      },
    }),
  ];
}

/** How many leaves there must be before a tile has so many hashes. */
export const leavesOf = (level: number, index: number, width: number): number =>
  (index * TILE_WIDTH + width) * TILE_WIDTH ** level;

function tileAnswer(hashes: Uint8Array | undefined, level: number, index: number): Answer {
  if (!hashes)
    throw new CairnlogError("not-found", `Tile ${index} of level ${level} has not as many complete hashes yet.`);
  return new Answer(Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length), { contentType: TILE_TYPE });
}

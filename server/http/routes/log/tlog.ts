/**
 * The log as a C2SP transparency log (c2sp.org/tlog-tiles, `docs/tiles.md`): checkpoint, tiles and entry bundles of its
 * RFC 6962 tree. The paths are those of the specification, so they are not below `/api/v1`.
 */
import { CairnlogError } from "../../../../engine/base/error.js";
import { TlogCheckpoint, TlogTile, tileParams, Vkey } from "../../../../engine/contract/log/tlog.js";
import type { Log } from "../../../../engine/log/log.js";
import { entryBundle } from "../../../../engine/log/tlog/checkpoints.js";
import { parseTilePath } from "../../../../engine/verify/tlog/tilepath.js";
import { type Route, route } from "../../route/route.js";
import type { Tlog } from "../../services.js";
import { Answer } from "../../transport/answer.js";
import { leavesOf } from "./mirrors.js";

const TEXT_TYPE = "text/plain; charset=utf-8";
const TILE_TYPE = "application/octet-stream";

/** Parts of a path after the level: a group of three digits for each thousand tiles, and a width. */
const LISTED_PARTS = [1, 2];
const FURTHER_PARTS = [3, 4];

/** `GET /tlog/checkpoint`, `/tlog/vkey` and the tiles whose paths have one or two parts after the level. */
export function tlogRoutes(log: Pick<Log, "rfc6962" | "digests" | "size">, tlog: Tlog): Route[] {
  return [
    route({
      method: "GET",
      path: "/tlog/checkpoint",
      summary: "The newest checkpoint of the RFC 6962 tree, as a signed note",
      answer: TlogCheckpoint,
      answerType: TEXT_TYPE,
      refusals: [404],
      limit: "tlog",
      keep: () => "revalidate",
      handle: async () => text(await tlog.checkpoint()),
    }),
    route({
      method: "GET",
      path: "/tlog/vkey",
      summary: "The key that verifies the checkpoints of /tlog/",
      answer: Vkey,
      answerType: TEXT_TYPE,
      refusals: [404],
      limit: "tlog",
      keep: () => "revalidate",
      handle() {
        if (tlog.vkey === null)
          throw new CairnlogError("not-found", "This mirror does not know the log's verifier key.");
        return text(`${tlog.vkey}\n`);
      },
    }),
    ...LISTED_PARTS.map((count) => tileRoute(log, count)),
  ];
}

/**
 * The other tiles, up to index 999,999,999. They are not in the OpenAPI document, which has no way to say that a parameter
 * has any number of parts; the summary of the others says what their paths are.
 */
export const furtherTileRoutes = (log: Pick<Log, "rfc6962" | "digests" | "size">): Route[] =>
  FURTHER_PARTS.map((count) => tileRoute(log, count));

/** The tiles and bundles whose paths have `count` parts after the level. */
function tileRoute(log: Pick<Log, "rfc6962" | "digests" | "size">, count: number): Route {
  const params = tileParams(count);
  const names = Object.keys(params.properties);
  const partsOf = (values: unknown) => names.map((name) => (values as Readonly<Record<string, string>>)[name]!);
  return route({
    method: "GET",
    path: `/tlog/tile/${names.map((name) => `{${name}}`).join("/")}`,
    summary: "A tile of the RFC 6962 tree, or a bundle of entries; the path is `tile/<L>/<N>[.p/<W>]` of tlog-tiles",
    params,
    answer: TlogTile,
    answerType: TILE_TYPE,
    refusals: [404],
    limit: "tlog",
    reached({ params: values }) {
      const name = parseTilePath(partsOf(values));
      return !name || leavesOf(name.level === "entries" ? 0 : name.level, name.index, name.width) <= log.size;
    },
    keep: () => "forever",
    handle: ({ params: values }) => new Answer(tileBytes(log, partsOf(values)), { contentType: TILE_TYPE }),
  });
}

/** @throws CairnlogError `not-found` for a path that names no tile, and for a tile that has not so many hashes yet */
function tileBytes(log: Pick<Log, "rfc6962" | "digests" | "size">, parts: readonly string[]): Buffer {
  const name = parseTilePath(parts);
  if (!name) throw new CairnlogError("not-found", `No tile has the path tile/${parts.join("/")}.`);
  const { level, index, width } = name;
  if (level === "entries") {
    const bundle = entryBundle(log, index, width);
    if (!bundle) throw new CairnlogError("not-found", `Bundle ${index} has not as many entries yet.`);
    return bundle;
  }
  const hashes = log.rfc6962.tile(level, index, width);
  if (!hashes) throw new CairnlogError("not-found", `Tile ${index} of level ${level} has not as many hashes yet.`);
  return Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length);
}

const text = (body: string): Answer => new Answer(Buffer.from(body), { contentType: TEXT_TYPE });

/**
 * The explorer: one page, its scripts and its styles. They are not part of the API, and not in the OpenAPI document.
 */
import { fileURLToPath } from "node:url";
import Type from "typebox";
import { CairnlogError } from "../../../../engine/error.js";
import { type Route, route } from "../../route.js";
import { readHashedFiles, StaticFile } from "../../transport/static.js";

/** The folder that `npm run build` writes. */
const FOLDER = fileURLToPath(new URL("../../../explorer/", import.meta.url));

/**
 * `GET /` and `GET /explorer/{file}`. Reads the files.
 * @throws CairnlogError `precondition-failed` when it is not built
 */
export function explorerRoutes(): Route[] {
  const { page, files } = readExplorer();
  return [
    route({
      method: "GET",
      path: "/",
      summary: "The explorer",
      answer: Type.String(),
      answerType: "text/html",
      limit: null,
      handle: ({ request }) => page.answer(request),
    }),
    route({
      method: "GET",
      path: "/explorer/{file}",
      summary: "A part of the explorer",
      params: Type.Object({ file: Type.String() }),
      answer: Type.String(),
      refusals: [404],
      limit: null,
      handle({ params, request }) {
        const file = files.get(params.file);
        if (!file) throw new CairnlogError("not-found", "The explorer has no such part; it may have been replaced.");
        return file.answer(request);
      },
    }),
  ];
}

function readExplorer() {
  try {
    return { page: new StaticFile(`${FOLDER}index.html`, "revalidate"), files: readHashedFiles(`${FOLDER}explorer`) };
  } catch (cause) {
    const advice = "The explorer is not built: `npm run build` does that, SERVICE_EXPLORER=off does without it.";
    throw new CairnlogError("precondition-failed", advice, { cause });
  }
}

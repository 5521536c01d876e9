/**
 * The explorer: one page, its scripts and its styles. They are not part of the API, and not in the OpenAPI document.
 */
import { fileURLToPath } from "node:url";
import Type from "typebox";
import { CairnlogError } from "../../../../engine/base/error.js";
import type { Settings } from "../../../settings/settings.js";
import { type Route, route } from "../../route/route.js";
import { readHashedFiles, StaticFile } from "../../transport/static.js";

/** The folder that `npm run build` writes. */
const FOLDER = fileURLToPath(new URL("../../../explorer/", import.meta.url));

/** What the page has to know before it asks: how to introduce the log, and which predicates are its own. */
type Introduction = Pick<Settings, "operatorName" | "logDescription" | "predicateBase"> & {
  /** A sentence that says who may write; null on a mirror. */
  readonly writers: string | null;
};

/**
 * `GET /` and `GET /explorer/{file}`. Reads the files.
 * @throws CairnlogError `precondition-failed` when it is not built
 */
export function explorerRoutes(introduction: Introduction): Route[] {
  const { page, files } = readExplorer(introduction);
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

function readExplorer(introduction: Introduction) {
  try {
    const introduced = (html: string) => html.replace("</title>", () => `</title>${metadata(introduction)}`);
    return {
      page: new StaticFile(`${FOLDER}index.html`, "revalidate", introduced),
      files: readHashedFiles(`${FOLDER}explorer`),
    };
  } catch (cause) {
    const advice = "The explorer is not built: `npm run build` does that, SERVICE_EXPLORER=off does without it.";
    throw new CairnlogError("precondition-failed", advice, { cause });
  }
}

/** The introduction for the page's script, which has it without a request. */
function metadata({ operatorName, logDescription, predicateBase, writers }: Introduction): string {
  const named = {
    "log-operator": operatorName,
    "log-description": logDescription,
    "log-writers": writers,
    "log-predicates": withoutScheme(predicateBase),
  };
  return Object.entries(named)
    .map(([name, content]) => (content === null ? "" : `<meta name="${name}" content="${escaped(content)}">`))
    .join("");
}

/** A setting takes only https: here; a URL in the page could be taken for something that it loads. */
const withoutScheme = (url: string): string => url.slice("https://".length);

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;" };
const escaped = (text: string): string => text.replace(/[&"<>]/g, (character) => ESCAPES[character]!);

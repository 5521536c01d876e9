/** The README's commands and examples, run exactly as they are written there. */
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { cairnlog, scratchFolder, startService } from "./service.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const readme = read("README.md");
const folder = scratchFolder();
afterAll(() => folder.remove());
const run = promisify(execFile);

/** The code blocks of this language that follow a marker comment. */
const marked = (text: string, language: string): string[] =>
  text
    .split("<!-- run by test/docs.test.ts -->")
    .slice(1)
    .map((rest) => /^\s*```(\w+)\n([\s\S]*?)```/.exec(rest))
    .flatMap((match) => (match?.[1] === language ? [match[2]!] : []));

test("a key, a signature and a request made with openssl and curl alone are accepted", async () => {
  const service = await startService(join(folder.path, "data"));
  try {
    copyFileSync(join(root, "README.md"), join(folder.path, "README.md"));
    const { stdout } = await run("bash", ["-euc", marked(readme, "sh")[0]!], {
      cwd: folder.path,
      env: { ...process.env, SERVER: service.url },
    });
    const answer = JSON.parse(stdout);
    expect(answer).toMatchObject({ pseudonym: "Grace", log_entry_id: 2, leaf_index: 1, sth: { tree_size: 2 } });
    const entry = await (await fetch(`${service.url}/api/v1/log/2`)).json();
    expect(entry.payload).toMatchObject({ document_title: "README.md", signer_key_fingerprint: answer.fingerprint });
  } finally {
    await service.stop();
  }
});

test("docs/http.md: a session, a detached proof and a batch made with openssl and curl alone are accepted", async () => {
  const text = read("docs/http.md");
  const service = await startService(join(folder.path, "http"));
  try {
    const { stdout } = await run("bash", ["-euo", "pipefail", "-c", marked(text, "sh").join("\n")], {
      cwd: folder.path,
      env: { ...process.env, SERVER: service.url },
    });
    const [missing, page, inbox, revoked, batch] = stdout.trim().split("\n");
    expect(text).toContain(`\`\`\`json\n${missing}\n`);
    expect(JSON.parse(page!)).toMatchObject({ entries: [], page: 1, per_page: 2, total: 0 });
    expect(JSON.parse(inbox!)).toMatchObject({ notifications: [] });
    expect(JSON.parse(revoked!)).toMatchObject({ status: "revoked", log_entry_id: 2 });
    // Entry 3 registers the key.
    const entries = [4, 5, 6].map((log_entry_id) => ({ status: 201, receipt: { log_entry_id } }));
    expect(JSON.parse(batch!)).toMatchObject({ results: entries });
  } finally {
    await service.stop();
  }
});

test("the embedding example runs in a project of its own", async () => {
  const project = join(folder.path, "project");
  mkdirSync(join(project, "node_modules"), { recursive: true });
  symlinkSync(root, join(project, "node_modules", "cairnlog"));
  writeFileSync(join(project, "main.mjs"), marked(readme, "js")[0]!);
  const { stdout } = await run(process.execPath, ["main.mjs"], { cwd: project });
  expect(stdout).toBe("true true\n");
});

test("every setting that `serve --help` lists is in the table of docs/operating.md, and no other", async () => {
  const { stdout } = await cairnlog(["serve", "--help"]);
  const listed = new Set(stdout.match(/\b(?:SERVICE_[A-Z_]+|RATE_LIMIT_[A-Z_]+|PORT|HOST|LOG_LEVEL)\b/g));
  const cells = [...read("docs/operating.md").matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell]) => cell!);
  const documented = new Set(
    cells.flatMap((cell) =>
      [...cell.matchAll(/`((?:SERVICE|RATE_LIMIT)_[A-Z_]+|PORT|HOST|LOG_LEVEL)`/g)].map(([, name]) => name!),
    ),
  );
  expect([...documented].sort()).toEqual([...listed].sort());
});

/** Every page below docs, by path. */
const pages = readdirSync(join(root, "docs"), { recursive: true })
  .map((name) => `docs/${name}`)
  .filter((path) => path.endsWith(".md"));
const isOfContract = (path: string) => path.startsWith("docs/spec/");

test("docs/README.md leads to every page, and no link in a page leads nowhere", () => {
  const linked = (path: string) =>
    [...read(path).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link]) => link!)
      .filter((link) => !/^(?:https?:|#)/.test(link));
  const map = ["docs/README.md", "docs/spec/README.md"].flatMap((path) => [
    path,
    ...linked(path).map((link) => join(dirname(path), link)),
  ]);
  expect(pages.filter((path) => !map.includes(path))).toEqual([]);
  const texts = ["README.md", ".github/CONTRIBUTING.md", ...pages];
  const broken = texts.flatMap((path) =>
    linked(path).flatMap((link) => {
      const [file, anchor] = link.split("#") as [string, string?];
      const target = file ? join(root, dirname(path), file) : join(root, path);
      const isThere = existsSync(target) && (anchor === undefined || headings(target).includes(anchor));
      return isThere ? [] : [`${path}: ${link}`];
    }),
  );
  expect(broken).toEqual([]);
});

test("lines of prose on a page have at most 130 characters", () => {
  const isProse = (line: string) => !/^(?:#|\s*\||\s*(?:[-*]|\d+\.)?\s*\S+$)/.test(line);
  const tooLong = pages.flatMap((path) =>
    read(path)
      .replace(/^ *```[\s\S]*?^ *```/gm, "")
      .split("\n")
      .filter((line) => line.length > 130 && isProse(line))
      .map((line) => `${path}: ${line}`),
  );
  expect(tooLong).toEqual([]);
});

test("the pages together have at most 28,000 words, as wc counts them, the contract left out", () => {
  const words = pages.filter((path) => !isOfContract(path)).flatMap((path) => read(path).match(/\S+/g) ?? []);
  expect(words.length).toBeLessThanOrEqual(28_000);
});

test("every section of the contract that is cited exists, and the sections are numbered one after the other", () => {
  const contract = pages.filter(isOfContract);
  const sections = contract
    .flatMap((path) => [...read(path).matchAll(/^##+ (\d+(?:\.\d+)?) /gm)].map(([, number]) => number!))
    .sort(
      (a, b) =>
        Number(a.split(".")[0]) - Number(b.split(".")[0]) ||
        Number(a.split(".")[1] ?? 0) - Number(b.split(".")[1] ?? 0),
    );
  const next = sections.map((number, i) => {
    const [chapter = 0, section = 0] = (sections[i - 1] ?? "0").split(".").map(Number);
    return number.includes(".") ? `${chapter}.${section + 1}` : `${chapter + 1}`;
  });
  expect(sections).toEqual(next);

  const sources = ["engine", "server", "wasm", "bench", "scripts", "test"].flatMap(sourcesIn);
  const cited = [
    ...[...sources, ...pages, "README.md"].flatMap((path) => citations(path, /docs\/spec §(\d+(?:\.\d+)?)/g)),
    ...contract.flatMap((path) => citations(path, /(?<!RFC \d+ )§(\d+(?:\.\d+)?)/g)),
  ];
  expect(cited.length).toBeGreaterThan(60);
  expect(cited.filter(({ section }) => !sections.includes(section))).toEqual([]);
});

const citations = (path: string, pattern: RegExp) =>
  [...read(path).matchAll(pattern)].map(([, section]) => ({ path, section: section! }));

/** The sources in a folder, without what is built or installed there. */
function sourcesIn(folder: string): string[] {
  const names = readdirSync(join(root, folder), { withFileTypes: true });
  return names.flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return ["node_modules", "build", "dist"].includes(entry.name) ? [] : sourcesIn(path);
    return /\.(?:ts|tsx|mjs)$/.test(entry.name) ? [path] : [];
  });
}

/** The sources of what runs in a service, by path. What runs for a user elsewhere is left out. */
const serviceSources = (): Map<string, string> => {
  const paths = ["engine", "server"]
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`))
    .filter((path) => path.endsWith(".ts") && !/^server\/(cli|client|explorer)\//.test(path));
  return new Map(paths.map((path) => [path, read(path)]));
};

describe("docs/costs.md names", () => {
  const costs = read("docs/costs.md");
  const isNamed = (what: string) => costs.includes(`\`${what}\``);
  /** What `pattern` finds: the name in it, or else the path of the file. */
  const found = (pattern: RegExp) =>
    [...serviceSources()].flatMap(([path, text]) => [...text.matchAll(pattern)].map(([, name]) => name ?? path));

  test("every command", () => {
    const commands = found(/\bdefine\(\s*"([^"]+)"/g);
    expect(commands.length).toBeGreaterThan(25);
    expect(commands.filter((name) => !isNamed(name))).toEqual([]);
  });

  test("every file that sets a timer or registers an observer", () => {
    const files = found(/\bset(?:Interval|Timeout)\(|\bsleep\(|\.observe[A-Z]?\w*\(|\bobserver = |\.watch\(/g);
    expect(files.length).toBeGreaterThan(25);
    expect([...new Set(files)].filter((path) => !isNamed(path))).toEqual([]);
  });

  test("every function that opens something", () => {
    const openers = found(/\bexport (?:async )?function (open[A-Z]\w*)\(/g).filter((name) => !OPENS_NOTHING.has(name));
    expect(openers.filter((name) => !isNamed(name))).toEqual([]);
  });

  test("only tests and files that there are", () => {
    const named = [...costs.matchAll(/`((?:test|engine|server)\/[\w./-]+\.ts)`/g)].map(([, path]) => path!);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

/** Functions whose names begin in the same way. */
const OPENS_NOTHING: ReadonlySet<string> = new Set([
  "openPromises",
  "openChallenge",
  "openApi",
  "openFileLimit",
  "openFiles",
]);

/** The anchors of a page's headings, as GitHub makes them. */
const headings = (path: string): string[] =>
  [...readFileSync(path, "utf8").matchAll(/^#+ (.*)$/gm)].map(([, text]) =>
    text!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

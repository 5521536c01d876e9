/** The hashes of native code: what is installed is known, and nothing loads native code without the check. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { KNOWN_BINARIES } from "#cairnlog/engine/native/known.generated.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

function* files(folder: string, ending: RegExp): Iterable<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* files(path, ending);
    else if (ending.test(path)) yield path;
  }
}

interface Locked {
  readonly name?: string;
  readonly version: string;
}

const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> };
/** `name@version` of what is locked at a place in node_modules. */
const locked = (place: string) =>
  `${packages[place]!.name ?? place.replace("node_modules/", "")}@${packages[place]!.version}`;
const HOLDERS = /^node_modules\/(?:@lmdb\/lmdb-.+|@msgpackr-extract\/.+|sodium-native|uWebSockets\.js)$/;

test("every binary that is installed is known, by its package, version and path", () => {
  const known = new Map(Object.values(KNOWN_BINARIES).flatMap((hashes) => Object.entries<string>(hashes)));
  const installed = Object.keys(packages).filter((place) => HOLDERS.test(place) && existsSync(join(root, place)));
  expect(installed.length).toBeGreaterThanOrEqual(4);
  for (const place of installed)
    for (const file of files(place, /\.node$/)) {
      const digest = createHash("sha256")
        .update(readFileSync(join(root, file)))
        .digest("hex");
      expect(known.get(file.replace(place, locked(place))), file).toBe(digest);
    }
});

test("the hashes are those of the locked versions, for every platform that has a package, and of no other", () => {
  const named = new Set(
    Object.values(KNOWN_BINARIES).flatMap((hashes) =>
      Object.keys(hashes).map((file) => /^@?[^@]+@[^/]+/.exec(file)![0]),
    ),
  );
  expect([...named].sort()).toEqual(
    Object.keys(packages)
      .filter((place) => HOLDERS.test(place))
      .map(locked)
      .sort(),
  );
});

test("package.json names exact versions of packages with native code, as locked", () => {
  const { dependencies, devDependencies, optionalDependencies, overrides } = JSON.parse(read("package.json"));
  const version = (place: string) => packages[`node_modules/${place}`]!.version;
  expect(dependencies).toMatchObject({
    lmdb: version("lmdb"),
    "sodium-native": version("sodium-native"),
  });
  // Only for the build: it copies what the package needs.
  expect(devDependencies["uWebSockets.js"]).toBe(`npm:uwebsockets@${version("uWebSockets.js")}`);
  expect(dependencies).not.toHaveProperty(["uWebSockets.js"]);
  // Also a direct dependency: overrides are those of the project that is installed, not of its dependencies.
  expect(optionalDependencies["msgpackr-extract"]).toBe(version("msgpackr-extract"));
  expect(overrides["msgpackr-extract"]).toBe(version("msgpackr-extract"));
});

test("values of packages with native code are imported behind the check", () => {
  const NATIVE = "lmdb|msgpackr|msgpackr-extract|sodium-native|uWebSockets\\.js|node-gyp-build-optional-packages";
  const loads = new RegExp(`(?:\\bfrom|\\bimport\\(?|\\b\\w*[rR]equire\\w*(?:\\.resolve)?\\(?)\\s*"(?:${NATIVE})"`);
  const places = [...files("dist/engine", /\.js$/), ...files("dist/server", /\.js$/)].filter(
    (file) => !file.startsWith("dist/server/explorer/") && loads.test(read(file)),
  );
  // Each of them is looked at here: `lmdb.js` imports `preload.js` first, the others call `loadChecked`.
  expect(places.sort()).toEqual([
    "dist/engine/crypto/keys/ed25519.js",
    "dist/engine/native/lmdb.js",
    "dist/engine/native/preload.js",
    "dist/server/http/servers/choose.js",
  ]);
  const [first] = read("dist/engine/native/lmdb.js").match(/"[^"]+"/g)!;
  expect(first).toBe('"./preload.js"');
  for (const file of places.filter((place) => !place.endsWith("/lmdb.js")))
    expect(read(file)).toContain("loadChecked(");
});

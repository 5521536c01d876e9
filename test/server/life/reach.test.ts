/** Every setting reaches what it names, and nothing else: each is changed alone, and what changes with it is looked at. */
import { describe, expect, test } from "vitest";
import { SETTING_OPTIONS, settingsGiven } from "#cairnlog/server/cli/operate/environment.js";
import { createLimits, sharedLimits } from "#cairnlog/server/front/limits.js";
import { LIMITS, type LimitName } from "#cairnlog/server/http/limits/limits.js";
import { readSettings, type Settings } from "#cairnlog/server/index.js";
import { openingOf } from "#cairnlog/server/opening/opening.js";
import { TABLE } from "#cairnlog/server/settings/settingtable.js";
import { newSigner } from "../signers.js";

type Key = keyof Settings;
const KEYS = Object.keys(TABLE) as Key[];

/** Another value of each setting that says something about the opening of a log, and what changes with it. */
const OPENING: { readonly [K in Key]?: readonly [value: Settings[K], ...changes: readonly string[]] } = {
  dataDir: ["/elsewhere", "path"],
  publicUrls: [["https://log.example"], "name"],
  minFreeBytes: [7, "minFreeBytes"],
  predicateBase: ["https://x.example/p", "predicateBase"],
  challengeTtlSeconds: [7, "challengeTtlSeconds"],
  passwordTries: [7, "passwordTries"],
  endorsementActivationDelaySeconds: [7, "endorsementActivationDelaySeconds"],
  endorsementBaseCapacity: [77, "trust.baseCapacity"],
  endorsementMinTrust: [0.77, "trust.minTrust"],
  trustAnchors: [[`sha256:${"a".repeat(64)}`], "trust.anchors"],
  graphTimeoutSeconds: [7, "graphs.bounds.seconds"],
  graphCacheSeconds: [7, "graphs.cacheSeconds"],
  claimBytesPerKey: [7, "claimBytesPerKey"],
  requestQuota: [7, "requestQuota"],
  policyQuota: [7, "policyQuota"],
  bytesPerAddress: [7, "budgets.perAddress"],
  bytesFromStrangers: [7, "budgets.fromStrangers"],
  webhookAllowPrivate: [true, "webhookAllowPrivate"],
  writers: ["registered", "writers.rule"],
  // Off, nothing of a client is counted: no quota, no budget, no limit.
  rateLimits: [
    false,
    ...["budgets.fromStrangers", "budgets.perAddress", "claimReveals", "policyQuota", "requestQuota"],
    ...["trustConfigQuota", "webhooksPerAddress"],
  ],
};

/** What a value holds, by path. */
function leaves(value: unknown, path = ""): Map<string, string> {
  if (value instanceof Object && !Array.isArray(value))
    return new Map(
      Object.entries(value).flatMap(([key, inner]) => [...leaves(inner, path === "" ? key : `${path}.${key}`)]),
    );
  return new Map([[path, JSON.stringify(value) ?? "undefined"]]);
}

/** The paths at which two values differ, in order. */
function differences(one: unknown, two: unknown): string[] {
  const [a, b] = [leaves(one), leaves(two)];
  const paths = new Set([...a.keys(), ...b.keys()]);
  return [...paths].filter((path) => a.get(path) !== b.get(path)).sort();
}

const base = readSettings({});
const operator = null as never;
/** Settings that differ in one. */
const changed = <K extends Key>(key: K, value: Settings[K]): Settings => ({ ...base, [key]: value });

describe("the opening of a log", () => {
  test.each(KEYS)("%s", (key) => {
    // One that is not in the table changes nothing, whatever it is.
    const [value, ...changes] = OPENING[key] ?? [typeof base[key] === "number" ? (base[key] as number) + 1 : base[key]];
    const opening = openingOf(changed(key, value as never), operator, null);
    expect(differences(openingOf(base, operator, null), opening)).toEqual(changes);
    if (key in OPENING && key !== "rateLimits" && key !== "publicUrls" && key !== "dataDir")
      expect([...leaves(opening)]).toContainEqual([changes[0], JSON.stringify(value)]);
  });

  test("the list of writers is the one that was read", () => {
    const listed = [{ name: "ada", fingerprint: newSigner().fingerprint, validAfter: null, validBefore: null }];
    expect(openingOf(base, operator, listed).writers).toEqual({ rule: "everybody", listed });
    expect(openingOf(changed("writers", "/etc/writers"), operator, listed).writers).toEqual({ rule: "file", listed });
  });
});

describe("limits", () => {
  const settingOf = (name: LimitName) =>
    KEYS.find((key) => TABLE[key].name === `SERVICE_RATE_LIMIT_${name.replaceAll("-", "_").toUpperCase()}`)!;
  const NAMES = Object.keys(LIMITS) as LimitName[];
  const allowed = (limits: ReturnType<typeof createLimits>) =>
    Object.fromEntries(NAMES.map((name) => [name, limits!.look(name, "192.0.2.1").limit]));

  test.each(NAMES)("%s is that of its setting, in every thread", (name) => {
    const settings = changed(settingOf(name), 7 as never);
    const limits = createLimits(settings)!;
    const expected = { ...allowed(createLimits(base)), [name]: 7 };
    expect(allowed(limits)).toEqual(expected);
    const other = sharedLimits(settings, limits.buffer)!;
    expect(allowed(other)).toEqual(expected);
    expect(other.count(name, "192.0.2.1", 7).exceeded).toBe(false);
    expect(limits.count(name, "192.0.2.1").exceeded).toBe(true);
  });

  test("are none where requests are not limited", () => {
    const settings = changed("rateLimits", false);
    expect([createLimits(settings), sharedLimits(settings, null)]).toEqual([null, null]);
  });
});

describe("an option of the command stands for one setting", () => {
  const OPTIONS: Readonly<Record<keyof typeof SETTING_OPTIONS, readonly [string | true, Key, unknown]>> = {
    port: ["7", "port", 7],
    host: ["::1", "host", "::1"],
    data: ["/elsewhere", "dataDir", "/elsewhere"],
    "read-only": [true, "readOnly", true],
    "obey-withholding": [true, "obeyWithholding", true],
  };

  test.each(Object.keys(SETTING_OPTIONS) as (keyof typeof SETTING_OPTIONS)[])("--%s", (option) => {
    const [given, key, value] = OPTIONS[option];
    const none = { port: undefined, host: undefined, data: undefined, "read-only": false, "obey-withholding": false };
    expect(settingsGiven(none)).toEqual({});
    const settings = readSettings(settingsGiven({ ...none, [option]: given }));
    expect(differences(base, settings)).toEqual([key]);
    expect(settings[key]).toEqual(value);
  });
});

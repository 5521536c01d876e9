/**
 * The settings of a service: read from an environment, or taken as values from a program that embeds the service. Nothing
 * else reads the environment. `settingtable.ts` lists them all.
 */
import { join } from "node:path";
import { inspect } from "node:util";
import { CairnlogError, type ErrorDetail, inputError } from "../../engine/base/error.js";
import { nearest } from "./nearest.js";
import { type Setting, TABLE } from "./settingtable.js";

/** The settings of a service. */
export type Settings = { readonly [K in keyof typeof TABLE]: ReturnType<(typeof TABLE)[K]["read"]> };

/** Settings as a program gives them. What is left out has its default. */
export type GivenSettings = { readonly [K in keyof Settings]?: Settings[K] | undefined };

type Key = keyof typeof TABLE;
type Environment = Readonly<Record<string, string | undefined>>;

const SETTINGS = Object.entries(TABLE) as unknown as readonly (readonly [Key, Setting<unknown>])[];
/** Settings that may hold a password. */
const SECRET: ReadonlySet<Key> = new Set<Key>(["replication"]);
/** Environment variables of the service. Others may have names that begin like these. */
const OWN_NAME = /^(?:SERVICE|RATE_LIMIT)_/;

/**
 * Reads the settings from an environment. An empty variable counts as one that is not set.
 * @throws CairnlogError `invalid-input` with one detail for each bad setting, its variable as `path`; a variable whose name
 *   is nearly that of a setting is one
 */
export function readSettings(env: Environment): Settings {
  const misspelt = unknownNames(env).flatMap((name) => {
    const meant = nearest(name, NAMES);
    return meant === undefined ? [] : [{ path: name, message: `${name} is not a setting. Is ${meant} meant?` }];
  });
  return assembled({
    name: (key) => TABLE[key].name,
    value: (_, { name, fallback, read }) => read(env[name] || fallback),
    shown: (key) => (SECRET.has(key) ? "what was given" : JSON.stringify(env[TABLE[key].name])),
    faults: misspelt,
  });
}

const unknownNames = (env: Environment): string[] =>
  Object.keys(env).filter((name) => OWN_NAME.test(name) && !NAMES.has(name));

/** Variables that begin like settings of the service, and are nearly none of them. They have no effect. */
export function strangeNames(env: Environment): string[] {
  return unknownNames(env).filter((name) => nearest(name, NAMES) === undefined);
}

/**
 * The settings of a program: the given values checked, and the defaults for all others.
 * @throws CairnlogError `invalid-input` with one detail for each bad setting, its name as `path`
 */
export function completeSettings(given: GivenSettings): Settings {
  if (typeof given !== "object" || given === null) throw inputError("Settings are an object: { dataDir, port, … }.");
  const strange = Object.keys(given).filter((key) => !Object.hasOwn(TABLE, key));
  return assembled({
    name: (key) => key,
    value: (key, { fallback, read, check }) => (given[key] === undefined ? read(fallback) : check(given[key])),
    shown: (key) => (SECRET.has(key) ? "what was given" : inspect(given[key], { depth: 0 })),
    faults: strange.map((key) => {
      const meant = nearest(key, Object.keys(TABLE));
      return { path: key, message: `${key} is not a setting.${meant === undefined ? "" : ` Is ${meant} meant?`}` };
    }),
  });
}

const NAMES: ReadonlySet<string> = new Set(SETTINGS.map(([, { name }]) => name));

interface Source {
  /** What whoever gives the settings calls this one. */
  name(key: Key): string;
  /** @throws Error whose message completes "NAME must be …" */
  value(key: Key, setting: Setting<unknown>): unknown;
  /** What was given, as it is shown to whoever gave it. */
  shown(key: Key): string;
  /** What was found to be wrong before. */
  readonly faults: readonly ErrorDetail[];
}

function assembled({ name, value, shown, faults }: Source): Settings {
  const details = [...faults];
  const values = SETTINGS.map(([key, setting]) => {
    try {
      return [key, value(key, setting)];
    } catch (error) {
      details.push({
        path: name(key),
        message: `${name(key)} must be ${(error as Error).message}, not ${shown(key)}.`,
      });
      return [key, undefined];
    }
  });
  const settings = Object.fromEntries(values) as Settings;
  const { tlsCertificate, tlsKey, signer, operatorKey, tlogOrigin, logName } = settings;
  if ((tlsCertificate === null) !== (tlsKey === null)) {
    const message = `${name("tlsCertificate")} and ${name("tlsKey")} must be given together.`;
    details.push({ path: name("tlsCertificate"), message });
  }
  if (signer && operatorKey) {
    const message = `${name("signer")} and ${name("operatorKey")} must not be given together: only one of them has the key.`;
    details.push({ path: name("signer"), message });
  }
  if (tlogOrigin && tlogOrigin === logName) {
    const message = `${name("tlogOrigin")} and ${name("logName")} must differ: one origin with two roots for a size looks like a fork.`;
    details.push({ path: name("tlogOrigin"), message });
  }
  if (details.length)
    throw new CairnlogError("invalid-input", details.map(({ message }) => message).join(" "), { details });
  return settings;
}

/** A setting as an environment has it, for people. */
export interface SettingText {
  /** Its variable. */
  readonly name: string;
  /** As it was given, or what holds otherwise; null if it may hold a password. */
  readonly value: string | null;
  readonly isDefault: boolean;
}

/** All settings as an environment has them. */
export const settingTexts = (env: Environment): SettingText[] =>
  SETTINGS.map(([key, { name, fallback, fallbackShown = fallback }]) => {
    const given = env[name] || undefined;
    const value = given === undefined ? fallbackShown : SECRET.has(key) ? null : given;
    return { name, value, isDefault: given === undefined };
  });

/** Path of the operator key's file. */
export const operatorKeyPath = ({ operatorKey, dataDir }: Settings): string =>
  operatorKey ?? join(dataDir, "operator.pem");

/** Path of its public key, which is written for people on this machine, and is all that a mirror has of it. */
export const operatorPublicKeyPath = (dataDir: string): string => join(dataDir, "operator.pub.pem");

/** Path of the newest checkpoint in a mirror's data directory: the log's own, since a mirror cannot sign. */
export const checkpointPath = (dataDir: string): string => join(dataDir, "checkpoint.txt");

/** Path of the file that keeps the newest head that was shown. */
export const publishedHeadPath = (dataDir: string): string => join(dataDir, "published.json");

/** Path of the key that signs the checkpoints at `/tlog/` where the operator key does not. */
export const tlogKeyPath = (dataDir: string): string => join(dataDir, "tlog.pem");

/** Path of the newest checkpoint of `/tlog/` that was published; in a mirror's data directory, that was mirrored. */
export const tlogCheckpointPath = (dataDir: string): string => join(dataDir, "tlog-checkpoint.txt");

/** Path of the newest checkpoint of `/tlog/` that a quorum of the witnesses has cosigned. */
export const cosignedCheckpointPath = (dataDir: string): string => join(dataDir, "tlog-cosigned.txt");

/** Path of the verifier key of `/tlog/`, for people on this machine and for a mirror. */
export const tlogVkeyPath = (dataDir: string): string => join(dataDir, "tlog.vkey");

/** The settings as people read them: a line for each. */
export function describeSettings(): { name: string; fallback: string; about: string }[] {
  return SETTINGS.map(([, { name, fallback, about, ...rest }]) => ({
    name,
    fallback: rest.fallbackShown ?? fallback,
    about,
  }));
}

/** Where a service says why it ended, when its log failed. */
export const failurePath = (dataDir: string): string => join(dataDir, "failure.json");

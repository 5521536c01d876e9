/**
 * What a user told the command to remember: `config.json` in the folder of its state. Whoever can write there decides which
 * service and which operator key the command believes, so the folder is its owner's alone.
 */
import { writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { CairnlogError } from "../../../engine/base/error.js";
import { makeFolders, throughDraft } from "../../../engine/base/files.js";
import { isObject } from "../../../engine/verify/json/shape.js";
import { readText } from "../files/files.js";

/** What is remembered for one service. */
export interface ServiceConfig {
  /** Absolute path of the private key. */
  readonly key?: string;
  /** The operator's public key, in PEM. */
  readonly operator_key?: string;
}

export interface Config {
  /** Address of the service of commands without `--server`, or those of its nodes with commas between. */
  readonly server?: string;
  /** By address, as `addressOf` writes it. */
  readonly services: Readonly<Record<string, ServiceConfig>>;
}

/** `cairnlog` below `XDG_CONFIG_HOME`, or `~/.config/cairnlog`. */
export const configFolder = (): string =>
  resolve(join(process.env.XDG_CONFIG_HOME || join(home(), ".config"), "cairnlog"));

/** A user whom the system does not know, as in containers, has none: then nothing is found, and nothing can be kept. */
function home(): string {
  try {
    return homedir();
  } catch {
    return "/";
  }
}

export const configPath = (): string => join(configFolder(), "config.json");

/** The address of a service in one spelling: without a slash at its end, and without the path of the API. */
export const serverAddress = (server: string): string => server.replace(/\/+$/, "").replace(/\/api\/v1$/, "");

/** What is remembered; nothing without a file. @throws CairnlogError `invalid-input` for a damaged file */
export function readConfig(): Config {
  let text: string;
  try {
    text = readText(configPath());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { services: {} };
    throw error;
  }
  const config = parsed(text);
  if (!isConfig(config))
    throw new CairnlogError("invalid-input", `${configPath()} is damaged. Mend it, or move it away.`);
  return config;
}

/** What is remembered for the service at this address. @throws CairnlogError `invalid-input` */
export function rememberedFor(server: string): ServiceConfig {
  const { services } = readConfig();
  const address = serverAddress(server);
  return Object.hasOwn(services, address) ? services[address]! : {};
}

/** Writes the whole file or nothing. */
export function writeConfig(config: Config): void {
  makeFolders(configFolder(), 0o700);
  const text = `${JSON.stringify(config, null, 2)}\n`;
  throughDraft(configPath(), (draft) => writeFileSync(draft, text, { mode: 0o600, flag: "wx" }));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isConfig(value: unknown): value is Config {
  const isText = (member: unknown) => member === undefined || typeof member === "string";
  if (!isObject(value) || !isText(value.server) || !isObject(value.services)) return false;
  return Object.values(value.services).every(
    (service) => isObject(service) && isText(service.key) && isText(service.operator_key),
  );
}

/** `cairnlog config`: what the command remembers, so that it need not be said again. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parsePublicKey } from "../../../engine/verify/index.js";
import { readPublicKey } from "../files/public-key.js";
import { subcommandWithActions, type Values } from "../line/subcommand.js";
import { none, only, required, UsageError } from "../line/usage.js";
import { coloured, facts, type Styled } from "../terminal/table.js";
import {
  type Config,
  configPath,
  readConfig,
  rememberedFor,
  type ServiceConfig,
  serverAddress,
  writeConfig,
} from "./config-file.js";
import { printAnswer, READING_OPTIONS } from "./connection.js";
import { addressesIn, checkAddress, namedServers, serverOf } from "./service.js";
import { StateFolder } from "./state.js";

const OPTIONS = { server: READING_OPTIONS.server, state: READING_OPTIONS.state, json: READING_OPTIONS.json } as const;
type Given = Values<typeof OPTIONS>;

/** Names of settings. `server` is one for all services, the others belong to a service. */
const SETTINGS = ["server", "key", "operator-key"] as const;
type Setting = (typeof SETTINGS)[number];

export const config = subcommandWithActions({
  about: `Remembers the address of a service, and for each service your key and the key of its operator.

server is the service of commands without --server, unless CAIRNLOG_SERVER names one. Where several nodes keep the log, it has the
addresses of all of them, with commas between: a command goes on at the node that writes, if that is one of them. key is the file of your private key for
commands that sign; the file stays where it is. operator-key is the public key that must have signed everything. Without it, the
key that a service shows first is pinned. Either way another operator key is refused, unless a rotation in the log leads to it;
forget removes that key, set or pinned, the newest head that was seen and the session, so that the next use is like the first: for a
log that was made anew at its address. The log of cairnlog demo is not pinned.`,
  options: OPTIONS,
  actions: {
    show: { form: "", about: "Shows what is remembered, and which operator keys are pinned." },
    set: { form: "server URL[,URL…] | key KEY.pem | operator-key FILE.pem", about: "Remembers a value." },
    unset: { form: "server | key | operator-key", about: "Forgets a value." },
    forget: { form: "URL", about: "Forgets the log at this address." },
  },
  notes: "Exit codes: 0 done; 1 refused or failed; 2 the command was not understood.",
  examples: `cairnlog config set server https://log.example
cairnlog config set key ~/keys/me.pem
cairnlog config set operator-key operator.pub.pem --server https://log.example`,
  run(operands, values, action) {
    if (action === "show") return show(operands, values);
    if (action === "forget") return forget(operands, values);
    const [name, value, ...more] = operands;
    const setting = SETTINGS.find((known) => known === name);
    if (!setting) throw new UsageError(`say which of ${SETTINGS.join(", ")}`);
    none(action === "set" ? more : operands.slice(1));
    const next = action === "set" ? required(value, setting === "server" ? "URL" : "FILE") : undefined;
    return change(setting, next, values);
  },
});

/** @param given undefined to forget the value */
function change(setting: Setting, given: string | undefined, values: Given): number {
  if (setting === "server") {
    const addresses = addressesIn(given ?? "").map((part) => serverAddress(checkAddress(part, "URL")));
    if (given !== undefined && !addresses.length) throw new UsageError("URL is missing");
    const server = addresses.length ? addresses.join(",") : undefined;
    const { server: _, ...rest } = readConfig();
    writeConfig(server === undefined ? rest : { ...rest, server });
    return said(values, { server: server ?? null }, server ? `server is ${server}` : "no server is remembered");
  }
  const address = serverAddress(serverOf(values.server));
  const member = setting === "key" ? "key" : "operator_key";
  const { [member]: _, ...rest } = rememberedFor(address);
  const value = given === undefined ? undefined : setting === "key" ? keyFile(given) : readPublicKey(given).pem;
  writeConfig(withService(readConfig(), address, value === undefined ? rest : { ...rest, [member]: value }));
  const shown = value === undefined ? null : setting === "key" ? value : parsePublicKey(value).fingerprint;
  return said(
    values,
    { server: address, [member]: shown },
    shown === null ? `no ${setting} is remembered for ${address}` : `${setting} for ${address} is ${shown}`,
  );
}

function forget(operands: readonly string[], values: Given): number {
  const address = serverAddress(checkAddress(only(operands, "URL"), "URL"));
  const { key, operator_fingerprint } = serviceView(address, values.state);
  new StateFolder(address, values.state).forget();
  const config = readConfig();
  if (Object.hasOwn(config.services, address)) writeConfig(withService(config, address, key === null ? {} : { key }));
  printAnswer(
    values,
    { server: address, forgotten: { operator_fingerprint } },
    operator_fingerprint === null
      ? `nothing is known of the log at ${address}`
      : `the log at ${address} is forgotten, with its operator key ${operator_fingerprint}`,
  );
  return 0;
}

function withService(config: Config, address: string, service: ServiceConfig): Config {
  const { [address]: _, ...others } = config.services;
  return { ...config, services: Object.keys(service).length ? { ...others, [address]: service } : others };
}

function said(values: Given, answer: object, text: string): number {
  printAnswer(values, { ...answer, file: configPath() }, text);
  return 0;
}

/** @throws UsageError for a file without a private key; the file system's error */
function keyFile(file: string): string {
  if (!readFileSync(file, "utf8").includes("PRIVATE KEY")) throw new UsageError(`${file} holds no private key`);
  return resolve(file);
}

function show(operands: readonly string[], values: Given): number {
  none(operands);
  const kept = readConfig();
  const servers = namedServers(values.server);
  const addresses = new Set([...Object.keys(kept.services), ...servers.slice(0, 1).map(serverAddress)]);
  const services = [...addresses].map((address) => ({ address, ...serviceView(address, values.state) }));
  const named = servers.length ? servers.join(",") : undefined;
  printAnswer(values, { file: configPath(), server: named ?? null, services }, described(named, services));
  return 0;
}

type View = ReturnType<typeof serviceView> & { readonly address: string };

function serviceView(address: string, state: string | undefined) {
  const { key, operator_key } = rememberedFor(address);
  const pinned = new StateFolder(address, state).loadMemory()?.operator_key;
  const operator = operator_key ?? pinned;
  return {
    key: key ?? null,
    operator_fingerprint: operator === undefined ? null : parsePublicKey(operator).fingerprint,
    operator_from: operator_key !== undefined ? "config" : pinned !== undefined ? "first use" : null,
  };
}

function described(server: string | undefined, services: readonly View[]): Styled {
  const parts = services.map(({ address, key, operator_fingerprint: operator, operator_from: from }) =>
    [
      coloured("bold", address),
      facts([
        ["  key", key ?? "none"],
        [
          "  operator key",
          operator === null ? "none yet" : `${operator} (${from === "config" ? "set" : "pinned at first use"})`,
        ],
      ]),
    ].join("\n"),
  );
  return {
    styled: [
      facts([
        ["server", server ?? "none"],
        ["file", configPath()],
      ]),
      ...parts,
    ].join("\n"),
  };
}

/** Calls a method of a client, and then repeats the call with each possible lie in one of the answers. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Http } from "#cairnlog/server/client/base/http.js";
import { Authority } from "#cairnlog/server/client/base/session.js";
import {
  type ClientOptions,
  createClient,
  memoryStore,
  type Signer,
  type State,
} from "#cairnlog/server/client/index.js";
import { type Falsehood, Falsehoods, type Schema } from "./falsehoods.js";
import { addingMember } from "./own-members.js";
import { type Exchange, Recording } from "./recording.js";
import { STEPS } from "./steps.js";
import { World } from "./world.js";

const MANUAL = fileURLToPath(new URL("../../../docs/client.md", import.meta.url));
/** The item that is about all lists. */
const EVERY_LIST = "every list";

/** Routes that many methods use for lookups. They are tested with their own methods and a few others. */
const LOOKUPS: ReadonlySet<string> = new Set([
  "POST /auth/challenge",
  "GET /log/operator-key",
  "GET /log/sth",
  "GET /log/{entry_id}",
  "GET /log/{entry_id}/proof",
  "GET /log/proof/{leaf_index}",
  "GET /log/consistency",
  "GET /log/heads",
]);
const WITH_LOOKUPS: ReadonlySet<string> = new Set([
  "attest",
  "attestAll",
  "keys.register",
  "endorsements.accept",
  "log.since",
  "login",
]);

/** Objects with arbitrary content of their sender. */
const CONTENT = /^(?:claims|institutional_metadata|predicates|manifest|plaintext) /;

interface Operation {
  readonly route: string;
  readonly pattern: RegExp;
  readonly schema: Schema | undefined;
  /** The schema of the request's body. */
  readonly request: Schema | undefined;
}

export class Suite {
  readonly #world: World;
  readonly #operations: readonly Operation[];
  readonly #falsehoods: Falsehoods;
  /** The state of a client that saw the log when it was small. */
  readonly #state: State;
  readonly #liedAbout = new Set<string>();

  private constructor(world: World, document: OpenApi, state: State) {
    this.#world = world;
    this.#state = state;
    this.#falsehoods = new Falsehoods(document.components.schemas);
    this.#operations = operationsOf(document);
  }

  static async begin(): Promise<Suite> {
    const world = await World.begin();
    const store = memoryStore();
    const reader = createClient({ server: world.service.url, store });
    await reader.log.operatorKey();
    const { operator_key } = (await store.load())!;
    const head = await reader.log.headOf(5);
    return new Suite(world, await world.service.openApi(), { operator_key, head });
  }

  /**
   * The members that a method believes, in all variants of its call. They are named as in the table if it has them, and
   * otherwise by their path.
   * @throws Error for a method that fails without a lie, or whose error is not a `ClientError`
   */
  async believed(method: string): Promise<string[]> {
    const believed = new Set<string>();
    for (const name of Object.keys(STEPS).filter((step) => methodOf(step) === method))
      for (const label of await this.#believed(name)) believed.add(tableOf.covering(method, label));
    believed.delete("");
    return [...believed].sort();
  }

  async #believed(name: string): Promise<ReadonlySet<string>> {
    const { options = {}, isNew = false, act } = await STEPS[name]!(this.#world);
    const recording = new Recording();
    const run = async (fetcher: typeof fetch): Promise<string> => {
      const client = this.#client({ ...options, fetch: fetcher }, isNew);
      const result = await act(client);
      return JSON.stringify([result ?? null, client.session ?? null]);
    };
    const truth = await run(recording.record);
    if ((await run(recording.replay())) !== truth) throw new Error(`${name} has two results of the same answers.`);
    const believed = new Set<string>();
    for (const exchange of this.#about(name, recording.exchanges))
      for (const { label, text } of this.#lies(exchange)) {
        const told = { exchange, bytes: Buffer.from(text, isText(exchange) ? "utf8" : "latin1") };
        const result = await run(recording.replay(told)).catch((error: Error) => {
          if (error.name === "ClientError") return truth;
          throw new Error(`${name} fails at ${label}: ${error.message}`, { cause: error });
        });
        if (result !== truth) believed.add(this.#labelled(name, exchange, label));
      }
    return believed;
  }

  /**
   * The members of a method's requests that can be changed or omitted on the way, or by the service, without an error.
   * @throws Error for a failure that is not a `ClientError`
   */
  async changeable(name: string): Promise<string[]> {
    const recording = new Recording();
    const prepared = await STEPS[name]!(this.#world);
    await prepared.act(this.#client({ ...prepared.options, fetch: recording.record }, false));
    const unnoticed = new Set<string>();
    for (const { method, path, body } of this.#about(name, recording.exchanges)) {
      if (body === undefined) continue;
      const { route, request = {} } = this.#operation({ method, path });
      if (LOOKUPS.has(route)) continue;
      // A service ignores unknown members, except in objects with arbitrary content.
      const isIgnored = (label: string) => / with another member$/.test(label) && !CONTENT.test(label);
      for (const { label } of this.#falsehoods.of(JSON.parse(body), request))
        if (!isIgnored(label) && !/(?:^|\w) twice$/.test(label) && !unnoticed.has(label))
          if (!(await this.#notices(name, route, label))) unnoticed.add(label);
    }
    return [...unnoticed].sort();
  }

  /** Repeats the call with each change of this name. One of the changes may stay unnoticed. */
  async #notices(name: string, route: string, label: string): Promise<boolean> {
    for (let n = 0; ; n++) {
      const { options, act } = await STEPS[name]!(this.#world);
      let isLast = true;
      const twisting: typeof fetch = async (input, init) => {
        const path = String(input).replace(/^.*?\/api\/v1/, "");
        const operation = this.#operation({ method: init?.method ?? "GET", path });
        if (operation.route !== route) return fetch(input, init);
        const lies = [...this.#falsehoods.of(JSON.parse(`${init!.body}`), operation.request ?? {})];
        const told = lies.filter((lie) => lie.label === label);
        isLast = n >= told.length - 1;
        const lie = told[n];
        if (!lie) throw new Error("There is no such lie.");
        const isOfProof = label.startsWith("auth");
        return fetch(input, {
          ...init,
          body: isOfProof ? lie.text : await this.#proven(path, lie.text, options?.signer),
        });
      };
      const isNoticed = await act(this.#client({ ...options, fetch: twisting }, false)).then(
        () => false,
        (error: Error) => {
          if (error.name === "ClientError") return true;
          throw new Error(`${name} fails at ${label}: ${error.message}`, { cause: error });
        },
      );
      if (!isNoticed) return false;
      if (isLast) return true;
    }
  }

  /** The body with a proof for what it now says: a service that records something else than was asked needs none. */
  async #proven(path: string, text: string, signer: Signer | undefined): Promise<string> {
    const { auth, ...body } = JSON.parse(text);
    if (!auth) return text;
    const authority = new Authority(new Http(this.#world.service.url, fetch), signer);
    return JSON.stringify({ ...body, auth: await authority.proof(path, body) });
  }

  /**
   * Calls the method with a member of the caller's own, in each object of its arguments in turn.
   * @returns the codes of errors that do not come from the service
   */
  async blamed(name: string): Promise<string[]> {
    const codes: string[] = [];
    let count = 1;
    for (let n = 0; n < count; n++) {
      const { options, act } = await STEPS[name]!(this.#world);
      const counted = (objects: number) => {
        count = objects;
      };
      await act(addingMember(this.#client({ ...options }, false), methodOf(name), n, counted)).catch((error) => {
        if (!error.status) codes.push(error.code ?? error.message);
      });
    }
    return codes;
  }

  /** Routes without any false answer after all methods were tested. */
  routesWithoutLie(): string[] {
    const names = this.#operations.map(({ route }) => route).filter((route) => !this.#liedAbout.has(route));
    return names
      .map((route) => route.replace(/ (?=\/(?!livez|readyz|metrics|leader|follower|tlog))/, " /api/v1"))
      .sort();
  }

  #client(options: Partial<ClientOptions>, isNew: boolean) {
    const store = memoryStore();
    if (!isNew) void store.save(this.#state);
    return createClient({ server: this.#world.service.url, store, ...options });
  }

  /** The exchanges to falsify: one for each route. Lookups are included only for their own methods. */
  #about(name: string, exchanges: readonly Exchange[]): Exchange[] {
    const byRoute = new Map(exchanges.map((exchange) => [this.#operation(exchange).route, exchange] as const));
    const own = [...byRoute].filter(([route]) => !LOOKUPS.has(route));
    const isLookup = own.length === 0 || WITH_LOOKUPS.has(name);
    return (isLookup ? [...byRoute] : own).map(([, exchange]) => exchange);
  }

  #lies(exchange: Exchange): Iterable<Falsehood> {
    const { route, schema } = this.#operation(exchange);
    this.#liedAbout.add(route);
    if (/\bjson$/.test(exchange.contentType))
      return this.#falsehoods.of(JSON.parse(exchange.bytes.toString("utf8")), schema ?? {});
    return Falsehoods.ofText(exchange.bytes.toString(isText(exchange) ? "utf8" : "latin1"));
  }

  /** The label of a lookup by another method includes its route. */
  #labelled(name: string, exchange: Exchange, label: string): string {
    const { route } = this.#operation(exchange);
    return LOOKUPS.has(route) && WITH_LOOKUPS.has(name) ? `${route}: ${label}` : label;
  }

  #operation({ method, path }: Pick<Exchange, "method" | "path">): Operation {
    const line = `${method} ${path.split("?")[0]}`;
    const [operation] = this.#operations.filter(({ pattern }) => pattern.test(line));
    if (!operation) throw new Error(`There is no route for ${line}.`);
    return operation;
  }
}

interface OpenApi {
  // biome-ignore lint/suspicious/noExplicitAny: the document is checked by tests of its own
  readonly paths: Readonly<Record<string, Readonly<Record<string, any>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Routes without parameters come first: `/log/head` is not an entry. */
function operationsOf({ paths }: OpenApi): Operation[] {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses, requestBody }]) => {
      if (method === "head") return [];
      const route = `${method.toUpperCase()} ${path.replace("/api/v1", "")}`;
      const pattern = new RegExp(`^${route.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);
      const schema = (responses["200"] ?? responses["201"])?.content?.["application/json"]?.schema;
      const request = requestBody?.content["application/json"]?.schema;
      return { route, pattern, schema, request };
    }),
  );
  return operations.sort((a, b) => a.route.split("{").length - b.route.split("{").length);
}

/** The method that a step calls. */
export const methodOf = (step: string): string => step.split(" (")[0]!;

const isText = ({ contentType }: Exchange): boolean => !/octet-stream/.test(contentType);

/**
 * The lists in the documentation of the members that a client cannot verify. By method, with labels of
 * `Falsehood.label`.
 */
const TABLE: ReadonlyMap<string, readonly string[]> = readTable();

function readTable(): ReadonlyMap<string, readonly string[]> {
  const [, text = ""] = readFileSync(MANUAL, "utf8").split("<!-- held by test/client/every-member.long.test.ts -->");
  const [items = ""] = text.split("<!-- end -->");
  const table = new Map<string, string[]>();
  for (const [item] of items.matchAll(/^- .*(?:\n {2}.*)*/gm)) {
    // Methods: members – the reason.
    const [, methods = "", members = ""] = /^- (.*?): (.*?)(?: – .*)?$/.exec(item.replace(/\s+/g, " "))!;
    const names = [...methods.matchAll(/`([^`]+)`/g)].map((match) => match[1]!);
    const tokens = [...members.matchAll(/`([^`]+)`( left out)?|everything/g)].map(([all, member, more = ""]) =>
      member === undefined ? all : member + more,
    );
    for (const name of names.length ? names : [methods.trim()])
      table.set(name, [...(table.get(name) ?? []), ...tokens]);
  }
  return table;
}

/** The members in the table for a method. */
export const tableOf = Object.assign((name: string): string[] => [...(TABLE.get(name) ?? [])].sort(), {
  methods: (): string[] => [...TABLE.keys()].filter((name) => name !== EVERY_LIST),

  /** The entry of the table that covers a lie: empty if it is about all lists, the lie itself if there is none. */
  covering(name: string, label: string): string {
    const isUnder = (token: string) =>
      token === "everything" ||
      token === label ||
      (!token.endsWith(" left out") &&
        [`${token}.`, `${token}[`, `${token} `].some((start) => label.startsWith(start)));
    const token = (TABLE.get(name) ?? []).find(isUnder);
    if (token !== undefined) return token;
    const isOfList = /^\w*\[\] left out$/.test(label) && (TABLE.get(EVERY_LIST) ?? []).includes("[] left out");
    return isOfList ? "" : label;
  },
});

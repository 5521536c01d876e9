/** Inputs for the service: valid requests of every route of its OpenAPI document, changed in one or more places. */
import type { Random } from "../reliability/random.js";
import { type Document, resolved } from "../server/promised.js";
import { mutateBytes, mutateText, mutateValue, nastyText } from "./mutate.js";
import type { Valid } from "./scenes.js";
import { SchemaValues } from "./schema.js";
import type { Input } from "./wire.js";
import type { World } from "./world.js";

export interface Operation {
  /** Such as `GET /api/v1/log/{entry_id}`. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly document: Document;
}

const METHODS = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "get", "TRACE", "BREW"];
/**
 * The value of a header line. Control characters are not valid HTTP: uWebSockets waits ten seconds for more and then
 * closes the connection, so they would take all the time.
 */
const lineOf = (text: string): string => Buffer.from(text.replace(/\p{Cc}/gu, ""), "utf8").toString("latin1");
const HEADERS = [
  "x-request-id",
  "user-agent",
  "if-none-match",
  "x-forwarded-for",
  "content-type",
  "origin",
  "accept",
  "range",
  "cookie",
];

/** A path or query as a careless client sends it: no line breaks or spaces, and otherwise anything. */
const unescaped = (text: string): string =>
  Buffer.from(text.replace(/[\s\0-\x20\x7f]/g, "+"), "utf8").toString("latin1");

/** Where these succeed, later writes are refused, or what others would be granted is gone. */
const TAKES_AWAY = ["/log/freeze", "/withhold"];

export class Inputs {
  readonly #world: World;
  readonly #values: SchemaValues;
  readonly operations: readonly Operation[];

  constructor(world: World) {
    this.#world = world;
    this.#values = new SchemaValues(world.document, world.hints);
    this.operations = Object.entries<Document>(world.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([name, document]) => {
        const method = name.toUpperCase();
        // HEAD is among the odd methods, which every operation gets at times.
        return method === "HEAD" || TAKES_AWAY.some((end) => path.endsWith(end))
          ? []
          : [{ name: `${method} ${path}`, method, path, document }];
      }),
    );
  }

  /** A request of a random operation, changed in one or more places. */
  async make(random: Random): Promise<Input> {
    const operation = random.pick(this.operations);
    const { method, path, document } = operation;
    const valid = random.chance(0.6) ? await this.#world.valid(operation.name, random) : undefined;
    const target = this.#target(operation, valid, random);
    const schema = document.requestBody?.content["application/json"].schema;
    const body = schema
      ? await this.#body(path, schema, valid, random)
      : random.chance(0.1)
        ? Buffer.from(nastyText(random))
        : null;
    const odd = random.chance(0.05);
    const input = {
      method: odd ? random.pick(METHODS) : method,
      path: target,
      headers: this.#headers(path, valid, random),
      body: odd || method === "POST" ? (body ?? Buffer.alloc(0)) : body,
    };
    return input.body && random.chance(0.1) ? inChunks(input, random) : input;
  }

  /** A valid request of this operation. It may still be refused for reasons that the schema does not describe. */
  async plain(operation: Operation, random: Random): Promise<Input> {
    const { method, path, document } = operation;
    const world = this.#world;
    const valid = (await world.valid(operation.name, random)) ?? {};
    const sample = (parameter: Document) => {
      const hinted = valid.params?.[parameter.name] ?? world.hints(parameter.name)?.[0];
      return encodeURIComponent(String(hinted ?? this.#values.sample(parameter.schema, random.below(2 ** 31))));
    };
    const parameters: Document[] = (document.parameters ?? []).map((one: Document) => resolved(world.document, one));
    let target = path;
    for (const one of parameters)
      if (one.in === "path") target = target.replace(`{${one.name}}`, () => sample(one));
      else if (one.required || valid.params?.[one.name] !== undefined)
        target += `${target.includes("?") ? "&" : "?"}${one.name}=${sample(one)}`;
    const schema = document.requestBody?.content["application/json"].schema;
    const body = schema ? (valid.body ?? this.#values.sample(schema, random.below(2 ** 31))) : undefined;
    const token = isOperators(path) ? world.operatorToken : (valid.token ?? world.actors[0]!.token);
    return {
      method,
      path: target,
      headers: [
        ["Host", "127.0.0.1"],
        ["Authorization", `Bearer ${token}`],
      ],
      body: body === undefined ? (method === "POST" ? Buffer.alloc(0) : null) : Buffer.from(JSON.stringify(body)),
    };
  }

  #target({ path, document }: Operation, valid: Valid | undefined, random: Random): string {
    const parameters = (document.parameters ?? []).map((one: Document) => resolved(this.#world.document, one));
    const value = (parameter: Document) => {
      const sampled = String(this.#values.sample(parameter.schema, random.below(2 ** 31)));
      const needed = valid?.params?.[parameter.name];
      const hinted = needed === undefined ? this.#world.hints(parameter.name) : [needed];
      const text = hinted?.length && random.chance(0.8) ? String(random.pick(hinted)) : sampled;
      return random.chance(0.15) ? mutateText(text, random) : text;
    };
    const spell = (text: string) => {
      if (random.chance(0.1)) return unescaped(text).slice(0, 2_000);
      const encoded = encodeURIComponent(Buffer.from(text).toString()).slice(0, 3_000);
      return random.chance(0.1) ? encoded.toLowerCase() : encoded;
    };
    let filled = path;
    const pairs: string[] = [];
    for (const parameter of parameters) {
      if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, () => spell(value(parameter)) || "-");
      if (parameter.in !== "query" || (!parameter.required && random.chance(0.5))) continue;
      pairs.push(`${parameter.name}=${spell(value(parameter))}`);
      if (random.chance(0.05))
        pairs.push(
          random.pick([`${parameter.name}=1`, parameter.name, "=", "%", "a[b]=c", "__proto__=1", "%ff=%c0%80", ";"]),
        );
    }
    if (random.chance(0.03))
      filled = random.pick([
        `${filled}/`,
        `/${filled}`,
        `${filled}%00`,
        filled.replace("/api", "/%61pi"),
        `${filled}/..`,
        `${filled}${"/a".repeat(500)}`,
        filled.toUpperCase(),
        "*",
        `${filled}#a`,
      ]);
    return filled + (pairs.length ? `?${pairs.join("&")}` : "");
  }

  async #body(path: string, schema: Document, valid: Valid | undefined, random: Random): Promise<Buffer> {
    let value = valid?.body ?? this.#values.sample(schema, random.below(2 ** 31));
    const needsProof = valid === undefined && (path.includes("/endorsements/") || random.chance(0.1));
    if (needsProof && typeof value === "object" && value !== null && random.chance(0.9)) {
      const named = Object.entries(value).find(
        ([name]) =>
          (/^(endorser|endorsed|fingerprint)/.test(name) &&
            !path.endsWith("accept") &&
            !path.endsWith("revoke-acceptance")) ||
          name === "endorsed_fingerprint",
      );
      const actor =
        this.#world.actors.find(({ signer }) => signer.fingerprint === named?.[1]) ?? random.pick(this.#world.actors);
      (value as Record<string, unknown>).auth = await this.#world.proof(actor);
    }
    for (let changes = random.pick([0, 1, 1, 1, 2, 4]); changes > 0; changes--) value = mutateValue(value, random);
    let bytes: Buffer = Buffer.from(JSON.stringify(value) ?? "null");
    if (random.chance(0.15)) bytes = mutateBytes(bytes, random);
    return bytes.subarray(0, 1_200_000);
  }

  #headers(path: string, valid: Valid | undefined, random: Random): [string, string][] {
    const headers: [string, string][] = [["Host", "127.0.0.1"]];
    const actor = random.pick(this.#world.actors);
    if (random.chance(0.8)) {
      const token = isOperators(path) ? this.#world.operatorToken : (valid?.token ?? actor.token);
      const sent = random.chance(0.1) ? mutateToken(token, random) : token;
      headers.push([
        "Authorization",
        `${random.chance(0.97) ? "Bearer" : lineOf(nastyText(random)).slice(0, 50)} ${sent}`,
      ]);
    }
    for (let count = random.pick([0, 0, 0, 1, 2]); count > 0; count--)
      headers.push([random.pick(HEADERS), lineOf(nastyText(random)).slice(0, 2_000)]);
    return headers;
  }
}

/** This request with its body in valid or invalid chunks. */
function inChunks({ body, headers, ...rest }: Input, random: Random): Input {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body!.length; ) {
    const piece = body!.subarray(at, at + 1 + random.below(body!.length));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
    at += piece.length;
  }
  pieces.push(Buffer.from("0\r\n\r\n"));
  const coding = random.chance(0.9) ? "chunked" : random.pick(["Chunked", "gzip, chunked", "xchunked", "identity"]);
  const chunked = Buffer.concat(pieces);
  return {
    ...rest,
    headers: [...headers, ["Transfer-Encoding", coding]],
    body: random.chance(0.1) ? mutateBytes(chunked, random) : chunked,
  };
}

const isOperators = (path: string): boolean => path.endsWith("/anchor") || path.endsWith("/sth/sign");

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function mutateToken(token: string, random: Random): string {
  const [header = "", claims = "", signature = ""] = token.split(".");
  const read = () => JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>;
  switch (random.below(8)) {
    case 0:
      return `${part({ alg: "none" })}.${claims}.`;
    case 1:
      return `${part({ alg: "HS256", typ: "JWT" })}.${claims}.${signature}`;
    case 2:
      return `${header}.${part({ ...read(), recovery: true })}.${signature}`;
    case 3:
      return `${part({ alg: "EdDSA", crit: ["b64"], b64: false, jwk: {}, jku: "http://x", kid: "../../" })}.${claims}.${signature}`;
    case 4:
      return `${header}.${claims}`;
    case 5:
      return `${token}.${signature}`;
    case 6:
      return `${header}.${part(null)}.${signature}`;
    default:
      return lineOf(mutateText(token, random)).slice(0, 8_000);
  }
}

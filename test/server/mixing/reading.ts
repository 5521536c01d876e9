/** Questions whose answers do not change while the log grows, of all areas and sizes: among others they are what they are alone. */
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect } from "vitest";
import type { Said } from "../front/connections.js";
import { proofOf } from "../proofs.js";
import { newManifest, newSigner, sha256, submission } from "../signers.js";
import type { Prepared } from "../writes.js";
import { lastingHeaders } from "./alike.js";
import type { Ask, Client, Traffic } from "./traffic.js";

/** Entries of each type below, and bytes of each: a page of them is more than the socket buffers of both sides hold. */
const LARGE_ENTRIES = 100;
const LARGE_BYTES = 60_000;
const LARGE_TYPES = ["https://a.example/large", "https://b.example/large"];

/** Entries at the beginning of the log that only fill it. */
export const FILLED = LARGE_TYPES.length * LARGE_ENTRIES;

export interface Stable {
  readonly ask: Ask;
  readonly alone: Said;
}

/** Appends what makes large answers. */
export async function fill({ service }: Traffic): Promise<void> {
  for (const event_type of LARGE_TYPES)
    await service.server.registry.log.append(
      Array.from({ length: LARGE_ENTRIES }, (_, n) => ({
        event_type,
        // No two parts of it are equal.
        payload: {
          n,
          text: Array.from({ length: LARGE_BYTES / 10 }, (_, i) => `${event_type[8]}${n}-${i}`.padEnd(10)).join(""),
        },
      })),
    );
}

/** @param made keys of which nothing new is recorded */
export async function questions(traffic: Traffic, made: readonly Prepared[], client: Client): Promise<Stable[]> {
  const size = await traffic.service.entryCount();
  const asks: Ask[] = [];
  const get = (path: string, headers?: Record<string, string>) => asks.push({ path, ...(headers && { headers }) });
  const api = (path: string, headers?: Record<string, string>) => get(`/api/v1${path}`, headers);
  const post = (path: string, body: unknown, headers = {}) =>
    asks.push({ method: "POST", path: `/api/v1${path}`, body, headers });
  for (const type of LARGE_TYPES)
    for (const per_page of [1, 7, LARGE_ENTRIES])
      api(`/log?event_type=${encodeURIComponent(type)}&per_page=${per_page}&page=1`);
  for (const { signer, write } of made) {
    const { fingerprint } = signer;
    for (const path of ["", "/status"]) api(`/keys/${fingerprint}${path}`);
    api(`/log/by-fingerprint/${fingerprint}?per_page=1&page=2`);
    api(`/log/by-fingerprint/${fingerprint}?names=true`);
    api(`/log/audit-trail?fingerprint=${fingerprint}`);
    api(`/audit/export?fingerprint=${fingerprint}&format=csv`);
    for (const path of ["", "/issued", "/status"]) api(`/endorsements/${fingerprint}${path}`);
    api(`/graph/${fingerprint}?max_depth=2`);
    api(`/trust-configs/${fingerprint}`);
    api(`/log/request-policies/${fingerprint}`);
    api(`/log/attestation-requests?target=${fingerprint}`);
    api(`/log?search=${fingerprint.slice(7, 40)}`);
    const headers = write.headers as Record<string, string> | undefined;
    if (headers?.authorization) for (const path of ["/inbox", "/webhooks"]) api(path, headers);
  }
  for (let id = 1; id <= size; id += 1 + Math.floor(size / (4 * made.length))) {
    api(`/log/${id}`);
    api(`/log/${id}/proof?tree_size=${size}`);
    api(`/log/proof/${id - 1}?tree_size=${id}`);
    api(`/log/sth/${id}`);
    api(`/log/consistency?from=${id}&to=${size}`);
  }
  api(`/log/heads?from=1&limit=${size}`);
  for (const version of [1, 2]) api(`/log/tile/${version}/0/0`);
  const files = (await traffic.ask({ path: "/" }, client)).text.matchAll(/(?:src|href)="(\/explorer\/[^"]+)"/g);
  const pages = ["/", ...[...files].map(([, path]) => path!)];
  for (const path of [...pages, "/docs", "/api/v1/openapi.json", "/api/v1/identifier-types", "/tlog/vkey"])
    for (const coding of ["", "gzip", "br"]) get(path, coding ? { "accept-encoding": coding } : undefined);
  // Made of the request alone, in all sizes.
  for (const length of [1, 30, 300]) {
    const parts = Array.from({ length }, (_, i) => ({
      title: `part ${i} of ${length}`,
      content_hash: `sha256:${sha256(`${length} ${i}`)}`,
    }));
    post("/composite/assemble", { title: `whole of ${length} — ${"ü".repeat(length)}`, parts });
    const { document } = newManifest("x".repeat(length));
    post("/documents/sign", { ...document, public_key_pem: newSigner().publicKey });
  }
  for (const one of [submission(newSigner()), submission(newSigner("ecdsa-p256"))])
    post("/verify", { manifest: one.manifest, source_hash: one.manifest.document.content_hash });
  // Refused, each in its own words.
  const signer = newSigner();
  const known = made[0]!.signer;
  post("/attestations", { ...submission(signer), signature: signer.sign("another text") });
  post("/attestations", { ...submission(signer), attestation_type: "https://x-service.example/predicates/other/v1" });
  post("/attestations", submission(signer, { document: { title: "", content_hash: "none" }, attestations: [] }));
  post("/keys/register", { payload: { public_key: "none", pseudonym: "\n", key_algorithm: "none" } });
  post("/auth/login", { challenge_id: "none", challenge_signature: known.sign("none") });
  post("/auth/challenge", { fingerprint: signer.fingerprint });
  post("/keys/revoke", { payload: { fingerprint: known.fingerprint } });
  post("/keys/revoke", {
    payload: { fingerprint: known.fingerprint },
    auth: await usedProof(traffic, known),
  });
  api(`/keys/${signer.fingerprint}`);
  api(`/log/${size * 1000}`);
  api("/inbox", { authorization: "Bearer a.b.c" });
  api("/webhooks");
  api("/nowhere");
  asks.push({ method: "DELETE", path: "/api/v1/keys" });
  const stable: Stable[] = [];
  for (const ask of asks) stable.push({ ask, alone: await traffic.ask(ask, client) });
  expectFiles(stable);
  // What is kept of one answer must be no part of the next: another front end is asked in the other order.
  const [, connection = client.connection] = traffic.connections;
  for (const one of stable.toReversed()) await sameAgain(traffic, one, { ...client, connection });
  return [...stable, ...(await conditional(traffic, stable, client))];
}

/** The files of the explorer differ, and each is the same in every coding. */
function expectFiles(stable: readonly Stable[]): void {
  const decoded = { undefined: (bytes: Buffer) => bytes, gzip: gunzipSync, br: brotliDecompressSync };
  const files = new Map<string, Buffer>();
  for (const { ask, alone } of stable) {
    if (ask.path !== "/" && !ask.path.startsWith("/explorer/")) continue;
    const bytes = decoded[String(alone.headers["content-encoding"]) as keyof typeof decoded](alone.bytes);
    expect(bytes.equals(files.get(ask.path) ?? bytes), ask.path).toBe(true);
    files.set(ask.path, bytes);
  }
  expect(new Set([...files.values()].map((bytes) => sha256(bytes))).size).toBe(files.size);
}

/** A proof that was used. */
async function usedProof({ service }: Traffic, signer: Prepared["signer"]): Promise<object> {
  const proof = await proofOf(service, signer);
  await service.post("/auth/login", proof);
  return proof;
}

/** Of all that has a tag: asked again with its own and with another's tag, and by HEAD. */
async function conditional(traffic: Traffic, stable: readonly Stable[], client: Client): Promise<Stable[]> {
  const further: Stable[] = [];
  const tagged = stable.filter(({ alone }) => alone.headers.etag !== undefined);
  const bodies = new Map<unknown, Buffer>();
  for (const { ask, alone } of tagged) {
    const first = bodies.get(alone.headers.etag) ?? alone.bytes;
    bodies.set(alone.headers.etag, first);
    expect(alone.bytes.equals(first), `${ask.path} has the tag of another resource`).toBe(true);
  }
  for (const [i, { ask, alone }] of tagged.entries()) {
    const other = tagged.find((one) => one.alone.headers.etag !== alone.headers.etag)!.alone;
    const headers = (tag: string) => ({ ...ask, headers: { ...ask.headers, "if-none-match": tag } });
    const asks = [headers(String(alone.headers.etag)), headers(String(other.headers.etag)), { ...ask, method: "HEAD" }];
    const asked = asks[i % asks.length]!;
    const said = await traffic.ask(asked, client);
    expect(said.status).toBe(i % asks.length === 0 ? 304 : alone.status);
    further.push({ ask: asked, alone: said });
  }
  return further;
}

/**
 * The bytes, but for whether a graph was made for this request, for how the deliveries of a subscription went meanwhile, and
 * for the id of a refused request, which `Traffic` checks.
 */
function lasting({ path }: Ask, { bytes, text, body }: Said): Buffer {
  if (body?.code !== undefined) return Buffer.from(text.replace(`"request_id":"${body.request_id}"`, ""));
  if (path.includes("/graph/")) return Buffer.from(text.replace(/"cached":(true|false)/, ""));
  if (path.endsWith("/webhooks") && Array.isArray(body))
    return Buffer.from(JSON.stringify(body.map(({ id, url }: { id: number; url: string }) => [id, url])));
  return bytes;
}

/** Asks again: everything but what passes is as it was. */
export async function sameAgain(
  traffic: Traffic,
  { ask, alone }: Stable,
  client: Client,
  isRead = true,
): Promise<void> {
  const said = await traffic.ask(ask, client);
  const about = `${ask.method ?? "GET"} ${ask.path} ${JSON.stringify(ask.headers ?? {})}`;
  expect([said.status, lastingHeaders(said)], about).toEqual([alone.status, lastingHeaders(alone)]);
  if (!isRead) return;
  expect(lasting(ask, said).equals(lasting(ask, alone)), `${about}: ${said.text.slice(0, 500)}`).toBe(true);
}

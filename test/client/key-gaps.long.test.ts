/** The list of keys ends, too, where a service has places without keys, as many as it likes. */
import { expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { newSigner } from "../server/signers.js";
import { failure } from "./clients.js";

test("a service that has gaps without an end, and nothing in them, is left; long ones end with a key", async () => {
  const signers = [newSigner("ed25519"), newSigner("ed25519")];
  const summary = {
    pseudonym: "Ada",
    algorithm: "ed25519",
    registered_at: "2026-01-01T00:00:00.000Z",
    expires_at: null,
  };
  let asked = 0;
  const fetcher: typeof fetch = async (input) => {
    const page = Number(new URL(String(input)).searchParams.get("page"));
    expect(page).toBe(++asked);
    if (asked === 10_000) throw new Error("It would go on for ever.");
    const signer = page % 1_000 === 1 ? signers.pop() : undefined;
    const keys = signer ? [{ ...summary, fingerprint: signer.fingerprint, status: "active", named: true }] : [];
    return Response.json({ keys, page, per_page: 200, total: page * 200 + 1 });
  };
  const listed: string[] = [];
  const list = async () => {
    for await (const { fingerprint } of createClient({ server: "http://log.invalid", fetch: fetcher }).keys.list())
      listed.push(fingerprint);
  };
  expect((await failure(list())).code).toBe("malformed-answer");
  expect([listed.length, asked]).toEqual([2, 1_001 + 5_001]);
});

/** A place at an address that has become free is used, whatever has become of the subscription whose turn it was. */
import { afterAll, expect, test } from "vitest";
import type { AttemptResult } from "#cairnlog/server/webhooks/send.js";
import { runIn } from "../log/inline.js";
import { closeWorlds, sha256 } from "../registry/world.js";
import { ACCEPTED, type Arrival, OWNER, openPost, type Post } from "./harness.js";

const MAX_OF_OWNER = 32;
const MAX_AT_ADDRESS = 4;

afterAll(closeWorlds);

const ADDRESS = "192.0.2.1";
const BUSY: AttemptResult = { isDelivered: false, reason: "busy", busy: ADDRESS };
const never = new Promise<never>(() => {});
const note = { event_type: "key_registration", payload: {} };
const hostOf = ({ url }: Arrival) => new URL(url).hostname;
const at = (post: Post, host: string) => post.arrivals.filter((arrival) => hostOf(arrival) === host).length;

/** What an attempt finds at the address. */
const atAddress = (post: Post): AttemptResult => {
  if (!post.places.enter(ADDRESS)) return BUSY;
  post.places.leave(ADDRESS);
  return ACCEPTED;
};

/** The address is full, and two subscriptions of two owners wait for it: `first`, and then `second`. */
async function twoParked() {
  const post = await openPost();
  for (let taken = 0; taken < MAX_AT_ADDRESS; taken++) post.places.enter(ADDRESS);
  const { id: first } = await post.subscribe({ url: "https://first.example/" });
  const { id: second } = await post.subscribe({ url: "https://second.example/" }, `sha256:${sha256("another owner")}`);
  const answers: Record<string, () => AttemptResult | Promise<AttemptResult>> = {
    "first.example": () => atAddress(post),
    "second.example": () => atAddress(post),
  };
  post.answer = (arrival) => answers[hostOf(arrival)]?.() ?? never;
  const park = async () => {
    await post.world.append(note);
    await post.until(() => at(post, "first.example") === 1 && at(post, "second.example") === 1);
  };
  return { post, first, second, answers, park };
}

/** All attempts that the owner of `first` may have are under way elsewhere: `first` waits for its turn, too. */
async function exhaust(post: Post): Promise<void> {
  const row = post.world.registry.log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER).at(-1)!.row;
  // Rows of earlier versions may have more subscriptions of one owner than can be made now.
  await runIn(post.world.registry.log, (transaction) => {
    for (let id = 100; id < 100 + MAX_OF_OWNER; id++)
      transaction.put("webhooks", id, {
        ...row,
        ...{ url: `https://elsewhere.example/${id}`, owner_fingerprint: OWNER },
      });
  });
  await post.world.append(note);
  await post.until(() => at(post, "elsewhere.example") === MAX_OF_OWNER);
}

test("one that ends while it waits for its turn, with the place in sight", async () => {
  const { post, first, park } = await twoParked();
  await park();
  await exhaust(post);
  post.places.leave(ADDRESS);
  await post.quiet();
  expect(at(post, "second.example")).toBe(1);
  await post.world.registry.webhooks.deactivate(first, OWNER);
  await post.until(() => at(post, "second.example") > 1);
  expect(at(post, "first.example")).toBe(1);
});

test("one that has ended while it waited for a place", async () => {
  const { post, first, park } = await twoParked();
  await park();
  await exhaust(post);
  await post.world.registry.webhooks.deactivate(first, OWNER);
  await post.quiet();
  post.places.leave(ADDRESS);
  await post.until(() => at(post, "second.example") > 1);
  expect(at(post, "first.example")).toBe(1);
});

test("one that ended before its attempt found the address full", async () => {
  const { post, first, answers, park } = await twoParked();
  const say: ((verdict: AttemptResult) => void)[] = [];
  for (const host of ["first.example", "second.example"])
    answers[host] = () => new Promise((resolve) => say.push(resolve));
  await park();
  await post.world.registry.webhooks.deactivate(first, OWNER);
  await post.quiet();
  answers["second.example"] = () => atAddress(post);
  for (const resolve of say) resolve(BUSY);
  await exhaust(post);
  post.places.leave(ADDRESS);
  await post.until(() => at(post, "second.example") > 1);
});

test("one that may not be tried any more when it has its turn", async () => {
  const { post, first, park } = await twoParked();
  await park();
  await runIn(post.world.registry.log, (transaction) => {
    const row = transaction.get("webhooks", first)!;
    const next_probe_at = "2025-01-01T00:30:00.000000Z";
    transaction.put("webhooks", first, { ...row, healthy: false, retry_count: 10, next_probe_at });
  });
  await post.quiet();
  post.places.leave(ADDRESS);
  await post.until(() => at(post, "second.example") > 1);
  expect(at(post, "first.example")).toBe(1);
});

test("one whose name leads to another address the next time", async () => {
  const { post, answers, park } = await twoParked();
  await park();
  answers["first.example"] = () => ACCEPTED;
  post.places.leave(ADDRESS);
  await post.until(() => at(post, "second.example") > 1);
  await post.done();
  expect([at(post, "first.example"), at(post, "second.example")]).toEqual([2, 2]);
});

/** Signatures of deliveries, compared with the reference library of Standard Webhooks. */
import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { deliveryFault, deliverySignature } from "#cairnlog/server/webhooks/signature.js";

type SignedHeaders = Parameters<typeof deliveryFault>[1];

const ENCODED = `whsec_${randomBytes(32).toString("base64")}`;
const RAW = "correct horse battery staple ü 木";
const BODY = JSON.stringify({ type: "key.registered", data: { pseudonym: "Zoë 木" } });
const now = Math.floor(Date.now() / 1000);
const headersOf = (secret: string, body = BODY, timestamp = now): SignedHeaders => ({
  id: "msg_1_2",
  timestamp: `${timestamp}`,
  signature: deliverySignature(secret, "msg_1_2", timestamp, body),
});
const sent = ({ id, timestamp, signature }: SignedHeaders) => ({
  "webhook-id": id!,
  "webhook-timestamp": timestamp!,
  "webhook-signature": signature!,
});

describe("the reference library accepts ours", () => {
  test("with a secret in base64", () => {
    expect(new Webhook(ENCODED).verify(BODY, sent(headersOf(ENCODED)))).toEqual(JSON.parse(BODY));
  });

  test("with any other secret, as its UTF-8 bytes", () => {
    const webhook = new Webhook(new TextEncoder().encode(RAW), { format: "raw" });
    expect(webhook.verify(BODY, sent(headersOf(RAW)))).toEqual(JSON.parse(BODY));
  });

  test("the example of the specification comes out", () => {
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const body = '{"test": 2432232314}';
    expect(deliverySignature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)).toBe(
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    );
  });
});

describe("we accept the reference library's", () => {
  test.each([ENCODED, `whsec_${Buffer.from("sixteen letters!").toString("base64")}`])("%s", (secret) => {
    const signature = new Webhook(secret).sign("msg_1_2", new Date(now * 1000), BODY);
    const headers = { id: "msg_1_2", timestamp: `${now}`, signature };
    expect(deliveryFault(secret, headers, Buffer.from(BODY), now)).toBeUndefined();
    const rotated = { ...headers, signature: `v1,${"A".repeat(43)}= v2,other ${signature}` };
    expect(deliveryFault(secret, rotated, Buffer.from(BODY), now)).toBeUndefined();
  });
});

describe("a timestamp", () => {
  const at = (seconds: number) => deliveryFault(RAW, headersOf(RAW), Buffer.from(BODY), now + seconds);

  test.each([-300, -299, 0, 299, 300])("of %i seconds before the receiver's clock is accepted", (age) => {
    expect(at(age)).toBeUndefined();
  });

  test.each([-301, 301])("of %i seconds before it is refused", (age) => {
    expect(at(age)).toMatch(/five minutes/);
  });
});

describe("we refuse", () => {
  const good = headersOf(RAW);
  const cases: [string, Partial<SignedHeaders>, string, number][] = [
    ["another body", {}, `${BODY} `, now],
    ["another id", { id: "msg_1_3" }, BODY, now],
    ["another timestamp", { timestamp: `${now + 1}` }, BODY, now],
    ["another spelling of the timestamp", { timestamp: `0x${now.toString(16)}` }, BODY, now],
    ["another version", { signature: good.signature!.replace("v1", "v2") }, BODY, now],
    ["half a signature", { signature: good.signature!.slice(0, 20) }, BODY, now],
    ["no signature", { signature: undefined }, BODY, now],
    ["an empty signature", { signature: "" }, BODY, now],
    ["no id", { id: undefined }, BODY, now],
    ["no timestamp", { timestamp: undefined }, BODY, now],
  ];
  test.each(cases)("%s", (_, change, body, time) => {
    expect(deliveryFault(RAW, good, Buffer.from(BODY), now)).toBeUndefined();
    expect(deliveryFault(RAW, { ...good, ...change }, Buffer.from(body), time)).toMatch(/\.$/);
  });

  test("one made with another secret", () => {
    expect(deliveryFault(ENCODED, good, Buffer.from(BODY), now)).toMatch(/does not fit/);
  });

  test("a secret that stands for no key", () => {
    expect(() => deliverySignature("whsec_no base64", "msg_1_2", now, BODY)).toThrow(/base64/);
  });
});

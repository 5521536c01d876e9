/** The count of bytes held for clients, compared with a simple list. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { PendingBytes, type Share } from "#cairnlog/server/http/transport/pending.js";

test("the limit is never exceeded, and the oldest body makes room", () => {
  const step = fc.record({
    kind: fc.constantFrom("open", "resize", "resize", "settle", "release"),
    which: fc.nat(11),
    bytes: fc.nat(120),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const pending = new PendingBytes(100);
      const shares: (Share & { isWaiting: boolean })[] = [];
      let asking: Share | undefined;
      const holding = () => shares.reduce((sum, { bytes }) => sum + bytes, 0);
      for (const { kind, which, bytes } of steps) {
        if (kind === "open" && shares.length < 12) {
          const share = Object.assign(
            pending.open(() => {
              // The oldest are cancelled first: no older request that waits and holds bytes may be left.
              const older = shares.slice(0, shares.indexOf(share));
              expect(older.filter((other) => other.isWaiting && other.bytes && other !== asking)).toEqual([]);
              expect(share.bytes).toBe(0);
              share.isWaiting = false;
            }),
            { isWaiting: true },
          );
          shares.push(share);
        }
        const share = shares[which];
        asking = share;
        if (!share?.isWaiting) continue;
        if (kind === "resize" && !share.resize(bytes)) {
          expect(share.bytes).toBe(0);
          const settled = shares.filter((other) => !other.isWaiting).reduce((sum, other) => sum + other.bytes, 0);
          expect(settled + bytes).toBeGreaterThan(100);
          share.isWaiting = false;
        } else if (kind === "settle") {
          share.settle();
          share.isWaiting = false;
        } else if (kind === "release") {
          share.release();
          share.isWaiting = false;
        }
        expect(pending.held).toBe(holding());
        expect(pending.held).toBeLessThanOrEqual(100);
        expect(pending.waiting).toBe(shares.filter(({ isWaiting }) => isWaiting).length);
      }
      for (const share of shares) share.release();
      expect(pending.held).toBe(0);
    }),
  );
});

test("nobody is given up where that would not make room enough", () => {
  const pending = new PendingBytes(100);
  const held = (bytes: number) => {
    const share = pending.open(() => expect.unreachable());
    expect(share.resize(bytes)).toBe(true);
    return share;
  };
  held(60).settle();
  held(30);
  expect(pending.open(() => {}).resize(50)).toBe(false);
  expect(pending.held).toBe(90);
});

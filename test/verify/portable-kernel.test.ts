/** The hashes in JavaScript, which the packages for readers have, against the kernels in WebAssembly. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { kernel as portable } from "#cairnlog/engine/verify/bytes/portable-kernel.js";
import { kernels } from "#cairnlog/wasm/index.js";

const NODE = fc.uint8Array({ minLength: 32, maxLength: 32 });
const VERSION = fc.constantFrom(1 as const, 2 as const);

test.each(kernels.map((kernel) => [kernel.name, kernel] as const))("agree with the %s kernel", (_, kernel) => {
  fc.assert(
    fc.property(NODE, NODE, VERSION, fc.uint8Array({ maxLength: 300 }), (left, right, version, data) => {
      expect(portable.leaf(left, version)).toEqual(kernel.leaf(left, version));
      expect(portable.node(left, right, version)).toEqual(kernel.node(left, right, version));
      expect(portable.sha256(data)).toEqual(kernel.sha256(data));
    }),
  );
});

test("refuse what the kernels refuse, with the same errors", () => {
  const node = new Uint8Array(32);
  const [kernel] = kernels;
  const calls = [
    (of: typeof portable) => of.sha256("text" as never),
    (of: typeof portable) => of.leaf(new Uint8Array(31), 1),
    (of: typeof portable) => of.leaf(node, 3 as never),
    (of: typeof portable) => of.leaf(node, "1" as never),
    (of: typeof portable) => of.node(node, new Uint8Array(33), 2),
    (of: typeof portable) => of.node([] as never, node, 2),
    (of: typeof portable) => of.node(node, node, 0 as never),
  ];
  const errorOf = (call: () => unknown) => {
    try {
      call();
    } catch (error) {
      return error;
    }
    return expect.fail("it was taken");
  };
  for (const call of calls) expect(errorOf(() => call(portable))).toEqual(errorOf(() => call(kernel!)));
});

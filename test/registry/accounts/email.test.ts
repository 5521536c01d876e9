/** Which texts are e-mail addresses. */
import { describe, expect, it } from "vitest";
import { isEmail } from "#cairnlog/engine/registry/accounts/email.js";

describe("e-mail addresses", () => {
  const label = (length: number) => "d".repeat(length);
  const longest = `${"l".repeat(64)}@${label(63)}.${label(63)}.${label(61)}`;
  it.each([
    "a@b",
    "ada@example.org",
    "first.last+tag@sub.example-host.co",
    "!#$%&'*+/=?^_`{|}~-@example.org",
    "müller@bücher.example",
    "用户@例子.广告",
    longest,
    `${"é".repeat(32)}@${label(63)}.${label(63)}.${label(61)}`,
  ])("takes the address %s", (email) => expect(isEmail(email)).toBe(true));
  it.each([
    "",
    "@",
    "ada",
    "ada@",
    "@example.org",
    "a@b@c",
    "a b@example.org",
    "ada@exa mple.org",
    ".ada@example.org",
    "ada.@example.org",
    "a..b@example.org",
    "ada@example..org",
    "ada@.example.org",
    "ada@example.org.",
    "ada@-example.org",
    "ada@example-.org",
    "ada@example_host.org",
    '"ada"@example.org',
    "ada@[192.0.2.1]",
    "ada@example.org\r\nBcc: x@example.org",
    "Ada <ada@example.org>",
    "a,b@example.org",
    "ada\u200b@example.org",
    "ada\u0000@example.org",
    "\ud800@example.org",
    `l${longest}`,
    `${longest}d`,
    `${"é".repeat(32)}l@example.org`,
    `a@${label(64)}.org`,
    `a@${"é".repeat(32)}.org`,
    "a".repeat(1_000_000),
    `a@${"a.".repeat(500_000)}`,
  ])("refuses the address %.60s", (email) => expect(isEmail(email)).toBe(false));
  it("counts the octets of an address", () => {
    expect(Buffer.byteLength(longest)).toBe(254);
    expect(isEmail(longest)).toBe(true);
    expect(isEmail(longest.replace(".d", ".é"))).toBe(false);
  });
});

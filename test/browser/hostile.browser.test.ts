/** Names and titles that others chose cannot pass for words of the page, hide a fingerprint, or leave their places. */
import { createHash } from "node:crypto";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import type { Client } from "#cairnlog/server/client/index.js";
import { asSigner, newClient } from "../client/clients.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { Reader } from "./explorer.js";

const WIDTHS = [390, 1280];
const FILE = Buffer.from("a contract");
const MARKS = "\u0300\u0301\u0302\u0303\u0304\u0308\u030a\u0316\u0317\u0323\u0331\u0489";

/** Each is the name of a key, and the title of a document that this key attested. */
const HOSTILE: readonly string[] = [
  // Whole rows, as the page would write them.
  "Ada Lovelace dd1c389d attested contract.pdf as author · · ·",
  "Ada Lovelace dd1c389d registered a key",
  "Ada Lovelace dd1c389d attested contract.pdf as author Authorship 1 minute ago f00dba…11ad00",
  "contract.pdf” as author. Ada “",
  "Ada [dd1c389d]",
  "Ada </code> dd1c389d",
  // Spaces.
  `Ada Lovelace${" ".repeat(150)}dd1c389d attested x`,
  `Ada${"\u00a0".repeat(150)}dd1c389d`,
  `Ada${"\u3000".repeat(120)}dd1c389d`,
  `Ada${"\u2003".repeat(60)}dd1c389d${"\u2003".repeat(60)}as author`,
  "\u00a0\u00a0\u00a0",
  " Ada ",
  `Ada${"\u2800".repeat(100)}dd1c389d`,
  `Ada${"\u3164".repeat(100)}dd1c389d`,
  "Ada\u2028dd1c389d\u2028attested",
  // Texts that turn round what stands beside them.
  "\u202eecalevoL adA",
  "Ada \u202ed983c1dd",
  "\u2067Ada\u2067 Lovelace\u2067",
  "עדה לאבלייס dd1c389d",
  "آدا لوفلايس dd1c389d أرشفت",
  `${"אבגד".repeat(40)} Ada`,
  "\u200fAda\u061c dd1c389d\u200e",
  // Marks.
  `A${MARKS}${MARKS}d${MARKS}${MARKS}a${MARKS}${MARKS}`,
  `${"\u0489".repeat(60)}Ada`,
  "\u20dd\u20ddAda\u20e3",
  "\u0301Ada",
  "ก็็็็็็็็็็็็็็็็็็็็ Ada",
  "A\u0338d\u0338a\u0338",
  // Nothing to be seen.
  "Ada\u200b Lovelace",
  "A\u00add\u00ada\u00ad",
  "\u2060\ufeff\u200b\u200d",
  "Ada\u{e0064}\u{e0065} Lovelace",
  "Ada\u200c\u200d\ufe0f",
  // Emoji, and what looks like the marks of the page.
  "✅ Verified: Ada Lovelace",
  "👩‍👩‍👧‍👦🏳️‍🌈❤️ Ada 1️⃣",
  "🛡️".repeat(80),
  // Look-alikes.
  "Аdа Lоvelace",
  "𝐀𝐝𝐚 𝐋𝐨𝐯𝐞𝐥𝐚𝐜𝐞 𝚍𝚍𝟷𝚌𝟹𝟾𝟿𝚍",
  // Without a place to break.
  "Ada".repeat(66),
  `${"W".repeat(190)} Ada`,
];

/** Nothing of these may reach the screen; a variation selector or a joiner only behind an emoji. */
const UNSEEN =
  /[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u2800\u3164\ufeff]|[\u{e0000}-\u{e0fff}]|a(?:\u200c|\u200d|\ufe0f)/u;

let service: TestService;
let anchor: { readonly client: Client; readonly fingerprint: string };
let warned: string;
let heir: string;
beforeAll(async () => {
  expect(new Set(HOSTILE).size).toBe(40);
  const first = newClient("http://127.0.0.1:1");
  service = await startTestService({
    SERVICE_TRUST_ANCHORS: first.fingerprint,
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
  });
  anchor = {
    client: newClient(service.url, { signer: asSigner(first.signer) }).client,
    fingerprint: first.fingerprint,
  };
  const content_hash = createHash("sha256").update(FILE).digest("hex");
  const offer = (endorsed_fingerprint: string) =>
    anchor.client.endorsements.offer({ endorsed_fingerprint, category: "x-service:human_attestation" } as never);
  for (const [i, text] of HOSTILE.entries()) {
    const { client, fingerprint } = i === 0 ? anchor : newClient(service.url);
    await client.keys.register({ pseudonym: text });
    await client.attest({ title: text, content_hash });
    if (i === 0 || i % 4) continue;
    const { entry } = await offer(fingerprint);
    if (i > 4) continue;
    await client.endorsements.accept(entry.id);
    await anchor.client.endorsements.alert(fingerprint, HOSTILE[0]!, HOSTILE[6]!);
    const successor = newSigner();
    heir = successor.fingerprint;
    await client.keys.succeed(asSigner(successor), { pseudonym: HOSTILE[2]! });
    warned = fingerprint;
  }
});

/**
 * What is wrong with the layout of the rows that fit `selector`, in words. Each text in a row is measured where it is visible,
 * that is without what its ancestors cut off.
 */
async function faultsOf(page: Page, selector: string): Promise<readonly string[]> {
  return page.locator(selector).evaluateAll((rows) => {
    const faults: string[] = [];
    type Box = { left: number; top: number; right: number; bottom: number };
    const cut = (box: Box, by: Box): Box => ({
      left: Math.max(box.left, by.left),
      top: Math.max(box.top, by.top),
      right: Math.min(box.right, by.right),
      bottom: Math.min(box.bottom, by.bottom),
    });
    const isEmpty = ({ left, top, right, bottom }: Box) => right - left < 1 || bottom - top < 1;
    const isInside = (box: Box, of: Box) =>
      box.left >= of.left - 1 && box.right <= of.right + 1 && box.top >= of.top - 1 && box.bottom <= of.bottom + 1;
    for (const row of rows) {
      const frame = row.getBoundingClientRect();
      const say = (what: string) => faults.push(`${row.textContent?.slice(0, 60)}: ${what}`);
      if (frame.left < 0 || frame.right > window.innerWidth + 1) say("the row is wider than the screen");
      const seen: { text: string; owner: Element; boxes: Box[] }[] = [];
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const owner = node.parentElement!;
        const text = node.textContent!;
        if (!text.trim() || owner.closest(".visually-hidden, option, [hidden]")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const whole = [...range.getClientRects()].filter((box) => !isEmpty(box));
        const boxes = whole.flatMap((rect) => {
          let box: Box = rect;
          for (let at: Element | null = owner; at; at = at === row ? null : at.parentElement)
            if (getComputedStyle(at).overflowX !== "visible") box = cut(box, at.getBoundingClientRect());
          return isEmpty(box) ? [] : [box];
        });
        const chosen = owner.closest(".said, .key-said, .key-title");
        if (chosen === null && /Ada|W{9}/.test(text)) say(`“${text.slice(0, 40)}” stands among the words of the page`);
        if (chosen === null) {
          // Only what somebody chose may be cut off, and that only for itself.
          if (whole.length !== boxes.length || whole.some((box, i) => !isInside(box, boxes[i]!)))
            say(`“${text.slice(0, 40)}” is cut off`);
        } else {
          const { unicodeBidi, overflowX, whiteSpaceCollapse, display } = getComputedStyle(
            chosen,
          ) as CSSStyleDeclaration & {
            whiteSpaceCollapse: string;
          };
          if (unicodeBidi !== "isolate") say("a chosen text is not isolated");
          if (display.startsWith("inline") && overflowX === "visible" && whiteSpaceCollapse === "preserve")
            say("is loose");
          if (!boxes.length) say(`nothing of “${text.slice(0, 40)}” is visible`);
        }
        for (const box of boxes)
          if (
            !isInside(box, {
              ...frame.toJSON(),
              left: frame.left,
              right: frame.right,
              top: frame.top,
              bottom: frame.bottom,
            })
          )
            say(`“${text.slice(0, 40)}” is outside of its row`);
        seen.push({ text, owner, boxes });
      }
      for (const [i, one] of seen.entries())
        for (const other of seen.slice(i + 1)) {
          // Lines of one text may be closer than their letters are high.
          const overlap = one.boxes.flatMap((box) => other.boxes.map((by) => cut(box, by)));
          if (overlap.some(({ left, top, right, bottom }) => right - left > 2 && bottom - top > 6))
            say(`“${one.text.slice(0, 30)}” lies over “${other.text.slice(0, 30)}”`);
        }
      for (const digits of row.querySelectorAll(".key-digits")) {
        if (!/^[0-9a-f]{8}$/.test(digits.textContent!)) say("a fingerprint has lost digits");
        const name = digits.parentElement!.querySelector(".key-said");
        const [form, around] = [digits.parentElement!, row].map((each) => getComputedStyle(each));
        if (name && form!.backgroundColor === around!.backgroundColor) say("a name looks like the words beside it");
      }
    }
    return faults;
  });
}

/** Characters of the page that cannot be seen. */
const unseen = async (page: Page) => {
  const texts = await page.evaluate(() => {
    const attributes = [...document.querySelectorAll("[aria-label], [title]")].flatMap((element) => [
      element.ariaLabel ?? "",
      element.getAttribute("title") ?? "",
    ]);
    return [document.title, document.body.innerText, ...attributes];
  });
  return texts.filter((text) => UNSEEN.test(text)).map((text) => JSON.stringify(UNSEEN.exec(text)));
};

/** `rows`: what the view's rows are, and how many there must be at least. */
async function expectHonest(page: Page, rows: Readonly<Record<string, number>>): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const [selector, count] of Object.entries(rows)) {
      await page
        .locator(selector)
        .nth(count - 1)
        .waitFor();
      expect(await faultsOf(page, selector), `${selector} at ${width} px`).toEqual([]);
    }
    const needed = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(needed, `at ${width} px`).toBeLessThanOrEqual(width);
  }
  expect(await unseen(page)).toEqual([]);
}

async function looking(address: string, rows: Readonly<Record<string, number>>, ready = async (_: Page) => {}) {
  const reader = await Reader.arrive();
  const page = await reader.open(service.url, address);
  await ready(page);
  await expectHonest(page, rows);
  await reader.leave();
}

test("in the list of the newest entries", () => looking("#/", { ".entry": 8 }));

test("in the lists of entries", async () => {
  for (const number of [1, 2, 3, 4]) await looking(`#/entries?page=${number}`, { ".entry": 15 });
});

test("in the lists of keys", async () => {
  for (const number of [1, 2]) await looking(`#/keys?page=${number}`, { ".key-list .key-line": 10 });
});

test("in what a search finds, and in what is suggested", () =>
  looking("#/search?q=ada", { ".key-list .key-line": 10, ".entry": 10, ".seek-option": 8 }, (page) =>
    page.getByRole("combobox").focus(),
  ));

test("on a key's page: in its endorsements and its entries", () =>
  looking(
    `#/keys/${anchor.fingerprint}`,
    { ".endorsement": 9, h1: 1, ".entry": 10, ".graph-table tbody tr": 9 },
    (page) => page.getByText("The same data as a table").click(),
  ));

test("in warnings, and in the chain of succession", () =>
  looking(`#/keys/${warned}`, { ".chain li": 2, ".alerts > li": 1 }));

test("in a chain's later key", () => looking(`#/keys/${heir}`, { ".chain li": 2 }));

test("in the attestations of a file", () =>
  looking("#/file", { ".verdict": 1, ".record": 5 }, (page) =>
    page
      .locator("input[type=file]")
      .first()
      .setInputFiles({ name: "contract.pdf", mimeType: "application/pdf", buffer: FILE }),
  ));

test("on an entry's page", () => looking("#/entries/2", { h1: 1, ".verdict": 1, ".statement": 1 }));

/** Keys in a browser: found, shown, and explored along the endorsements between them. */
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { Client } from "#cairnlog/server/client/index.js";
import { asSigner, newClient } from "../client/clients.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { expectReadable, expectReadableEverywhere, Reader, TELEPHONE } from "./explorer.js";

const HUMAN = "x-service:human_attestation";
const INSTITUTIONAL = "x-service:institutional_endorsement";

interface Person {
  readonly client: Client;
  readonly fingerprint: string;
}

let service: TestService;
let ada: Person;
let grace: Person;
let alan: Person;
let lovelace: string;
let heir: string;

async function register(server: string, pseudonym: string): Promise<Person> {
  const { client, fingerprint } = newClient(server);
  await client.keys.register({ pseudonym });
  return { client, fingerprint };
}

async function endorse(from: Person, to: Person, category: string, isAccepted = true): Promise<number> {
  const { entry } = await from.client.endorsements.offer({ endorsed_fingerprint: to.fingerprint, category } as never);
  if (isAccepted) await to.client.endorsements.accept(entry.id);
  return entry.id;
}

/** Ada is trusted; Ada → Grace → Alan, the university → Ada, Grace ⇢ Kurt (offered). Heir succeeded Old Ada. */
beforeAll(async () => {
  const first = newClient("http://127.0.0.1:1");
  service = await startTestService({
    SERVICE_TRUST_ANCHORS: first.fingerprint,
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
  });
  const { client } = newClient(service.url, { signer: asSigner(first.signer) });
  await client.keys.register({ pseudonym: "Ada Lovelace" });
  ada = { client, fingerprint: first.fingerprint };
  grace = await register(service.url, "Grace Hopper");
  alan = await register(service.url, "Alan Turing");
  const [university, kurt] = [
    await register(service.url, "University of Manchester"),
    await register(service.url, "Kurt Gödel"),
  ];
  await endorse(ada, grace, HUMAN);
  await endorse(grace, alan, HUMAN);
  await endorse(university, ada, INSTITUTIONAL);
  await endorse(grace, kurt, HUMAN, false);
  await grace.client.endorsements.alert(alan.fingerprint, "the laptop was stolen", "a police report");
  await ada.client.attest({ title: "Notes on the engine", content_hash: "ab".repeat(32) });
  const old = await register(service.url, "Countess");
  lovelace = old.fingerprint;
  const successor = newSigner("ecdsa-p256");
  heir = successor.fingerprint;
  await old.client.keys.succeed(asSigner(successor), { pseudonym: "Countess the second" });
  const lost = await register(service.url, "Lost");
  await lost.client.keys.revoke();
  for (let i = 1; i <= 24; i++) await register(service.url, `Reader ${i}`);
});

const names = (page: Page) => page.locator(".key-name").allInnerTexts();
const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const openKey = async (reader: Reader, fingerprint: string, name: string, more = "") => {
  const page = await reader.open(service.url, `#/keys/${encodeURIComponent(fingerprint)}${more}`);
  await page.getByRole("heading", { level: 1, name }).waitFor();
  return page;
};

describe("the list", () => {
  test("fits every screen and every reader", () => expectReadableEverywhere(service.url, "#/keys", "Grace Hopper"));

  test("is paged, and found in by name, by status and by fingerprint", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/keys");
    await page.getByRole("link", { name: "Ada Lovelace" }).waitFor();
    expect((await names(page)).length).toBe(25);
    await page.getByRole("link", { name: "Next page" }).click();
    await page.getByRole("link", { name: "Reader 24" }).waitFor();
    const search = page.getByLabel("A part of the name, or a whole fingerprint");
    await search.fill("COUNT");
    await search.press("Enter");
    await page.getByText("2 keys", { exact: true }).waitFor();
    expect(await names(page)).toEqual(["Countess", "Countess the second"]);
    await page.getByLabel("Status").selectOption("succeeded");
    await page.getByText("1 key", { exact: true }).waitFor();
    expect(await names(page)).toEqual(["Countess"]);
    await page.reload();
    await page.getByText("1 key", { exact: true }).waitFor();
    await page.getByLabel("Status").selectOption("expired");
    await page.getByText("No key matches.").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByText("32 keys", { exact: true }).waitFor();
    await page.getByLabel("Status").selectOption("revoked");
    await page.getByText("1 key", { exact: true }).waitFor();
    expect(await names(page)).toEqual(["Lost"]);
    await search.fill(grace.fingerprint.toUpperCase().replace("SHA256", "sha256"));
    await search.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Grace Hopper" }).waitFor();
    await reader.leave();
  });

  test("of thousands is searched by status in pieces, each of which goes on where the one before has ended", async () => {
    const reader = await Reader.arrive();
    const asked: number[] = [];
    await reader.context.route("**/api/v1/keys?*", async (route) => {
      const { searchParams } = new URL(route.request().url());
      const page = Number(searchParams.get("page"));
      if (searchParams.get("per_page") !== "200") return route.fallback();
      asked.push(page);
      const [model] = (await (await route.fetch({ url: `${service.url}/api/v1/keys?per_page=1` })).json()).keys;
      const key = (n: number) => ({
        ...model,
        fingerprint: `sha256:${n.toString(16).padStart(64, "0")}`,
        pseudonym: `Key ${n}`,
        status: n % 200 ? "active" : "revoked",
      });
      const keys = Array.from({ length: 200 }, (_, i) => key((page - 1) * 200 + i));
      return route.fulfill({ json: { keys, page, per_page: 200, total: 2_600 } });
    });
    const page = await reader.open(service.url, "#/keys?status=revoked");
    for (const [count, looked] of [
      [5, "1,000"],
      [10, "2,000"],
    ] as const) {
      await page.getByText(`Searched ${looked} of 2,600 keys.`).waitFor();
      expect(await page.locator(".key-name").count()).toBe(count);
      await page.getByRole("button", { name: "Search further" }).click();
    }
    await page.getByText("13 keys", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Search further" }).count()).toBe(0);
    expect(asked).toEqual(Array.from({ length: 13 }, (_, i) => i + 1));
    await reader.leave();
  });

  test("of a log without keys says so, and so does an address that names none", async () => {
    const empty = await startTestService();
    const reader = await Reader.arrive({ viewport: TELEPHONE });
    const page = await reader.open(empty.url, "#/keys");
    await page.getByText("No key is registered yet").waitFor();
    await expectReadable(page);
    const nobody = await reader.open(service.url, `#/keys/sha256%3A${"0".repeat(64)}`);
    await nobody.getByText("No key with this fingerprint is registered.").waitFor();
    const nonsense = await reader.open(service.url, "#/keys/nonsense");
    await nonsense.getByText("nonsense is not a fingerprint.").waitFor();
    await reader.leave();
  });

  test("shows the error, and tries again", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/keys");
    await page.getByRole("link", { name: "Ada Lovelace" }).waitFor();
    await page.route("**/api/v1/keys?*", (route) => route.abort());
    await page.getByRole("link", { name: "Next page" }).click();
    await page.getByText("The service does not answer", { exact: true }).waitFor();
    await page.unroute("**/api/v1/keys?*");
    await page.getByRole("main").getByRole("button", { name: "Try again" }).click();
    await page.getByRole("link", { name: "Reader 24" }).waitFor();
    await reader.leave();
  });
});

describe("one key", () => {
  test("shows over whom trust reaches it, and what each of them passes on", async () => {
    const reader = await Reader.arrive();
    const page = await openKey(reader, alan.fingerprint, "Alan Turing");
    const path = region(page, "Trust")
      .getByRole("list", { name: /^Paths of trust/ })
      .getByRole("listitem");
    await path.getByText("Grace Hopper").waitFor();
    expect((await path.allInnerTexts()).map((text) => text.replace(/\s+/g, " "))).toEqual([
      expect.stringMatching(/^Ada Lovelace [0-9a-f]{8} × 0\.5 → Grace Hopper [0-9a-f]{8} × 0\.5 → this key = 0\.25$/),
    ]);
    // An endorser has alerted about the key, so it has nothing of itself.
    await region(page, "Trust").getByText("1 − (1 − 0) × (1 − 0.25) = 0.25").waitFor();
    await reader.leave();
  });

  test("fits every screen and every reader", async () => {
    const address = `#/keys/${encodeURIComponent(grace.fingerprint)}`;
    await expectReadableEverywhere(service.url, address, "The same data as a table");
  });

  test("is shown with its trust, endorsements and entries; its fingerprint is computed", async () => {
    const reader = await Reader.arrive();
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace");
    await page.getByText("The public key has this fingerprint").waitFor();
    expect(await region(page, "The key").innerText()).toContain(ada.fingerprint);
    await region(page, "Trust").getByText("Yes").waitFor();
    await region(page, "Endorsements received")
      .getByText("institutional endorsement", { exact: true })
      .last()
      .waitFor();
    await region(page, "Endorsements issued").getByText("human attestation", { exact: true }).last().waitFor();
    await region(page, "Endorsements issued").getByRole("link", { name: "Grace Hopper" }).waitFor();
    await region(page, "Attestations and other entries").getByText("Notes on the engine").waitFor();
    await region(page, "Trust").getByText("No alerts").waitFor();
    // The anchor itself.
    expect(await region(page, "Trust").getByRole("listitem").count()).toBe(0);
    await region(page, "Endorsements issued").getByLabel("Status").selectOption("withdrawn");
    await region(page, "Endorsements issued").getByText("No endorsement matches.").waitFor();
    await reader.leave();
  });

  test("that is shown under another's fingerprint is found out", async () => {
    const reader = await Reader.arrive();
    const { publicKey } = newSigner();
    await reader.context.route("**/api/v1/keys/*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), public_key: publicKey } });
    });
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace");
    await page.getByText("The public key that the service shows does not have this fingerprint.").waitFor();
    await reader.leave();
  });

  test("leads to the keys before and after it", async () => {
    const reader = await Reader.arrive();
    const page = await openKey(reader, lovelace, "Countess");
    const chain = region(page, "Succession");
    await chain.locator("[aria-current]").getByText("Countess", { exact: true }).waitFor();
    await chain.getByRole("link", { name: "Countess the second" }).click();
    await page.getByRole("heading", { level: 1, name: "Countess the second" }).waitFor();
    expect(await region(page, "The key").innerText()).toContain(heir);
    await chain.getByRole("link", { name: /^Countess [0-9a-f]{8}$/ }).click();
    await chain.locator("[aria-current]").getByText("Countess", { exact: true }).waitFor();
    await reader.leave();
  });

  test("that somebody has warned of says so", async () => {
    const reader = await Reader.arrive();
    const page = await reader.open(service.url, "#/keys?pseudonym=Turing");
    await page.getByRole("link", { name: "Alan Turing" }).click();
    const alerts = region(page, "Alerts");
    await alerts.getByText("the laptop was stolen").waitFor();
    await alerts.getByText("a police report").waitFor();
    await alerts.getByRole("link", { name: /^Grace Hopper/ }).click();
    await page.getByRole("heading", { level: 1, name: "Grace Hopper" }).waitFor();
    await reader.leave();
  });
});

describe("the graph", () => {
  const graph = (page: Page) => region(page, "Endorsements around the key");
  const rows = async (page: Page) => {
    const table = graph(page).locator("tbody tr");
    const cells = await table.evaluateAll((all) =>
      all.map((row) =>
        [...row.querySelectorAll("td")]
          .slice(0, 4)
          .map((cell) => (cell.querySelector(".walk .key-said") ?? cell).textContent),
      ),
    );
    return cells.map((row) => row.join(" | ")).sort();
  };

  /** Waits until the change is on the screen. */
  const drawn = (page: Page) =>
    page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

  test("is not drawn where the reader has gone on before its code was there", async () => {
    const reader = await Reader.arrive();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await reader.context.route(/cytoscape/, async (route) => {
      await held;
      await route.continue();
    });
    const asked = reader.context.waitForEvent("request", (request) => request.url().includes("cytoscape"));
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace");
    const arrived = page.waitForResponse(/cytoscape/);
    await asked;
    await page.evaluate('location.hash = "#/keys"');
    await graph(page).waitFor({ state: "detached" });
    release();
    await arrived;
    await drawn(page);
    await reader.leave();
  });

  test("has the same in its table, and is walked there", async () => {
    const reader = await Reader.arrive();
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace");
    const fold = graph(page).getByText("The same data as a table");
    await fold.waitFor();
    // Of thousands it takes seconds to be made.
    expect(await graph(page).locator("tr").count()).toBe(0);
    await fold.click();
    await graph(page).locator("tbody tr").nth(3).waitFor();
    expect(await rows(page)).toEqual([
      "Ada Lovelace | Grace Hopper | human attestation | active",
      "Grace Hopper | Alan Turing | human attestation | active",
      "Grace Hopper | Kurt Gödel | human attestation | offered",
      "University of Manchester | Ada Lovelace | institutional endorsement | active",
    ]);
    await graph(page)
      .getByRole("button", { name: /^Kurt Gödel/ })
      .click();
    await graph(page).getByText("Around Kurt Gödel").waitFor();
    await expect.poll(() => rows(page)).toHaveLength(3);
    await page.goBack();
    await expect.poll(() => rows(page)).toHaveLength(4);
    await reader.leave();
  });

  test("is filtered by category, status and time", async () => {
    const reader = await Reader.arrive();
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace");
    await graph(page).getByText("The same data as a table").click();
    await graph(page).getByLabel("Category").selectOption(INSTITUTIONAL);
    await expect.poll(() => rows(page)).toEqual([expect.stringContaining("University")]);
    await graph(page).getByLabel("Category").selectOption(HUMAN);
    await graph(page).getByLabel("Status").selectOption("offered");
    await graph(page).getByText("This key has no endorsement of this kind").waitFor();
    await graph(page).getByLabel("Status").selectOption("active");
    await graph(page).getByText("The same data as a table").waitFor();
    await graph(page).getByLabel("Not before").fill("2999-01-01");
    await graph(page).getByText("This key has no endorsement of this kind").waitFor();
    await page.reload();
    await graph(page).getByText("This key has no endorsement of this kind").waitFor();
    await reader.leave();
  });

  test("has no edge that strikes through a name", async () => {
    const reader = await Reader.arrive({ colorScheme: "light" });
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace");
    await graph(page).locator("canvas").first().waitFor();
    await drawn(page);
    const canvas = graph(page).locator(".graph-canvas");
    // An edge that leaves a key straight down goes through the key's name, which is below it.
    await canvas.evaluate(
      (container, [upper, lower]) => {
        const { cy } = (container as unknown as { _cyreg: { cy: import("cytoscape").Core } })._cyreg;
        const { x, y } = cy.getElementById(upper!).removeClass("above").position();
        cy.getElementById(lower!).position({ x, y: y + 200 });
        cy.fit(undefined, 40);
      },
      [ada.fingerprint, grace.fingerprint],
    );
    await drawn(page);
    const look = () =>
      canvas.evaluate((container) => {
        const { cy } = (container as unknown as { _cyreg: { cy: import("cytoscape").Core } })._cyreg;
        const canvas = container.querySelector<HTMLCanvasElement>('canvas[data-id="layer2-node"]')!;
        const scale = canvas.width / canvas.getBoundingClientRect().width;
        // Edges are green; names and what is behind them are not.
        const green = (x: number, y: number, width: number, height: number): number => {
          const { data } = canvas
            .getContext("2d")!
            .getImageData(x * scale, y * scale, Math.max(1, width * scale), Math.max(1, height * scale));
          let count = 0;
          for (let i = 0; i < data.length; i += 4) if (data[i + 3]! > 128 && data[i + 1]! - data[i]! > 30) count++;
          return count;
        };
        let [inNames, crossed] = [0, 0];
        for (const node of cy.nodes()) {
          const { x1, y1, w, h } = node.renderedBoundingBox({
            includeNodes: false,
            includeEdges: false,
            includeLabels: true,
          });
          // Without the margin around a name, where an edge may end.
          inNames += green(x1 + 4, y1 + 4, w - 8, h - 8);
          for (const edge of node.connectedEdges()) {
            const [from, to] = [edge.source().renderedPosition(), edge.target().renderedPosition()];
            const steps = Array.from({ length: 101 }, (_, i) => i / 100);
            const isInside = (t: number): boolean => {
              const [x, y] = [from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t];
              return x > x1 && x < x1 + w && y > y1 && y < y1 + h;
            };
            if (steps.some(isInside)) crossed++;
          }
        }
        return { inNames, crossed, elsewhere: green(0, 0, canvas.width / scale, canvas.height / scale) };
      });
    const { inNames, crossed, elsewhere } = await look();
    expect(crossed).toBeGreaterThan(0);
    expect(elsewhere).toBeGreaterThan(100);
    expect(inNames).toBe(0);
    // Without what is behind the names, the edges would be seen in them.
    await canvas.evaluate((container) => {
      const { cy } = (container as unknown as { _cyreg: { cy: import("cytoscape").Core } })._cyreg;
      cy.nodes().style("text-background-opacity", 0);
    });
    await expect.poll(async () => (await look()).inNames).toBeGreaterThan(0);
    await reader.leave();
  });

  test("is drawn, walked by keyboard and by pointer, and one comes back", async () => {
    const reader = await Reader.arrive();
    const page = await openKey(reader, ada.fingerprint, "Ada Lovelace", "?depth=1");
    const picture = graph(page).getByRole("application");
    await graph(page).locator("canvas").first().waitFor();
    await expectReadable(page);
    await picture.focus();
    const said = page.locator('[aria-live="polite"]');
    // Grace is one of two neighbours on a ring. One of the four directions leads to her, possibly through the middle.
    for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp"]) {
      await page.keyboard.press(key);
      await drawn(page);
      if ((await said.innerText()).startsWith("Grace Hopper")) break;
    }
    expect(await said.innerText()).toContain(
      "Grace Hopper, active. endorsed by Ada Lovelace, human attestation, active",
    );
    await page.keyboard.press("Enter");
    await graph(page).getByText("Around Grace Hopper").waitFor();
    await page.goBack();
    await graph(page).getByText("Around Grace Hopper").waitFor({ state: "detached" });
    await graph(page).locator("canvas").first().waitFor();
    await drawn(page);
    const canvas = graph(page).locator(".graph-canvas");
    await canvas.scrollIntoViewIfNeeded();
    const position = await canvas.evaluate((container, id) => {
      const { cy } = (container as unknown as { _cyreg: { cy: import("cytoscape").Core } })._cyreg;
      return cy.getElementById(id).renderedPosition();
    }, grace.fingerprint);
    await canvas.click({ position });
    await graph(page).getByText("Around Grace Hopper").waitFor();
    await graph(page).getByRole("button", { name: "Back to the first key" }).click();
    await graph(page).getByText("Around Grace Hopper").waitFor({ state: "detached" });
    await reader.leave();
  });
});

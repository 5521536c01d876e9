/** Accounts: opening them, uniqueness, secrets, and restarts. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPool, type Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { foldName } from "#cairnlog/engine/registry/accounts/accounts.js";
import {
  at,
  closeWorlds,
  failure,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  type World,
} from "../world.js";
import { type AccountInput, Holders, newName, RECOVERY_KEY, UUID } from "./holders.js";

const pool = createPool(1);

let world: World;
/** Names of the functions that the pool ran. */
const tasks: string[] = [];
const recording: Pool = {
  workers: pool.workers,
  run(url, name, input, transfer) {
    tasks.push(name);
    return pool.run(url, name, input, transfer);
  },
  close: () => pool.close(),
};

const folder = newFolder();
beforeAll(async () => {
  world = await openWorld(folder, undefined, { pool: recording });
});
afterAll(async () => {
  await closeWorlds();
  await pool.close();
});

const holders = new Holders(() => world);

describe("opening an account", () => {
  it("answers account, credential and recovery key, and appends nothing", async () => {
    const request = await holders.input({ display_name: "Ada", device_label: "the ThinkPad" });
    const { size } = world.registry.log;
    const opened = await world.registry.accounts.create(request);
    expect(opened).toEqual({
      user: { id: expect.stringMatching(UUID), display_name: "Ada", created_at: at(world.now) },
      credential: {
        id: expect.stringMatching(UUID),
        key_fingerprint: request.key_fingerprint,
        credential_type: "software",
        device_label: "the ThinkPad",
        hardware_backed: false,
        status: "active",
        created_at: at(world.now),
        revoked_at: null,
      },
      recovery_key: expect.stringMatching(RECOVERY_KEY),
    });
    expect(world.registry.log.size).toBe(size);
  });

  it("accepts a declaration of hardware if no roots are set, with any attestation", async () => {
    for (const hardware_attestation of [undefined, null, "not even PEM"]) {
      const { credential } = await holders.create({ credential_type: "hardware", hardware_attestation });
      expect(credential).toMatchObject({ credential_type: "hardware", hardware_backed: true });
    }
  });

  it("accepts the operator key like any other, once", async () => {
    const key_fingerprint = world.operator.fingerprint;
    expect((await holders.create({ key_fingerprint })).credential.key_fingerprint).toBe(key_fingerprint);
    expect((await failure(() => holders.create({ key_fingerprint }))).code).toBe("already-exists");
  });

  it("knows a key by its bare hex, too", async () => {
    const fingerprint = await holders.newKey();
    const { credential } = await holders.create({ key_fingerprint: fingerprint.slice("sha256:".length).toUpperCase() });
    expect(credential.key_fingerprint).toBe(fingerprint);
  });

  it("is refused for a key that is unknown, has ended, or is on an account", async () => {
    expect((await failure(() => holders.create({ key_fingerprint: nodeSigner().fingerprint }))).code).toBe("not-found");
    expect((await failure(() => holders.create({ key_fingerprint: "nonsense" }))).code).toBe("not-found");
    const ended = await holders.newKey();
    await holders.end(ended);
    expect((await failure(() => holders.create({ key_fingerprint: ended }))).code).toBe("wrong-key-status");
    const expired = nodeSigner();
    await world.registry.keys.register(registration(expired, "brief", at(world.now + SECOND)));
    world.now += SECOND;
    expect((await failure(() => holders.create({ key_fingerprint: expired.fingerprint }))).code).toBe(
      "wrong-key-status",
    );
    const { credential } = await holders.create();
    const taken = { key_fingerprint: credential.key_fingerprint };
    expect((await failure(() => holders.create(taken))).code).toBe("already-exists");
  });

  it("hashes nothing for an account that cannot be", async () => {
    const { user, credential } = await holders.create();
    const key_fingerprint = await holders.newKey();
    tasks.length = 0;
    await failure(() => holders.create({ display_name: user.display_name, key_fingerprint }));
    await failure(() => holders.create({ key_fingerprint: credential.key_fingerprint }));
    await failure(() => holders.create({ email: "none", key_fingerprint }));
    expect(tasks).toEqual([]);
  });
});

describe("names", () => {
  it.each([
    ["ADA LOVELACE", "ada lovelace"],
    ["Zoë", "ZOE\u0308"],
    ["Straße", "STRASSE"],
    ["STRAẞE 2", "strasse 2"],
    ["ΟΔΥΣΣΕΥΣ", "οδυσσευς"],
    ["οδυσσευσ 2", "οδυσσευς 2"],
    ["ﬁnn", "FINN"],
    ["Ǆ", "ǆ"],
    ["\u212bngström", "ångström"],
  ])("%s and %s are one", async (first, second) => {
    await holders.create({ display_name: first });
    for (const display_name of [first, second])
      expect((await failure(() => holders.create({ display_name }))).code).toBe("already-exists");
  });

  it("fold alike with every case mapping of every character", () => {
    const wrong: string[] = [];
    for (let code = 1; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const character = String.fromCodePoint(code);
      const folded = foldName(character);
      if (foldName(character.toLowerCase()) !== folded || foldName(character.toUpperCase()) !== folded)
        wrong.push(`U+${code.toString(16)} folds to another text than its case mappings`);
      if (foldName(folded) !== folded) wrong.push(`the fold of U+${code.toString(16)} is not stable`);
    }
    expect(wrong).toEqual([]);
  });

  it("are kept as they were given, in NFC", async () => {
    expect((await holders.create({ display_name: "  Cafe\u0301 OK " })).user.display_name).toBe("  Café OK ");
  });

  it("of many accounts opened at one moment go to one each", async () => {
    const requests = await Promise.all(
      Array.from({ length: 8 }, (_, i) => holders.input({ display_name: i % 2 ? "The One" : "THE ONE" })),
    );
    const results = await Promise.allSettled(requests.map((request) => world.registry.accounts.create(request)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results) if (result.status === "rejected") expect(result.reason.code).toBe("already-exists");
    // The refused request has changed nothing: its key is free.
    const loser = requests[results.findIndex(({ status }) => status === "rejected")]!;
    await world.registry.accounts.create({ ...loser, display_name: newName() });
  });

  it("lost or won, a key goes to one account", async () => {
    const key_fingerprint = await holders.newKey();
    const results = await Promise.allSettled([1, 2, 3, 4].map(() => holders.create({ key_fingerprint })));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
});

describe("input", () => {
  const paths = async (more: object) => {
    const { code, paths } = await failure(() => holders.create({ key_fingerprint: "", ...more }));
    expect(code).toBe("invalid-input");
    return paths;
  };

  it("is checked member by member, all at once", async () => {
    const everything = ["/display_name", "/email", "/credential_type", "/key_fingerprint", "/device_label"];
    expect((await failure(() => world.registry.accounts.create({} as AccountInput))).paths).toEqual(everything);
    for (const body of [null, [], "text", 1] as unknown[])
      expect((await failure(() => world.registry.accounts.create(body as AccountInput))).code).toBe("invalid-input");
    expect(await paths({ hardware_attestation: 7 })).toContain("/hardware_attestation");
    expect(await paths({ credential_type: "Hardware" })).toContain("/credential_type");
  });

  it.each(["é", "語", "🗝", "o\u0302"])(
    "counts characters, not bytes: a hundred of %s and no more",
    async (character) => {
      const hundred = character.repeat(100);
      const { user, credential } = await holders.create({ display_name: hundred, device_label: hundred });
      expect([...user.display_name]).toHaveLength(100);
      expect([...credential.device_label]).toHaveLength(100);
      expect(await paths({ display_name: character.repeat(101) })).toContain("/display_name");
      expect(await paths({ device_label: character.repeat(101) })).toContain("/device_label");
    },
  );

  it.each(["", "a\nb", "\u0000", "\u009f", "\ud800", "x".repeat(100_000)])("refuses the name %j", async (name) => {
    expect(await paths({ display_name: name, device_label: name })).toEqual(
      expect.arrayContaining(["/display_name", "/device_label"]),
    );
  });

  it("asks for an address", async () => {
    for (const email of [undefined, null, 7, ["a@b"], "none"]) expect(await paths({ email })).toContain("/email");
  });
});

describe("on disk", () => {
  it("accounts survive a restart, and the rebuilt log does not miss them", async () => {
    const { user, credential, recovery_key } = await holders.create({ display_name: "Survivor" });
    await world.reopen();
    expect(world.registry.log.stateDifferences()).toEqual([]);
    expect((await failure(() => holders.create({ display_name: "SURVIVOR" }))).code).toBe("already-exists");
    const taken = { key_fingerprint: credential.key_fingerprint };
    expect((await failure(() => holders.create(taken))).code).toBe("already-exists");
    const recovered = await holders.recover("survivor", recovery_key);
    expect(recovered).toMatchObject({ user, revoked_credentials: 1 });
  });

  it("neither the log nor any file holds a recovery key, and the log holds nothing of an account", async () => {
    const email = "very.private@secret.example";
    const display_name = "Nameless on the log";
    const { user, recovery_key } = await holders.create({ email, display_name, device_label: "unlogged device" });
    const second = (await holders.recover(display_name, recovery_key)).recovery_key;
    const entries = [...world.registry.log.entries()].map((entry) => JSON.stringify(entry)).join("\n");
    for (const secret of [email, display_name, user.id, "unlogged device"]) expect(entries).not.toContain(secret);
    await world.reopen();
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
    const bytes = Buffer.concat(files.map((file) => readFileSync(join(file.parentPath, file.name))));
    expect(bytes.includes(email)).toBe(true);
    for (const key of [recovery_key, second])
      for (const spelling of [key, key.replaceAll("-", "")])
        for (const text of [spelling, spelling.toLowerCase()]) expect(bytes.includes(text)).toBe(false);
  });
});

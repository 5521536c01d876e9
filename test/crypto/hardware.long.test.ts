/** Hardware attestation: chains that prove a key, and other inputs, which are refused without other effects. */
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HardwareRoots, openHardwareRoots } from "#cairnlog/engine/crypto/hardware.js";
import { importPublicKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { closeWorlds, failure, newFolder } from "../registry/world.js";
import { newSigner, type TestSigner } from "../server/signers.js";
import { type Authority, newRoot, removeChains, selfSigned } from "./chains.js";

const DAY = 86_400_000;
/** The subject of a YubiKey's own certificate, and its extensions without basicConstraints. */
const DEVICE = "Yubico PIV Attestation";
const NO_FLAG = "subjectKeyIdentifier=hash";
const signer = newSigner();
let root: Authority;
let maker: Authority;
let leaf: string;
let roots: HardwareRoots;

beforeAll(() => {
  root = newRoot("Root");
  maker = root.authority("Maker", { days: 3000 });
  leaf = maker.certify(signer.publicKey);
  roots = new HardwareRoots(root.certificate);
});
afterAll(async () => {
  removeChains();
  await closeWorlds();
});

const rootId = () => new X509Certificate(root.certificate).fingerprint256.replaceAll(":", "").toLowerCase();
const verify = (chain: string, key: Pick<TestSigner, "fingerprint"> = signer, now = Date.now()) =>
  roots.verify(chain, key, now);
const refusal = (chain: string, key?: Pick<TestSigner, "fingerprint">, now?: number) =>
  failure(() => verify(chain, key, now));

describe("a chain proves its key", () => {
  it("from leaf over an intermediate to a root that is not sent, or is", () => {
    expect(verify(leaf + maker.certificate)).toBe(rootId());
    expect(verify(leaf + maker.certificate + root.certificate)).toBe(rootId());
    expect(verify(`\r\n ${(leaf + maker.certificate).replaceAll("\n", "\r\n")}\n\n`)).toBe(rootId());
    expect(roots.ids).toEqual([rootId()]);
  });

  it("when the root itself certified the key", () => {
    expect(verify(root.certify(signer.publicKey))).toBe(rootId());
  });

  it.each(["ed25519", "ecdsa-p256", "rsa-2048"] as const)("of the algorithm %s", (algorithm) => {
    const key = newSigner(algorithm);
    expect(verify(maker.certify(key.publicKey) + maker.certificate, key)).toBe(rootId());
  });

  it("through the device certificate of a YubiKey of 2018, which lacks the CA flag", () => {
    const device = root.authority(DEVICE, { extensions: NO_FLAG });
    expect(verify(device.certify(signer.publicKey) + device.certificate)).toBe(rootId());
    expect(verify(device.certify(signer.publicKey) + device.certificate + root.certificate)).toBe(rootId());
  });

  it("to any of several roots, between which there may be text", () => {
    const other = newRoot("Other", "RSA");
    const several = new HardwareRoots(`# makers\n${other.certificate}\nSubject: Root\n${root.certificate}`);
    const otherLeaf = other.certify(signer.publicKey);
    // Read after the last certificate was made: a certificate from a later second would not be valid yet.
    const now = Date.now();
    expect(several.isEmpty).toBe(false);
    expect(several.verify(leaf + maker.certificate, signer, now)).toBe(rootId());
    expect(several.verify(otherLeaf, signer, now)).not.toBe(rootId());
  });

  it("with up to six certificates", async () => {
    const chain = [maker];
    while (chain.length < 5) chain.unshift(chain[0]!.authority(`Maker ${chain.length}`));
    const pem = () => [chain[0]!.certify(signer.publicKey), ...chain.map(({ certificate }) => certificate)];
    expect(pem()).toHaveLength(6);
    expect(verify(pem().join(""))).toBe(rootId());
    chain.unshift(chain[0]!.authority("Maker 5"));
    expect((await refusal(pem().join(""))).code).toBe("invalid-input");
  });
});

describe("a chain proves nothing", () => {
  const refused = async (chain: string, key?: Pick<TestSigner, "fingerprint">, now?: number) =>
    expect(await refusal(chain, key, now)).toMatchObject({ code: "forbidden" });

  it("for another key", () => refused(leaf + maker.certificate, newSigner()));

  it("for a key of a kind that this log does not take", () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "secp384r1" });
    const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
    return refused(maker.certify(pem) + maker.certificate);
  });

  it("to a root that is not trusted, also of the same name", async () => {
    for (const name of ["Stranger", "Root"]) {
      const stranger = newRoot(name);
      const its = stranger.authority("Maker");
      await refused(stranger.certify(signer.publicKey));
      await refused(its.certify(signer.publicKey) + its.certificate);
      await refused(its.certify(signer.publicKey) + its.certificate + stranger.certificate);
      await refused(its.certify(signer.publicKey) + its.certificate + root.certificate);
    }
  });

  it("without roots", async () => {
    const none = new HardwareRoots();
    expect(none.isEmpty).toBe(true);
    expect((await failure(() => none.verify(leaf + maker.certificate, signer, Date.now()))).code).toBe("forbidden");
  });

  it("without its intermediate, or with another of the same name", async () => {
    await refused(leaf);
    await refused(leaf + root.certificate);
    await refused(leaf + root.authority("Maker").certificate);
  });

  it("in another order, or with a certificate twice", async () => {
    await refused(maker.certificate + leaf);
    await refused(root.certificate + maker.certificate + leaf);
    await refused(leaf + root.certificate + maker.certificate);
    await refused(leaf + maker.certificate + maker.certificate);
    await refused(leaf + leaf + maker.certificate);
  });

  it("before and after the time of any of its certificates, the root included", async () => {
    const now = Date.now();
    const short = maker.certify(signer.publicKey, { days: 2 });
    expect(verify(short + maker.certificate, signer, now + DAY)).toBe(rootId());
    await refused(short + maker.certificate, signer, now + 3 * DAY);
    await refused(leaf + maker.certificate, signer, now - DAY);

    const brief = root.authority("Brief", { days: 2 });
    const long = brief.certify(signer.publicKey, { days: 30 });
    expect(verify(long + brief.certificate, signer, now + DAY)).toBe(rootId());
    await refused(long + brief.certificate, signer, now + 3 * DAY);

    const lasting = maker.certify(signer.publicKey, { days: 5000 });
    const after = root.authority("Lasting", { days: 5000 });
    await refused(after.certify(signer.publicKey, { days: 5000 }) + after.certificate, signer, now + 4000 * DAY);
    await refused(lasting + maker.certificate, signer, now + 3500 * DAY);
  });

  it("outside of the dates that all have in common, to the second", async () => {
    const chain = [leaf, maker.certificate];
    const dates = [...chain, root.certificate].map((pem) => new X509Certificate(pem));
    const from = Math.max(...dates.map(({ validFrom }) => Date.parse(validFrom)));
    const to = Math.min(...dates.map(({ validTo }) => Date.parse(validTo)));
    for (const now of [from, to]) expect(verify(chain.join(""), signer, now)).toBe(rootId());
    await refused(chain.join(""), signer, from - 1);
    await refused(chain.join(""), signer, to + 1);
  });

  it.each([
    ["says that it is none", "basicConstraints=critical,CA:FALSE"],
    ["says nothing of it", "subjectKeyIdentifier=hash"],
    ["may not sign certificates", "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature"],
  ])("when what issued the leaf is no CA: it %s", async (_, extensions) => {
    const impostor = root.authority("Impostor", { extensions });
    await refused(impostor.certify(signer.publicKey) + impostor.certificate);
    const below = maker.authority("Below", { extensions });
    await refused(below.certify(signer.publicKey) + below.certificate + maker.certificate);
  });

  it("when what passes for a device was certified by none but a root of the maker, or says that it is no CA", async () => {
    const denying = root.authority(DEVICE, { extensions: "basicConstraints=critical,CA:FALSE" });
    await refused(denying.certify(signer.publicKey) + denying.certificate);
    const below = maker.authority(DEVICE, { extensions: NO_FLAG });
    await refused(below.certify(signer.publicKey) + below.certificate + maker.certificate);
    const device = root.authority(DEVICE, { extensions: NO_FLAG });
    const attested = device.authority("attested key", { extensions: NO_FLAG });
    await refused(attested.certify(signer.publicKey) + attested.certificate + device.certificate);
    const disguised = device.authority(DEVICE, { extensions: NO_FLAG });
    await refused(disguised.certify(signer.publicKey) + disguised.certificate + device.certificate);
  });

  it("when the key certified itself, though it be among the roots", async () => {
    await refused(selfSigned(signer.privateKey));
    const extensions = "basicConstraints=critical,CA:TRUE";
    const own = selfSigned(signer.privateKey, extensions);
    await refused(own);
    const trusting = new HardwareRoots(own + root.certificate);
    // A root that was renewed is another certificate of the same key.
    const renewed = selfSigned(signer.privateKey, extensions);
    for (const chain of [own, own + own, own + root.certificate, renewed, renewed + own])
      expect((await failure(() => trusting.verify(chain, signer, Date.now()))).code).toBe("forbidden");
  });
});

describe("a root", () => {
  it("that another root certified proves the keys it certifies, but not its own", async () => {
    const both = new HardwareRoots(maker.certificate + root.certificate);
    const now = Date.now();
    const id = both.verify(leaf, signer, now);
    expect(both.verify(leaf + maker.certificate, signer, now)).toBe(id);
    expect(id).not.toBe(rootId());
    const { fingerprint } = importPublicKey(maker.publicKey);
    for (const chain of [maker.certificate, maker.certificate + root.certificate]) {
      expect((await failure(() => both.verify(chain, { fingerprint }, now))).code).toBe("forbidden");
      expect(verify(chain, { fingerprint })).toBe(rootId());
    }
  });
});

describe("hostile text", () => {
  const block = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
  const base64 = (pem: string) => pem.replace(/-----[A-Z ]+-----|\s/g, "");

  it("that is not a list of certificates is malformed", async () => {
    const texts = [
      "",
      "garbage",
      block(""),
      block("===="),
      block("AAAA"),
      block(Buffer.from(leaf).toString("base64")),
      block(Buffer.concat([Buffer.from(base64(leaf), "base64"), Buffer.from([0])]).toString("base64")),
      block(Buffer.from(base64(leaf), "base64").subarray(0, -1).toString("base64")),
      leaf.replace("-----END CERTIFICATE-----", ""),
      `text ${leaf}`,
      `${leaf} text`,
      leaf + signer.publicKey,
      signer.publicKey,
      signer.privateKey,
      leaf.replaceAll("CERTIFICATE", "TRUSTED CERTIFICATE"),
      leaf.repeat(7),
      "-----BEGIN CERTIFICATE-----".repeat(2000),
      `-----BEGIN CERTIFICATE-----${"A".repeat(60_000)}`,
      leaf + " ".repeat(65_536),
      "\ud800",
    ];
    for (const text of texts) expect(await refusal(text), text.slice(0, 80)).toMatchObject({ code: "invalid-input" });
  });

  it("never reveals the password", async () => {
    for (const text of [signer.privateKey, `secret ${leaf}`, block("c2VjcmV0")])
      expect((await refusal(text)).message).not.toMatch(/secret|PRIVATE|c2Vj/);
  });

  it("that differs from a good chain in a few bytes is refused, and nothing but refused", async () => {
    const good = [leaf, maker.certificate].map((pem) => Buffer.from(base64(pem), "base64"));
    const change = fc.record({ which: fc.nat(1), at: fc.nat(2000), mask: fc.integer({ min: 1, max: 255 }) });
    const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
      const chain = good.map((der) => Buffer.from(der));
      for (const { which, at, mask } of changes) chain[which]![at % chain[which]!.length]! ^= mask;
      fc.pre(chain.some((der, i) => !der.equals(good[i]!)));
      const text = chain.map((der) => block(der.toString("base64"))).join("");
      expect(["invalid-input", "forbidden"]).toContain((await refusal(text)).code);
    });
    await fc.assert(property, { numRuns: 400 });
  });
});

describe("roots", () => {
  it("are read from a file", async () => {
    const path = join(newFolder(), "roots.pem");
    expect(await failure(() => openHardwareRoots(path))).toMatchObject({ code: "storage-failed" });
    writeFileSync(path, root.certificate);
    const key = importPublicKey(signer.publicKey);
    expect(openHardwareRoots(path).verify(leaf + maker.certificate, key, Date.now())).toBe(rootId());
  });

  it("that are none, unreadable or no CA's are refused", async () => {
    const unreadable = root.certificate.replace(/\nM/, "\nN");
    for (const bundle of ["", "nothing here", signer.publicKey, unreadable, leaf, root.certificate + leaf])
      expect((await failure(() => new HardwareRoots(bundle))).code).toBe("invalid-input");
  });
});

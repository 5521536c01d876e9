/**
 * Fuzzing of all parsers of untrusted text, without a service. A parser may only fail with a coded error, in time that
 * grows linearly with the input. Two implementations of the same parser must agree.
 */
import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import canonicalize from "canonicalize";
import { Random } from "../reliability/random.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { newRecipient, seal } from "../verify/claims/ecies.js";
import { ED25519_ID, ED25519_ORDER, fromLittleEndian, littleEndian, P256_ID, pem, spki } from "../verify/keys/keys.js";
import { append, bitcoin, detached, hex, pending, prepend } from "../verify/ots/otsbytes.js";
import { mutateBytes, mutateText, mutateValue, nastyText } from "./mutate.js";
import { noteTargets } from "./notetargets.js";

/** CPU milliseconds for one input of at most 256 KiB: some hundred times the time of the slowest. */
const TIME_MS = 1_500;
const MAX_BYTES = 256 * 1024;

export interface Target {
  readonly name: string;
  /** Valid inputs, as text (latin1 for bytes). */
  readonly samples: readonly string[];
  /** Whether samples are JSON, so that they can be changed as values. */
  readonly isJson?: boolean;
  /** Whether samples are bytes. */
  readonly isBytes?: boolean;
  /** Throws only CairnlogErrors; returns a sentence if implementations disagree. */
  run(input: Buffer): unknown;
}

const disagree = (what: string, ...verdicts: unknown[]): string =>
  `${what}: ${verdicts.map((one) => JSON.stringify(one)).join(" against ")}`;

/** Whether an error is an intended one of the engine or of the HTTP server. */
const isCoded = (error: unknown): boolean =>
  (error as Error).name === "CairnlogError" || typeof (error as { status?: unknown }).status === "number";

/** The result of `action`, or undefined if it refuses with a coded error. */
function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (!isCoded(error)) throw error;
    return undefined;
  }
}

/** The targets of a build. */
export async function loadTargets(dist: string): Promise<Target[]> {
  const module = (name: string) => import(pathToFileURL(join(dist, `${name}.js`)).href);
  const verify: typeof import("#cairnlog/engine/verify/index.js") = await module("engine/verify/index");
  const claims: typeof import("#cairnlog/engine/verify/claims/claims.js") = await module("engine/verify/claims/claims");
  const { importPublicKey }: typeof import("#cairnlog/engine/crypto/keys/spki.js") =
    await module("engine/crypto/keys/spki");
  const { verifySync }: typeof import("#cairnlog/engine/crypto/keys/signatures.js") = await module(
    "engine/crypto/keys/signatures",
  );
  const { HardwareRoots }: typeof import("#cairnlog/engine/crypto/hardware.js") =
    await module("engine/crypto/hardware");
  const { Faults }: typeof import("#cairnlog/engine/registry/shared/input.js") =
    await module("engine/registry/shared/input");
  const { readPredicates, satisfies: judge }: typeof import("#cairnlog/engine/registry/events/predicatelanguage.js") =
    await module("engine/registry/events/predicatelanguage");
  const { resolvePredicate }: typeof import("#cairnlog/engine/registry/attestations/manifest.js") = await module(
    "engine/registry/attestations/manifest",
  );
  const { readManifest }: typeof import("#cairnlog/engine/registry/attestations/manifest.js") = await module(
    "engine/registry/attestations/manifest",
  );
  const { checkIdentifiers }: typeof import("#cairnlog/engine/registry/endorsements/identifiers.js") = await module(
    "engine/registry/endorsements/identifiers",
  );
  const { isEmail }: typeof import("#cairnlog/engine/registry/accounts/email.js") = await module(
    "engine/registry/accounts/email",
  );
  const { readPseudonym }: typeof import("#cairnlog/engine/registry/events/keys.js") =
    await module("engine/registry/events/keys");
  const { readTrustPolicy }: typeof import("#cairnlog/engine/registry/trust/config.js") =
    await module("engine/registry/trust/config");
  const { textReader }: typeof import("#cairnlog/server/http/input.js") = await module("server/http/input");
  const { parseBody }: typeof import("#cairnlog/server/http/body/body.js") = await module("server/http/body/body");
  const { createHistoryReader, NO_PREDECESSOR }: typeof import("#cairnlog/engine/log/apply/entry.js") =
    await module("engine/log/apply/entry");
  const { readSubscription }: typeof import("#cairnlog/engine/registry/webhooks/input.js") = await module(
    "engine/registry/webhooks/input",
  );
  const { clientAddress, limitKey, parseNetwork }: typeof import("#cairnlog/server/http/transport/client-address.js") =
    await module("server/http/transport/client-address");
  const { json }: typeof import("#cairnlog/server/http/transport/answer.js") =
    await module("server/http/transport/answer");
  const { kept }: typeof import("#cairnlog/server/http/transport/caching.js") = await module(
    "server/http/transport/caching",
  );
  const { LogQuery }: typeof import("#cairnlog/engine/contract/log/log.js") = await module("engine/contract/log/log");

  const text = (input: Buffer) => input.toString("utf8");
  const value = (input: Buffer): unknown => JSON.parse(text(input));
  /** Calls `run` only for inputs that are JSON. */
  const ofJson = (run: (parsed: unknown) => unknown) => (input: Buffer) => {
    let parsed: unknown;
    try {
      parsed = value(input);
    } catch {
      return undefined;
    }
    return run(parsed);
  };
  const faulty = (check: (faults: InstanceType<typeof Faults>) => unknown) => check(new Faults());

  const [ed, ec] = [newSigner(), newSigner("ecdsa-p256")];
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rsaPem = rsa.publicKey.export({ type: "spki", format: "pem" }) as string;
  const operator = verify.parsePublicKey(ed.publicKey);
  const message = Buffer.from("cairn");
  const digest = Buffer.from(sha256("cairn"), "hex");
  // The same signature with an unreduced S.
  const reduced = Buffer.from(ed.sign(message), "base64");
  const unreduced = Buffer.concat([
    reduced.subarray(0, 32),
    littleEndian(fromLittleEndian(reduced.subarray(32)) + ED25519_ORDER),
  ]).toString("base64");
  const manifest = newManifest();
  const keys = [ed.publicKey, ec.publicKey, rsaPem].map(
    (one) => [verify.parsePublicKey(one), importPublicKey(one)] as const,
  );
  const timestamp = hex(
    prepend(digest),
    "08",
    append(Buffer.from("ab")),
    "08",
    "ff",
    "00",
    pending("https://a.example"),
    "00",
    bitcoin(800_000),
  );
  const noteText = verify.checkpointText({ origin: "log.example/a", treeSize: 5, rootHash: "ab".repeat(32) });
  const noteSignature = sign(null, Buffer.from(noteText), ed.privateKey);
  const note = verify.signedNote(noteText, "log.example/a", verify.noteKeyId("log.example/a", operator), noteSignature);
  const recipient = newRecipient();

  const history = await createHistoryReader({ checksEvents: true });
  const event = { event_type: "key_revocation", fingerprint: `sha256:${"a".repeat(64)}`, tags: ["x"] };
  const first = { payload: event, previous_hash: null, timestamp: "2025-03-01T12:00:00.250000Z" };
  const entryOf = (chain_version: 1 | 2) => {
    const preimage =
      chain_version === 2 ? `service.log.entry.v2\0${canonicalize(first)}` : canonicalize(first.payload)!;
    const entry_hash = sha256(preimage);
    const entry_hashes = [{ algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true }];
    return JSON.stringify({ id: 1, event_type: "key_revocation", ...first, entry_hash, entry_hashes, chain_version });
  };
  const proxies = [parseNetwork("10.0.0.0/8")!, parseNetwork("fd00::/8")!];
  const readQuery = textReader(LogQuery);

  return [
    ...(await noteTargets(module, attempt)),
    {
      name: "imported entries",
      isJson: true,
      samples: [entryOf(2), entryOf(1)],
      run: (input) => void history.read(input, NO_PREDECESSOR, 0, null),
    },
    {
      name: "webhook subscriptions",
      isJson: true,
      samples: [
        JSON.stringify({
          url: "https://example.org:8443/hook?a=b",
          events: ["key.revoked"],
          secret: "whsec_YWJjZGVmZ2g=",
        }),
        JSON.stringify({
          url: "http://[2001:db8::1]/",
          key_fingerprint: ed.fingerprint,
          document_hash: "ab".repeat(32),
        }),
      ],
      run: ofJson((parsed) => void attempt(() => readSubscription(parsed as never, false))),
    },
    {
      name: "forwarding headers",
      samples: [
        "203.0.113.7, 10.0.0.2",
        "[2001:db8::1]:443, 10.1.2.3:80",
        "fd00::1,::ffff:10.0.0.1",
        "unknown, _hidden",
      ],
      run: (input) => void limitKey(clientAddress("10.0.0.1", text(input), proxies)),
    },
    {
      name: "entity tags",
      samples: ['"abc", W/"def"', "*", `"${"a".repeat(43)}"`],
      run: (input) => void kept(json({}), "revalidate", text(input)),
    },
    {
      name: "queries",
      samples: ["page=1&per_page=50&event_type=a,b&tags=c", "page=9007199254740991", "%70age=1&search=%c3%a9"],
      run: (input) => void attempt(() => readQuery(new URLSearchParams(text(input)))),
    },
    {
      name: "I-JSON",
      isJson: true,
      samples: [
        '{"a":[1,-0.5e3,true,null,"x\\u00e9\\ud83e\\udea8"],"b":{"c":{}}}',
        '[0.1,1e21,9007199254740991,"\\n"]',
        JSON.stringify(manifest),
      ],
      run(input) {
        const strict = attempt(() => verify.parseIJson(text(input)));
        if (strict === undefined) return undefined;
        const lax = value(input);
        if (JSON.stringify(strict) !== JSON.stringify(lax)) return disagree("I-JSON against JSON.parse", strict, lax);
        const ours = attempt(() => verify.canonicalJson(strict));
        const theirs = canonicalize(strict);
        return ours === theirs ? undefined : disagree("canonical JSON", ours, theirs);
      },
    },
    {
      name: "request bodies",
      isJson: true,
      samples: ['{"payload":{"a":1}}'],
      run: (input) => {
        parseBody(input);
        return undefined;
      },
    },
    {
      name: "public keys",
      samples: [
        ed.publicKey,
        ec.publicKey,
        rsaPem,
        pem(spki(ED25519_ID, Buffer.alloc(32, 9))),
        pem(spki(P256_ID, recipient.point)),
        // A length in two bytes, although one is enough.
        pem(Buffer.concat([Buffer.from([0x30, 0x81]), Buffer.from(operator.der).subarray(1)])),
      ],
      run(input) {
        const portable = attempt(() => verify.parsePublicKey(text(input)));
        const server = attempt(() => importPublicKey(text(input)));
        if (portable?.fingerprint !== server?.fingerprint)
          return disagree("fingerprints", portable?.fingerprint, server?.fingerprint);
        if (!portable) return undefined;
        const der = createPublicKey(portable.pem).export({ type: "spki", format: "der" });
        return der.equals(portable.der)
          ? undefined
          : disagree("DER", der.toString("hex"), Buffer.from(portable.der).toString("hex"));
      },
    },
    {
      name: "key bytes",
      isBytes: true,
      samples: keys.map(([{ der }]) => Buffer.from(der).toString("latin1")),
      run(input) {
        const block = pem(input.length ? input : Buffer.from([0]));
        const portable = attempt(() => verify.parsePublicKey(block));
        const server = attempt(() => importPublicKey(block));
        return portable?.fingerprint === server?.fingerprint
          ? undefined
          : disagree("fingerprints", portable?.fingerprint, server?.fingerprint);
      },
    },
    {
      name: "signatures",
      isBytes: true,
      samples: [
        ed.sign(message),
        unreduced,
        ec.sign(message),
        sign("sha256", message, rsa.privateKey).toString("base64"),
      ].map((one) => Buffer.from(one, "base64").toString("latin1")),
      async run(input) {
        for (const [portable, server] of keys) {
          const verdicts = [await verify.verifySignature(portable, message, input), verifySync(server, message, input)];
          if (verdicts[0] !== verdicts[1]) return disagree(`${portable.algorithm} signature`, ...verdicts);
        }
        return undefined;
      },
    },
    {
      name: "certificate chains",
      samples: [
        pem(Buffer.from("308201", "hex"), "CERTIFICATE"),
        pem(Buffer.from(operator.der), "CERTIFICATE").repeat(3),
      ],
      run: (input) => void attempt(() => new HardwareRoots(text(input))),
    },
    {
      name: "timestamp files",
      isBytes: true,
      samples: [
        detached(digest, timestamp).toString("latin1"),
        detached(digest, hex("f0", "01ab", "08", "00", bitcoin(1))).toString("latin1"),
      ],
      run(input) {
        const file = attempt(() => verify.parseOtsFile(input));
        attempt(() => verify.checkOtsProof(input.toString("base64"), digest.toString("hex")));
        if (!file) return undefined;
        verify.otsCommitments(file.timestamp);
        const again = verify.serialiseOtsFile(file);
        const twice = verify.serialiseOtsFile(verify.parseOtsFile(again));
        return Buffer.from(again).equals(Buffer.from(twice))
          ? undefined
          : "a timestamp file changes when it is read and written";
      },
    },
    {
      name: "calendars' answers",
      isBytes: true,
      samples: [timestamp.toString("latin1")],
      run: (input) => void verify.parseOtsTimestamp(input, digest),
    },
    {
      name: "signed notes",
      samples: [note],
      async run(input) {
        const read = await verify.verifyCheckpoint(text(input), operator, "log.example/a");
        return read && (read.treeSize !== 5 || read.rootHash !== "ab".repeat(32))
          ? disagree("a note that nobody signed", read)
          : undefined;
      },
    },
    {
      name: "attestation bundles",
      isJson: true,
      samples: [
        JSON.stringify({
          format: verify.BUNDLE_FORMAT,
          manifest,
          attestation: {},
          entry: { id: 1, entry_hashes: [] },
          inclusion_proof: { audit_path: [] },
          operator_key: ed.publicKey,
        }),
        JSON.stringify({ format: verify.BUNDLE_FORMAT }),
      ],
      run: ofJson((bundle) => verify.verifyBundle(bundle, { operatorKey: ed.publicKey } as never)),
    },
    {
      name: "claims",
      isJson: true,
      samples: [JSON.stringify(seal({ a: 1 }, recipient.point).payload)],
      run: ofJson((payload) => {
        attempt(() => claims.verifyClaimCommitment(payload, { a: 1 }, "ab".repeat(32)));
        return void attempt(() => claims.decryptClaim(payload, recipient.scalar));
      }),
    },
    {
      name: "policies' predicates",
      isJson: true,
      samples: [
        '{"all":[{"field":"claims.a.b","op":"eq","value":[1,{"c":2}]},{"not":{"any":[{"field":"requester_trust","op":"lt","value":0.5}]}}]}',
        '{"field":"attestation_type","op":"prefix","value":"https://"}',
      ],
      run: ofJson((parsed) =>
        faulty((faults) => {
          const predicates = attempt(() => readPredicates(parsed, "/predicates", faults));
          const subject = { attestation_type: "a", claims: { a: { b: 1 }, ["__proto__"]: 1 }, requester_trust: 0.5 };
          if (predicates) judge(predicates, subject as never);
        }),
      ),
    },
    {
      name: "manifests",
      isJson: true,
      samples: [
        JSON.stringify(manifest),
        JSON.stringify({
          document: { title: "A", content_hash: "ab".repeat(32), tags: ["a"] },
          attestations: [{ id: "1" }],
        }),
      ],
      run: ofJson((parsed) => void attempt(() => readManifest(parsed, "/manifest"))),
    },
    {
      name: "identifiers",
      isJson: true,
      samples: [
        '[{"type":"orcid","value":"0000-0002-1825-0097"},{"type":"doi","value":"10.1000/182"},{"type":"url","value":"https://example.org/a?b"}]',
        '[{"type":"email-domain","value":"example.org"},{"type":"isni","value":"0000000121032683"},{"type":"github","value":"a-b"}]',
      ],
      run: ofJson((parsed) => faulty((faults) => void attempt(() => checkIdentifiers(parsed, "/e", faults)))),
    },
    {
      name: "trust policies",
      isJson: true,
      samples: [
        JSON.stringify({
          direct_signer_anchors: [{ fingerprint: ed.fingerprint, weight: 1 }],
          minimum_threshold: 0.5,
          category_weights: { a: 1 },
        }),
      ],
      // The members of a body that is known to be an object.
      run: ofJson((parsed) => void attempt(() => readTrustPolicy({ ...(parsed as object) }))),
    },
    {
      name: "texts",
      samples: [
        "a.b+c@example.org",
        "2026-11-20T22:00:00.123456+02:00",
        "https://X-Service.example:443/predicates/a/../b/%41",
        `sha256:${"ab".repeat(32)}`,
        "Zoë 🪨",
        "YWJj",
      ],
      run(input) {
        const read = text(input);
        isEmail(read);
        verify.normaliseContentHash(read);
        verify.decodeBase64(read);
        verify.isNoteName(read);
        attempt(() => resolvePredicate(read, "https://x-service.example/predicates", false));
        faulty((faults) => attempt(() => readPseudonym(read, "/p", faults)));
        const canonical = verify.canonicalTimestamp(read);
        if (canonical === undefined) return undefined;
        const again = verify.canonicalTimestamp(canonical);
        return again === canonical ? undefined : disagree("canonical timestamps", canonical, again);
      },
    },
  ];
}

export interface ParserFinding {
  readonly problem: string;
  readonly target: string;
  readonly input: Buffer;
}

/** Runs one input. @returns a sentence about a fault; null if there is none */
export async function judgeParser({ name, run }: Target, input: Buffer): Promise<string | null> {
  const before = process.cpuUsage();
  let problem: string | null = null;
  try {
    const said = await run(input);
    if (typeof said === "string") problem = `${name}: ${said.slice(0, 500)}`;
  } catch (error) {
    if (!isCoded(error)) problem = `${name}: ${(error as Error).stack}`;
  }
  const { user, system } = process.cpuUsage(before);
  const milliseconds = (user + system) / 1000;
  if (milliseconds > TIME_MS) return `${name} took ${milliseconds.toFixed(0)} ms for ${input.length} bytes`;
  return problem;
}

function makeInput({ samples, isJson, isBytes }: Target, random: Random): Buffer {
  const sample = random.pick(samples);
  let bytes: Buffer = Buffer.from(sample, isBytes ? "latin1" : "utf8");
  for (let changes = random.pick([0, 1, 1, 2, 4]); changes > 0; changes--) {
    const kind = random.below(isBytes ? 1 : isJson ? 4 : 2);
    if (kind === 0) bytes = mutateBytes(bytes, random);
    else if (kind === 1) bytes = Buffer.from(mutateText(bytes.toString("utf8"), random));
    else bytes = Buffer.from(JSON.stringify(mutateValue(parsedOr(bytes, sample), random)) ?? "null");
  }
  if (random.chance(0.02)) bytes = Buffer.from(nastyText(random));
  return bytes.subarray(0, MAX_BYTES);
}

function parsedOr(bytes: Buffer, sample: string): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return JSON.parse(sample);
  }
}

export interface ParserFuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly dist: string;
  readonly progress?: (inputs: number) => void;
  readonly signal?: AbortSignal;
}

export async function fuzzParsers({ seed, seconds, dist, progress, signal }: ParserFuzzOptions) {
  const targets = await loadTargets(dist);
  const findings: ParserFinding[] = [];
  const started = Date.now();
  let inputs = 0;
  while (Date.now() - started < seconds * 1000 && !signal?.aborted && !findings.length) {
    const random = new Random(seed * 1_000_003 + inputs);
    const target = targets[inputs++ % targets.length]!;
    const input = makeInput(target, random);
    const problem = await judgeParser(target, input);
    if (problem) findings.push({ problem, target: target.name, input });
    progress?.(inputs);
    if (inputs % 200 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { inputs, targets: targets.length, findings };
}

/** Whether each contender does the job: the receipt's head is signed, and a proof, asked for at once, leads to a signed root. */
import { createHash } from "node:crypto";
import sodium from "sodium-native";
import { Checker } from "../load/checker.js";
import type { Sample } from "../load/protocol.js";
import { type Submission, signedSubmissions } from "../load/submissions.js";
import { checkProof } from "./hypercore.js";
import type { Kind, Listening } from "./server.js";
import { headText } from "./store.js";
import { leafHash, rootOf } from "./tree.js";

/** Enough for a tree that is not complete. */
const ATTESTATIONS = 11;

interface Receipt {
  readonly entry_hash: string;
  readonly leaf_index: number;
  readonly sth: { tree_size: number; root_hash: string; timestamp: number; signature: string };
}

function require(holds: boolean | undefined, problem: string): void {
  if (holds !== true) throw new Error(problem);
}

async function post(url: string, submission: Submission): Promise<{ status: number; text: string }> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/api/v1/attestations`, {
    method: "POST",
    headers,
    body: JSON.stringify(submission),
  });
  return { status: answer.status, text: await answer.text() };
}

async function checkTree({ publicKey }: Listening, { entry_hash, leaf_index, sth }: Receipt, served: string) {
  const signed = headText(sth.tree_size, sth.root_hash, sth.timestamp);
  const key = Buffer.from(publicKey, "base64");
  require(sodium.crypto_sign_verify_detached(
    Buffer.from(sth.signature, "base64"),
    signed,
    key,
  ), "the head is not signed");
  const proof = JSON.parse(served) as { tree_size: number; audit_path: string[] };
  require(proof.tree_size === sth.tree_size, "the proof is of another head");
  const path = proof.audit_path.map((hash) => Buffer.from(hash, "hex"));
  const root = rootOf(leafHash(Buffer.from(entry_hash, "hex")), leaf_index, sth.tree_size, path);
  require(root.toString("hex") === sth.root_hash, "the proof does not lead to the signed root");
}

/** @throws Error if a receipt or proof of this peer does not hold, or a wrong signature is taken */
export async function checkPeer(kind: Kind, listening: Listening, folder: string): Promise<void> {
  const url = `http://127.0.0.1:${listening.port}`;
  const submissions = signedSubmissions(ATTESTATIONS, "checked");
  const wrong = await post(url, { ...submissions[0]!, signature: submissions[1]!.signature });
  require(wrong.status === 422, `${kind}: a wrong signature was answered with ${wrong.status}`);
  let previous = "";
  for (const submission of submissions) {
    const { text } = await post(url, submission);
    const receipt = JSON.parse(text) as Receipt;
    const served = await (await fetch(`${url}/api/v1/log/proof/${receipt.leaf_index}`)).text();
    if (kind !== "hypercore") await checkTree(listening, receipt, served);
    else if (receipt.leaf_index === ATTESTATIONS - 1) {
      const { signature } = (JSON.parse(served) as { upgrade: { signature: string } }).upgrade;
      require(signature === receipt.sth.signature, "the proof is of another head");
      const entry = await checkProof(folder, listening.publicKey, served);
      require(createHash("sha256").update(entry).digest("hex") === receipt.entry_hash, "the proof is of another entry");
      require((JSON.parse(entry.toString()) as { previous_hash: string }).previous_hash === previous, "no chain");
    }
    previous = receipt.entry_hash;
  }
}

/** The same of cairnlog, as a client checks it. */
export async function checkOurs(port: number): Promise<void> {
  const url = `http://127.0.0.1:${port}`;
  const checker = await Checker.of(url);
  for (const submission of signedSubmissions(ATTESTATIONS, "checked"))
    checker.add(JSON.parse((await post(url, submission)).text) as Sample);
  const { verified, problems } = await checker.finish();
  require(verified === ATTESTATIONS, problems[0] ?? "not every receipt was checked");
}

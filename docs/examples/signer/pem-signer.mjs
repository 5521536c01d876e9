#!/usr/bin/env node
// A signer for a key in a PEM file: node pem-signer.mjs SOCKET KEY.pem
// It signs whatever it is asked to sign, for everybody who may connect. Run it as a user of its own.
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const [path, file] = process.argv.slice(2);
if (!file) {
  console.error("usage: pem-signer.mjs SOCKET KEY.pem");
  process.exit(2);
}
const key = createPrivateKey(readFileSync(file));
const public_key = createPublicKey(key).export({ type: "spki", format: "pem" });
const digest = key.asymmetricKeyType === "ed25519" ? null : "sha256";

function answer(line) {
  const { request, protocol, messages } = JSON.parse(line);
  if (request === "key" && protocol === "cairnlog-signer/1") return { protocol, public_key };
  if (request !== "sign") return { error: "This signer knows key and sign of cairnlog-signer/1." };
  const signed = messages.map((message) =>
    sign(digest, Buffer.from(message, "base64"), { key, dsaEncoding: "ieee-p1363" }),
  );
  return { signatures: signed.map((signature) => signature.toString("base64")) };
}

const server = createServer((socket) => {
  const lines = createInterface({ input: socket });
  lines.on("line", (line) => {
    try {
      socket.write(`${JSON.stringify(answer(line))}\n`);
    } catch (error) {
      console.error(error.message);
      socket.destroy();
    }
  });
  // The service may close its end at any time. readline repeats the socket's errors.
  socket.on("error", () => {});
  lines.on("error", () => {});
});

// A signer that was killed leaves its socket. Only its owner and its group may connect to the new one.
rmSync(path, { force: true });
process.umask(0o117);
server.listen(path, () => console.log(`signing at unix:${path}`));
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => {
    rmSync(path, { force: true });
    process.exit(0);
  });

/** Certificates made by the openssl command: roots, chains, and hardware attestations made from them. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CA = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash";
const NO_CA = "basicConstraints=critical,CA:FALSE";

export interface CertificateOptions {
  /** Days of validity, from now on. */
  readonly days?: number;
  /** Lines of an openssl extension file. */
  readonly extensions?: string;
}

/** A holder of a certificate and a key. */
export interface Authority {
  readonly certificate: string;
  /** PEM. */
  readonly publicKey: string;
  /** Makes a certificate for this public key (PEM), which is not a CA's unless the extensions say so. */
  certify(publicKey: string, options?: CertificateOptions): string;
  /** Makes a further authority, which this one certifies. */
  authority(name: string, options?: CertificateOptions): Authority;
}

const folders: string[] = [];
let files = 0;

/** Removes the files; for `afterAll`. */
export function removeChains(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** A root that signs itself. */
export function newRoot(name: string, algorithm: "EC" | "RSA" = "EC"): Authority {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-chains-"));
  folders.push(folder);
  const { key, publicKey } = newKey(folder, algorithm);
  const extensions = CA.split("\n").flatMap((line) => ["-addext", line]);
  const config = write(folder, "[req]\ndistinguished_name=dn\n[dn]\n");
  const certificate = openssl(
    "req",
    "-x509",
    "-new",
    "-config",
    config,
    "-key",
    key,
    "-subj",
    `/CN=${name}`,
    "-days",
    "3650",
    ...extensions,
  );
  return authorityOf(folder, key, publicKey, certificate);
}

function authorityOf(folder: string, key: string, publicKey: string, certificate: string): Authority {
  const issuer = write(folder, certificate);
  const certify = (subject: string, publicKeyPem: string, { days = 30, extensions = NO_CA }: CertificateOptions) =>
    openssl(
      ...["x509", "-new", "-force_pubkey", write(folder, publicKeyPem), "-subj", `/CN=${subject}`],
      ...["-CA", issuer, "-CAkey", key, "-days", `${days}`, "-set_serial", `${++files}`],
      ...["-extfile", write(folder, `${extensions}\n`)],
    );
  return {
    certificate,
    publicKey,
    certify: (publicKeyPem, options = {}) => certify("attested key", publicKeyPem, options),
    authority(name, options = {}) {
      const own = newKey(folder, "EC");
      const granted = certify(name, own.publicKey, { extensions: CA, ...options });
      return authorityOf(folder, own.key, own.publicKey, granted);
    },
  };
}

/** A certificate that a key has issued for itself. @param privateKey PEM */
export function selfSigned(privateKey: string, extensions = NO_CA): string {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-chains-"));
  folders.push(folder);
  const config = write(folder, "[req]\ndistinguished_name=dn\n[dn]\n");
  const added = extensions.split("\n").flatMap((line) => ["-addext", line]);
  return openssl(
    "req",
    "-x509",
    "-new",
    "-config",
    config,
    "-key",
    write(folder, privateKey),
    "-subj",
    "/CN=self",
    "-days",
    "30",
    ...added,
  );
}

function newKey(folder: string, algorithm: "EC" | "RSA"): { key: string; publicKey: string } {
  const key = join(folder, `${++files}.key`);
  const size = algorithm === "EC" ? "ec_paramgen_curve:P-256" : "rsa_keygen_bits:2048";
  openssl("genpkey", "-algorithm", algorithm, "-pkeyopt", size, "-out", key);
  return { key, publicKey: openssl("pkey", "-in", key, "-pubout") };
}

function write(folder: string, text: string): string {
  const path = join(folder, `${++files}`);
  writeFileSync(path, text);
  return path;
}

function openssl(...args: string[]): string {
  return execFileSync("openssl", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/**
 * Hardware attestation: a chain of X.509 certificates (RFC 5280). With it the maker of a device states that a key was
 * made inside the device and never leaves it. The first certificate is for that key. PIV attestation works in this way.
 */
import { hash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { CairnlogError } from "../base/error.js";
import { decodeBase64 } from "../verify/bytes/encoding.js";
import { importPublicKey, type ServerKey } from "./keys/spki.js";

/** Maximum number of certificates in one attestation, including the root if it is sent. Real ones have two or three. */
const MAX_CERTIFICATES = 6;
/** Six certificates of RSA keys with 8192 bits are shorter. The limit bounds the work on hostile text. */
const MAX_CHARACTERS = 64 * 1024;
// No character of the body can begin the end line, so this cannot backtrack.
const BLOCK = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

/**
 * The subject of the certificate of a YubiKey itself. YubiKeys made until 2018 lack the CA flag (RFC 5280 §4.2.1.9),
 * although this certificate certifies the keys that were made in the device.
 */
const DEVICE_SUBJECT = "CN=Yubico PIV Attestation";
/** The object identifier of the extension basicConstraints, in DER. */
const BASIC_CONSTRAINTS = Buffer.from("0603551d13", "hex");

/** The makers that the operator trusts. Without any, attestations cannot be checked, and declarations are accepted. */
export class HardwareRoots {
  readonly #roots: readonly X509Certificate[];
  /** The ids of the roots; `verify` returns one of them. */
  readonly ids: readonly string[];

  /**
   * @param bundle the roots as PEM; text between the blocks is ignored. If absent, there are no roots.
   * @throws CairnlogError `invalid-input` if the bundle has no certificate, or one that cannot be read or is not a CA's
   */
  constructor(bundle?: string) {
    this.#roots = bundle === undefined ? [] : readRoots(bundle);
    this.ids = this.#roots.map(idOf);
  }

  get isEmpty(): boolean {
    return this.#roots.length === 0;
  }

  /**
   * Checks that `attestation` proves `key` to be held in hardware (docs/spec §6.4): its first
   * certificate is for exactly this key, each one was issued by the next, the last one by one of the roots, all are
   * valid at `now`, and all except the first are CAs or the device certificate of an old YubiKey. The whole text may
   * come from an attacker; no other errors are thrown than the ones below.
   * @param attestation PEM blocks CERTIFICATE and nothing else, leaf first; the root may be included
   * @param now milliseconds since the epoch
   * @returns the id of the root that the chain leads to
   * @throws CairnlogError `invalid-input` if the text is not such a list of certificates; `forbidden` if they do not
   *   prove it
   */
  verify(attestation: string, key: Pick<ServerKey, "fingerprint">, now: number): string {
    const sent = readChain(attestation);
    const leaf = sent[0]!;
    if (fingerprintOf(leaf) !== key.fingerprint) throw refused("Its first certificate is for another key.");
    // A key's statement about itself does not come from a device, even if the operator trusts that key as a root.
    if (this.ids.includes(idOf(leaf)) || isIssuedBy(leaf, leaf))
      throw refused("Its first certificate is a root, or is signed by the key itself.");
    const chain = this.ids.includes(idOf(sent.at(-1)!)) ? sent.slice(0, -1) : sent;
    const top = chain.at(-1)!;
    const root = this.#roots.find((candidate) => isValidAt(candidate, now) && isIssuedBy(top, candidate));
    if (!root) throw refused("Its last certificate was not issued by a trusted root that is valid now.");
    // Check from the root downwards: a key is used only after a trusted issuer has vouched for it.
    let issuer = root;
    for (let i = chain.length - 1; i >= 0; i--) {
      const certificate = chain[i]!;
      if (!isIssuedBy(certificate, issuer)) throw refused(`Certificate ${i + 1} was not issued by the one after it.`);
      if (!isValidAt(certificate, now)) throw refused(`Certificate ${i + 1} has expired or is not valid yet.`);
      const mayCertify = certificate.ca || (i === 1 && issuer === root && isOldDevice(certificate));
      if (i > 0 && !mayCertify) throw refused(`Certificate ${i + 1} is not a CA's, so it cannot certify another key.`);
      issuer = certificate;
    }
    return idOf(root);
  }
}

/** Reads the roots from a PEM file. @throws CairnlogError `storage-failed`; `invalid-input` as the constructor does */
export function openHardwareRoots(path: string): HardwareRoots {
  let bundle: string;
  try {
    bundle = readFileSync(path, "utf8");
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The hardware roots ${path} cannot be read.`, { cause });
  }
  return new HardwareRoots(bundle);
}

function readRoots(bundle: string): X509Certificate[] {
  const roots = [...bundle.matchAll(BLOCK)].map(([, body]) => parse(body!));
  if (!roots.length) throw malformed("The hardware roots contain no PEM block CERTIFICATE.");
  for (const { ca, subject } of roots)
    if (!ca) throw malformed(`The hardware roots contain a certificate that is not a CA's: ${subject}`);
  return roots;
}

function readChain(attestation: string): X509Certificate[] {
  if (attestation.length > MAX_CHARACTERS) throw malformed("The text is too long for a hardware attestation.");
  const blocks = [...attestation.matchAll(BLOCK)];
  if (!blocks.length || attestation.replace(BLOCK, "").trim() !== "")
    throw malformed("A hardware attestation must consist of PEM blocks CERTIFICATE, leaf first, and nothing else.");
  if (blocks.length > MAX_CERTIFICATES)
    throw malformed(`A hardware attestation holds at most ${MAX_CERTIFICATES} certificates.`);
  return blocks.map(([, body]) => parse(body!));
}

function parse(body: string): X509Certificate {
  const der = decodeBase64(body.replace(/\s+/g, ""));
  if (!der?.length) throw malformed("A PEM block CERTIFICATE does not hold strict base64.");
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(der);
  } catch (cause) {
    throw malformed("A PEM block CERTIFICATE does not hold a certificate.", cause);
  }
  // The parser also accepts PEM inside and bytes after the certificate; then the checked bytes would differ from the
  // sent ones.
  if (!certificate.raw.equals(der))
    throw malformed("A PEM block CERTIFICATE must hold exactly one certificate in DER.");
  return certificate;
}

const idOf = ({ raw }: X509Certificate): string => hash("sha256", raw, "hex");

/** The fingerprint of the certificate's key; undefined if this log does not accept that kind of key. */
function fingerprintOf(certificate: X509Certificate): string | undefined {
  try {
    return importPublicKey(certificate.publicKey.export({ type: "spki", format: "pem" }).toString()).fingerprint;
  } catch {
    return undefined;
  }
}

/**
 * Whether `issuer` has issued the certificate. Checks the name, the issuer's permitted key usage, and the signature. An
 * unusable key or algorithm counts as false.
 */
function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

/**
 * Whether this is the certificate of an old YubiKey. Only the issuer decides on its subject. Without this condition,
 * the holder of a certified key, which can sign anything, could pretend to be a device and certify keys outside of
 * hardware.
 */
const isOldDevice = ({ subject, raw }: X509Certificate): boolean =>
  subject === DEVICE_SUBJECT && !raw.includes(BASIC_CONSTRAINTS);

/** A date that cannot be read compares as false. */
function isValidAt({ validFrom, validTo }: X509Certificate, now: number): boolean {
  return Date.parse(validFrom) <= now && now <= Date.parse(validTo);
}

function malformed(message: string, cause?: unknown): CairnlogError {
  return new CairnlogError("invalid-input", message, cause === undefined ? {} : { cause });
}

const refused = (reason: string): CairnlogError =>
  new CairnlogError("forbidden", `The hardware attestation does not prove that the key is held in hardware. ${reason}`);

#!/usr/bin/env bash
# check-receipt.sh FILE OPERATOR.pem [URL] checks FILE.attestation.json with openssl, python3, curl and no code of ours.
# Offline: file, signer's key and signature, entry, Merkle path, signed head. With URL: the same entry under a new head.
set -euo pipefail; file=$1 operator=$2 url=${3:-} bundle=$1.attestation.json
for needed in "$file" "$operator" "$bundle"; do [ -r "$needed" ] || { echo "cannot read $needed" >&2; exit 1; }; done; work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cat > "$work/check.py" <<'PY'  # All that is hashed, and forms that openssl is lax about; signatures are openssl's.
import base64, hashlib, json, sys
def no_floats(text): sys.exit("numbers with a fraction are spelt differently in Python: not checked")
def members(pairs): return dict(pairs) if len(dict(pairs)) == len(pairs) else sys.exit("a member twice: not checked")
def load(path): return json.load(open(path, encoding="utf-8"), parse_float=no_floats, object_pairs_hook=members)
def canonical(value):  # RFC 8785, for values without fractions and with member names of the Basic Multilingual Plane
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
def sha256(data): return hashlib.sha256(data).hexdigest()
def require(holds, what): print("holds: " + what) if holds else sys.exit("does not hold: " + what)
def write(name, data): open(f"{work}/{name}", "wb").write(data)
def root_of(leaf, index, size, path, version):
    one, zero = (b"\x01", b"\x00") if version == 2 else (b"", b"")
    node, path = sha256(zero + leaf.encode()), list(path)
    while size > 1:
        other = node if index % 2 == 0 and index == size - 1 else path.pop(0)  # the last one is paired with itself
        pair = other + node if index % 2 else node + other
        node, index, size = sha256(one + pair.encode()), index // 2, (size + 1) // 2
    return node if not path else None
def check_entry(entry, proof, head):
    bound = {name: entry[name] for name in ("payload", "previous_hash", "timestamp")}
    require(sha256(b"service.log.entry.v2\0" + canonical(bound)) == entry["entry_hash"],
            "the entry's hash is that of its content")
    leaf, size, version = proof["leaf_index"], head["tree_size"], head["tree_version"]
    if head["key_id"] != "sha256:" + sha256(der_of(open(operator).read())): sys.exit("another operator key made the head")
    require(root_of(entry["entry_hash"], leaf, size, proof["audit_path"], version) == head["root_hash"],
            f"the entry is leaf {leaf} of the tree of {size} leaves")
    write("head", f"{head['root_hash']}:{size}:{head['timestamp']}".encode())
    write("head.sig", signature(head["signature"], der_of(open(operator).read())))
def der_of(pem): return base64.b64decode("".join(pem.split("-----")[2].split()))
P, Y8 = 2**255 - 19, 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7
def of_small_order(point): return int.from_bytes(point, "little") % 2**255 % P in (0, 1, P - 1, Y8, P - Y8)
def is_taken(key):  # not Ed25519 points for which anybody can sign, other forms of P-256 points, RSA with e = 1
    if len(key) == 44: return int.from_bytes(key[12:], "little") % 2**255 < P and not of_small_order(key[12:])
    if key.hex().startswith("3059301306072a8648ce3d020106082a8648ce3d03010703420004"): return True
    is_rsa = key[4:19].hex() == "300d06092a864886f70d0101010500" and key.hex().endswith("0203010001")
    return is_rsa and 2048 <= int.from_bytes(key[32:-5], "big").bit_length() <= 8192
def signature(text, key):  # as openssl reads it: 64 bytes of P-256 are r and s; an R of small order signs nothing
    raw, limit = base64.b64decode(text, validate=True), {44: 64, 91: 72}.get(len(key), len(key[32:-5].lstrip(b"\0")))
    if len(raw) > limit or len(key) == 44 and of_small_order(raw[:32]): return b""  # openssl would read no further
    if len(key) != 91 or len(raw) != 64: return raw
    r, s = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
    pair = b"".join(bytes([2, n.bit_length() // 8 + 1]) + n.to_bytes(n.bit_length() // 8 + 1, "big") for n in (r, s))
    return bytes([0x30, len(pair)]) + pair
work, mode, operator, bundle = sys.argv[1], sys.argv[2], sys.argv[3], load(sys.argv[4])
if mode == "bundle":
    with open(sys.argv[5], "rb") as file: digest = hashlib.file_digest(file, "sha256").hexdigest()
    manifest, attestation, entry = bundle["manifest"], bundle["attestation"], bundle["entry"]
    payload, key = entry["payload"], der_of(bundle["public_key"])
    require(manifest["document"]["content_hash"].removeprefix("sha256:") == digest, "the manifest is of this file")
    require(payload["manifest_hash"].removeprefix("sha256:") == sha256(canonical(manifest)) and
            payload["signature"] == attestation["signature"] and payload["document_hash"].endswith(digest),
            "the entry is of this manifest and this signature")
    require(payload["signer_key_fingerprint"] == "sha256:" + sha256(key), "the entry names this key")
    require(is_taken(key), "the key is one that a log takes")
    write("signer.pem", b"-----BEGIN PUBLIC KEY-----\n" + base64.encodebytes(key) + b"-----END PUBLIC KEY-----\n")
    write("manifest", canonical(manifest)); write("manifest.sig", signature(attestation["signature"], key))
    check_entry(entry, bundle["proof"], bundle["tree_head"])
    write("place", f"{entry['id']} {bundle['proof']['leaf_index']}".encode())
else:
    entry, proof = load(work + "/entry"), load(work + "/proof")
    require(entry["entry_hash"] == bundle["entry"]["entry_hash"], "the service shows the same entry today")
    check_entry(entry, proof, proof["sth"])
PY
verify() { # KEY NAME: Ed25519 signs the bytes, P-256 and RSA their SHA-256
  if openssl pkey -pubin -in "$1" -noout -text | grep -q ED25519
  then openssl pkeyutl -verify -pubin -inkey "$1" -rawin -in "$work/$2" -sigfile "$work/$2.sig" > /dev/null
  else openssl dgst -sha256 -verify "$1" -signature "$work/$2.sig" "$work/$2" > /dev/null
  fi && echo "holds: the signature over the $2" || { echo "does not hold: the signature over the $2"; exit 1; }
}
python3 "$work/check.py" "$work" bundle "$operator" "$bundle" "$file"
verify "$work/signer.pem" manifest; verify "$operator" head
[ -n "$url" ] || exit 0; read -r id leaf <<< "$(cat "$work/place")"
curl -sS --fail --fail-early -o "$work/entry" "$url/api/v1/log/$id" -o "$work/proof" "$url/api/v1/log/proof/$leaf"
python3 "$work/check.py" "$work" service "$operator" "$bundle"; verify "$operator" head

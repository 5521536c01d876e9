#!/usr/bin/env bash
# Checks one receipt with openssl, python3 and curl, and none of cairnlog's code:
#   check-receipt.sh FILE OPERATOR.pem [URL]      (FILE.attestation.json lies beside FILE)
# Offline: the file, its signer's signature, the entry's hash, the way up the Merkle tree, the operator's signature over
# the tree head. With URL also: the service shows the same entry today, under a head of today.
set -euo pipefail
file=$1 operator=$2 url=${3:-} bundle=$1.attestation.json
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

cat > "$work/check.py" <<'PY'  # All that is hashed; leaves what was signed, signatures and the signer's key to openssl.
import base64, hashlib, json, sys
def no_floats(text): sys.exit("numbers with a fraction are spelt differently in Python: not checked")
def canonical(value):  # RFC 8785, for values without fractions and with member names of the Basic Multilingual Plane
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
def sha256(data): return hashlib.sha256(data).hexdigest()
def require(holds, what):
    if not holds: sys.exit("does not hold: " + what)
    print("holds: " + what)
def root_of(leaf, index, size, path, version):
    one, zero = (b"\x01", b"\x00") if version == 2 else (b"", b"")
    node, path = sha256(zero + leaf.encode()), list(path)
    while size > 1:
        alone = index % 2 == 0 and index == size - 1  # the last node of its level is paired with itself
        other = node if alone else path.pop(0)
        pair = other + node if index % 2 else node + other
        node, index, size = sha256(one + pair.encode()), index // 2, (size + 1) // 2
    return node if not path else None
def check_place(entry, proof, head):
    leaf, size, version = proof["leaf_index"], head["tree_size"], head["tree_version"]
    require(root_of(entry["entry_hash"], leaf, size, proof["audit_path"], version) == head["root_hash"],
            f"the entry is leaf {leaf} of the tree of {size} leaves")
def check_entry(entry):
    payload, previous = entry["payload"], entry["previous_hash"]
    if entry.get("chain_version", 1) == 2:
        bound = {"payload": payload, "previous_hash": previous, "timestamp": entry["timestamp"]}
        preimage = b"service.log.entry.v2\0" + canonical(bound)
    else: preimage = canonical(payload) + (previous or "").encode()
    require(sha256(preimage) == entry["entry_hash"], "the entry's hash is that of its content")
def write(name, data): open(f"{work}/{name}", "wb").write(data)
def write_head(head):
    write("head", f"{head['root_hash']}:{head['tree_size']}:{head['timestamp']}".encode())
    write("head.sig", base64.b64decode(head["signature"], validate=True))
def load(path): return json.load(open(path, encoding="utf-8"), parse_float=no_floats)

work, mode, bundle = sys.argv[1], sys.argv[2], load(sys.argv[3])
if mode == "bundle":
    with open(sys.argv[4], "rb") as file: digest = hashlib.file_digest(file, "sha256").hexdigest()
    manifest, attestation, entry = bundle["manifest"], bundle["attestation"], bundle["entry"]; payload = entry["payload"]
    require(manifest["document"]["content_hash"].removeprefix("sha256:") == digest, "the manifest is of this file")
    require(payload["manifest_hash"].removeprefix("sha256:") == sha256(canonical(manifest)) and
            payload["signature"] == attestation["signature"] and payload["document_hash"].endswith(digest),
            "the entry is of this manifest and this signature")
    spki = base64.b64decode("".join(bundle["public_key"].split("-----")[2].split()))
    require(payload["signer_key_fingerprint"] == "sha256:" + sha256(spki), "the entry names this key")
    check_entry(entry); check_place(entry, bundle["proof"], bundle["tree_head"]); write_head(bundle["tree_head"])
    write("signer.pem", bundle["public_key"].encode()); write("manifest", canonical(manifest))
    write("manifest.sig", base64.b64decode(attestation["signature"], validate=True))
    write("place", f"{entry['id']} {bundle['proof']['leaf_index']}".encode())
else:
    entry, proof = load(work + "/entry"), load(work + "/proof")
    require(entry["entry_hash"] == bundle["entry"]["entry_hash"], "the service shows the same entry today")
    check_entry(entry); check_place(entry, proof, proof["sth"]); write_head(proof["sth"])
PY

verify() { # KEY NAME: Ed25519 signs the bytes, P-256 and RSA their SHA-256
  if openssl pkey -pubin -in "$1" -noout -text | grep -q ED25519
  then openssl pkeyutl -verify -pubin -inkey "$1" -rawin -in "$work/$2" -sigfile "$work/$2.sig" > /dev/null
  else openssl dgst -sha256 -verify "$1" -signature "$work/$2.sig" "$work/$2" > /dev/null
  fi && echo "holds: the signature over the $2" || { echo "does not hold: the signature over the $2"; exit 1; }
}
python3 "$work/check.py" "$work" bundle "$bundle" "$file"
verify "$work/signer.pem" manifest
verify "$operator" head
[ -n "$url" ] || exit 0
read -r id leaf <<< "$(cat "$work/place")"
curl -sS --fail "$url/api/v1/log/$id" > "$work/entry"
curl -sS --fail "$url/api/v1/log/proof/$leaf" > "$work/proof"
python3 "$work/check.py" "$work" service "$bundle"
verify "$operator" head

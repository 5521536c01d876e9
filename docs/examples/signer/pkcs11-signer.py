#!/usr/bin/python3
"""A signer for a key in a PKCS#11 token: a card, an HSM, or SoftHSM.

  apt-get install python3-pykcs11
  PKCS11_PIN=1234 pkcs11-signer.py --module /usr/lib/softhsm/libsofthsm2.so --token cairnlog --label operator \
      --state /var/lib/cairnlog-signer/state.json /run/cairnlog-signer/signer.sock

Knows Ed25519, P-256 and RSA keys. With --state it refuses to sign a second history of the log (forkguard.py).
"""

import argparse
import base64
import hashlib
import json
import os
import socketserver
import sys
import threading

import PyKCS11
from forkguard import ForkGuard, Refused
from PyKCS11 import Mechanism

# The largest request of the service takes less: 512 KiB of messages, as base64.
MAX_LINE_BYTES = 2 * 1024 * 1024
EC, RSA, EDWARDS = PyKCS11.CKK_EC, PyKCS11.CKK_RSA, 0x40
EDDSA = 0x1057
P256_SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
ED25519_SPKI = bytes.fromhex("302a300506032b6570032100")
RSA_ALGORITHM = bytes.fromhex("300d06092a864886f70d0101010500")


def der(tag, content):
    count = len(content)
    if count < 128:
        return bytes([tag, count]) + content
    digits = count.to_bytes((count.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(digits)]) + digits + content


class Token:
    """One key of one token. A session that failed is opened again for the next request."""

    def __init__(self, module, label, key_label, pin):
        self.library = PyKCS11.PyKCS11Lib()
        self.library.load(module)
        self.label, self.key_label, self.pin = label, key_label, pin
        self.session = None
        self.key = None
        self.open()

    def open(self):
        for slot in self.library.getSlotList(tokenPresent=True):
            if self.library.getTokenInfo(slot).label.strip() == self.label:
                break
        else:
            raise Refused(f"there is no token {self.label}")
        session = self.library.openSession(slot)
        try:
            session.login(self.pin)
        except PyKCS11.PyKCS11Error as error:
            if error.value != PyKCS11.CKR_USER_ALREADY_LOGGED_IN:
                raise
        self.key = self.find(session, PyKCS11.CKO_PRIVATE_KEY)
        public = self.find(session, PyKCS11.CKO_PUBLIC_KEY)
        self.type = session.getAttributeValue(self.key, [PyKCS11.CKA_KEY_TYPE])[0]
        spki = base64.encodebytes(self.spki(session, public)).decode()
        self.public_key = f"-----BEGIN PUBLIC KEY-----\n{spki}-----END PUBLIC KEY-----\n"
        self.session = session

    def find(self, session, kind):
        found = session.findObjects([(PyKCS11.CKA_CLASS, kind), (PyKCS11.CKA_LABEL, self.key_label)])
        if len(found) != 1:
            raise Refused(f"the token has {len(found)} keys {self.key_label} of class {kind}, not one")
        return found[0]

    def spki(self, session, public):
        if self.type == RSA:
            wanted = [PyKCS11.CKA_MODULUS, PyKCS11.CKA_PUBLIC_EXPONENT]
            numbers = [bytes(value).lstrip(b"\0") for value in session.getAttributeValue(public, wanted)]
            # A DER integer whose first bit is set would be negative.
            integers = b"".join(der(0x02, b"\0" + n if n[0] & 0x80 else n) for n in numbers)
            return der(0x30, RSA_ALGORITHM + der(0x03, b"\0" + der(0x30, integers)))
        point = bytes(session.getAttributeValue(public, [PyKCS11.CKA_EC_POINT])[0])
        # The point is wrapped in an OCTET STRING, two bytes of tag and length.
        return {EC: P256_SPKI, EDWARDS: ED25519_SPKI}[self.type] + point[2:]

    def sign(self, messages):
        if not self.session:
            self.open()
        try:
            return [self.sign_one(message) for message in messages]
        except PyKCS11.PyKCS11Error:
            self.session = None
            raise

    def sign_one(self, message):
        if self.type == EC:
            message, mechanism = hashlib.sha256(message).digest(), Mechanism(PyKCS11.CKM_ECDSA)
        else:
            mechanism = Mechanism(EDDSA if self.type == EDWARDS else PyKCS11.CKM_SHA256_RSA_PKCS)
        return bytes(self.session.sign(self.key, message, mechanism))


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline(MAX_LINE_BYTES):
            if not line.endswith(b"\n"):
                return
            self.wfile.write(json.dumps(self.answer(json.loads(line))).encode() + b"\n")

    def answer(self, question):
        server = self.server
        if question["request"] == "key" and question["protocol"] == "cairnlog-signer/1":
            return {"protocol": "cairnlog-signer/1", "public_key": server.token.public_key}
        if question["request"] != "sign":
            return {"error": "This signer knows key and sign of cairnlog-signer/1."}
        messages = [base64.b64decode(message, validate=True) for message in question["messages"]]
        try:
            with server.lock:
                if server.guard:
                    server.guard.check(messages)
                signatures = server.token.sign(messages)
        except (Refused, PyKCS11.PyKCS11Error) as error:
            print(f"refused: {error}", file=sys.stderr, flush=True)
            return {"error": str(error)}
        return {"signatures": [base64.b64encode(signature).decode() for signature in signatures]}


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        print(f"connection ended: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Signs for cairnlog with a key in a PKCS#11 token.")
    parser.add_argument("--module", required=True, help="PKCS#11 library of the token")
    parser.add_argument("--token", required=True, help="label of the token")
    parser.add_argument("--label", required=True, help="label of the key pair")
    parser.add_argument("--state", help="file that remembers what was signed; without it, anything is signed")
    parser.add_argument("socket")
    options = parser.parse_args()
    token = Token(options.module, options.token, options.label, os.environ["PKCS11_PIN"])
    # A signer that was killed leaves its socket. Only its owner and its group may connect to the new one.
    if os.path.exists(options.socket):
        os.unlink(options.socket)
    os.umask(0o117)
    with Server(options.socket, Handler) as server:
        os.umask(0o077)
        server.token = token
        server.guard = ForkGuard(options.state) if options.state else None
        server.lock = threading.Lock()
        print(f"signing at unix:{options.socket}", flush=True)
        server.serve_forever()


main()

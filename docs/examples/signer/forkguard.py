"""Refuses to sign a second history of the log.

The service signs a batch before it writes it. If writing fails, it signs other roots for the same sizes, and nobody has
seen the first ones. So a second root for a size is not a fork in itself. But the service asks for a batch only when the
batch before the last one is on disk: from then on, those sizes are final here, and no other root is signed for them.
"""

import base64
import json
import os
import re

HEAD = re.compile(rb"([0-9a-f]{64}):([1-9][0-9]{0,15}):[0-9T:.Z+-]+")
NOTE = re.compile(rb"[^\s+]+\n([1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n")
TOKEN = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
PROBES = (b"service.readiness.probe.v1", b"service.gate.probe.v1")
# The service signs the newest head again, for a checkpoint or on demand. It may be some batches behind by then.
REMEMBERED = 64


class Refused(Exception):
    pass


class ForkGuard:
    def __init__(self, path):
        self.path = path
        self.state = {"final": 0, "open": [], "roots": {}}
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                self.state = json.load(file)

    def check(self, messages):
        """Raises Refused, or remembers on disk what is about to be signed."""
        heads = [head for head in map(head_in, messages) if head]
        roots = self.state["roots"]
        new = [(size, root) for size, root in heads if roots.get(str(size)) != root]
        if not new:
            return
        first, last = new[0][0], new[-1][0]
        if first <= self.state["final"]:
            raise Refused(f"size {first} was signed with another root, and is final up to {self.state['final']}")
        if [size for size, _ in new] != list(range(first, last + 1)):
            raise Refused(f"the heads from {first} to {last} are not those of one batch")
        ends = [end for end in self.state["open"] if end < first] + [last]
        final = max([self.state["final"], *ends[:-2]])
        kept = {size: root for size, root in roots.items() if int(size) < first}
        kept[str(last)] = new[-1][1]
        newest = sorted(kept, key=int)[-REMEMBERED:]
        self.save({"final": final, "open": ends[-2:], "roots": {size: kept[size] for size in newest}})

    def save(self, state):
        draft = f"{self.path}.new"
        with open(draft, "w", encoding="ascii") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)
        folder = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.state = state


def head_in(message):
    """Size and root of a tree head or of a checkpoint; None for other things that the service lets sign."""
    if head := HEAD.fullmatch(message):
        return int(head[2]), head[1].decode()
    if note := NOTE.fullmatch(message):
        return int(note[1]), base64.b64decode(note[2]).hex()
    if message in PROBES or TOKEN.fullmatch(message):
        return None
    raise Refused("this is no tree head, no checkpoint, no session token and no probe")

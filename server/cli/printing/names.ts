/** What keys are called, for people who read a list. The names are the service's word, and the holders of the keys chose them. */
import type { Client } from "../../client/index.js";
import { printableLine } from "../terminal/printable.js";
import { shortFingerprint } from "../terminal/table.js";

/** More keys in one answer stay without a name: each is a request. */
const MAX_KEYS = 100;

export class Names {
  readonly #client: Client;
  readonly #names = new Map<string, Promise<string | null>>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** The name of a key in quotes, which no part of the line can be taken for; empty if it is not known. */
  async of(fingerprint: string): Promise<string> {
    let name = this.#names.get(fingerprint);
    if (!name && this.#names.size < MAX_KEYS) {
      name = this.#client.keys.find(fingerprint).then(
        ({ pseudonym }) => quoted(pseudonym),
        // A list without names is better than none.
        () => null,
      );
      this.#names.set(fingerprint, name);
    }
    return (await name) ?? "";
  }

  /** The name of a key and the beginning of its fingerprint. */
  async person(fingerprint: string): Promise<string> {
    return [await this.of(fingerprint), shortFingerprint(fingerprint)].filter(Boolean).join(" ");
  }
}

/** A name between marks that are replaced within it, so that it cannot end early. */
export const quoted = (name: string): string => `“${printableLine(name).replace(/[“”]/g, '"')}”`;

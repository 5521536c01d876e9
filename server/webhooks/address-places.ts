/**
 * How many attempts one address may get at the same time. Names cost nothing, and any number of them may lead to one
 * address; so what counts is the address that is connected to, whoever subscribed and by whatever name.
 */
import ipaddr from "ipaddr.js";

/** Attempts at one address at the same time. */
const MAX_AT_ADDRESS = 4;

/** What counts as one address: of IPv6 a /64, which one machine may have for itself. */
export function addressBlock(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}

/** What a deliverer must know of the places. */
export interface FreePlaces {
  isFull(place: string): boolean;
  /** Called when a place at an address has become free. It must not throw. */
  freed: (place: string) => void;
}

export class AddressPlaces implements FreePlaces {
  readonly #taken = new Map<string, number>();
  freed: (place: string) => void = () => {};

  isFull(place: string): boolean {
    return (this.#taken.get(place) ?? 0) >= MAX_AT_ADDRESS;
  }

  /** Takes a place, to be given back by `leave`. @returns whether one was free */
  enter(place: string): boolean {
    if (this.isFull(place)) return false;
    this.#taken.set(place, (this.#taken.get(place) ?? 0) + 1);
    return true;
  }

  leave(place: string): void {
    const left = this.#taken.get(place)! - 1;
    if (left) this.#taken.set(place, left);
    else this.#taken.delete(place);
    this.freed(place);
  }
}

/** The places of one attempt. */
export class Held {
  readonly #places: AddressPlaces;
  readonly #held = new Set<string>();
  /** Names may be resolved after the end of the attempt. */
  #isOver = false;

  constructor(places: AddressPlaces) {
    this.#places = places;
  }

  /** Takes a place at each of the addresses that has one free, and returns these addresses. None after `leave`. */
  enter(addresses: readonly string[]): string[] {
    if (this.#isOver) return [];
    return addresses.filter((address) => {
      const place = addressBlock(address);
      if (!this.#held.has(place)) {
        if (!this.#places.enter(place)) return false;
        this.#held.add(place);
      }
      return true;
    });
  }

  /** Gives back all places but that of the address that was connected to. @returns whether it has that */
  keep(address: string): boolean {
    const place = addressBlock(address);
    if (!this.#held.has(place)) return false;
    for (const other of this.#held) if (other !== place) this.#leave(other);
    return true;
  }

  leave(): void {
    this.#isOver = true;
    for (const place of this.#held) this.#leave(place);
  }

  #leave(place: string): void {
    this.#held.delete(place);
    this.#places.leave(place);
  }
}

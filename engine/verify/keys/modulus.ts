/**
 * RSA moduli that anybody can factor: those with a small prime factor, and powers. Their holder can show any number of
 * others how to sign in the key's name, and say later that it was somebody else. The modulus may come from an attacker.
 */

/** Prime factors below this are found. */
const SMALL = 5_000;
/** Residues by which most numbers are seen to be no power of an exponent, without a root. */
const RESIDUES = 8;

const primesBelow = (end: number): readonly number[] => {
  const isComposite = new Uint8Array(end);
  const primes: number[] = [];
  for (let n = 2; n < end; n++) {
    if (isComposite[n]) continue;
    primes.push(n);
    for (let multiple = n * n; multiple < end; multiple += n) isComposite[multiple] = 1;
  }
  return primes;
};

/**
 * Groups of small primes whose product is exact in a number. A division of a long integer costs the same for one prime and
 * for a product.
 */
let groups: readonly { readonly product: number; readonly primes: readonly number[] }[] | undefined;

function groupsOfPrimes(): NonNullable<typeof groups> {
  const made: { product: number; primes: number[] }[] = [];
  for (const prime of primesBelow(SMALL)) {
    const last = made.at(-1);
    if (last && last.product * prime <= Number.MAX_SAFE_INTEGER) {
      last.product *= prime;
      last.primes.push(prime);
    } else made.push({ product: prime, primes: [prime] });
  }
  return made;
}

/** Why anybody can factor this modulus, as the end of a sentence; undefined if it is neither of the two. */
export function factorable(modulus: bigint): string | undefined {
  if (hasSmallFactor(modulus)) return `has a prime factor below ${SMALL}`;
  return isPower(modulus) ? "is a power of a smaller number" : undefined;
}

function hasSmallFactor(n: bigint): boolean {
  groups ??= groupsOfPrimes();
  return groups.some(({ product, primes }) => {
    const rest = Number(n % BigInt(product));
    return primes.some((prime) => rest % prime === 0);
  });
}

/**
 * Whether n = a^k with k > 1, for an n without small prime factors. Then a ≥ SMALL, which bounds k; a prime k is enough. An
 * honest modulus costs some 0.2 ms. One that is made to pass all residues costs a root for each of at most 124 exponents: 30 ms
 * for 8192 bits.
 */
function isPower(n: bigint): boolean {
  const bits = n.toString(16).length * 4;
  const largest = Math.floor(bits / Math.log2(SMALL));
  return primesBelow(largest + 1).some((k) => mayBePower(n, k) && root(n, k) ** BigInt(k) === n);
}

/** By exponent, primes q ≡ 1 mod k: only a k-th of their residues are k-th powers. */
const moduli = new Map<number, readonly number[]>();

function moduliOf(k: number): readonly number[] {
  const known = moduli.get(k);
  if (known) return known;
  const found: number[] = [];
  for (let q = k + 1; found.length < RESIDUES; q += k) if (isPrime(q)) found.push(q);
  moduli.set(k, found);
  return found;
}

function isPrime(n: number): boolean {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return n > 1;
}

/** False only if n is no k-th power (Euler's criterion; n may be divisible by q). */
function mayBePower(n: bigint, k: number): boolean {
  return moduliOf(k).every((q) => {
    const rest = Number(n % BigInt(q));
    return rest === 0 || powerModulo(rest, (q - 1) / k, q) === 1;
  });
}

/** The moduli are below 2^26, so products are exact. */
function powerModulo(base: number, exponent: number, modulus: number): number {
  let result = 1;
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The k-th root, rounded down: Newton's method from above. */
function root(n: bigint, k: number): bigint {
  const [exponent, less] = [BigInt(k), BigInt(k - 1)];
  const bits = n.toString(16).length * 4;
  let guess = 1n << BigInt(Math.floor(bits / k) + 1);
  for (;;) {
    const next = (less * guess + n / guess ** less) / exponent;
    if (next >= guess) return guess;
    guess = next;
  }
}

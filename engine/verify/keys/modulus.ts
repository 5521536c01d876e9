/**
 * RSA moduli that anybody can factor: those with a small prime factor, and powers. Their holder can show any number of
 * others how to sign in the key's name, and say later that it was somebody else. The modulus may come from an attacker.
 */

/** Prime factors below this are found. */
const SMALL = 5_000;
/** Residues by which most numbers are seen to be no power of an exponent, without a root. */
const RESIDUES = 8;
/** Eight primes q ≡ 1 mod k are below this for every k that is looked at. */
const SIEVE = 2 ** 16;

let composites: Uint8Array | undefined;

function sieve(): Uint8Array {
  const isComposite = new Uint8Array(SIEVE);
  for (let n = 2; n * n < SIEVE; n++)
    if (!isComposite[n]) for (let multiple = n * n; multiple < SIEVE; multiple += n) isComposite[multiple] = 1;
  return isComposite;
}

/**
 * Why anybody can factor this modulus, as the end of a sentence; undefined if it is neither of the two. An honest modulus of
 * 2048 bits costs 0.25 ms. One of 8192 bits that is made to pass all residues costs a root for each of 121 exponents: 30 ms.
 */
export function factorable(modulus: bigint): string | undefined {
  composites ??= sieve();
  for (let n = 2; n < SMALL; n++)
    if (!composites[n] && modulus % BigInt(n) === 0n) return `has a prime factor below ${SMALL}`;
  // If it is a^k, then a ≥ SMALL, which bounds k; a prime k is enough.
  const bits = modulus.toString(16).length * 4;
  for (let k = 2; k * Math.log2(SMALL) <= bits; k++)
    if (!composites[k] && mayBePower(modulus, k, composites) && root(modulus, k, bits) ** BigInt(k) === modulus)
      return "is a power of a smaller number";
  return undefined;
}

/** False only if n is no k-th power: of the residues of a prime q ≡ 1 mod k only a k-th are k-th powers (Euler's criterion). */
function mayBePower(n: bigint, k: number, isComposite: Uint8Array): boolean {
  for (let q = k + 1, seen = 0; seen < RESIDUES; q += k) {
    if (isComposite[q]) continue;
    seen++;
    const rest = Number(n % BigInt(q));
    if (rest && powerModulo(rest, (q - 1) / k, q) !== 1) return false;
  }
  return true;
}

/** Products of numbers below the sieve's end are exact. */
function powerModulo(base: number, exponent: number, modulus: number): number {
  let result = 1;
  for (let square = base, left = exponent; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The k-th root, rounded down: Newton's method from above. */
function root(n: bigint, k: number, bits: number): bigint {
  const [exponent, less] = [BigInt(k), BigInt(k - 1)];
  let guess = 1n << BigInt(Math.floor(bits / k) + 1);
  for (;;) {
    const next = (less * guess + n / guess ** less) / exponent;
    if (next >= guess) return guess;
    guess = next;
  }
}

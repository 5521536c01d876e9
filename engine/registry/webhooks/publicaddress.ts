/**
 * Decides which addresses the service may call on behalf of clients: only those of the public internet. A forged
 * request could do harm at all others: this machine, its networks, and reserved or embedding addresses.
 */
import ipaddr from "ipaddr.js";

/** The range of IPv6 global unicast addresses (RFC 4291 §2.4); `ipaddr.js` also calls `::127.0.0.1` unicast. */
const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3");
/** A service of the host, though its address looks public: Azure's virtual machines get their configuration there. */
const AZURE_HOST = "168.63.129.16";
const LOCALHOST = /(?:^|\.)localhost\.?$/i;

/**
 * Whether a text is an address of the public internet. IPv4 inside IPv6 is judged as that IPv4 address. A text that is
 * not an address is not public.
 * @param address from a resolver, which the owner of the name controls, or from a URL
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) && !ipaddr.IPv6.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.toString() === AZURE_HOST) return false;
  return parsed.range() === "unicast" && (parsed.kind() === "ipv4" || parsed.match(GLOBAL_UNICAST));
}

/** The address in the host of a URL, without the brackets of IPv6; undefined for a name. */
export function literalAddress(hostname: string): string | undefined {
  // The URL parser has converted all other forms of IPv4 to plain decimal.
  if (ipaddr.IPv4.isValidFourPartDecimal(hostname)) return hostname;
  return /^\[(.+)\]$/.exec(hostname)?.[1];
}

/** Whether every resolver maps this name to this machine (RFC 6761 §6.3). */
export function isLocalhost(hostname: string): boolean {
  return LOCALHOST.test(hostname);
}

/** Whether the host of a URL is certainly not public, without asking a resolver. @param hostname as `URL` returns it */
export function isVisiblyPrivate(hostname: string): boolean {
  const address = literalAddress(hostname);
  return address === undefined ? isLocalhost(hostname) : !isPublicAddress(address);
}

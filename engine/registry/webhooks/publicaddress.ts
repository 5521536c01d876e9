/**
 * Addresses that the service may call on behalf of others: those of the public internet. Everything else (this machine,
 * its networks, what is set aside or embeds another address) is where a forged request could do harm.
 */
import ipaddr from "ipaddr.js";

/** Where global unicast addresses of IPv6 lie (RFC 4291 §2.4); `ipaddr.js` calls `::127.0.0.1` unicast, too. */
const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3");
const LOCALHOST = /(?:^|\.)localhost\.?$/i;

/**
 * Whether an address in text form is one of the public internet. IPv4 in IPv6 is judged as the IPv4 it is. Anything that
 * is no address is not.
 * @param address from a resolver, which whoever owns a name controls, or from an URL
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) && !ipaddr.IPv6.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return parsed.range() === "unicast" && (parsed.kind() === "ipv4" || parsed.match(GLOBAL_UNICAST));
}

/** The address that the host of an URL is, without the brackets of IPv6; undefined for a name. */
export function literalAddress(hostname: string): string | undefined {
  // The URL parser has made plain decimal of every other spelling of IPv4.
  if (ipaddr.IPv4.isValidFourPartDecimal(hostname)) return hostname;
  return /^\[(.+)\]$/.exec(hostname)?.[1];
}

/** Whether a name is this machine's for every resolver (RFC 6761 §6.3). */
export function isLocalhost(hostname: string): boolean {
  return LOCALHOST.test(hostname);
}

/** Whether the host of an URL is seen to be no public one without asking a resolver. @param hostname as `URL` gives it */
export function isVisiblyPrivate(hostname: string): boolean {
  const address = literalAddress(hostname);
  return address === undefined ? isLocalhost(hostname) : !isPublicAddress(address);
}

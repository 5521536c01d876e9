/** Who pays for what a command stores. */

/**
 * The client that sent a command. Commands of the service itself, of its operator's tools and of a program that embeds the
 * log have no payer, and are not counted.
 */
export interface Payer {
  /**
   * What is counted together: an IPv4 address as text, or the /64 of an IPv6 address as four groups and `::/64`. Clients
   * choose it.
   */
  readonly client: string;
  /** Whether an anchor of the log reaches the key that signed the command. */
  readonly isReached: boolean;
}

/** Bytes that may be stored in 24 hours; null where nothing is counted. */
export interface BudgetLimits {
  /** For one client. The /48 of an IPv6 address has eight times as many. */
  readonly perAddress: number | null;
  /** For all keys together that no anchor reaches. */
  readonly fromStrangers: number | null;
}

/** Defaults of the service. */
export const DEFAULT_BYTES_PER_ADDRESS = 64 * 2 ** 20;
export const DEFAULT_BYTES_FROM_STRANGERS = 2 ** 30;

export const NO_BUDGETS: BudgetLimits = { perAddress: null, fromStrangers: null };

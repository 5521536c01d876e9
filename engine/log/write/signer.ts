/** Whoever signs the tree heads. The log knows nothing else of keys. */
export interface Signer {
  /** `sha256:` + hex of SHA-256 over the key's SPKI; the `key_id` of every head. */
  readonly fingerprint: string;
  /**
   * Signs each message, in order; called with the heads of one batch at a time.
   * Rejecting fails the batch and leaves the log as it is on disk; the next batch asks again.
   */
  sign(messages: readonly Uint8Array[]): Promise<readonly Uint8Array[]>;
}

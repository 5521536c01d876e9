/** An event that the log of a service may contain and that changes no row: a claim that nobody can look up. */
export const claim = (artifact: string) => {
  const empty = {
    commitment_alg: "",
    ephemeral_public_key: "",
    nonce: "",
    ciphertext: "",
    commitment: "",
    lookup_key: "",
  };
  return { event_type: "encrypted_claim", payload: { event_type: "encrypted_claim", ...empty, artifact } };
};

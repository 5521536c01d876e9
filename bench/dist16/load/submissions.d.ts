/** The body of `POST /api/v1/attestations`. */
export interface Submission {
    readonly manifest: unknown;
    readonly public_key_pem: string;
    readonly signature: string;
    readonly attestation_type: "authorship";
}
/**
 * This many attestations by one new key, of documents that no other `name` has. Members of the manifest are in
 * canonical order, so the sent bytes are the signed bytes.
 */
export declare function signedSubmissions(count: number, name: string): Submission[];

/**
 * Checks receipts while the load runs, like a client that trusts nobody: fetches the proofs over HTTP and verifies them
 * with `cairnlog/verify`. A service that is fast but wrong fails here.
 */
import { parsePublicKey, verifyConsistency, verifyInclusion, verifyTreeHead } from "cairnlog/verify";
/** Maximum number of waiting receipts; others are not checked, so that the queue cannot grow without end. */
const WAITING = 1_000;
export class Checker {
    result = { verified: 0, skipped: 0, problems: [] };
    #url;
    #operator;
    #waiting = [];
    #working = null;
    constructor(url, operatorPem) {
        this.#url = url;
        this.#operator = parsePublicKey(operatorPem);
    }
    /** Takes the operator key from the service itself: this checks that the service is consistent. */
    static async of(url) {
        const { public_key } = await get(`${url}/api/v1/log/operator-key`);
        return new Checker(url, public_key);
    }
    add(sample) {
        if (this.#waiting.length >= WAITING) {
            this.result.skipped++;
            return;
        }
        this.#waiting.push(sample);
        this.#working ??= this.#work().finally(() => {
            this.#working = null;
        });
    }
    /** Resolves when everything added has been checked. */
    async finish() {
        while (this.#working)
            await this.#working;
        return this.result;
    }
    async #work() {
        for (let sample = this.#waiting.shift(); sample; sample = this.#waiting.shift()) {
            try {
                await this.#check(sample);
                this.result.verified++;
            }
            catch (error) {
                this.result.problems.push(`leaf ${sample.leaf_index}: ${error.message}`);
            }
        }
    }
    /**
     * Checks that the head is signed, that the entry is in its tree, and that the newest signed tree extends that tree.
     */
    async #check({ entry_hash: leaf, leaf_index: leafIndex, sth }) {
        const log = `${this.#url}/api/v1/log`;
        const treeSize = sth.tree_size;
        require(await verifyTreeHead(sth, this.#operator), "the receipt's head is not signed by the operator");
        const proof = await get(`${log}/proof/${leafIndex}?tree_size=${treeSize}`);
        const claim = { leaf, leafIndex, treeSize, auditPath: proof.audit_path, treeVersion: proof.tree_version };
        require(verifyInclusion({ ...claim, rootHash: sth.root_hash }), "the inclusion proof does not verify");
        const newest = await get(`${log}/sth`);
        require(await verifyTreeHead(newest, this.#operator), "the newest head is not signed by the operator");
        const { tree_size: toSize, root_hash: toRoot } = newest;
        const path = await get(`${log}/consistency?from=${treeSize}&to=${toSize}`);
        const { peaks, extension, tree_version: treeVersion } = path;
        const roots = { fromRoot: sth.root_hash, toRoot };
        require(verifyConsistency({
            fromSize: treeSize,
            toSize,
            ...roots,
            peaks,
            extension,
            treeVersion,
        }), "the consistency proof does not verify");
    }
}
function require(holds, problem) {
    if (!holds)
        throw new Error(problem);
}
async function get(url) {
    const response = await fetch(url);
    if (!response.ok)
        throw new Error(`GET ${url} answered ${response.status}`);
    return (await response.json());
}
//# sourceMappingURL=checker.js.map
/** A service whose clock the test sets, and two keys with sessions: one asks, the other is asked. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Controlled, startControlled } from "./controlled.js";
import { bearerOf, registeredSigner } from "./proofs.js";
import type { TestSigner } from "./signers.js";

export const REQUESTS = "/log/attestation-requests";
export const POLICIES = "/log/request-policies";
export const answerTo = (id: string): string => `${REQUESTS}/${id}/respond`;

/** A policy that declines everything. */
export const policy = (more: Record<string, unknown> = {}) => ({
  predicates: { any: [] },
  default_action_on_failure: "decline",
  ...more,
});
export const decline = (more: Record<string, unknown> = {}) => ({ decision: "decline", ...more });

export class RequestScene {
  readonly world: Controlled;
  asker!: TestSigner;
  target!: TestSigner;
  /** Headers of the asker's session. */
  bearer!: { authorization: string };
  targetBearer!: { authorization: string };

  constructor(world: Controlled) {
    this.world = world;
  }

  get service() {
    return this.world.service;
  }

  /** Makes new keys and sessions, with unused nonces, policies and quotas. The clock may have moved by months. */
  async renew(): Promise<void> {
    const { service } = this;
    [this.asker, this.target] = [await registeredSigner(service), await registeredSigner(service)];
    [this.bearer, this.targetBearer] = [await bearerOf(service, this.asker), await bearerOf(service, this.target)];
  }

  /** The body of a request to the target. */
  request(more: Record<string, unknown> = {}) {
    return {
      target_fingerprint: this.target.fingerprint,
      attestation_type: "peer_review",
      nonce: randomUUID(),
      ...more,
    };
  }

  /** Makes a request; returns its id. */
  async created(): Promise<string> {
    const reply = await this.service.post(REQUESTS, this.request(), this.bearer);
    expect(reply.status, reply.text).toBe(200);
    return reply.body.request_id;
  }
}

export async function startRequestScene(): Promise<RequestScene> {
  const scene = new RequestScene(await startControlled());
  await scene.renew();
  return scene;
}

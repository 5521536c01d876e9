/** Limits by the settings of a service, counted over all of its front ends. */
import { Limits } from "../http/limits/limits.js";
import type { Settings } from "../settings/settings.js";

const requestsOf = (settings: Settings) => ({
  general: settings.rateLimitGeneral,
  "key-registration": settings.rateLimitKeyRegistration,
  attestation: settings.rateLimitAttestation,
  "endorsement-offer": settings.rateLimitEndorsementOffer,
  "claim-reveal": settings.rateLimitClaimReveal,
  anchoring: settings.rateLimitAnchoring,
  "log-verification": settings.rateLimitLogVerification,
  tlog: settings.rateLimitTlog,
});

/** The limits of a service; null when nothing is limited. */
export const createLimits = (settings: Settings): Limits | null =>
  settings.rateLimits ? Limits.create(requestsOf(settings)) : null;

/** Limits in another thread that count in the same table. @param buffer the table; null when nothing is limited */
export const sharedLimits = (settings: Settings, buffer: SharedArrayBuffer | null): Limits | null =>
  buffer && new Limits(requestsOf(settings), buffer);

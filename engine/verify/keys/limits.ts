/**
 * The limits of what requests carry, each written once: the checks refuse what is beyond, and the schemas of requests show it.
 * Characters are code points.
 */

/** The least and the greatest number of characters of a text. */
export interface TextLimits {
  readonly min: number;
  readonly max: number;
}

/** Of a document, a composite and its parts. */
export const MAX_TITLE_CHARACTERS = 500;
export const TITLE: TextLimits = { min: 1, max: MAX_TITLE_CHARACTERS };
export const ROLE: TextLimits = { min: 1, max: 100 };
export const MAX_PARTS = 1000;
/** The log takes over tags within these; the offline verifier must find exactly those. */
export const MAX_TAGS = 32;
export const MAX_TAG_CHARACTERS = 64;

/** Each attestation of a manifest costs a verification, and signs everything before it. */
export const MAX_ATTESTATIONS = 256;
export const ATTESTATION_ID: TextLimits = { min: 1, max: 128 };
/** A short type or the URL of a predicate. */
export const ATTESTATION_TYPE: TextLimits = { min: 1, max: 512 };
/** The signer's statement of intent, or what the requester of an attestation says. */
export const STATEMENT: TextLimits = { min: 0, max: 4096 };

/** A public key in PEM: larger than every accepted one (an RSA key of 8192 bits takes 1.5 KB). */
export const MAX_PEM_CHARACTERS = 4096;
/** In its normal form, NFC, as the next two. */
export const PSEUDONYM: TextLimits = { min: 1, max: 200 };
export const DISPLAY_NAME: TextLimits = { min: 1, max: 100 };
export const DEVICE_LABEL: TextLimits = { min: 1, max: 100 };
/** RFC 5321 §4.5.3.1: the path of 256 octets includes two angle brackets. */
export const MAX_EMAIL_OCTETS = 254;
/** In its normal form, NFKC. */
export const PASSWORD: TextLimits = { min: 8, max: 1024 };
/** A text that only names a key or a challenge. */
export const NAMING: TextLimits = { min: 1, max: 256 };

/** The id of a challenge has at most as many. */
export const MAX_CHALLENGE_ID_CHARACTERS = 184;

/** Of an endorsement, its end or an alert. */
export const NOTE: TextLimits = { min: 1, max: 1000 };
export const EVIDENCE: TextLimits = { min: 0, max: 5000 };
/** UTF-8 bytes of canonical JSON, as the next two. */
export const MAX_METADATA_BYTES = 16 * 1024;
export const MAX_CLAIMS_BYTES = 64 * 1024;
export const MAX_PREDICATE_BYTES = 64 * 1024;
/** Of any type; longer values are not matched against a pattern. */
export const IDENTIFIER: TextLimits = { min: 1, max: 2048 };

/** Of an attestation request. */
export const NONCE: TextLimits = { min: 1, max: 128 };
export const REASON: TextLimits = { min: 0, max: 4096 };
export const DEADLINE_DAYS = { max: 90, default: 14 };

/** Of a trust configuration: anchors of each kind, and categories with a weight. */
export const MAX_ANCHORS = 100;
export const MAX_CATEGORIES = 32;
export const CATEGORY: TextLimits = { min: 1, max: 128 };
export const MAX_HOPS = 8;
export const DEFAULT_HOPS = 4;
export const DEFAULT_DECAY = 0.5;
/** Hops from the root of the endorsement graph. */
export const MAX_GRAPH_DEPTH = 8;
export const DEFAULT_GRAPH_DEPTH = 3;

export const WEBHOOK_URL: TextLimits = { min: 1, max: 2048 };
export const WEBHOOK_SECRET: TextLimits = { min: 16, max: 256 };

/** Bytes of a decoded ciphertext, including its tag. */
export const MAX_CIPHERTEXT_BYTES = 256 * 1024;

/** What the operator says of a payload that is withheld, or of the end of the log; and the law or order behind it. */
export const OPERATOR_REASON: TextLimits = { min: 1, max: 500 };
export const BASIS: TextLimits = { min: 0, max: 200 };

/** Items on a page of a list. */
export const MAX_PER_PAGE = 200;
export const DEFAULT_PER_PAGE = 50;

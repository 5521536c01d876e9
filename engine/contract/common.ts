/**
 * Parts that several areas of the contract share, errors among them. All of it is plain JSON Schema made with TypeBox, without
 * side effects, so that server, clients and browsers use the same definitions. A schema with a `title` becomes a
 * component of the OpenAPI document.
 */
import Type, { type Static, type TProperties } from "typebox";
import {
  DEFAULT_PER_PAGE,
  KEY_ALGORITHMS,
  MAX_PEM_CHARACTERS,
  MAX_PER_PAGE,
  type TextLimits,
} from "../verify/keys/contract.js";

/**
 * A keyword for a schema that checks less than clients should know: the OpenAPI document shows the keywords in its value with
 * the schema's own. The service ignores them: the engine checks them, in its own order and words.
 */
export const DOCUMENTED = "documented";

/** A text whose length the engine checks. */
export const bounded = ({ min, max }: TextLimits, description: string) =>
  Type.String({ description, [DOCUMENTED]: { ...(min > 0 ? { minLength: min } : {}), maxLength: max } });

const FINGERPRINT = {
  description: "`sha256:` and 64 lower-case hexadecimal characters.",
  examples: [`sha256:${"0".repeat(64)}`],
};

/** SHA-256 of a public key's SPKI bytes. */
export const Fingerprint = Type.String(FINGERPRINT);

/**
 * A fingerprint in a path. The document shows its form, so that `/keys/search` cannot be taken for `/keys/{fingerprint}`.
 * The form is not checked: a text of another form is an unknown key, 404.
 */
export const FingerprintInPath = Type.String({
  ...FINGERPRINT,
  [DOCUMENTED]: { pattern: "^sha256:[0-9a-f]{64}$" },
});

export const HexHash = Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256, lower-case hexadecimal." });

export const Timestamp = Type.String({ description: "ISO 8601 date and time, UTC.", format: "date-time" });

export const Algorithm = Type.Enum(KEY_ALGORITHMS, {
  description: "Algorithm of a key; `ed25519` is recommended, `rsa-2048` is for existing keys.",
});

/** A public key in a request. */
export const PublicKeyPem = bounded(
  { min: 0, max: MAX_PEM_CHARACTERS },
  "PEM block PUBLIC KEY (SubjectPublicKeyInfo). Never a private key.",
);

export const Pseudonym = Type.String({ description: "Display name of the key's holder; not unique." });

export const EntryId = Type.Integer({ minimum: 0, description: "Id of a log entry; the first is 1." });

export const LeafIndex = Type.Integer({ minimum: 0, description: "Position in the Merkle tree, counted from 0." });

export const TreeSize = Type.Integer({ minimum: 0, description: "Number of leaves of a tree." });

/** The tree version. */
export const TreeVersion = Type.Enum([1, 2], {
  description: "Version of the tree hashing; version 2 hashes leaves and nodes differently.",
});

/** `page` and `per_page`, the query of every list. */
export const PAGE_QUERY = {
  page: Type.Integer({ minimum: 1, default: 1, description: "Counted from 1." }),
  per_page: Type.Integer({
    minimum: 1,
    maximum: MAX_PER_PAGE,
    default: DEFAULT_PER_PAGE,
    description: "Number of items on a page.",
  }),
};

export const PageQuery = Type.Object(PAGE_QUERY);

/** Of a list whose items anybody may add: the answer reads the oldest ones only. */
export const TRUNCATED = {
  truncated: Type.Optional(
    Type.Boolean({
      description: "True if there are more than one answer reads. Then `total` and the counts are those of the oldest.",
    }),
  ),
};

/** A page of a list under the member that `items` names. */
export function pageSchema<T extends TProperties>(items: T, title: string) {
  const paging = {
    page: Type.Integer({ description: "As asked for." }),
    per_page: Type.Integer({ description: "As asked for." }),
    total: Type.Integer({ description: "Number of items on all pages." }),
  };
  return Type.Object({ ...items, ...paging }, { title });
}

/**
 * An object with any members. The document says that they are allowed: generators of clients take an object without
 * listed members for an empty one.
 */
export const freeForm = (description: string) => Type.Object({}, { additionalProperties: true, description });

/** A schema that also accepts null. */
export const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);

/** A member of a request that may be absent or null. */
export const optional = <T extends Parameters<typeof nullable>[0]>(schema: T) => Type.Optional(nullable(schema));

/** The place of a new entry in the log. */
export const PLACE = { log_entry_id: EntryId, leaf_index: LeafIndex, entry_hash: HexHash };

/** The part of a query that chooses a period. */
export const PERIOD = {
  start_date: Type.Optional(Type.String({ description: "A date or a date-time with an offset." })),
  end_date: Type.Optional(
    Type.String({ description: "A date, including that whole day, or a date-time with an offset." }),
  ),
};

export const Successor = Type.Object(
  {
    url: Type.String({
      maxLength: 2000,
      description: "Address of the log that goes on, as a client calls it: without a slash at its end.",
      examples: ["https://2027.log.example"],
    }),
    vkey: Type.String({
      maxLength: 8192,
      description: "The key that verifies its checkpoints at `/tlog/checkpoint` (c2sp.org/signed-note).",
    }),
  },
  { description: "The log that goes on from a frozen one." },
);

// Errors: `application/problem+json` (RFC 9457).

/** The form of a request id. A client may choose it, and it goes into headers, documents and logs as it is. */
export const REQUEST_ID = "^[A-Za-z0-9._-]{1,128}$";

export const Problem = Type.Object(
  {
    type: Type.Literal("about:blank", {
      description: "Always `about:blank`: the status and `code` identify the problem.",
    }),
    title: Type.String({ description: "The meaning of the status." }),
    status: Type.Integer({ description: "The HTTP status of the answer." }),
    detail: Type.String({ description: "A sentence that a person can act on." }),
    code: Type.String({ description: "Stable, for programs.", pattern: "^[a-z]+(-[a-z]+)*$" }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: "JSON Pointer (RFC 6901) into the body, or `/name` of a parameter." }),
          message: Type.String({ description: "The fault, in one sentence." }),
        }),
        { description: "With 422: the wrong members." },
      ),
    ),
    successor: Type.Optional(Successor),
    request_id: Type.Optional(
      Type.String({
        description: "The `X-Request-Id` of the answer. It is in the service's log.",
        pattern: REQUEST_ID,
      }),
    ),
  },
  { title: "Problem", description: "A refusal (RFC 9457)." },
);
export type Problem = Static<typeof Problem>;

/** Commands for a shell that call the API: how to get a key and a session, and a request of each operation. */
import type { Operation, Parameter } from "./model.js";

/** Registers a key and opens a session. It sets the variables that the requests of operations use, except `SERVER`. */
export const SIGN_IN = `post() { curl -sS --fail-with-body "$SERVER/api/v1$1" -d @-; }
member() { sed -n "s/.*\\"$1\\":\\"\\([^\\"]*\\)\\".*/\\1/p"; }

openssl genpkey -algorithm ed25519 -out key.pem
PUBLIC_KEY=$(openssl pkey -in key.pem -pubout | awk '{printf "%s\\\\n", $0}')
FINGERPRINT=$(printf '{"payload":{"public_key":"%s","key_algorithm":"ed25519","pseudonym":"Ada"}}' "$PUBLIC_KEY" |
  post /keys/register | member fingerprint)
printf '{"fingerprint":"%s","purpose":"login"}' "$FINGERPRINT" | post /auth/challenge > challenge.json
member nonce < challenge.json | tr -d '\\n' > nonce
SIGNATURE=$(openssl pkeyutl -sign -inkey key.pem -rawin -in nonce | base64 -w0)
TOKEN=$(printf '{"challenge_id":"%s","challenge_signature":"%s"}' "$(member challenge_id < challenge.json)" "$SIGNATURE" |
  post /auth/login | member token)`;

/**
 * A request of an operation. A fingerprint in it is the reader's own. Other values are those of the example, so what is
 * signed in it is refused by a service that has not seen the example's keys.
 */
export function curlOf(method: string, path: string, operation: Operation): string {
  const { parameters = [], requestBody, responses, security } = operation;
  const given = parameters.filter((parameter) => parameter.example !== undefined);
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => textIn(given.find((one) => one.name === name)!));
  const query = given.filter((one) => one.in === "query").map((one) => `${one.name}=${textIn(one)}`);
  const body = requestBody?.required && requestBody.content["application/json"]?.example;
  const takesSession = security.some((scheme) => "session" in scheme) && !hasProof(body);
  const isBytes = responses[200]?.content?.["application/octet-stream"] !== undefined;
  const parts = [
    `curl "$SERVER${filled}${query.length ? `?${query.join("&")}` : ""}"`,
    ...(method === "get" || body ? [] : [`-X ${method.toUpperCase()}`]),
    ...(takesSession ? [`-H "Authorization: Bearer $TOKEN"`] : []),
    ...(isBytes ? ["--output tile"] : []),
    ...(body ? [`-d @- ${hereDocument(body)}`] : []),
  ];
  return parts.join(" \\\n  ");
}

/** Stands for the fingerprint of the reader's key, in parameters and members of these names. */
const OWN = "$FINGERPRINT";
const OF_A_KEY: ReadonlySet<string> = new Set(["fingerprint", "target", "target_fingerprint"]);

const textIn = ({ name, example }: Parameter): string =>
  OF_A_KEY.has(name) ? OWN : encodeURIComponent(String(example)).replaceAll("%3A", ":");

/** Nothing that a shell changes, and in no example. */
const MARK = "@the reader's own@";

/** The body as the shell's input. The shell leaves its text alone, unless the text names the reader's key. */
function hereDocument(body: unknown): string {
  const members = Object.entries(typeof body === "object" && body !== null ? body : {});
  const isOwn = members.some(([name]) => OF_A_KEY.has(name)) && !hasProof(body);
  if (!isOwn) return `<<'JSON'\n${textOf(body)}\nJSON`;
  const text = textOf(Object.fromEntries(members.map(([name, value]) => [name, OF_A_KEY.has(name) ? MARK : value])));
  return `<<JSON\n${text.replace(/[\\$`]/g, "\\$&").replaceAll(MARK, OWN)}\nJSON`;
}

const hasProof = (body: unknown): boolean => typeof body === "object" && body !== null && "auth" in body;

/** A value as people read it. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

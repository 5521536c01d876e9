/** A sign-in while the password is changed: the session has begun with the password that was checked. */
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { Gate } from "#cairnlog/server/http/gate.js";
import { authRoutes } from "#cairnlog/server/http/routes/identity/auth.js";
import { Sessions } from "#cairnlog/server/http/sessions.js";
import { closeWorlds, newFolder, nodeSigner, openWorld, registration } from "../../registry/world.js";

afterAll(closeWorlds);

test("a password that is changed after it was checked, and before the session begins, ends the session", async () => {
  const pem = generatePrivateKey("ed25519");
  const { registry } = await openWorld(newFolder(), pem);
  const { keys, challenges, passwords } = registry;
  const signer = nodeSigner();
  const { fingerprint } = await keys.register(registration(signer));
  const [first, second] = ["the first password", "the second password"];
  await passwords.set(fingerprint, { password: first });
  const operator = operatorKey(pem);
  const sessions = new Sessions({ operator, keys, passwords, ttlSeconds: 3600, clock: () => Date.now() * 1000 });
  const check: typeof passwords.check = async (of, password) => {
    await passwords.check(of, password);
    await passwords.set(of, { password: second, current_password: first });
  };
  const changed = new Proxy(passwords, {
    get: (all, name) => (name === "check" ? check : Reflect.get(all, name).bind(all)),
  });
  const gate = new Gate({ challenges, sessions, keys, operator });
  const routes = authRoutes({ challenges, passwords: changed }, { origins: {} as never, sessions, gate });
  const { challenge_id, nonce } = await challenges.issue({ fingerprint, purpose: "login", origin: "http://log" });
  const body = { challenge_id, challenge_signature: signer.sign(nonce), password: first };
  const { handle } = routes.find(({ path }) => path === "/api/v1/auth/login")!;
  const { token } = (await handle({ body } as never, undefined as never)) as { token: string };
  await expect(sessions.read(`Bearer ${token}`)).rejects.toThrow(/a password was set or changed/);
});

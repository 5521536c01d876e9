/**
 * The log of `cairnlog demo`: its operator key ends with it, and the next demonstration has the same address. So it is not
 * pinned, by the command or the explorer.
 */
import { Health } from "../../../engine/contract/service/health.js";
import { ClientError } from "./error.js";
import { Http } from "./http.js";
import type { State, Store } from "./store.js";

const THIS_MACHINE = /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/;

/**
 * A store that keeps what `store` keeps, but the state of a demonstration only as long as this process or page lasts. A log
 * that `store` knows already stays there.
 * @param met called when the state of a log is kept for the first time
 */
export function sparingStore(
  store: Store,
  server: string,
  fetcher: typeof fetch,
  met: (state: State, isDemonstration: boolean) => void,
): Store {
  let demonstration: State | undefined;
  return {
    load: async () => (await store.load()) ?? demonstration,
    save: async (state) => {
      const isNew = demonstration === undefined && (await store.load()) === undefined;
      if (isNew ? await isDemonstration(server, fetcher) : demonstration !== undefined) demonstration = state;
      else await store.save(state);
      if (isNew) met(state, demonstration !== undefined);
    },
  };
}

/** Whether a service on this machine says that its log is a demonstration. No other service is asked. */
async function isDemonstration(server: string, fetcher: typeof fetch): Promise<boolean> {
  if (!THIS_MACHINE.test(new URL(server).hostname)) return false;
  try {
    return (await new Http(server, fetcher).get(Health, "/health")).demonstration === true;
  } catch (error) {
    if (error instanceof ClientError) return false;
    throw error;
  }
}

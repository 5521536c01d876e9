/** Reads `/metrics` every few seconds while the page is visible. */
import { useEffect, useState } from "preact/hooks";
import { timelyFetch } from "../../state/timely.js";
import { Measurements } from "./prometheus.js";
import { type Rates, ratesBetween } from "./rates.js";

const EVERY_MS = 3_000;
/** Ten minutes. */
const KEPT = 200;

interface Rated {
  readonly history: readonly Rates[];
  readonly error: Error | null;
  readonly version?: string | undefined;
}

export function useRates(): Rated {
  const [rated, setRated] = useState<Rated>({ history: [], error: null });
  useEffect(() => {
    let isWanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last: Measurements | undefined;
    const look = async () => {
      clearTimeout(timer);
      try {
        const measured = await measure();
        const before = last;
        last = measured;
        if (isWanted && before)
          setRated(({ history }) => ({
            history: [...history, ratesBetween(before, measured)].slice(-KEPT),
            error: null,
            version: measured.label("cairnlog_build_info", "version"),
          }));
      } catch (error) {
        if (isWanted) setRated((rated) => ({ ...rated, error: error as Error }));
      }
      if (isWanted && document.visibilityState === "visible") timer = setTimeout(look, EVERY_MS);
    };
    const lookAgain = () => void (document.visibilityState === "visible" && look());
    document.addEventListener("visibilitychange", lookAgain);
    void look();
    return () => {
      isWanted = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", lookAgain);
    };
  }, []);
  return rated;
}

/** @throws Error with a sentence */
async function measure(): Promise<Measurements> {
  const response = await timelyFetch("metrics").catch(() => null);
  if (!response) throw new Error("The service does not answer.");
  if (!response.ok)
    throw new Error(`The service refuses to send its measurements to this address (${response.status}).`);
  return new Measurements(await response.text(), Date.now());
}

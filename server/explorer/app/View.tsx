/** The view that the address names: its code is fetched when it is first wanted. */
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, Heading, Loading, Problem } from "../components/index.js";
import { ROUTES, type ViewProps, type ViewRoute } from "../routes.js";
import { arrivals } from "../state/arrivals.js";
import { useCell } from "../state/cell.js";
import { place } from "../state/location.js";

type Loaded = { readonly route: ViewRoute; readonly component: ComponentType<ViewProps> };

export function View() {
  const { path, query } = useCell(place);
  const route = ROUTES.find(({ name }) => name === (path[0] ?? ""));
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isWanted = true;
    setError(null);
    route?.load().then(
      (module) => isWanted && setLoaded({ route, component: module.default }),
      (reason: unknown) => isWanted && setError(reason),
    );
    return () => {
      isWanted = false;
    };
  }, [route, attempt]);
  useArrival(path.join("/"));
  if (!route)
    return (
      <>
        <Heading title="Nothing here" />
        <Empty title="This address names no view.">
          <a href="#/">To the head of the log</a>
        </Empty>
      </>
    );
  if (error) return <Problem error={error} retry={() => setAttempt(attempt + 1)} />;
  if (loaded?.route !== route) return <Loading what={route.label} rows={8} />;
  const Component = loaded.component;
  return <Component path={path.slice(1)} query={query} />;
}

/** Another path is another page to the reader: its beginning is shown, and its heading takes the focus. */
function useArrival(path: string): void {
  const shown = useRef(path);
  if (shown.current !== path) {
    shown.current = path;
    arrivals.expect();
    window.scrollTo(0, 0);
  }
}

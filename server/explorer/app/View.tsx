/** Shows the view in the address; its code is loaded when it is first needed. */
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, Heading, Loading } from "../components/index.js";
import { arrivals } from "../state/arrivals.js";
import { useCell } from "../state/cell.js";
import { place } from "../state/location.js";
import { hasService, server } from "../state/source.js";
import type { ViewProps, ViewRoute } from "../state/view.js";

type Loaded = { readonly route: ViewRoute; readonly component: ComponentType<ViewProps> };

export function View({ routes }: { readonly routes: readonly ViewRoute[] }) {
  const { path, query } = useCell(place);
  const route = routes.find(({ name }) => name === (path[0] ?? ""));
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    let isWanted = true;
    setLost(false);
    route?.load().then(
      (module) => isWanted && setLoaded({ route, component: module.default }),
      () => isWanted && setLost(true),
    );
    return () => {
      isWanted = false;
    };
  }, [route]);
  useArrival(path.join("/"));
  if (!route)
    return (
      <>
        <Heading title="Nothing here" />
        <Empty title={hasService() ? "There is no such page." : "These files have no such page: it needs the service."}>
          <a href="#/">Go to the head of the log</a>
        </Empty>
      </>
    );
  if (isLost)
    return (
      <>
        <Heading title={route.label} />
        <Empty title="This view could not be loaded.">
          <p>{server()} does not answer, or has a newer version of this page.</p>
          <button type="button" class="button" onClick={() => window.location.reload()}>
            Load the page again
          </button>
        </Empty>
      </>
    );
  if (loaded?.route !== route) return <Loading what={route.label} rows={8} />;
  const Component = loaded.component;
  return <Component path={path.slice(1)} query={query} />;
}

/** Another path is a new page for the reader: scroll to its beginning, and focus its heading. */
function useArrival(path: string): void {
  const shown = useRef(path);
  if (shown.current !== path) {
    shown.current = path;
    arrivals.expect();
    window.scrollTo(0, 0);
  }
}

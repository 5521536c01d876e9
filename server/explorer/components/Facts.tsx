/** A list of names and values. */
import type { ComponentChildren } from "preact";

export type Fact = readonly [name: string, value: ComponentChildren];

/** Facts without a value are omitted. */
export function Facts({ facts }: { readonly facts: readonly (Fact | false | null | undefined)[] }) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A parser for the part of the Prometheus text format that `/metrics` uses. */

/** All values of one measurement. */
export class Measurements {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly #samples: readonly Sample[];

  constructor(text: string, at: number) {
    this.at = at;
    this.#samples = text.split("\n").flatMap((line) => sampleOf(line) ?? []);
  }

  /** The sum of a metric over the matching labels; undefined if there is none. */
  sum(name: string, fits: (labels: Labels) => boolean = () => true): number | undefined {
    const values = this.#samples.filter((sample) => sample.name === name && fits(sample.labels));
    return values.length ? values.reduce((sum, { value }) => sum + value, 0) : undefined;
  }

  /** The label of the only sample of a metric that says something by it. */
  label(name: string, label: string): string | undefined {
    return this.#samples.find((sample) => sample.name === name)?.labels[label];
  }

  /** Cumulative counts of a histogram by their upper bounds, ascending. */
  buckets(name: string, fits: (labels: Labels) => boolean): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const sample of this.#samples) {
      if (sample.name !== `${name}_bucket` || !fits(sample.labels)) continue;
      const bound = sample.labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(sample.labels.le);
      counts.set(bound, (counts.get(bound) ?? 0) + sample.value);
    }
    return new Map([...counts].sort(([a], [b]) => a - b));
  }
}

export type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

function sampleOf(line: string): Sample | undefined {
  const match = SAMPLE.exec(line);
  if (!match || line.startsWith("#")) return undefined;
  const [, name = "", labels = "", value] = match;
  const pairs = [...labels.matchAll(LABEL)].map(([, label, text]) => [label, text]);
  return { name, labels: Object.fromEntries(pairs), value: Number(value) };
}

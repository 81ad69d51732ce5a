/** The report of `agarose lab bench --live` from its samples. Pure. */
import { spread, summarize, table } from "@agarose/dev-world/statistics";

/** One read, or its failure. */
export interface LiveSample {
  /** `first`: nothing has read the object before. `next`: some reads have. `cached`: the PoPs had time to cache it. */
  readonly phase: "first" | "next" | "cached";
  readonly contestant: "agarose" | "object" | "copy";
  /** Of the object. */
  readonly bytes: number;
  readonly ms: number;
  /** Value of `x-agarose-read`, where the answer has one. */
  readonly kind?: string | undefined;
  /** The reason of a failure, whose time does not count. */
  readonly error?: string | undefined;
}

/** A PoP or a region as the page sees it. */
export interface LivePlace {
  readonly kind: "PoP" | "region";
  readonly name: string;
  /** Median of its small answers; undefined when none arrived. */
  readonly ms: number | undefined;
  /** Its place as it reports it, or why it did not answer. */
  readonly note: string;
}

/** All that was measured. */
export interface LiveResult {
  readonly machine: string;
  readonly places: readonly LivePlace[];
  readonly samples: readonly LiveSample[];
  /** The region of the one copy; undefined where the page may read no bucket. */
  readonly copyRegion: string | undefined;
}

const PHASES = ["first", "next", "cached"] as const;

/** Returns the lines of the report, in Markdown. */
export function describeLive({ machine, places, samples, copyRegion }: LiveResult): string[] {
  const rows: string[][] = [];
  const sizes = [...new Set(samples.map(({ bytes }) => bytes))];
  for (const phase of PHASES) {
    for (const bytes of sizes) {
      const of = (contestant: LiveSample["contestant"]): LiveSample[] =>
        samples.filter(
          (sample) => sample.phase === phase && sample.bytes === bytes && sample.contestant === contestant,
        );
      const own = of("agarose");
      if (own.length === 0) continue;
      const [agarose, object, copy] = [msOf(own), msOf(of("object")), msOf(of("copy"))];
      const failed = samples.filter((sample) => sample.phase === phase && sample.bytes === bytes && sample.error);
      rows.push([
        `${phase}, ${sizeOf(bytes)}`,
        textOf(agarose),
        textOf(object),
        textOf(copy),
        agarose.length > 0 && copy.length > 0 ? (medianOf(agarose) / medianOf(copy)).toFixed(2) : "-",
        kindsOf(own),
        String(failed.length),
      ]);
    }
  }
  const copies = copyRegion === undefined ? "no bucket could be read from the page" : `whole, in region ${copyRegion}`;
  const placeRows = places.map(({ kind, name, ms, note }) => [kind, name, ms?.toFixed(0) ?? "-", note]);
  return [
    `Milliseconds in Chromium from the call of \`fetch\` to the last byte: median (quartiles). One copy: ${copies}.`,
    "",
    table(["read", "Agarose", "`/o/`", "one copy", "Agarose / one copy", "kinds", "failed"], rows),
    "",
    table(["place", "name", "small answer, ms", "its report"], placeRows),
    "",
    machine,
  ];
}

function msOf(samples: readonly LiveSample[]): number[] {
  return samples.filter(({ error }) => error === undefined).map(({ ms }) => ms);
}

function medianOf(values: readonly number[]): number {
  return summarize(values).median;
}

function textOf(values: readonly number[]): string {
  return values.length > 0 ? spread(summarize(values), 0) : "-";
}

/** How many reads were of each kind, the most frequent first. */
function kindsOf(samples: readonly LiveSample[]): string {
  const counts = Map.groupBy(
    samples.flatMap(({ kind }) => kind ?? []),
    (kind) => kind,
  );
  const sorted = [...counts].toSorted(([, a], [, b]) => b.length - a.length);
  return sorted.map(([kind, { length }]) => `${length} ${kind}`).join(", ") || "-";
}

function sizeOf(bytes: number): string {
  return bytes >= 1e6 ? `${bytes / 1e6} MB` : `${bytes / 1024} KiB`;
}

/**
 * A strict reader of the Prometheus text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats): throws at
 * whatever a scraper could refuse or misread.
 */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metric {
  readonly type: string;
  readonly samples: Sample[];
}

const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"/;
const LABELS = new RegExp(`^(?:${LABEL.source}(?:,${LABEL.source})*)?$`);

export function parseExposition(text: string): Map<string, Metric> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end with a line feed");
  const metrics = new Map<string, Metric>();
  const seen = new Set<string>();
  let helped = "";
  let current = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) \S.*$/.exec(line);
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/.exec(line);
    if (help) {
      helped = help[1]!;
    } else if (type) {
      current = type[1]!;
      if (current !== helped) throw new Error(`${current} has no HELP before its TYPE`);
      if (metrics.has(current)) throw new Error(`${current} is there twice`);
      checkName(current, type[2]!);
      metrics.set(current, { type: type[2]!, samples: [] });
    } else {
      const { samples, type: own } = metrics.get(current)!;
      samples.push(parseSample(line, current, own === "histogram" ? SERIES_OF_HISTOGRAM : [""], seen));
    }
  }
  return metrics;
}

const SERIES_OF_HISTOGRAM = ["_bucket", "_sum", "_count"];

/** Throws where a name breaks the rules of prometheus.io/docs/practices/naming: base units, and last the unit. */
function checkName(name: string, type: string): void {
  if ((type === "counter") !== name.endsWith("_total")) throw new Error(`${type} ${name}: only counters are _total`);
  const wrong = /_(ms|milliseconds|minutes|percent|kb|mb|gb)(_|$)|_(seconds|bytes|usd)_(min|max)$/.exec(name);
  if (wrong) throw new Error(`${name} has ${wrong[0]}, in place of a base unit at its end`);
}

function parseSample(line: string, metric: string, suffixes: readonly string[], seen: Set<string>): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?)|[+-]Inf|NaN)$/.exec(line);
  if (!match || !LABELS.test(match[2] ?? "")) throw new Error(`no sample: ${line}`);
  const [, name, labels = "", value] = match;
  if (!suffixes.some((suffix) => name === metric + suffix))
    throw new Error(`a sample of ${name} among those of ${metric}`);
  const series = `${name}{${labels}}`;
  if (seen.has(series)) throw new Error(`${series} is there twice`);
  seen.add(series);
  const entries = [...labels.matchAll(new RegExp(LABEL, "g"))].map(([, label, text]) => [label!, text!] as const);
  if (new Set(entries.map(([label]) => label)).size !== entries.length) throw new Error(`a label twice: ${line}`);
  return { labels: Object.fromEntries(entries), value: Number(value) };
}

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
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)$/.exec(line);
    if (help) {
      helped = help[1]!;
    } else if (type) {
      current = type[1]!;
      if (current !== helped) throw new Error(`${current} has no HELP before its TYPE`);
      if (metrics.has(current)) throw new Error(`${current} is there twice`);
      if (type[2] === "counter" && !current.endsWith("_total")) throw new Error(`counter ${current} is no _total`);
      metrics.set(current, { type: type[2]!, samples: [] });
    } else {
      metrics.get(current)!.samples.push(parseSample(line, current, seen));
    }
  }
  return metrics;
}

function parseSample(line: string, metric: string, seen: Set<string>): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?)|[+-]Inf|NaN)$/.exec(line);
  if (!match || !LABELS.test(match[2] ?? "")) throw new Error(`no sample: ${line}`);
  const [, name, labels = "", value] = match;
  if (name !== metric) throw new Error(`a sample of ${name} among those of ${metric}`);
  const series = `${name}{${labels}}`;
  if (seen.has(series)) throw new Error(`${series} is there twice`);
  seen.add(series);
  const entries = [...labels.matchAll(new RegExp(LABEL, "g"))].map(([, label, text]) => [label!, text!] as const);
  if (new Set(entries.map(([label]) => label)).size !== entries.length) throw new Error(`a label twice: ${line}`);
  return { labels: Object.fromEntries(entries), value: Number(value) };
}

/** The findings of a scrub's last walk for Prometheus: a file for the textfile collector of node_exporter. */
import { access, constants } from "node:fs/promises";
import { dirname } from "node:path";
import { AgaroseError } from "@agarose/core";
import { writeNamed } from "../../files/whole-file.ts";
import { UNREADABLE, type Totals } from "./totals.ts";

/** When a walk ran, in milliseconds since 1970. */
export interface WalkTimes {
  readonly startMs: number;
  readonly endMs: number;
}

/** Writes the file at `path` in one step, so that no reader sees half of it. Throws USAGE or DISK_FULL. */
export async function writeMetrics(path: string, totals: Totals, times: WalkTimes): Promise<void> {
  await writeNamed(path, (write) => write(Buffer.from(metricsOf(totals, times))));
}

/** Throws USAGE when the folder of a metrics file cannot be written, which a long walk would show only at its end. */
export async function checkMetricsPath(path: string): Promise<void> {
  await access(dirname(path), constants.W_OK).catch((error: Error) => {
    throw new AgaroseError(
      "USAGE",
      `${path} cannot be written: ${error.message}; choose another file for the metrics`,
      { path },
    );
  });
}

/** The gauges of a walk, in the text format of Prometheus. */
export function metricsOf(totals: Totals, { startMs, endMs }: WalkTimes): string {
  // Alerts compare with 0, so these are there without such an object, too.
  const left = { [UNREADABLE]: 0, 0: 0, ...totals.left };
  const byBeyondK = Object.entries(left).map(([name, count]) => [`{beyond_k="${name}"}`, count] as const);
  const gauges: readonly (readonly [name: string, help: string, values: readonly (readonly [string, number])[]])[] = [
    ["objects", "Objects by chunks beyond k, after repairs.", byBeyondK],
    ["repaired_objects", "Objects that were repaired.", [["", totals.repaired]]],
    ["damaged_objects", "Objects that stayed damaged.", [["", totals.damaged]]],
    ["failed_objects", "Objects whose repair failed.", [["", totals.failed]]],
    ["unchecked_objects", "Objects of which a region did not answer.", [["", totals.unchecked]]],
    ["read_bytes", "Bytes of chunks that were read to hash them.", [["", totals.readBytes]]],
    ["read_usd", "Price of these bytes in US dollars.", [["", totals.readUsd]]],
    ["unread_objects", "Objects that were to be read, but for the limit on money.", [["", totals.unread]]],
    ["duration_seconds", "How long the walk took, since its last start.", [["", (endMs - startMs) / 1000]]],
    ["end_timestamp_seconds", "When the last walk that reached its end did so.", [["", endMs / 1000]]],
  ];
  return gauges
    .flatMap(([name, help, values]) => [
      `# HELP agarose_scrub_${name} ${help}`,
      `# TYPE agarose_scrub_${name} gauge`,
      ...values.map(([labels, value]) => `agarose_scrub_${name}${labels} ${value}`),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

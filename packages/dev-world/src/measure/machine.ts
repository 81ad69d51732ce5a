/** The machine and the versions behind a measurement, in one line for the document. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, cpus, loadavg, totalmem, type as osType, release } from "node:os";

/**
 * Returns date, processor, memory, system and versions.
 *
 * @param browser its version, where one took part.
 * @param packages whose versions matter.
 */
export function describeMachine(browser?: string, packages: readonly string[] = ["workerd"]): string {
  const parts = [
    new Date().toISOString().slice(0, 10),
    `${cpus()[0]?.model.trim() ?? "unknown CPU"}, ${availableParallelism()} cores`,
    `${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    distribution(),
    `Node ${process.versions.node}`,
    ...packages.map((name) => `${name} ${versionOf(name)}`),
    ...(browser ? [`Chromium ${browser}`] : []),
  ];
  return `Measured ${parts.join(" · ")}.`;
}

/** The machine's other work while it measures: a load above the number of cores widens every spread. */
export function describeLoad(before: readonly number[]): string {
  const [start, end] = [before[0] ?? 0, loadavg()[0] ?? 0];
  return `Load average (1 min) ${start.toFixed(1)} before and ${end.toFixed(1)} after, on ${availableParallelism()} cores.`;
}

function distribution(): string {
  try {
    return /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? osType();
  } catch {
    return `${osType()} ${release()}`;
  }
}

function versionOf(name: string): string {
  const require = createRequire(import.meta.url);
  try {
    return (require(`${name}/package.json`) as { version: string }).version;
  } catch {
    return "unknown";
  }
}

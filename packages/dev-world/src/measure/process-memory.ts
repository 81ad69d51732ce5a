/** Resident memory of other processes, as Linux reports it in /proc. All sizes in bytes. */
import { readdirSync, readFileSync } from "node:fs";

/** The most that the process has had at any time; undefined when it has ended. */
export function peakResidentBytes(pid: number): number | undefined {
  return statusField(pid, "VmHWM");
}

/** The resident memory of the process now; undefined when it has ended. */
export function residentBytes(pid: number): number | undefined {
  return statusField(pid, "VmRSS");
}

/** User and system time of a process so far, in ms. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  // Fields 14 and 15 of proc(5), in ticks of 10 ms; the first two are cut off here.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Processes below `pid` whose command line contains `word`. */
export function descendants(pid: number, word: string): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = statusNumber(Number(name), "PPid");
    if (parent !== undefined) parents.set(Number(name), parent);
  }
  const isBelow = (child: number): boolean => {
    const parent = parents.get(child);
    return parent !== undefined && (parent === pid || isBelow(parent));
  };
  return [...parents.keys()].filter((child) => isBelow(child) && (read(child, "cmdline") ?? "").includes(word));
}

function statusField(pid: number, name: string): number | undefined {
  const kilobytes = statusNumber(pid, name);
  return kilobytes === undefined ? undefined : kilobytes * 1024;
}

function statusNumber(pid: number, name: string): number | undefined {
  const match = new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(read(pid, "status") ?? "");
  return match ? Number(match[1]) : undefined;
}

function read(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * File descriptors, which files and connections share. A process that has none left has to do less at a time: no region
 * and no file is to blame.
 */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** Node has 21 once it has loaded what a command needs. The others are for records, listings and names of hosts. */
const RESERVED = 48;
const DEFAULT = 1024;
const PAUSE_MS = 50;
const PAUSE_MS_MAX = 1_000;
const TRIES = 40;

/** How many descriptors are for files and connections, by the limit of this process. */
export function freeDescriptors(limits = readLimits()): number {
  const [, soft] = /^Max open files\s+(\S+)/m.exec(limits) ?? [];
  if (soft === "unlimited") return Number.POSITIVE_INFINITY;
  return Math.max(1, Number(soft ?? DEFAULT) - RESERVED);
}

/** The limits of this process where the system has a file of them, as Linux has. */
function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}

/** Whether an error says that no descriptor was free, in this process or on this machine. */
export function isOutOfDescriptors(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, cause } = error as NodeJS.ErrnoException;
  if (code === "EMFILE" || code === "ENFILE") return true;
  if (error instanceof AggregateError && (error.errors as unknown[]).some(isOutOfDescriptors)) return true;
  return cause !== undefined && isOutOfDescriptors(cause);
}

/** Runs `action` again, after growing pauses, for as long as no descriptor is free. `onWait` learns of each time. */
export async function withDescriptors<T>(action: () => Promise<T>, onWait: () => void = () => {}): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await action();
    } catch (error) {
      if (tried === TRIES || !isOutOfDescriptors(error)) throw error;
      onWait();
      await pause(Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** (tried - 1)));
    }
  }
}

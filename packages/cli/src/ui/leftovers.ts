/** Tells people that a file was removed which an interrupted run left behind. */
import { logLine } from "./output.ts";

/** For the `onLeftover` of functions that write files. */
export function logLeftover(path: string): void {
  logLine(`removed ${path}, which an interrupted run left behind`);
}

/** The heap of this process, for tests of what a walk over many objects keeps. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Bytes of the heap without garbage: when the collector runs by itself depends on the machine. */
export function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

/** Reads as lines on the console. */
import { onRead } from "../page/on-read.ts";
import { described, summarized, type ReadSummary } from "./read-summary.ts";

/** Writes a line for every read of this origin, on the console by default. The returned function ends that. */
export function logReads(write: (line: string) => void = (line) => console.log(line)): () => void {
  const reads = new Map<string, ReadSummary>();
  return onRead((event) => {
    const summary = summarized(reads.get(event.read), event);
    if (!summary) return;
    reads.set(event.read, summary);
    if (!summary.end) return;
    reads.delete(event.read);
    write(`agarose: ${described(summary)}`);
  });
}

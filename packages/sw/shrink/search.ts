/** Looks for the spelling of a script that compresses best, with the compressor itself as the judge. */
import { deflateRawSync } from "node:zlib";
import { seededRandom } from "@agarose/solver";
import { Spellings } from "./spellings.ts";

export interface Search {
  /** A minified ES module. */
  readonly script: string;
  /** Its properties that only it reads. */
  readonly internal: readonly string[];
  /** How many to try. */
  readonly changes: number;
}

/**
 * A change for the worse by so many bytes is still taken one time in e at the start; and never at the end. More is too hot for
 * so few changes, and colder finds no way out.
 */
const WORSE_BYTES = 0.9;

/**
 * Simulated annealing (Kirkpatrick, Gelatt & Vecchi, "Optimization by Simulated Annealing", 1983): changes that make the script
 * larger are taken the less often the more is lost and the later it is.
 */
export function searched({ script, internal, changes }: Search): string {
  const random = seededRandom(changes);
  const spellings = new Spellings(script, new Set(internal), random);
  let bytes = compressed(spellings.text);
  let best = { bytes, text: spellings.text };
  for (let tried = 0; tried < changes;) {
    const takeBack = spellings.change();
    if (!takeBack) continue;
    tried++;
    const size = compressed(spellings.text);
    const warmth = WORSE_BYTES * (1 - tried / changes) ** 2;
    if (size <= bytes || random.next() < Math.exp((bytes - size) / warmth)) bytes = size;
    else takeBack();
    if (bytes < best.bytes) best = { bytes, text: spellings.text };
  }
  return best.text;
}

function compressed(script: string): number {
  // More memory makes it faster and the same length.
  return deflateRawSync(script, { level: 9, memLevel: 9, chunkSize: 64 * 1024 }).length;
}

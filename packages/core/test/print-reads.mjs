/** Prints the lines of `recorded-reads.ts` for a seed, or the digests of 200 seeds. */
import { digestsOf, recordedReads } from "./recorded-reads.ts";

const seed = Number(process.argv[2]);
process.stdout.write(seed ? `${(await recordedReads(seed)).join("\n")}\n` : await digestsOf(200));

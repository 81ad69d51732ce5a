/** `agarose lab bench codec`: the codec on this machine beside other implementations. */
import type { Work } from "@agarose/ec-wasm/bench";
import { logLine, printResult } from "../../../ui/output.ts";
import { formatDuration } from "../../../ui/progress.ts";
import type { Values } from "../../../command.ts";
import type { benchArgs } from "../index.ts";

/** Runs `agarose lab bench codec`. Figures of the codec are MB/s of object bytes on this machine. */
export async function benchCodec({ rounds, ...options }: Values<typeof benchArgs>): Promise<void> {
  // Loaded only here: the contestants bring compilers and browsers.
  const bench = await import("@agarose/ec-wasm/bench");
  const report = await bench.benchCodec({ rounds, onWork: workLogger(bench.WORKS.length) });
  const lines = report.results.map(
    ({ op, k, m, bytes: size, lost, implementation, runtime, medianUs, mbPerSecond }) =>
      `${op} (${k},${m}) ${size} B, ${lost} lost  ${medianUs.toFixed(0).padStart(8)} us ${mbPerSecond.toFixed(0).padStart(7)} MB/s  ` +
      `${implementation} (${runtime})`,
  );
  const skipped = report.skipped.map(({ implementation, reason }) => `skipped  ${implementation}: ${reason}`);
  printResult(options, report, [...lines, ...skipped]);
}

/** Logs each piece of work when it starts, with the time left by what the pieces before it took. */
function workLogger(works: number): (work: Work) => void {
  const startedMs = performance.now();
  let started = 0;
  return ({ op, k, m, bytes: size, lost }) => {
    const leftMs = ((performance.now() - startedMs) / started) * (works - started);
    const left = started > 0 ? `, about ${formatDuration(leftMs)} left` : "";
    started++;
    logLine(`${started} of ${works}: ${op} (${k},${m}) of ${size} bytes, ${lost} lost${left}`);
  };
}

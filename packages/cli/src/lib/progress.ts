/**
 * The progress bar on stderr: bytes of all files of a command. Drawn on terminals only.
 */
import { SingleBar } from "cli-progress";
import { formatBytes } from "./output.ts";

/** A progress bar in bytes. */
export interface Progress {
  addTotal(bytes: number): void;
  add(bytes: number): void;
  stop(): void;
}

const SILENT: Progress = { addTotal: () => {}, add: () => {}, stop: () => {} };

/** A bar named `label`, or a silent one when stderr is not a terminal or `json` asks for quiet. */
export function startProgress(label: string, json: boolean): Progress {
  if (json || !process.stderr.isTTY) return SILENT;
  const bar = new SingleBar({
    stream: process.stderr,
    format: `${label} {bar} {percentage}% {done} of {all} · {speed}/s · {eta_formatted} left`,
    clearOnComplete: true,
    hideCursor: true,
    etaBuffer: 200,
  });
  const startedMs = performance.now();
  let done = 0;
  let total = 0;
  const payload = (): Record<string, string> => ({
    done: formatBytes(done),
    all: formatBytes(total),
    speed: formatBytes(Math.round((done * 1000) / Math.max(1, performance.now() - startedMs))),
  });
  return {
    addTotal(bytes) {
      total += bytes;
      if (bar.isActive) bar.setTotal(total);
      else bar.start(total, 0, payload());
    },
    add(bytes) {
      done += bytes;
      bar.update(done, payload());
    },
    stop: () => bar.stop(),
  };
}

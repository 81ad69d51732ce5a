/** The bar on stderr while a log is read and played: nothing is drawn where nobody looks. */

import cliProgress from "cli-progress";

/** What is being done, and the share that is done. */
export type ShowProgress = (step: string, done: number) => void;

/** Runs `work` with a bar that ends before its result is printed. */
export async function withProgress<T>(work: (show: ShowProgress) => T | Promise<T>): Promise<T> {
  if (!process.stderr.isTTY) return work(() => undefined);
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    clearOnComplete: true,
    hideCursor: true,
    format: "{step} {bar} {percentage}%",
  });
  bar.start(100, 0, { step: "starting" });
  try {
    return await work((step, done) => bar.update(Math.floor(100 * done), { step }));
  } finally {
    bar.stop();
  }
}

/** A PoP in its own process, started by `startPopProcess`: runs a period for each number that it is sent. */
import { startPop, type PopOptions } from "../src/index.ts";

process.once("message", (options: PopOptions) => void serve(options));
process.once("disconnect", () => process.exit());

/** Ends the PoP as `agarose pop` does at SIGTERM. */
interface End {
  readonly graceMs: number;
}

async function serve(options: PopOptions): Promise<void> {
  const pop = await startPop(options);
  process.on("message", (order: number | End) => {
    if (typeof order === "object") return void pop.close(order.graceMs).then(() => process.exit());
    pop.runPeriod().then(
      () => process.send!({ id: order }),
      (error: unknown) => process.send!({ id: order, error: String(error) }),
    );
  });
  process.send!({ url: pop.url });
}

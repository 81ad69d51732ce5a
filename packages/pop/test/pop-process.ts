/** A PoP in a process of its own, started by `startPopProcess`: runs a period for each message. */
import { startPop, type PopOptions } from "../src/index.ts";

process.once("message", (options: PopOptions) => void serve(options));
process.once("disconnect", () => process.exit());

async function serve(options: PopOptions): Promise<void> {
  const pop = await startPop(options);
  process.on("message", (id: number) => {
    pop.runPeriod().then(
      () => process.send!({ id }),
      (error: unknown) => process.send!({ id, error: String(error) }),
    );
  });
  process.send!({ url: pop.url });
}

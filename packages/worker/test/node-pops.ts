/** A PoP on Node in place of one in workerd, for the suites that both runtimes must pass. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pops } from "@agarose/dev-world/pops";
import { startPopProcess } from "@agarose/pop/test";

/** Starts the PoP `name` in a folder that ends with it. */
export async function startNodePops(
  name: string,
  vars: Readonly<Record<string, string>>,
  onLog: (line: string) => void,
): Promise<Pops> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-pop-test-"));
  const pop = await startPopProcess(
    { variables: { POP: name, ...vars }, folder, periodMs: 0, behindProxy: true },
    onLog,
  );
  const unsupported = (): never => {
    throw new Error("this suite needs workerd");
  };
  return {
    pops: [{ name, url: pop.url }],
    cron: () => pop.runPeriod(),
    setFault: unsupported,
    fault: unsupported,
    get miniflare(): never {
      return unsupported();
    },
    async dispose() {
      await pop.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Kills many processes of the command line against versitygw.
 *
 *     node packages/cli/test/kills/soak.ts [cases] [seed]
 */
import { KillWorld } from "./kill-world.ts";
import { killInTurn } from "./search.ts";

const PROGRESS = 20;
const [cases = "100", seed = String(Date.now() % 1_000_000_000)] = process.argv.slice(2);
const world = await KillWorld.start();
try {
  const { failures, text } = await killInTurn(world, Number(cases), Number(seed), (done) => {
    if (done % PROGRESS === 0) process.stderr.write(`${done} cases\n`);
  });
  console.log(text);
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  await world.close();
}

/** Holds a world as a Playwright worker does, until it is killed. */
import { LocalWorld } from "@agarose/dev-world/client";

const { pid, config } = await LocalWorld.start();
process.send!({ pid, config });

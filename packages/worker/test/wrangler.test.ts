/** wrangler.toml says the same for every PoP, because Wrangler inherits neither bindings nor variables. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { unstable_getMiniflareWorkerOptions } from "wrangler";

const CONFIG = fileURLToPath(new URL("../../../wrangler.toml", import.meta.url));
const POPS = [...(await readFile(CONFIG, "utf8")).matchAll(/^\[env\.(\w+)\]$/gm)].map(([, pop]) => pop!);

/** The configuration of a PoP, without its own name, place and namespace. */
function configured(pop: string): object {
  const { bindings, durableObjects, kvNamespaces } = unstable_getMiniflareWorkerOptions(CONFIG, pop).workerOptions;
  return {
    variables: { ...bindings, POP: undefined, LOCATION: undefined },
    durableObjects: Object.fromEntries(
      Object.entries(durableObjects ?? {}).map(([binding, object]) => [
        binding,
        (object as { className: string }).className,
      ]),
    ),
    kv: Object.keys(kvNamespaces ?? {}),
  };
}

test("every PoP is called by its name and has the bindings and variables of the others", () => {
  expect(POPS.length).toBeGreaterThan(1);
  for (const pop of POPS) {
    expect(unstable_getMiniflareWorkerOptions(CONFIG, pop).workerOptions.bindings?.["POP"]).toBe(pop);
    expect(configured(pop)).toEqual(configured(POPS[0]!));
  }
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { startControl } from "./control.ts";
import { WORLD_DEFAULTS } from "../world/world-options.ts";
import type { World } from "../world/world.ts";

/** Only what these routes refuse before they touch a world; the rest is tested on a real one in e2e. */
let control: Awaited<ReturnType<typeof startControl>>;
beforeAll(async () => {
  control = await startControl({ options: WORLD_DEFAULTS } as World);
});
afterAll(() => control.close());

const refused: Record<string, [path: string, body: string, message: RegExp]> = {
  "an unknown region": ["/regions/atlantis", "{}", /no region "atlantis": there are frankfurt/],
  "an unknown PoP": ["/pops/atl", "{}", /no PoP "atl": there are fra, lhr, iad/],
  "an unknown field": ["/regions/dublin", '{"slow":true}', /^slow is not a field of this route$/],
  "a chance above 1": ["/regions/dublin", '{"errorRate":2}', /^errorRate is wrong: .*<=1/],
  "a field of a field": [
    "/regions/dublin",
    '{"stragglers":{"probability":"x","factor":1}}',
    /^stragglers.probability /,
  ],
  "a place that is no PoP's": ["/client", '{"near":"moon"}', /no PoP "moon": there are fra, lhr, iad/],
  "no JSON": ["/client", "near=fra", /not JSON/],
  "an unknown route": ["/nothing", "{}", /POST \/nothing is not a control route/],
};
for (const [what, [path, body, message]] of Object.entries(refused)) {
  test(`${what} is refused with what is wrong`, async () => {
    const response = await fetch(`${control.url}${path}`, { method: "POST", body });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(response.status).toBe(400);
    expect(error.code).toBe("REQUEST_INVALID");
    expect(error.message).toMatch(message);
  });
}

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startControl, type Control } from "./control.ts";
import { ROUTES } from "./routes.ts";
import { WORLDS } from "../world/world-options.ts";
import type { Upload, Uploader } from "../world/uploader.ts";
import type { World } from "../world/world.ts";

/** These tests need no world behind the routes. The end-to-end tests use a real one. */
let control: Control;
beforeAll(async () => {
  control = await startControl({ options: WORLDS.agar } as World, {} as Uploader);
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
  "an unknown place of the client": ["/client", '{"near":"moon"}', /no PoP "moon": there are fra, lhr, iad/],
  "no JSON": ["/client", "near=fra", /not JSON/],
  "an unknown route": ["/nothing", "{}", /POST \/nothing is not a control route: GET \/ lists them/],
  "a name with a bad escape": ["/regions/%E0", "{}", /not percent-encoded/],
};
for (const [what, [path, body, message]] of Object.entries(refused)) {
  test(`${what} is refused with what is wrong`, async () => {
    const response = await fetch(`${control.url}${path}`, { method: "POST", body });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(response.status).toBe(400);
    expect(error.code).toBe(what === "a name with a bad escape" ? "KEY_INVALID" : "REQUEST_INVALID");
    expect(error.message).toMatch(message);
  });
}

test("GET / lists every route with what it does and its fields", async () => {
  const { routes } = (await (await fetch(control.url)).json()) as { routes: { path: string; does: string }[] };
  expect(routes.map(({ path }) => path)).toEqual(ROUTES.map(({ path }) => path));
  expect(routes.every(({ does }) => does.length > 0)).toBe(true);
  expect(routes).toContainEqual(
    expect.objectContaining({
      path: "/regions/NAME",
      fields: expect.objectContaining({ truncate: expect.any(String) }),
    }),
  );
});

test("the README documents every route and every field", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  for (const { method, path, fields = {} } of ROUTES) {
    expect(readme).toContain(`\`${method} ${path}\``);
    for (const field of Object.keys(fields)) expect(readme).toContain(`\`${field}\``);
  }
});

test("PUT /objects stores the body under the decoded key, with the headers that objects may have", async () => {
  const seen: unknown[] = [];
  const own = await startControl(
    { options: WORLDS.agar } as World,
    {
      async put({ path, ...object }: Upload) {
        seen.push({ ...object, content: await readFile(path, "utf8") });
        return { outcome: "stored" };
      },
    } as unknown as Uploader,
  );
  const response = await fetch(`${own.url}/objects/a%20b/c.txt`, {
    method: "PUT",
    headers: { "content-type": "text/plain", "cache-control": "no-cache", "x-other": "1" },
    body: "content",
  });
  await own.close();
  expect(await response.json()).toEqual({ outcome: "stored" });
  expect(seen).toEqual([
    {
      key: "a b/c.txt",
      contentType: "text/plain",
      headers: { "cache-control": "no-cache" },
      content: "content",
    },
  ]);
});

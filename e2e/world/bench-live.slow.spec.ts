/** `agarose lab bench --live` against a local world in place of a deployment. */
import { expect, test } from "../fixtures/test.ts";

interface Live {
  readonly copyRegion: string;
  readonly places: readonly { kind: string; name: string; ms?: number; note: string }[];
  readonly samples: readonly { phase: string; contestant: string; bytes: number; kind?: string; error?: string }[];
}

const chromium = process.env["CHROMIUM_PATH"];
const bench = (...args: string[]): string[] => [
  "bench",
  "--live",
  ...(chromium ? ["--chromium", chromium] : []),
  ...args,
];

test("bench --live reads in every way, names all places, and leaves nothing", async ({ world }) => {
  const before = await world.agarose("ls");
  const live = (await world.agarose(...bench("--rounds", "2", "--wait", "1s", "--largest", "65536"))) as Live;
  expect(live.samples.filter(({ error }) => error)).toEqual([]);
  const counts = Map.groupBy(live.samples, ({ phase, contestant }) => `${phase} ${contestant}`);
  expect(Object.fromEntries([...counts].map(([name, { length }]) => [name, length]))).toEqual({
    "first agarose": 3,
    "first copy": 3,
    "next agarose": 2,
    "next object": 2,
    "next copy": 2,
    "cached agarose": 2,
    "cached object": 2,
    "cached copy": 2,
  });
  const kinds = live.samples.filter(({ contestant }) => contestant === "agarose").map(({ kind }) => kind);
  expect(kinds.every((kind) => kind !== undefined)).toBe(true);
  expect(live.places.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    ...world.pops.map(({ name }) => `PoP ${name}`),
    ...world.regions.map(({ name }) => `region ${name}`),
  ]);
  expect(live.places.every(({ ms }) => ms !== undefined && ms > 0)).toBe(true);
  expect(await world.agarose("ls")).toEqual(before);
});

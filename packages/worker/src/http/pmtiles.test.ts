import { zxyToTileId } from "pmtiles";
import { expect, test } from "vitest";
import { directoryOf, entryFor, tileIdOf } from "./pmtiles.ts";

test("numbers tiles as the library of PMTiles does", () => {
  for (let z = 0; z <= 26; z++) {
    for (const share of [0, 0.1, 0.33, 0.5, 0.77, 0.999_999]) {
      const [x, y] = [Math.floor(share * 2 ** z), Math.floor((1 - share) * (2 ** z - 1))];
      expect(tileIdOf(z, x, y), `${z}/${x}/${y}`).toBe(zxyToTileId(z, x, y));
    }
  }
});

test("reads runs, tiles right behind others, and places of more than a byte", () => {
  // 3 entries: ids 5, 6 and 300; runs 1, 2 and 1; lengths 10, 20 and 200; offsets 1000, behind, 7.
  const bytes = [3, 5, 1, 0xa6, 2, 1, 2, 1, 10, 20, 0xc8, 1, 0xe9, 7, 0, 8];
  const entries = directoryOf(Uint8Array.from(bytes));
  expect(entries).toEqual([
    { id: 5, run: 1, length: 10, offset: 1000 },
    { id: 6, run: 2, length: 20, offset: 1010 },
    { id: 300, run: 1, length: 200, offset: 7 },
  ]);
  const found = [4, 5, 6, 7, 8, 300, 301].map((id) => entryFor(id, entries)?.id);
  expect(found).toEqual([undefined, 5, 6, 6, undefined, 300, undefined]);
  for (let length = 0; length < bytes.length; length++) {
    expect(() => directoryOf(Uint8Array.from(bytes.slice(0, length)))).toThrow(/ends early|has 3 entries/);
  }
});

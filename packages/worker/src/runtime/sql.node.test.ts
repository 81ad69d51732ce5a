import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { SqlBlob, type Sql } from "./sql.ts";

test("pieces of any lengths come back as one, in rows of a megabyte, and shorter bytes leave none of the old", () => {
  const database = new DatabaseSync(":memory:");
  const sql: Sql = {
    exec: (query, ...values) => {
      const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
      const rows = database.prepare(query).all(...bound);
      return { toArray: () => rows as never[] };
    },
  };
  const blob = new SqlBlob(sql, "plan");
  expect(blob.load()).toBeUndefined();
  const bytes = Uint8Array.from({ length: 3_500_000 }, (_, i) => i % 251);
  for (const cuts of [[0], [0, 4, 1_000_004, 3_400_000], [0, 1_000_000, 2_000_000], [0, 7, 7, 9]]) {
    blob.save(cuts.map((from, i) => bytes.subarray(from, cuts[i + 1])));
    expect(Buffer.compare(blob.load()!, bytes), `cut at ${cuts.join()}`).toBe(0);
    expect(database.prepare("SELECT count(*) AS rows FROM plan").get()).toEqual({ rows: 4 });
  }
  blob.save([bytes.subarray(0, 5)]);
  expect(blob.load()).toEqual(bytes.slice(0, 5));
});

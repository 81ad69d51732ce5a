/** `sql.js-httpvfs`, as it is, queries a database by ranges, which it reads synchronously in a worker. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileOfPackage, showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

const ROWS = 40_000;
const PAGE_BYTES = 4_096;

const PACKAGE = ["index.js", "sqlite.worker.js", "sql-wasm.wasm"];

/** The little of the library that the test uses: its own types are those of workers. */
declare const createDbWorker: (
  configs: object[],
  workerUrl: string,
  wasmUrl: string,
) => Promise<{
  db: { query(sql: string): Promise<{ id: number }[]> };
  worker: { getStats(): Promise<{ totalFetchedBytes: number }> };
}>;

/** A table of towns with an index, as a file. */
async function database(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-database-"));
  try {
    const path = join(folder, "towns.sqlite");
    const towns = new DatabaseSync(path);
    towns.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
    towns.exec("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT, people INTEGER)");
    towns.exec(
      `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS})
       INSERT INTO towns SELECT n, 'town ' || n || ' of ' || hex(zeroblob(50)), n * 7919 % 100003 FROM numbers`,
    );
    towns.exec("CREATE INDEX by_people ON towns (people)");
    towns.close();
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("sql.js-httpvfs finds rows by an index of a database that it reads by ranges", async ({ browser, world }) => {
  const towns = await database();
  const files: Record<string, Uint8Array> = { "database/towns.sqlite": towns };
  for (const file of PACKAGE) files[`database/${file}`] = await fileOfPackage(`sql.js-httpvfs/dist/${file}`);
  const { found, bytes } = await showSame(browser, world, files, async (page) => {
    await page.addScriptTag({ url: "/ec/database/index.js" });
    return page.evaluate(async (requestChunkSize) => {
      const config = { serverMode: "full", url: "/ec/database/towns.sqlite", requestChunkSize } as const;
      const { db, worker } = await createDbWorker(
        [{ from: "inline", config }],
        "/ec/database/sqlite.worker.js",
        "/ec/database/sql-wasm.wasm",
      );
      const rows = await db.query("SELECT id FROM towns WHERE people BETWEEN 500 AND 505 ORDER BY people");
      const last = await db.query("SELECT id FROM towns ORDER BY id DESC LIMIT 1");
      return { found: [...rows, ...last].map(({ id }) => id), bytes: (await worker.getStats()).totalFetchedBytes };
    }, PAGE_BYTES);
  });
  const wanted = Array.from({ length: ROWS }, (_, i) => ({ id: i + 1, people: ((i + 1) * 7919) % 100_003 }))
    .filter(({ people }) => people >= 500 && people <= 505)
    .toSorted((a, b) => a.people - b.people);
  expect(found).toEqual([...wanted.map(({ id }) => id), ROWS]);
  expect(bytes).toBeLessThan(towns.length / 10);
});

/** `duckdb-wasm`, as it is, queries a Parquet file by ranges, which it reads synchronously in a worker. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { parquetWriteBuffer } from "hyparquet-writer";
import { unpacked } from "./unpacked.ts";
import { showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

const ROWS = 200_000;

/** The little of the library that the test uses: it is not installed. */
interface DuckDb {
  VoidLogger: new () => object;
  AsyncDuckDB: new (
    logger: object,
    worker: Worker,
  ) => {
    instantiate(url: string): Promise<void>;
    connect(): Promise<{ query(sql: string): Promise<{ toArray(): { toJSON(): Record<string, unknown> }[] }> }>;
  };
}

test("duckdb-wasm queries columns of a Parquet file that it reads by ranges", async ({ browser, world }) => {
  // Version 1.32 fetches its reader of Parquet from another host.
  const [database, arrow] = await Promise.all([
    unpacked("@duckdb/duckdb-wasm", "1.28.0"),
    unpacked("apache-arrow", "13.0.0"),
  ]);
  const missing = database.missing ?? arrow.missing;
  test.skip(missing !== undefined, missing);
  const dist = join(database.folder!, "dist");
  const { outputFiles } = await build({
    entryPoints: [join(dist, "duckdb-browser.mjs")],
    alias: { "apache-arrow": join(arrow.folder!, "Arrow.es2015.min.js") },
    bundle: true,
    format: "esm",
    write: false,
  });
  const ids = Array.from({ length: ROWS }, (_, i) => i);
  const columnData = [
    { name: "id", data: ids, type: "INT32" as const },
    { name: "name", data: ids.map((id) => `row ${id} of the table ${(id * 7919) % 100_003}`), type: "STRING" as const },
  ];
  const table = new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 10_000 }));
  const files = {
    "duckdb/duckdb.js": outputFiles[0]!.contents,
    "duckdb/worker.js": await readFile(join(dist, "duckdb-browser-eh.worker.js")),
    "duckdb/duckdb.wasm": await readFile(join(dist, "duckdb-eh.wasm")),
    "duckdb/table.parquet": table,
  };
  const rows = await showSame(browser, world, files, async (page) => {
    let bytes = 0;
    page.on("request", (request) => {
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers()["range"] ?? "") ?? [];
      if (request.method() === "GET" && request.url().endsWith(".parquet")) bytes += Number(last) + 1 - Number(first);
    });
    const found = await page.evaluate(async () => {
      const load = (url: string): Promise<DuckDb> => import(url) as Promise<DuckDb>;
      const library = await load("/ec/duckdb/duckdb.js");
      const db = new library.AsyncDuckDB(new library.VoidLogger(), new Worker("/ec/duckdb/worker.js"));
      await db.instantiate(new URL("/ec/duckdb/duckdb.wasm", location.href).href);
      const connection = await db.connect();
      const query = async (sql: string): Promise<unknown[]> => {
        const result = await connection.query(sql);
        return result.toArray().map((row) => row.toJSON());
      };
      const from = `FROM read_parquet('${new URL("/ec/duckdb/table.parquet", location.href).href}')`;
      return [
        await query(`SELECT count(*)::INT AS rows, max(id) AS last ${from}`),
        await query(`SELECT name ${from} WHERE id BETWEEN 123456 AND 123457`),
      ];
    });
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(table.length * 0.7);
    return found;
  });
  const named = columnData[1]!.data.slice(123_456, 123_458).map((name) => ({ name }));
  expect(rows).toEqual([[{ rows: ROWS, last: ROWS - 1 }], named]);
});

/** A Parquet file, queried by `hyparquet`: it reads the footer, and then only the columns and rows that it wants. */
import { TABLE } from "../../samples/index.ts";
import { byId, h, table } from "../page/dom.ts";
import { count } from "../page/format.ts";
import { startTrial, type TrialPorts } from "./trial.ts";

const HOURS = 24 * 365;
const STATIONS = 40;
/** Stations that a query reads, others each time; a region may die after the first. */
const QUERIED = 3;
const APART = 13;
const BYTES_OF_A_VALUE = 4;

export function startTable(ports: TrialPorts): void {
  const rows = h("tbody");
  const { element } = startTrial({
    ...ports,
    title: "Query the weather",
    key: TABLE.key,
    isOwn: (key) => key === TABLE.key,
    async work(halfway) {
      rows.replaceChildren();
      const { asyncBufferFromUrl, parquetMetadataAsync, parquetReadObjects } = await import("hyparquet");
      const file = await asyncBufferFromUrl({ url: `/ec/${TABLE.key}`, requestInit: { cache: "no-store" } });
      const metadata = await parquetMetadataAsync(file);
      const columns = ["temperature"];
      let read = 0;
      const first = Math.floor(Math.random() * STATIONS);
      for (let i = 0; i < QUERIED; i++) {
        const station = (first + i * APART) % STATIONS;
        const [rowStart, rowEnd] = [station * HOURS, (station + 1) * HOURS];
        const found = await parquetReadObjects({ file, metadata, columns, rowStart, rowEnd });
        const values = found.map((row) => Number(row["temperature"]));
        rows.append(rowOf(station, values));
        read += found.length;
        if (i === 0) await halfway();
      }
      return {
        bytes: read * BYTES_OF_A_VALUE,
        what: `${count(read, "value")} of ${count(Number(metadata.num_rows), "row")}`,
      };
    },
  });
  byId("table").replaceChildren(
    element,
    h(
      "p",
      { class: "note" },
      "A year of seeded random weather at 40 stations, one row an hour. A query reads one column of three stations.",
    ),
    h("div", { class: "scroll" }, table(["station", "coldest", "mean", "warmest"], rows)),
  );
}

function rowOf(station: number, values: readonly number[]): HTMLElement {
  const sorted = values.toSorted((a, b) => a - b);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const cells = [sorted[0]!, mean, sorted.at(-1)!].map((value) =>
    h("td", { class: "number" }, `${value.toFixed(1)} °C`),
  );
  return h("tr", {}, h("th", { scope: "row" }, String(station)), ...cells);
}

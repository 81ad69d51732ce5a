/** Writes the table sample: seeded readings of imagined weather stations, one an hour, as a Parquet file. */
import { writeFile } from "node:fs/promises";
import { parquetWriteBuffer } from "hyparquet-writer";

const STATIONS = 40;
const HOURS = 24 * 365;
const SEED = 19_970_801;

/** Writes the file (3 MB): a row group for each station. */
export async function writeTable(path: string): Promise<void> {
  const rows = STATIONS * HOURS;
  const station = new Int32Array(rows);
  const hour = new Int32Array(rows);
  const temperature = new Float32Array(rows);
  let state = SEED;
  for (let row = 0; row < rows; row++) {
    station[row] = Math.floor(row / HOURS);
    hour[row] = row % HOURS;
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const season = -12 * Math.cos((2 * Math.PI * hour[row]!) / HOURS);
    const day = -4 * Math.cos((2 * Math.PI * (hour[row]! % 24)) / 24);
    temperature[row] = Math.round(10 * (10 + station[row]! / 4 + season + day + (6 * state) / 2 ** 32)) / 10;
  }
  const columnData = [
    { name: "station", data: station, type: "INT32" as const },
    { name: "hour", data: hour, type: "INT32" as const },
    { name: "temperature", data: temperature, type: "FLOAT" as const },
  ];
  await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: HOURS })));
}

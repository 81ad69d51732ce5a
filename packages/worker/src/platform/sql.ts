/** Bytes of any length in the SQLite of a Durable Object, whose rows hold 2 MB at most. */

const ROW_BYTES = 1_000_000;

export class SqlBlob {
  readonly #sql: SqlStorage;
  readonly #table: string;

  /** @param table a plain identifier; made if it is not there. */
  constructor(sql: SqlStorage, table: string) {
    this.#sql = sql;
    this.#table = table;
    sql.exec(`CREATE TABLE IF NOT EXISTS ${table} (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL)`);
  }

  /** Replaces what was there; all or nothing, as every method of a Durable Object that awaits nothing. */
  save(bytes: Uint8Array): void {
    const parts = Math.ceil(bytes.length / ROW_BYTES);
    for (let part = 0; part < parts; part++) {
      const row = bytes.slice(part * ROW_BYTES, (part + 1) * ROW_BYTES);
      this.#sql.exec(`INSERT OR REPLACE INTO ${this.#table} (part, bytes) VALUES (?, ?)`, part, row.buffer);
    }
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE part >= ?`, parts);
  }

  clear(): void {
    this.#sql.exec(`DELETE FROM ${this.#table}`);
  }

  /** Undefined when nothing was saved. */
  load(): Uint8Array | undefined {
    const rows = this.#sql.exec<{ bytes: ArrayBuffer }>(`SELECT bytes FROM ${this.#table} ORDER BY part`).toArray();
    if (rows.length === 0) return undefined;
    const whole = new Uint8Array(rows.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
    let at = 0;
    for (const { bytes } of rows) {
      whole.set(new Uint8Array(bytes), at);
      at += bytes.byteLength;
    }
    return whole;
  }
}

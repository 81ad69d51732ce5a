/** The data of the Durable Objects in their SQLite: facts by name, and bytes of any length. */

/** The part of a Durable Object's SQL storage that is used here; a test may replace it. */
export interface Sql {
  exec<T extends Record<string, SqlValue>>(query: string, ...bindings: SqlValue[]): { toArray(): T[] };
}
type SqlValue = string | number | ArrayBuffer;

/** JSON values by name, in one table. */
export class Facts {
  readonly #sql: Sql;

  /** Creates the table where it does not exist. */
  constructor(sql: Sql) {
    this.#sql = sql;
    sql.exec("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, json TEXT NOT NULL)");
  }

  /** Returns the value of a name, or undefined where none was set. */
  get<T = number>(name: string): T | undefined {
    const row = this.#sql.exec<{ json: string }>("SELECT json FROM facts WHERE name = ?", name).toArray()[0];
    return row && (JSON.parse(row.json) as T);
  }

  /** Sets and returns `value`, which must serialise as JSON. */
  set<T>(name: string, value: T): T {
    this.#sql.exec("INSERT OR REPLACE INTO facts (name, json) VALUES (?, ?)", name, JSON.stringify(value));
    return value;
  }
}

/** A row holds at most 2 MB. */
const ROW_BYTES = 1_000_000;

/** Bytes of any length under the name of a table of their own. */
export class SqlBlob {
  readonly #sql: Sql;
  readonly #table: string;

  /** @param table a plain identifier; the table is created where it does not exist. */
  constructor(sql: Sql, table: string) {
    this.#sql = sql;
    this.#table = table;
    sql.exec(`CREATE TABLE IF NOT EXISTS ${table} (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL)`);
  }

  /** Replaces the bytes. A Durable Object's method that awaits nothing does so entirely or not at all. */
  save(pieces: Iterable<Uint8Array>): void {
    let parts = 0;
    const row = new Uint8Array(ROW_BYTES);
    let filled = 0;
    const write = (): void => {
      const { buffer } = row.slice(0, filled);
      this.#sql.exec(`INSERT OR REPLACE INTO ${this.#table} (part, bytes) VALUES (?, ?)`, parts++, buffer);
      filled = 0;
    };
    for (const bytes of pieces) {
      for (let from = 0; from < bytes.length;) {
        const some = bytes.subarray(from, from + ROW_BYTES - filled);
        row.set(some, filled);
        filled += some.length;
        from += some.length;
        if (filled === ROW_BYTES) write();
      }
    }
    if (filled > 0) write();
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE part >= ?`, parts);
  }

  clear(): void {
    this.#sql.exec(`DELETE FROM ${this.#table}`);
  }

  /** Returns the bytes, or undefined where none were saved. */
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

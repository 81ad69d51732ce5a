/** The storage of a Durable Object, SQL and one alarm, in its own SQLite file. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { AgaroseError } from "@agarose/core";
import type { ObjectStore } from "@agarose/worker/ports";

type SqlValue = string | number | null | ArrayBuffer;
type Row = Record<string, SqlValue>;

/** The part of Cloudflare's `SqlStorage` that the Worker uses. */
export interface LocalSql {
  exec<T extends Row>(query: string, ...bindings: SqlValue[]): { toArray(): T[] };
}

/** Pages of 4 KiB in SQLite's log: by default it grows to 4 MB for each object, most of it old. */
const LOG_PAGES_MAX = 64;

/**
 * The storage of one object. A process that is killed loses no committed call: SQLite's log is in the operating
 * system's hands by then.
 */
export class ObjectStorage implements ObjectStore {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #onAlarm: (at: number | null) => void;

  /**
   * Throws STORE_FAILED for a file that cannot be used.
   *
   * @param onAlarm is called when the alarm is set or removed; milliseconds since 1970.
   */
  constructor(path: string, onAlarm: (at: number | null) => void) {
    this.#database = new DatabaseSync(path);
    try {
      this.#database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
      this.#database.exec(`PRAGMA wal_autocheckpoint = ${LOG_PAGES_MAX}`);
      this.#database.exec("CREATE TABLE IF NOT EXISTS _alarm (id INTEGER PRIMARY KEY, at INTEGER NOT NULL)");
    } catch (error) {
      this.#database.close();
      const { message } = error as Error;
      const text = `${path} cannot be used (${message}): if it is damaged, remove the PoP's whole folder; it fills its cache again`;
      throw new AgaroseError("STORE_FAILED", text, { path }, error);
    }
    this.#onAlarm = onAlarm;
  }

  /** Runs queries as Cloudflare's `sql.exec` does. Several statements in one query take no bindings. */
  readonly sql: LocalSql = {
    exec: <T extends Row>(query: string, ...bindings: SqlValue[]) => {
      if (bindings.length === 0 && !/^\s*(select|with|pragma)\b/i.test(query)) {
        this.#database.exec(query);
        return { toArray: () => [] };
      }
      const rows = this.#statement(query).all(...bindings.map(toSqlite)) as Record<string, unknown>[];
      return { toArray: () => rows.map((row) => fromSqlite(row) as T) };
    },
  };

  /** Runs `task` entirely or not at all, up to its first await. */
  atomically<T>(task: () => T): T {
    this.#database.exec("BEGIN");
    try {
      const result = task();
      this.#database.exec("COMMIT");
      return result;
    } catch (error) {
      // A full disk has rolled it back already, and a second time would hide why.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  /** When the alarm goes off, in milliseconds since 1970; null without one. */
  getAlarm(): number | null {
    return (this.#statement("SELECT at FROM _alarm").get() as { at: number } | undefined)?.at ?? null;
  }

  /** Sets the alarm; null removes it. */
  setAlarm(at: number | null): void {
    if (at === null) this.#statement("DELETE FROM _alarm").run();
    else this.#statement("INSERT OR REPLACE INTO _alarm (id, at) VALUES (1, ?)").run(at);
    this.#onAlarm(at);
  }

  close(): void {
    this.#database.close();
  }

  #statement(query: string): StatementSync {
    let statement = this.#statements.get(query);
    if (!statement) this.#statements.set(query, (statement = this.#database.prepare(query)));
    return statement;
  }
}

function toSqlite(value: SqlValue): SQLInputValue {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value;
}

/** Cloudflare gives blobs as buffers. */
function fromSqlite(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) : value,
    ]),
  );
}

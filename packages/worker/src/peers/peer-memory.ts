/** What `PeerState` must not forget when its object is evicted from memory, in its own SQLite. */
import { parsePeerMessage, type PeerMessage } from "./peer-message.ts";

/** Messages kept of one peer since its last digest; older ones are made good by the next. */
const EVENTS_MAX = 64;

/** The part of an object's SQL storage that is used. */
export interface Sql {
  exec<T extends Record<string, string | number>>(query: string, ...bindings: (string | number)[]): { toArray(): T[] };
}

export class PeerMemory {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, json TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS held (version TEXT PRIMARY KEY, chunks TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS messages (
        id INTEGER PRIMARY KEY, peer TEXT NOT NULL, digest INTEGER NOT NULL, heardMs REAL NOT NULL, json TEXT NOT NULL
      );
    `);
  }

  fact<T = number>(name: string): T | undefined {
    const row = this.#sql.exec<{ json: string }>("SELECT json FROM facts WHERE name = ?", name).toArray()[0];
    return row && (JSON.parse(row.json) as T);
  }

  /** Returns `value`. */
  setFact<T>(name: string, value: T): T {
    this.#sql.exec("INSERT OR REPLACE INTO facts (name, json) VALUES (?, ?)", name, JSON.stringify(value));
    return value;
  }

  /** What this PoP holds, by version. */
  held(): [version: string, chunks: readonly number[]][] {
    const rows = this.#sql.exec<{ version: string; chunks: string }>("SELECT version, chunks FROM held").toArray();
    return rows.map(({ version, chunks }) => [version, JSON.parse(chunks) as number[]]);
  }

  /** Rows cost money: only what differs is written. */
  setHeld(held: readonly (readonly [version: string, chunks: readonly number[]])[]): void {
    const before = new Map(this.held().map(([version, chunks]) => [version, JSON.stringify(chunks)]));
    for (const [version, chunks] of held) {
      const json = JSON.stringify(chunks);
      if (before.get(version) !== json) {
        this.#sql.exec("INSERT OR REPLACE INTO held (version, chunks) VALUES (?, ?)", version, json);
      }
      before.delete(version);
    }
    for (const version of before.keys()) this.#sql.exec("DELETE FROM held WHERE version = ?", version);
  }

  /**
   * Keeps a message that brought news; a digest takes the place of all that came before it. (Of those that overtook it, what
   * they said is lost with this object's memory, until the digest after.)
   */
  keep(message: PeerMessage, heardMs: number): void {
    const { node, isComplete } = message.cache;
    const digest = isComplete ? 1 : 0;
    if (isComplete) this.#sql.exec("DELETE FROM messages WHERE peer = ?", node);
    this.#sql.exec(
      "INSERT INTO messages (peer, digest, heardMs, json) VALUES (?, ?, ?, ?)",
      node,
      digest,
      heardMs,
      JSON.stringify(message),
    );
    this.#sql.exec(
      `DELETE FROM messages WHERE peer = ?1 AND digest = 0 AND id NOT IN
       (SELECT id FROM messages WHERE peer = ?1 AND digest = 0 ORDER BY id DESC LIMIT ?2)`,
      node,
      EVENTS_MAX,
    );
  }

  messages(): { readonly message: PeerMessage; readonly heardMs: number }[] {
    const rows = this.#sql.exec<{ heardMs: number; json: string }>("SELECT heardMs, json FROM messages ORDER BY id");
    return rows.toArray().flatMap(({ heardMs, json }) => {
      try {
        return [{ message: parsePeerMessage(json), heardMs }];
      } catch {
        // Of another release: the next digest says it in our words.
        return [];
      }
    });
  }
}

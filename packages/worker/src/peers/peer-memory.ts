/** The state of `PeerState` in its SQLite, because the platform may evict the object from memory. */
import type { PeerMessage } from "@agarose/solver/cooperation";
import type { Held } from "../cache/held.ts";
import { Facts, type Sql } from "../runtime/sql.ts";
import { parsePeerMessage } from "./peer-message.ts";

/** Messages of one peer that are kept since its last digest; the next digest replaces older ones. */
const EVENTS_MAX = 64;

/** The memory of one `PeerState`. */
export class PeerMemory {
  readonly facts: Facts;
  readonly #sql: Sql;
  /** As the table has it; undefined before it was first needed. */
  #held: Held | undefined;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.facts = new Facts(sql);
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS held (version TEXT PRIMARY KEY, chunks TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS messages (
        id INTEGER PRIMARY KEY, peer TEXT NOT NULL, digest INTEGER NOT NULL, heardMs REAL NOT NULL, json TEXT NOT NULL
      );
    `);
  }

  /** The chunks that this PoP holds, by version. */
  get held(): Held {
    if (this.#held) return this.#held;
    const rows = this.#sql.exec<{ version: string; chunks: string }>("SELECT version, chunks FROM held").toArray();
    return (this.#held = new Map(rows.map(({ version, chunks }) => [version, JSON.parse(chunks) as number[]])));
  }

  /**
   * Replaces the chunks that this PoP holds. Returns what differs, without chunks where a version is gone: only that is
   * written, because rows cost money.
   */
  setHeld(held: Held): [version: string, chunks: readonly number[]][] {
    const before = this.held;
    const changed = [...held].filter(([version, chunks]) => before.get(version)?.join() !== chunks.join());
    for (const [version, chunks] of changed) {
      this.#sql.exec("INSERT OR REPLACE INTO held (version, chunks) VALUES (?, ?)", version, JSON.stringify(chunks));
    }
    const gone = [...before.keys()].filter((version) => !held.has(version));
    for (const version of gone) this.#sql.exec("DELETE FROM held WHERE version = ?", version);
    this.#held = held;
    return [...changed, ...gone.map((version): [string, []] => [version, []])];
  }

  /** Keeps a message. A digest replaces all earlier messages of its sender, also those that overtook it. */
  keep(message: PeerMessage, receivedMs: number): void {
    const { node, isComplete } = message.cache;
    const digest = isComplete ? 1 : 0;
    if (isComplete) this.#sql.exec("DELETE FROM messages WHERE peer = ?", node);
    this.#sql.exec(
      "INSERT INTO messages (peer, digest, heardMs, json) VALUES (?, ?, ?, ?)",
      node,
      digest,
      receivedMs,
      JSON.stringify(message),
    );
    // Node 22 takes no numbered parameters.
    this.#sql.exec(
      `DELETE FROM messages WHERE peer = ? AND digest = 0 AND id NOT IN
       (SELECT id FROM messages WHERE peer = ? AND digest = 0 ORDER BY id DESC LIMIT ?)`,
      node,
      node,
      EVENTS_MAX,
    );
  }

  /** Returns the messages that were kept, oldest first. */
  messages(): { readonly message: PeerMessage; readonly receivedMs: number }[] {
    const rows = this.#sql.exec<{ receivedMs: number; json: string }>(
      "SELECT heardMs AS receivedMs, json FROM messages ORDER BY id",
    );
    return rows.toArray().flatMap(({ receivedMs, json }) => {
      try {
        return [{ message: parsePeerMessage(json), receivedMs }];
      } catch {
        // Another release wrote it: the next digest replaces it.
        return [];
      }
    });
  }
}

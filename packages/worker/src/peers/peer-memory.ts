/** The state of `PeerState` in its SQLite, because the platform may evict the object from memory. */
import type { PeerMessage } from "@agarose/solver/cooperation";
import { Facts, type Sql } from "../runtime/sql.ts";
import { parsePeerMessage } from "./peer-message.ts";

/** Messages of one peer that are kept since its last digest; the next digest replaces older ones. */
const EVENTS_MAX = 64;

/** The memory of one `PeerState`. */
export class PeerMemory {
  readonly facts: Facts;
  readonly #sql: Sql;

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

  /** Returns the chunks that this PoP holds, by version. */
  held(): [version: string, chunks: readonly number[]][] {
    const rows = this.#sql.exec<{ version: string; chunks: string }>("SELECT version, chunks FROM held").toArray();
    return rows.map(({ version, chunks }) => [version, JSON.parse(chunks) as number[]]);
  }

  /** Replaces the chunks that this PoP holds. Rows cost money, so only differences are written. */
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

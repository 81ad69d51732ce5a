import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { type PeerMessage, PeerTable } from "@agarose/solver/cooperation";
import { describe, expect, test } from "vitest";
import type { Sql } from "../runtime/sql.ts";
import { PeerMemory } from "./peer-memory.ts";

/**
 * The part of a Durable Object's SQL interface that is used, over Node's own SQLite: there is no other way to evict an
 * object.
 */
function storage(database = new DatabaseSync(":memory:")): { sql: Sql; database: DatabaseSync } {
  const exec = (query: string, ...bindings: unknown[]) => {
    // `prepare` takes one statement, and only the tables are made by several.
    if (query.includes("CREATE TABLE")) database.exec(query);
    const rows = query.includes("CREATE TABLE") ? [] : database.prepare(query).all(...(bindings as SQLInputValue[]));
    return { toArray: () => rows };
  };
  return { sql: { exec } as Sql, database };
}

function message(statedMs: number, chunks: number[], isComplete = false): PeerMessage {
  const statements = [{ key: `v${statedMs}`, chunks, hits: 0, readMs: 0 }];
  return {
    to: "fra",
    turn: statedMs,
    configuration: 1,
    cache: { node: "lhr", epoch: 1, statedMs, isComplete, statements },
  };
}

describe("the memory of peers", () => {
  test("gives the table back as it was, after the object was evicted", () => {
    const { sql, database } = storage();
    const memory = new PeerMemory(sql);
    const table = new PeerTable();
    for (const received of [message(1, [1], true), message(2, [2]), message(3, [])]) {
      table.merge(received, received.cache.statedMs);
      memory.keep(received, received.cache.statedMs);
    }
    const again = new PeerTable();
    for (const kept of new PeerMemory(storage(database).sql).messages()) again.merge(kept.message, kept.receivedMs);
    expect([...again.cache.contentsOf("lhr")]).toEqual([...table.cache.contentsOf("lhr")]);
    expect([...again.cache.contentsOf("lhr")]).toEqual([
      ["v1", [1]],
      ["v2", [2]],
    ]);
    expect(again.record("lhr")).toEqual(table.record("lhr"));
    expect(again.merge(message(2, [2]), 9), "a replay after the eviction").toBe(false);
  });

  test("keeps a digest and no more than so many events after it", () => {
    const memory = new PeerMemory(storage().sql);
    memory.keep(message(1, [1]), 1);
    memory.keep(message(2, [2], true), 2);
    for (let ms = 3; ms < 103; ms++) memory.keep(message(ms, [0]), ms);
    const kept = memory.messages().map(({ message: { cache } }) => cache.statedMs);
    expect(kept).toEqual([2, ...Array.from({ length: 64 }, (_, i) => 39 + i)]);
  });

  test("ignores what another release has written", () => {
    const { sql, database } = storage();
    const memory = new PeerMemory(sql);
    memory.keep(message(1, [1], true), 1);
    database.exec(`INSERT INTO messages (peer, digest, heardMs, json) VALUES ('lhr', 0, 2, '{"format":7}')`);
    expect(memory.messages().map(({ receivedMs }) => receivedMs)).toEqual([1]);
  });

  test("holds what this PoP holds, and writes only what differs", () => {
    const { sql, database } = storage();
    const memory = new PeerMemory(sql);
    const first = new Map([
      ["a", [1]],
      ["b", [2, 3]],
    ]);
    const next = new Map([
      ["b", [2, 3]],
      ["c", [4]],
    ]);
    memory.setHeld(first);
    const changes = (): number => Number((database.prepare("SELECT total_changes() AS n").get() as { n: number }).n);
    const before = changes();
    expect(memory.setHeld(next)).toEqual([
      ["c", [4]],
      ["a", []],
    ]);
    expect(changes() - before, "one goes and one comes").toBe(2);
    expect(memory.held).toEqual(next);
    expect(new PeerMemory(sql).held, "the next instance").toEqual(next);
    expect(memory.facts.set("turn", 3)).toBe(3);
    expect(memory.facts.get("turn")).toBe(3);
    expect(memory.facts.get("nothing")).toBeUndefined();
  });
});

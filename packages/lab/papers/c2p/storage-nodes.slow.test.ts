import { describe, expect, test } from "vitest";
import { CountedOic } from "./counted-oic.ts";
import { simulateStorageNodes, type StorageNodesStudy } from "./storage-nodes.ts";

const STUDY: StorageNodesStudy = { replacement: "lru", seed: 1, clients: 1, zipfExponent: 0.8, delayMs: 50 };

describe("C2P's storage nodes", () => {
  test("with room for everything each replacement reads each segment from disk once", () => {
    for (const replacement of ["lru", "algorithm-1", "c2p", "c2p-counted"] as const) {
      const result = simulateStorageNodes({ ...STUDY, replacement, segmentsPerNode: 5000, reads: 400, objects: 20 });
      expect(result).toMatchObject({ hits: 380, partialMisses: 0, completeMisses: 20, diskReads: 100 });
    }
  });

  test("every read is a hit, a partial or a complete miss, and equal seeds repeat", () => {
    const result = simulateStorageNodes({ ...STUDY, replacement: "c2p", reads: 700 });
    expect(result.hits + result.partialMisses + result.completeMisses).toBe(700);
    expect(Math.min(result.hits, result.partialMisses, result.completeMisses)).toBeGreaterThan(0);
    expect(simulateStorageNodes({ ...STUDY, replacement: "c2p", reads: 700 })).toEqual(result);
  });

  test("the same places are worth more to whole objects: more hits and fewer partial misses than either LRU", () => {
    for (const seed of [1, 2]) {
      const of = (replacement: StorageNodesStudy["replacement"]) =>
        simulateStorageNodes({ ...STUDY, replacement, seed });
      const c2p = of("c2p");
      for (const other of [of("lru"), of("algorithm-1")]) {
        expect(c2p.hits).toBeGreaterThan(other.hits);
        expect(c2p.partialMisses).toBeLessThan(0.85 * other.partialMisses);
        expect(c2p.completeMisses).toBeGreaterThan(other.completeMisses);
        expect(other.messagesPerSecond).toBe(0);
      }
    }
  });

  test("OiC counted by events falls with each replaced segment, and a read makes the object whole again", () => {
    const counted = new CountedOic(4);
    expect(counted.oicOf(7)).toBe(0);
    counted.read(7);
    counted.replaced(7, 1);
    expect(counted.oicOf(7)).toBe(0.75);
    counted.replaced(7, 5);
    expect(counted.oicOf(7)).toBe(0);
    counted.read(7);
    expect(counted.oicOf(7)).toBe(1);
  });

  test("OiC counted by events serves objects as well as OiC by states, by other victims", () => {
    const byStates = simulateStorageNodes({ ...STUDY, replacement: "c2p" });
    const byEvents = simulateStorageNodes({ ...STUDY, replacement: "c2p-counted" });
    expect(byEvents).not.toEqual(byStates);
    expect(Math.abs(byEvents.hits / byStates.hits - 1)).toBeLessThan(0.05);
  });

  test("messages take the gathering and the travel, and more clients make more of them", () => {
    const talking = { ...STUDY, replacement: "c2p", reads: 600 } as const;
    const one = simulateStorageNodes(talking);
    const four = simulateStorageNodes({ ...talking, clients: 4, delayMs: 800 });
    expect(one.messageMs).toBeCloseTo(150, 9);
    expect(four.messageMs).toBeCloseTo(900, 9);
    expect(four.messagesPerSecond).toBeGreaterThan(2 * one.messagesPerSecond);
  });
});

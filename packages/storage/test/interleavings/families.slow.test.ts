/** Hundreds of random schedules of every family keep every promise. */
import { expect, test } from "vitest";
import { loadEngines } from "./engines.ts";
import {
  besideHostileRegion,
  besideRegionsThatComeAndGo,
  expiredBesideWriters,
  manyByBatches,
  heatedBesideWriters,
  renamedBesideWriters,
  restoredBesideWriters,
  rotatedBesideWriters,
  shardsBesideWriters,
  uploadedBesideWriters,
} from "./schedules/families.ts";
import { scheduleOf } from "./schedules/schedule.ts";
import { search } from "./schedules/search.ts";

const MS = 10_000;
/** A slow machine runs so many, however long they take. */
const SCHEDULES_MIN = 60;
const HOSTILE_SCHEDULES = 200;
const RESTORE_SCHEDULES = 100;
const EXPIRY_SCHEDULES = 100;
const RENAME_SCHEDULES = 100;
const HEAT_SCHEDULES = 100;
const BATCH_SCHEDULES = 200;
const UPLOAD_SCHEDULES = 100;
const SHARD_SCHEDULES = 60;
const LINEAR_SCHEDULES = 60;
const ROTATION_SCHEDULES = 100;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

test(`random schedules keep every promise for ten seconds, from seed ${SEED}`, async () => {
  const engines = await loadEngines();
  const few = { engines, firstSeed: SEED, schedules: SCHEDULES_MIN, scheduleOf };
  const first = await search(few);
  expect(first.failure, first.text).toBeUndefined();
  // Each kind of trouble came, and most of the work was done all the same.
  const { requests, faults, kills, suspensions, refusals, copies, acknowledged } = first.events;
  for (const [name, count] of Object.entries({
    requests,
    faults,
    kills,
    suspensions,
    refusals,
    copies,
    acknowledged,
  })) {
    expect(count, name).toBeGreaterThan(0);
  }
  const rest = { schedules: Number.POSITIVE_INFINITY, limitMs: MS - first.ms };
  const result = await search({ ...few, ...rest, firstSeed: SEED + SCHEDULES_MIN });
  console.log(first.text, result.text);
  expect(result.failure, result.text).toBeUndefined();
});

test(`beside a region that lies, commands in turn keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: HOSTILE_SCHEDULES };
  const result = await search({ ...few, scheduleOf: besideHostileRegion });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  // The faults of this family are lies.
  expect(result.events.faults).toBeGreaterThan(HOSTILE_SCHEDULES);
  expect(result.events.forgeries).toBeGreaterThan(HOSTILE_SCHEDULES / 2);
  expect(result.events.acknowledged).toBeGreaterThan(HOSTILE_SCHEDULES);
});

test(`versions that are restored beside writers, faults and kills keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: RESTORE_SCHEDULES };
  const result = await search({ ...few, scheduleOf: restoredBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { restores, recodes, faults, kills } = result.events;
  expect(restores).toBeGreaterThan(RESTORE_SCHEDULES / 4);
  expect(Math.min(faults, kills, recodes)).toBeGreaterThan(0);
});

test(`versions that expire beside writers, faults and kills keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: EXPIRY_SCHEDULES };
  const result = await search({ ...few, scheduleOf: expiredBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { expiries, faults, kills } = result.events;
  expect(expiries).toBeGreaterThan(EXPIRY_SCHEDULES / 50);
  expect(Math.min(faults, kills)).toBeGreaterThan(0);
});

test(`a region that gets another name beside writers, faults and kills keeps every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: RENAME_SCHEDULES };
  const result = await search({ ...few, scheduleOf: renamedBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { renames, faults, kills } = result.events;
  expect(renames).toBeGreaterThan(RENAME_SCHEDULES / 2);
  expect(Math.min(faults, kills)).toBeGreaterThan(0);
});

test(`batches of keys that meet each other and other writers keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: BATCH_SCHEDULES };
  const result = await search({ ...few, scheduleOf: manyByBatches });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { batches, acknowledged, faults, kills, suspensions } = result.events;
  expect(Math.min(batches, acknowledged)).toBeGreaterThan(BATCH_SCHEDULES / 2);
  expect(Math.min(faults, kills, suspensions)).toBeGreaterThan(BATCH_SCHEDULES / 10);
});

test(`pages that upload beside writers, walks and each other keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: UPLOAD_SCHEDULES };
  const result = await search({ ...few, scheduleOf: uploadedBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { uploads, commits, faults, kills, suspensions } = result.events;
  expect(Math.min(uploads, commits, faults)).toBeGreaterThan(UPLOAD_SCHEDULES);
  expect(Math.min(kills, suspensions)).toBeGreaterThan(UPLOAD_SCHEDULES / 4);
});

test(`walks of shards beside each other and beside writers keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: SHARD_SCHEDULES };
  const result = await search({ ...few, scheduleOf: shardsBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { acknowledged, faults, kills, suspensions } = result.events;
  expect(Math.min(acknowledged, faults)).toBeGreaterThan(SHARD_SCHEDULES);
  expect(Math.min(kills, suspensions)).toBeGreaterThan(SHARD_SCHEDULES / 4);
});

test(`extra chunks that come and go beside writers, faults and kills keep every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: HEAT_SCHEDULES };
  const result = await search({ ...few, scheduleOf: heatedBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { heats, faults, kills } = result.events;
  expect(heats).toBeGreaterThan(HEAT_SCHEDULES);
  expect(Math.min(faults, kills)).toBeGreaterThan(0);
});

test(`what clients of gateways are told while regions come and go is linearizable, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: LINEAR_SCHEDULES };
  const result = await search({ ...few, scheduleOf: besideRegionsThatComeAndGo });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { strongReads, acknowledged, faults, kills, suspensions } = result.events;
  expect(Math.min(strongReads, acknowledged, faults)).toBeGreaterThan(LINEAR_SCHEDULES);
  expect(Math.min(kills, suspensions)).toBeGreaterThan(LINEAR_SCHEDULES / 10);
});

test(`a rotation beside writers with other keys, faults and kills keeps every promise, from seed ${SEED}`, async () => {
  const few = { engines: await loadEngines(), firstSeed: SEED, schedules: ROTATION_SCHEDULES };
  const result = await search({ ...few, scheduleOf: rotatedBesideWriters });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  const { acknowledged, faults, kills, suspensions } = result.events;
  expect(acknowledged).toBeGreaterThan(ROTATION_SCHEDULES);
  expect(Math.min(faults, kills, suspensions)).toBeGreaterThan(0);
});

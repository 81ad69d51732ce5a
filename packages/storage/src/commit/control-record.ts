/**
 * The control record of a region (docs/reference/format.md, "Control record"): which bucket this is, and by which keys
 * and secrets writers may write. It is signed, so that no store can make one up.
 */
import { createHash, hash } from "node:crypto";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { isRecord, rawPublicKey, type Signer } from "@agarose/core/format";
import * as v from "valibot";
import type { Config } from "../config/config-schema.ts";
import type { Store } from "../buckets/store.ts";
import { CONTROL_PREFIX } from "./names.ts";
import type { WriteContext } from "./write-context.ts";
import { readRecordText } from "../buckets/small-record.ts";

/** The name of the record in every bucket. */
export const CONTROL_NAME = `${CONTROL_PREFIX}deployment.json`;
/** A record is a few hundred bytes. Nothing longer is read. */
const CONTROL_BYTES_MAX = 65_536;
/** Of a SHA-256 in hex, as signatures name a key. */
const KEY_ID_CHARACTERS = 16;

const NAMES_SHAPE = v.pipe(v.array(v.string()), v.readonly());
const SECRETS_SHAPE = v.object({ prefix: v.string(), ids: NAMES_SHAPE });

const RECORD_SHAPE = v.object({
  control: v.literal(1),
  /** The name of the region whose bucket this is. */
  region: v.string(),
  /** Chosen when the first region got its record. */
  deployment: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  /** Counts the changes of what follows. */
  epoch: v.pipe(v.number(), v.safeInteger()),
  /** Names of the keys by which writers may sign; none in unsigned mode. */
  signers: NAMES_SHAPE,
  /** The key that signs now, which every writer has to trust; none in unsigned mode. */
  signer: v.exactOptional(v.string()),
  /** Names of keys that were in force once. They never come back. */
  retired: NAMES_SHAPE,
  /** Names of the secrets by which writers may encrypt, by prefix. Prefixes that nobody announced are missing. */
  secrets: v.pipe(v.array(SECRETS_SHAPE), v.readonly()),
  signature: v.exactOptional(v.object({ keyId: v.string(), value: v.string() })),
});

/** The record of one region. */
export type ControlRecord = v.InferOutput<typeof RECORD_SHAPE>;

/** The common part of all regions' records. */
export type ControlState = Omit<ControlRecord, "control" | "region" | "signature">;

/** The secrets of a prefix. */
export type SecretsInForce = v.InferOutput<typeof SECRETS_SHAPE>;

/** The record of one region. */
export interface RegionControl {
  readonly store: Store;
  /** Absent when there is none, or one that this machine does not trust. */
  readonly record?: ControlRecord;
  readonly etag?: string;
  /** Why a record that is there cannot be used. */
  readonly problem?: AgaroseError;
}

/** Reads the record of a region. Rejects when the region does not say. */
export async function readControl(
  store: Store,
  signal: AbortSignal,
  trust: WriteContext["trust"],
): Promise<RegionControl> {
  const response = await store.get(CONTROL_NAME, { signal });
  const { status, headers } = response;
  if (status !== 200) {
    await response.body?.cancel();
    if (status === 404) return { store };
    const { name: region } = store.region;
    const message = `region ${region} answered ${status} for ${CONTROL_NAME}: retry later`;
    throw new AgaroseError("SOURCE_FAILED", message, { region, status });
  }
  const etag = headers.get("etag");
  const found = { store, ...(etag !== null && { etag }) };
  try {
    return {
      ...found,
      record: await parseControl(await readRecordText(response, CONTROL_NAME, CONTROL_BYTES_MAX), trust),
    };
  } catch (error) {
    return { ...found, problem: toAgaroseError(error, "MANIFEST_INVALID") };
  }
}

/** The bytes of a record, signed where there is a signer. */
export async function sealControl(record: Omit<ControlRecord, "signature">, sign?: Signer): Promise<Uint8Array> {
  const signature = await sign?.(signedBytes(record));
  return Buffer.from(JSON.stringify({ ...record, ...(signature && { signature }) }));
}

/** The deployment of a configuration whose regions have no record yet. Every machine that has it finds the same. */
export function freshState(config: Config, signer: string | undefined): ControlState {
  const places = config.regions.map(({ name, endpoint, bucket }) => `${name} ${endpoint} ${bucket}`).toSorted();
  const text = ["agarose-deployment/1", ...(config.publicKeys ?? []), ...places].join("\n");
  const deployment = createHash("sha256").update(text).digest("hex").slice(0, 32);
  return { deployment, epoch: 1, ...keysOf(config, signer), retired: [], secrets: [] };
}

/** The keys of a configuration. */
export function keysOf(
  { publicKeys = [] }: Pick<Config, "publicKeys">,
  signer: string | undefined,
): Pick<ControlState, "signers" | "signer"> {
  const signers = publicKeys.map((key) => hash("sha256", rawPublicKey(key)).slice(0, KEY_ID_CHARACTERS));
  const current = signer !== undefined && signers.includes(signer) ? signer : signers[0];
  return { signers, ...(current !== undefined && { signer: current }) };
}

async function parseControl(text: string, trust: WriteContext["trust"]): Promise<ControlRecord> {
  const json: unknown = JSON.parse(text);
  if (isRecord(json) && Number(json["control"]) > 1) {
    throw new AgaroseError("MANIFEST_NEWER", `${CONTROL_NAME} is of a later format: upgrade Agarose on this machine`);
  }
  const read = v.safeParse(RECORD_SHAPE, json);
  if (!read.success) {
    const message = `${CONTROL_NAME} is damaged (${read.issues[0].message}): have \`agarose doctor\` fix it`;
    throw new AgaroseError("MANIFEST_INVALID", message);
  }
  const record = read.output;
  await trust(signedBytes(record), record.signature);
  return record;
}

function signedBytes(record: Omit<ControlRecord, "signature">): Uint8Array {
  const { control, deployment, region, epoch, signers, signer, retired, secrets } = record;
  const covered = [control, deployment, region, epoch, signers, signer ?? null, retired];
  const rules = secrets.map(({ prefix, ids }) => [prefix, ids]);
  return new TextEncoder().encode(`agarose-control/1\n${JSON.stringify([...covered, rules])}`);
}

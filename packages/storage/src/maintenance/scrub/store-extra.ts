/** Stores extra chunks of an object, and takes them away, without another version. */
import { createHash } from "node:crypto";
import { chunkRegions, isTombstone, stripeCount, type Extra, type Manifest } from "@agarose/core/format";
import { storeNamed } from "../../buckets/region-names.ts";
import { commitRecord, replacedMeanwhile, resealed } from "../../commit/commit.ts";
import { enqueueRepair } from "../../commit/repair-queue.ts";
import { extraChunks } from "../../objects/chunk-listing.ts";
import type { DeploymentParts } from "../../parts.ts";
import { settledSurvey } from "../../regions/settled.ts";
import { uploadChunks, type Encoder } from "../../upload/upload.ts";
import { storedSource } from "../../upload/object-source.ts";

/**
 * Commits the manifest again with one extra chunk in each region of `placement`, in place of those that it has. New
 * ones are stored first, under the claim of the commit. What the manifest no longer names is left to `agarose gc`,
 * because readers go by the manifest of before for a while.
 *
 * @throws REPLACED_MEANWHILE when `before` is not the newest any more, what `commitRecord` throws, and what reading the
 *   object and storing a chunk throw. The object then is as it was.
 */
export async function storeExtra(
  before: Manifest,
  placement: readonly string[],
  context: DeploymentParts,
): Promise<void> {
  const { key, generation, modified, extra: _replaced, ...rest } = before;
  const upload = context.newUpload();
  const survey = await settledSurvey(key, context);
  const { newest } = survey;
  if (!newest || isTombstone(newest) || newest.generation !== generation) {
    throw replacedMeanwhile(key, {}, "the next scrub looks again");
  }
  let extra: Extra | undefined;
  const prepare = async (): Promise<void> => {
    extra = { upload, placement, sha256: await uploadExtra(before, { upload, placement }, context) };
  };
  const { record, regionsWithout } = await commitRecord(
    {
      key,
      upload,
      survey,
      copies: true,
      ...(placement.length > 0 && { prepare }),
      seal: (next) =>
        resealed(
          { ...rest, key, generation, modified, ...(extra && { extra }) },
          next,
          modified,
          context,
        ) as Promise<Manifest>,
    },
    context,
  );
  const regions = regionsWithout.map(({ region }) => region);
  await enqueueRepair({ key, generation: record.generation, missing: [], regions }, context);
}

/** Stores the extra chunks, and returns their hashes. */
async function uploadExtra(
  before: Manifest,
  { upload, placement }: Omit<Extra, "sha256">,
  context: DeploymentParts,
): Promise<string[]> {
  const named = { ...before, extra: { upload, placement, sha256: [] } };
  const chunks = extraChunks(named);
  const file = await storedSource(before, context).open();
  const { encoder, hashes } = hashing(await context.encoder(), stripeCount(before), chunks);
  try {
    await uploadChunks({
      key: before.key,
      upload,
      file,
      layout: before,
      expected: before.sha256,
      stores: chunkRegions(named).map((region) => storeNamed(context.stores, region)!),
      chunks,
      needed: chunks.length,
      encoder,
      context,
      onBytes: () => {},
    });
  } finally {
    await file.close();
  }
  return hashes();
}

/** `encoder`, and the hashes of `rows` once it has encoded every stripe: later passes encode the same again. */
function hashing(encoder: Encoder, stripes: number, rows: readonly number[]) {
  const made = new Map(rows.map((row) => [row, createHash("sha256")]));
  let done = 0;
  const encode: Encoder["encode"] = async (stripe, k, wanted) => {
    const coded = await encoder.encode(stripe, k, wanted);
    if (done++ < stripes) wanted.forEach((row, i) => made.get(row)!.update(coded.parity[i]!));
    return coded;
  };
  return { encoder: { encode }, hashes: () => [...made.values()].map((hash) => hash.digest("hex")) };
}

/**
 * `@agarose/storage`: a deployment, and what is done with its objects. The modules below it can be imported by their
 * paths as well, so that a program loads only the parts that it needs.
 */
export {
  Deployment,
  openDeployment,
  type Content,
  type DeploymentOptions,
  type DryRun,
  type ListedKey,
  type ObjectInfo,
  type PutOptions,
  type Quick,
  type ReadOptions,
} from "./deployment.ts";
export type { Store } from "./buckets/store.ts";
export { loadConfig, parseConfig, type Config, type RegionConfig } from "./config/config.ts";
export type { VersionEntry, Versions, VersionState } from "./history/list-versions.ts";
export type { ApplyKeysOutcome, ApplyKeysTotals } from "./maintenance/apply-keys.ts";
export type { ExpireOutcome } from "./maintenance/expire-objects.ts";
export type { ExpireTotals } from "./maintenance/expire-objects.ts";
export type { GarbageReport, GarbageUpload } from "./maintenance/gc/search.ts";
export type { RecodeOutcome } from "./maintenance/recode-objects.ts";
export type { RepairTotals } from "./maintenance/repair-objects.ts";
export type { DeepOptions } from "./maintenance/scrub/deep-reads.ts";
export type { Totals as ScrubTotals } from "./maintenance/scrub/totals.ts";
export type { VerifyTotals } from "./maintenance/verify-objects.ts";
export type { Consistency } from "./objects/manifests.ts";
export type { PutResult } from "./objects/put-object.ts";
export type { RemoveResult } from "./objects/remove-object.ts";
export type { ObjectVerdict } from "./objects/verify-object.ts";
export type { AdoptOutcome } from "./origin/adopt-object.ts";
export type { AdoptTotals } from "./origin/adopt-objects.ts";
export type { UploadGrant, UploadsOptions, UploadWish } from "./page-uploads/handle-uploads.ts";
export { signUpload, type SignUpload } from "./page-uploads/tokens.ts";
export type { RepairOutcome } from "./repair/repair-outcome.ts";
export type { SyncEnd, SyncOptions, SyncOutcome, SyncRemoval, SyncTotals } from "./sync/sync-job.ts";
export type { Source, SourceReader } from "./upload/file-source.ts";

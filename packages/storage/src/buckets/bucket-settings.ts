/** The settings of a bucket, apart from its objects: that it exists, its CORS rules and its policy. */
import {
  CreateBucketCommand,
  GetBucketCorsCommand,
  GetBucketPolicyCommand,
  ListObjectsV2Command,
  PutBucketCorsCommand,
  PutBucketPolicyCommand,
  type CORSRule,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { RegionConfig } from "../config/config.ts";
import { openClient, ORIGIN_DEFAULT, storeFailure, type S3StoreOptions } from "./s3-client.ts";

export type { CORSRule };

/**
 * The settings of a region's bucket. Every method rejects with STORE_FAILED or CREDENTIALS_REFUSED; `details.error` is
 * the store's own code, such as NotImplemented.
 */
export class BucketSettings {
  readonly region: RegionConfig;
  readonly #client: S3Client;
  readonly #keysFrom: string;
  readonly #signal: AbortSignal;

  constructor(region: RegionConfig, options: S3StoreOptions, signal: AbortSignal) {
    this.region = region;
    this.#client = openClient(region, options);
    this.#keysFrom = options.credentialsOrigin ?? ORIGIN_DEFAULT;
    this.#signal = signal;
  }

  /** Makes the bucket in `awsRegion`. Returns false when the account has it already, or just makes it elsewhere. */
  async make(): Promise<boolean> {
    return this.#ask("to make the bucket", ["BucketAlreadyOwnedByYou", "OperationAborted"], false, async (input) => {
      await this.#client.send(new CreateBucketCommand(input), { abortSignal: this.#signal });
      return true;
    });
  }

  /** The CORS rules in their order; none for a bucket without. */
  async corsRules(): Promise<CORSRule[]> {
    return this.#ask("to read its CORS rules", ["NoSuchCORSConfiguration"], [], async (input) => {
      const answer = await this.#client.send(new GetBucketCorsCommand(input), { abortSignal: this.#signal });
      return answer.CORSRules ?? [];
    });
  }

  async setCorsRules(CORSRules: CORSRule[]): Promise<void> {
    await this.#ask("to set its CORS rules", [], undefined, async (input) => {
      const command = new PutBucketCorsCommand({ ...input, CORSConfiguration: { CORSRules } });
      await this.#client.send(command, { abortSignal: this.#signal });
    });
  }

  /** The text of the policy; undefined for a bucket without. */
  async policy(): Promise<string | undefined> {
    return this.#ask("to read its policy", ["NoSuchBucketPolicy"], undefined, async (input) => {
      const answer = await this.#client.send(new GetBucketPolicyCommand(input), { abortSignal: this.#signal });
      return answer.Policy;
    });
  }

  async setPolicy(Policy: string): Promise<void> {
    await this.#ask("to set its policy", [], undefined, async (input) => {
      await this.#client.send(new PutBucketPolicyCommand({ ...input, Policy }), { abortSignal: this.#signal });
    });
  }

  /** The first thousand names at the top of the bucket; those with a slash at the end have objects below. */
  async topNames(): Promise<string[]> {
    return this.#ask("to list its names", [], [], async (input) => {
      const command = new ListObjectsV2Command({ ...input, Delimiter: "/" });
      const { CommonPrefixes = [], Contents = [] } = await this.#client.send(command, { abortSignal: this.#signal });
      return [...CommonPrefixes.map(({ Prefix = "" }) => Prefix), ...Contents.map(({ Key = "" }) => Key)];
    });
  }

  close(): void {
    this.#client.destroy();
  }

  /** @param absent the store's codes that mean `otherwise`, which is not a failure. */
  async #ask<T>(
    what: string,
    absent: readonly string[],
    otherwise: T,
    action: (input: { Bucket: string }) => Promise<T>,
  ): Promise<T> {
    try {
      return await action({ Bucket: this.region.bucket });
    } catch (error) {
      if (error instanceof Error && absent.includes(error.name)) return otherwise;
      throw storeFailure(error, "STORE_FAILED", what, this.region, this.#keysFrom);
    }
  }
}

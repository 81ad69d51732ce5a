/** Multipart uploads of one object by the AWS SDK, for tests. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  type S3Client,
  UploadPartCommand,
  type CompletedPart,
} from "@aws-sdk/client-s3";
import { s3ClientOf } from "./gateway.ts";

/** The least length of a part that is not the last one. */
export const PART_BYTES = 5 * 1024 * 1024;
const Bucket = "agarose";

/** An upload that has begun. */
export interface Created {
  readonly Bucket: string;
  readonly Key: string;
  readonly UploadId: string | undefined;
}

export class MultipartClient {
  readonly #client: S3Client;

  constructor(gateway: { readonly url: string }) {
    this.#client = s3ClientOf(gateway);
  }

  async create(Key: string): Promise<Created> {
    const command = new CreateMultipartUploadCommand({ Bucket, Key, ContentType: "video/mp4" });
    const { UploadId } = await this.#client.send(command);
    return { Bucket, Key, UploadId };
  }

  async upload(created: Created, PartNumber: number, Body: Uint8Array): Promise<CompletedPart> {
    const { ETag } = await this.#client.send(new UploadPartCommand({ ...created, PartNumber, Body }));
    return { PartNumber, ETag };
  }

  complete(created: Created, Parts: CompletedPart[]) {
    return this.#client.send(new CompleteMultipartUploadCommand({ ...created, MultipartUpload: { Parts } }));
  }

  abort(created: Created) {
    return this.#client.send(new AbortMultipartUploadCommand(created));
  }

  /** Makes its clock run ahead of that of this machine, whatever the `Date` of an answer says. */
  setAhead(aheadMs: () => number): void {
    Object.defineProperty(this.#client.config, "systemClockOffset", { get: aheadMs, set: () => {} });
  }

  /** The keys of all uploads that are neither completed nor aborted. */
  async list(): Promise<string[]> {
    const { Uploads = [] } = await this.#client.send(new ListMultipartUploadsCommand({ Bucket }));
    return Uploads.map(({ Key = "" }) => Key);
  }

  /** The object, or a part of it. */
  async get(Key: string, PartNumber?: number) {
    const command = new GetObjectCommand({ Bucket, Key, PartNumber });
    const { Body, ContentType: type, ETag, PartsCount: parts } = await this.#client.send(command);
    return { type, ETag, parts, bytes: await Body!.transformToByteArray() };
  }

  close(): void {
    this.#client.destroy();
  }
}

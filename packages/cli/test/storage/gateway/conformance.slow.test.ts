/** The suite that the embedded S3 endpoint and versitygw pass, against the gateway. */
import { describe } from "vitest";
import { startGatewayWorld } from "../../gateway.ts";
import { s3Contract } from "../../s3.contract.ts";
import { BUCKET } from "@agarose/storage/gateway/bucket";

describe("the gateway", () => {
  s3Contract(
    async ({ accessKeyId, secretAccessKey }) => {
      const credentials = { accessKeyId, secretAccessKey };
      const { gateway, close } = await startGatewayWorld({ credentials, stripeBytes: 1024 * 1024 });
      return { url: gateway.url, close };
    },
    { onlyBucket: BUCKET, signedOnly: true },
  );
});

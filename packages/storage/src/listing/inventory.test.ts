import { describe } from "vitest";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { inventoryContract } from "../../test/inventory.contract.ts";

describe("the embedded S3 endpoint", () => inventoryContract(startS3Endpoint));

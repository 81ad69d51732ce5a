import { describe } from "vitest";
import { startS3Endpoint, findVersitygw, startVersitygw } from "@agarose/dev-world/s3-endpoint";
import { s3Contract } from "../../s3.contract.ts";

describe("the embedded S3 endpoint", () => s3Contract(startS3Endpoint));

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";
describe.skipIf(!versitygw)(`versitygw${reason}`, () =>
  s3Contract(startVersitygw, { ignoresIfRange: true, hasNoParts: true, copiesOtherwise: true }),
);

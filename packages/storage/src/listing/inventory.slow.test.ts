import { describe } from "vitest";
import { findVersitygw, startVersitygw } from "@agarose/dev-world/s3-endpoint";
import { inventoryContract } from "../../test/inventory.contract.ts";

const reason = (await findVersitygw()) ? "" : " (skipped: versitygw is not installed, `go install` builds it)";
describe.skipIf(reason)(`versitygw${reason}`, () => inventoryContract(startVersitygw));

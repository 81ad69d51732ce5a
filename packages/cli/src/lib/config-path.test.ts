import { afterEach, expect, test, vi } from "vitest";
import { configPath } from "./config-path.ts";
import { readFields } from "./files/config-fields.ts";

afterEach(() => vi.unstubAllEnvs());

test("the configuration is that of --config, else of AGAROSE_CONFIG, else agarose.config.json", () => {
  expect(configPath(undefined)).toBe("agarose.config.json");
  vi.stubEnv("AGAROSE_CONFIG", "from-variable.json");
  expect(configPath(undefined)).toBe("from-variable.json");
  expect(configPath("other.json")).toBe("other.json");
  vi.stubEnv("AGAROSE_CONFIG", "");
  expect(configPath(undefined)).toBe("agarose.config.json");
});

test("a command that changes the configuration refuses a module", async () => {
  for (const path of ["agarose.config.ts", "config.mjs"]) {
    await expect(readFields(path), path).rejects.toMatchObject({ code: "USAGE" });
  }
  expect(await readFields("none.json")).toBeUndefined();
});

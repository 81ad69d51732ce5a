import { expect, test } from "vitest";
import { coloNear, distanceKm } from "./colos.ts";
import { judgePlace, type PlaceFacts, type PopPlace } from "./pop-report.ts";

const FRA: PopPlace = {
  location: "weur",
  worker: "FRA",
  popState: "FRA",
  requestMonitor: ["FRA", "FRA", "FRA", "FRA"],
  peerState: null,
};
const PLACED: PlaceFacts = { placement: "remote-FRA", wanted: "aws:eu-central-1", isEverywhere: false };

test.each<[string, Partial<PopPlace>, Partial<PlaceFacts>]>([
  ["a Worker at its placement", {}, {}],
  ["one in the next city", {}, { placement: "remote-AMS" }],
  ["one that a reader enters beside its placement", {}, { placement: "local-FRA" }],
  ["a placement in another cloud, which no table knows", {}, { placement: "remote-AMS", wanted: "gcp:us-east4" }],
  ["a data center that no table knows", { popState: "XYZ" }, { placement: "remote-XXX" }],
  ["objects in the next city", { popState: "AMS", requestMonitor: ["LHR", "FRA", "FRA", "FRA"] }, {}],
  ["objects of one Worker everywhere", { worker: "SYD" }, { placement: null, wanted: undefined, isEverywhere: true }],
])("%s is no warning", (_name, place, facts) => {
  const judgement = judgePlace({ ...FRA, ...place }, { ...PLACED, ...facts });
  expect(judgement).toMatchObject({ problems: [], warnings: [] });
  expect(judgement.remarks[0]).toMatch(/^place: weur; Worker in /);
});

test("a Worker far from its placement is a warning with the distance", () => {
  const { problems, warnings } = judgePlace(FRA, { ...PLACED, placement: "remote-SYD" });
  expect(problems).toEqual([]);
  expect(warnings[0]).toMatch(/ran in SYD, 16,\d00 km from aws:eu-central-1: deploy it again/);
});

test("of a placement in another cloud, only objects far from the Worker are known to be wrong", () => {
  const { warnings } = judgePlace(FRA, { ...PLACED, placement: "remote-SYD", wanted: "gcp:australia-southeast1" });
  expect(warnings).toEqual([expect.stringMatching(/^Durable Objects run in FRA/)]);
});

test("without the header, the Worker's own trace says where it ran", () => {
  const { warnings } = judgePlace({ ...FRA, worker: "IAD" }, { ...PLACED, placement: null });
  expect(warnings[0]).toMatch(/ran in IAD, 6,\d00 km from aws:eu-central-1/);
});

test.each(["aws:eu-central-1", undefined])("a Worker that ran where the reader is, %s, is a problem", (wanted) => {
  const { problems } = judgePlace(FRA, { ...PLACED, wanted, placement: "local-SYD" });
  expect(problems).toEqual(["the Worker is not placed: it ran in SYD, where the request entered Cloudflare"]);
});

test("objects far from the Worker are a warning for each data center, and near ones a remark", () => {
  const place = { ...FRA, popState: "SYD", requestMonitor: ["FRA", "IAD", "IAD", null], peerState: "AMS" };
  const { problems, warnings, remarks } = judgePlace(place, PLACED);
  expect(problems).toEqual([]);
  expect(warnings).toEqual([
    expect.stringMatching(/^Durable Objects run in SYD, 16,\d00 km from FRA, for ever: give the PoP another name/),
    expect.stringMatching(/^Durable Objects run in IAD, 6,\d00 km from FRA/),
  ]);
  expect(remarks[1]).toMatch(/^Durable Objects run in AMS, 400 km from FRA/);
});

test("outside Cloudflare nothing is said", () => {
  expect(judgePlace(null, PLACED)).toEqual({ problems: [], warnings: [], remarks: [] });
});

// Great circles by airport, as any distance calculator has them; whole degrees are right to some 100 km.
test.each([
  ["FRA", "AMS", 365],
  ["LHR", "JFK", undefined],
  ["LHR", "IAD", 5_915],
  ["SYD", "FRA", 16_500],
  ["AKL", "LAX", 10_480],
])("from %s to %s it is as far as the globe says", (a, b, km) => {
  const found = distanceKm(a, b);
  if (km === undefined) expect(found).toBeUndefined();
  else expect(Math.abs(found! - km)).toBeLessThan(120);
});

test("every region of AWS has a data center, and no name that an object inherits is one", () => {
  for (const region of ["us-east-1", "eu-south-2", "me-central-1", "ap-southeast-6", "mx-central-1"]) {
    const colo = coloNear(`aws:${region}`);
    expect(colo && distanceKm(colo, "FRA"), region).toBeGreaterThan(0);
  }
  for (const name of ["aws:toString", "gcp:us-east4", "eu-central-1"]) expect(coloNear(name)).toBeUndefined();
});

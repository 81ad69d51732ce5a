/** Whether a PoP at Cloudflare runs where it says. Pure. */
import { coloNear, distanceKm } from "./colos.ts";

/** Light in fibre takes some 10 ms there and back: what a PoP measures from farther away is of another place. */
const FAR_KM = 1_000;

/** Data centers as airport codes; null where the platform did not say. */
export interface PopPlace {
  /** Cloudflare's location hint. */
  readonly location: string;
  /** Of the Worker that answered. */
  readonly worker: string | null;
  /** Of the object that runs the periods. */
  readonly popState: string | null;
  readonly requestMonitor: readonly (string | null)[];
  /** Null for a PoP on its own, too. */
  readonly peerState: string | null;
}

/** Facts besides the PoP's own answer. */
export interface PlaceFacts {
  /**
   * The header `cf-placement`: `remote-FRA` for a Worker that was placed, `local-SYD` for one that ran where the
   * request entered Cloudflare. Null where Cloudflare does not say.
   */
  readonly placement: string | null;
  /** `placement` of the configuration; undefined without one. */
  readonly wanted?: string | undefined;
  /** One Worker everywhere runs far from its continent's objects by design. */
  readonly isEverywhere: boolean;
}

/** Conclusions from the places of a PoP's parts. */
export interface PlaceJudgement {
  readonly problems: string[];
  /** Each says what was found, and what to do. */
  readonly warnings: string[];
  readonly remarks: string[];
}

/** Returns what is wrong, what is doubtful and what is worth knowing. A place that no table knows is only named. */
export function judgePlace(place: PopPlace | null, facts: PlaceFacts): PlaceJudgement {
  if (place === null) return { problems: [], warnings: [], remarks: [] };
  const { placement, wanted, isEverywhere } = facts;
  const { location, worker: traced, popState, requestMonitor, peerState } = place;
  const [, mode, headerColo] = /^(local|remote)-([A-Z]{3})$/.exec(placement ?? "") ?? [];
  const worker = headerColo ?? traced;
  const objects = [...new Set([popState, ...requestMonitor, peerState].filter((colo) => colo !== null))];
  const problems: string[] = [];
  const warnings: string[] = [];
  const remarks = [`place: ${location}; Worker in ${worker ?? "?"}, Durable Objects in ${objects.join(", ") || "?"}`];

  const target = wanted === undefined ? undefined : coloNear(wanted);
  const offKm = worker === null || target === undefined ? undefined : distanceKm(worker, target);
  // A reader who enters Cloudflare beside the placement has the Worker run there: that is its place as well.
  if (mode === "local" && (offKm === undefined || offKm > FAR_KM)) {
    problems.push(`the Worker is not placed: it ran in ${worker}, where the request entered Cloudflare`);
  } else if (offKm !== undefined && offKm > FAR_KM) {
    const found = `the Worker ran in ${worker}, ${kilometres(offKm)} from ${wanted}`;
    warnings.push(`${found}: deploy it again, and ask again in some minutes`);
  }
  if (worker === null || isEverywhere) return { problems, warnings, remarks };
  for (const colo of objects.filter((one) => one !== worker)) {
    const km = distanceKm(colo, worker);
    const found = `Durable Objects run in ${colo}, ${km === undefined ? "not" : kilometres(km)}`;
    if (km === undefined) remarks.push(`${found} in ${worker}: an object stays where it was created`);
    else if (km <= FAR_KM) remarks.push(`${found} from ${worker}: an object stays where it was created`);
    else warnings.push(`${found} from ${worker}, for ever: give the PoP another name to create them near it`);
  }
  return { problems, warnings, remarks };
}

function kilometres(km: number): string {
  return `${(100 * Math.round(km / 100)).toLocaleString("en")} km`;
}

/** Where readers are, and the buckets and PoPs that serve them. */

/** A bucket's place. */
export interface Region {
  readonly name: string;
  readonly provider: string;
  readonly endpoint: string;
  /** The region that requests are signed for. */
  readonly awsRegion: string;
}

/** A PoP beside a cloud region. */
export interface Place {
  readonly name: string;
  /** Where Cloudflare runs the Worker, such as `aws:eu-central-1`. */
  readonly placement: string;
  /** Where its Durable Objects are, when the placement does not tell. */
  readonly location?: string;
}

/** The regions of an area, six as the papers have, and its PoPs. */
export interface Area {
  readonly regions: readonly Region[];
  readonly pops: readonly Place[];
  /** Whether the local world is the default one, which has these regions and PoPs. */
  readonly isDefaultWorld?: boolean;
}

/** Latitude and longitude in degrees of the city or state by which AWS names a region. */
export const COORDINATES: Readonly<Record<string, readonly [number, number]>> = {
  "eu-central-1": [50.1, 8.7],
  "eu-west-1": [53.3, -6.3],
  "us-east-1": [39.0, -77.5],
  "us-east-2": [40.0, -83.0],
  "us-west-1": [37.4, -122.0],
  "us-west-2": [45.8, -119.7],
  "ca-central-1": [45.5, -73.6],
  "ca-west-1": [51.0, -114.1],
  "sa-east-1": [-23.5, -46.6],
  "ap-northeast-1": [35.7, 139.7],
  "ap-southeast-2": [-33.9, 151.2],
};

const region = (name: string, awsRegion: string): Region => ({
  name,
  provider: "aws",
  endpoint: `https://s3.${awsRegion}.amazonaws.com`,
  awsRegion,
});
const pop = (name: string, awsRegion: string): Place => ({ name, placement: `aws:${awsRegion}` });

/** By the answer to the question where most readers are. */
export const AREAS: Readonly<Record<string, Area>> = {
  // The regions of `continental`, the default of `@agarose/dev-world`.
  europe: {
    regions: [
      region("s3-frankfurt", "eu-central-1"),
      region("s3-ireland", "eu-west-1"),
      {
        name: "r2-eu",
        provider: "cloudflare",
        endpoint: "https://ACCOUNT_ID.eu.r2.cloudflarestorage.com",
        awsRegion: "auto",
      },
      {
        name: "gcs-belgium",
        provider: "google",
        endpoint: "https://storage.googleapis.com",
        awsRegion: "europe-west1",
      },
      {
        name: "b2-amsterdam",
        provider: "backblaze",
        endpoint: "https://s3.eu-central-003.backblazeb2.com",
        awsRegion: "eu-central-003",
      },
      {
        name: "wasabi-milan",
        provider: "wasabi",
        endpoint: "https://s3.eu-south-1.wasabisys.com",
        awsRegion: "eu-south-1",
      },
    ],
    pops: [
      pop("fra", "eu-central-1"),
      { name: "ams", placement: "gcp:europe-west4", location: "weur" },
      pop("mad", "eu-south-2"),
    ],
    isDefaultWorld: true,
  },
  world: {
    regions: [
      region("frankfurt", "eu-central-1"),
      region("dublin", "eu-west-1"),
      region("n-virginia", "us-east-1"),
      region("sao-paulo", "sa-east-1"),
      region("tokyo", "ap-northeast-1"),
      region("sydney", "ap-southeast-2"),
    ],
    pops: [pop("fra", "eu-central-1"), pop("iad", "us-east-1"), pop("nrt", "ap-northeast-1")],
  },
  "north-america": {
    regions: [
      region("n-virginia", "us-east-1"),
      region("ohio", "us-east-2"),
      region("n-california", "us-west-1"),
      region("oregon", "us-west-2"),
      region("montreal", "ca-central-1"),
      region("calgary", "ca-west-1"),
    ],
    pops: [pop("iad", "us-east-1"), pop("sfo", "us-west-1")],
  },
};

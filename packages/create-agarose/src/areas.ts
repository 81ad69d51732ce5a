/** Where readers are, and the regions of AWS and the PoPs that serve them. */

/** A bucket's place. */
export interface Region {
  readonly name: string;
  readonly awsRegion: string;
}

/** A PoP beside a cloud region. */
export interface Place {
  readonly name: string;
  readonly awsRegion: string;
}

/** The regions of an area, six as the papers have, and its PoPs. */
export interface Area {
  readonly regions: readonly Region[];
  readonly pops: readonly Place[];
}

/** Latitude and longitude in degrees of the city or state by which AWS names a region. */
export const COORDINATES: Readonly<Record<string, readonly [number, number]>> = {
  "eu-central-1": [50.1, 8.7],
  "eu-west-1": [53.3, -6.3],
  "eu-west-2": [51.5, -0.1],
  "eu-west-3": [48.9, 2.4],
  "eu-north-1": [59.3, 18.1],
  "eu-south-1": [45.5, 9.2],
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

const region = (name: string, awsRegion: string): Region => ({ name, awsRegion });
const pop = (name: string, awsRegion: string): Place => ({ name, awsRegion });

/** By the answer to the question where most readers are. */
export const AREAS: Readonly<Record<string, Area>> = {
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
  europe: {
    regions: [
      region("frankfurt", "eu-central-1"),
      region("dublin", "eu-west-1"),
      region("london", "eu-west-2"),
      region("paris", "eu-west-3"),
      region("stockholm", "eu-north-1"),
      region("milan", "eu-south-1"),
    ],
    pops: [pop("fra", "eu-central-1"), pop("lhr", "eu-west-2")],
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

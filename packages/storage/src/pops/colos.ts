/**
 * Where Cloudflare's data centers and AWS regions are, to some 100 km. Pure.
 *
 * Data centers: the airports that Cloudflare's network page names, with latitude and longitude in whole degrees
 * (github.com/insign/Cloudflare-Data-Center-IATA-Code-list, April 2026). Regions: the data center of the city that
 * AWS names (docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html, 2026).
 */

const DEGREES = `
AAE 37 8, ABJ 5 -4, ABQ 35 -107, ACC 6 0, ACX 25 105, ADB 38 27, ADD 9 39, ADL -35 139, AGR 27 78, AKL -37 175,
AKX 50 57, ALA 43 77, ALG 37 3, AMD 23 73, AMM 32 36, AMS 52 5, ANC 61 -150, ARI -18 -70, ARN 60 18, ARU -21 -50,
ASK 7 -5, ASU -25 -58, ATH 38 24, ATL 34 -84, AUS 30 -98, BAH 26 51, BAQ 11 -75, BBI 20 86, BCN 41 2, BEG 45 20,
BEL -1 -48, BEY 34 35, BGI 13 -59, BGR 45 -69, BGW 33 44, BHY 22 109, BKK 14 101, BLR 13 78, BNA 36 -87,
BNE -27 153, BNU -27 -49, BOD 45 -1, BOG 5 -74, BOM 19 73, BOS 42 -71, BRU 51 4, BSB -16 -48, BSR 31 48,
BTS 48 17, BUD 47 19, BUF 43 -79, BWN 5 115, CAI 30 31, CAN 23 113, CAW -22 -41, CBR -35 149, CCP -37 -73,
CCU 23 88, CDG 49 3, CEB 10 124, CFC -27 -51, CGB -16 -56, CGD 29 112, CGK -6 107, CGO 35 114, CGP 22 92,
CGY 9 124, CHC -43 173, CJB 11 77, CKG 30 107, CLE 41 -82, CLO 4 -76, CLT 35 -81, CMB 7 80, CMH 40 -83,
CNF -20 -44, CNN 12 76, CNX 19 99, COK 10 76, COR -31 -64, CPH 56 13, CPT -34 19, CRK 15 121, CSX 28 113,
CTU 31 104, CWB -26 -49, CZL 36 7, CZX 32 120, DAC 24 90, DAD 16 108, DAR -7 39, DEL 29 77, DEN 40 -105,
DFW 33 -97, DKR 15 -17, DLC 39 122, DME 55 38, DMM 26 50, DOH 25 52, DPS -9 115, DTW 42 -83, DUB 53 -6,
DUR -30 31, DUS 51 7, DXB 25 55, EBB 0 32, EBL 36 44, EDI 56 -3, EVN 40 44, EWR 41 -74, EZE -35 -59, FCO 42 12,
FIH -4 15, FLN -28 -49, FOC 26 120, FOR -4 -39, FRA 50 9, FSD 44 -97, FUK 34 130, FUO 23 113, GBE -25 26,
GDL 21 -103, GEO 6 -58, GIG -23 -43, GND 12 -62, GOT 58 12, GRU -23 -46, GUA 15 -91, GUM 13 145, GVA 46 6,
GYD 40 50, GYE -2 -80, GYN -17 -49, HAK 20 110, HAM 54 10, HAN 21 106, HBA -43 148, HEL 60 25, HFA 33 35,
HFE 32 117, HGH 30 120, HKG 22 114, HNL 21 -158, HRE -18 31, HYD 17 78, HYN 29 121, IAD 39 -77, IAH 30 -95,
ICN 37 126, IND 40 -86, ISB 34 73, IST 41 29, ISU 36 45, ITJ -27 -49, IXC 31 77, JAX 30 -82, JDO -7 -39,
JED 22 39, JHB 2 104, JIB 12 43, JNB -26 28, JOG -8 110, JOI -26 -49, JSR 23 89, JXG 31 121, KBP 50 31,
KCH 1 110, KEF 64 -23, KGL -2 30, KHH 23 120, KHI 25 67, KHN 29 116, KIN 18 -77, KIX 34 135, KJA 56 92,
KMG 25 103, KNU 26 80, KTM 28 85, KUL 3 102, KWE 27 107, KWI 29 48, LAD -9 13, LAS 36 -115, LAX 34 -118,
LCA 35 34, LED 60 30, LHE 32 74, LHR 51 0, LHW 37 104, LIM -12 -77, LIS 39 -9, LJU 46 14, LLK 39 49, LLW -14 34,
LOS 7 3, LPB -17 -68, LUN -15 28, LUX 50 6, LYA 35 112, LYS 46 5, MAA 13 80, MAD 40 -4, MAN 53 -2, MAO -3 -60,
MBA -4 40, MCI 39 -95, MCT 24 58, MDE 6 -75, MEL -38 145, MEM 35 -90, MEX 19 -99, MFE 26 -98, MFM 22 114,
MIA 26 -80, MLA 36 14, MLE 4 74, MLG -8 113, MNL 15 121, MPM -26 33, MRS 43 5, MRU -20 58, MSP 45 -93, MSQ 54 28,
MUC 48 12, MXP 46 9, NAG 21 79, NBO -1 37, NJF 32 44, NNG 23 108, NOU -22 166, NQN -39 -68, NQZ 51 71,
NRT 36 140, NVT -27 -49, OKA 26 128, OKC 35 -98, OMA 41 -96, ORD 42 -88, ORF 37 -76, ORK 52 -8, ORN 36 -1,
OSL 60 11, OTP 45 26, OUA 12 -2, PAT 26 85, PBH 27 89, PBM 5 -55, PDX 46 -123, PER -32 116, PHL 40 -75,
PHX 33 -112, PIT 40 -80, PKX 40 116, PMO 38 13, PMW -10 -48, PNH 12 105, PNQ 19 74, POA -30 -51, POS 11 -61,
PPT -18 -150, PRG 50 14, PTY 9 -79, QRO 21 -100, RAO -21 -48, RDU 36 -79, REC -8 -35, RIC 38 -77, RIX 57 24,
RUH 25 47, RUN -21 56, SAN 33 -117, SAP 15 -88, SAT 30 -98, SCL -33 -71, SDQ 18 -70, SEA 47 -122, SFO 38 -122,
SGN 11 107, SHA 31 121, SIN 1 104, SJC 37 -122, SJK -23 -46, SJO 10 -84, SJP -21 -49, SJU 18 -66, SJW 38 115,
SKG 41 23, SKP 42 22, SLC 41 -112, SMF 39 -122, SOD -23 -47, SOF 43 23, SSA -13 -38, STI 19 -71, STL 39 -90,
STR 49 9, SUV -18 179, SVX 57 61, SYD -34 151, SZX 23 114, TAO 36 120, TAS 41 69, TBS 42 45, TEN 28 109,
TGU 14 -87, TIA 41 20, TLH 30 -84, TLL 59 25, TLV 32 35, TNA 37 117, TNR -19 47, TPA 28 -83, TPE 25 121,
TSN 39 117, TUN 37 10, TYN 38 113, UDI -19 -48, UIO 0 -78, ULN 48 107, URT 9 99, VCP -23 -47, VIE 48 17,
VIX -20 -40, VNO 55 25, VTE 18 103, WAW 52 21, WDH -22 17, WHU 31 118, WLG -41 175, WRO 51 17, XAP -27 -53,
XFN 32 112, XIY 34 109, XNH 31 46, XNN 37 102, YHZ 45 -64, YOW 45 -76, YUL 45 -74, YVR 49 -123, YWG 50 -97,
YXE 52 -107, YYC 51 -114, YYZ 44 -80, ZAG 46 16, ZDM 32 35, ZGN 23 113, ZRH 47 9`;

const COLOS: ReadonlyMap<string, readonly [latitude: number, longitude: number]> = new Map(
  rowsOf(DEGREES).map(([code, latitude, longitude]) => [code!, [Number(latitude), Number(longitude)]]),
);

/** By what follows `aws:` in a placement. Zaragoza has no data center of Cloudflare: Madrid is the nearest. */
const NEAREST = `
af-south-1 CPT, ap-east-1 HKG, ap-east-2 TPE, ap-northeast-1 NRT, ap-northeast-2 ICN,
ap-northeast-3 KIX, ap-south-1 BOM, ap-south-2 HYD, ap-southeast-1 SIN, ap-southeast-2 SYD,
ap-southeast-3 CGK, ap-southeast-4 MEL, ap-southeast-5 KUL, ap-southeast-6 AKL, ap-southeast-7 BKK,
ca-central-1 YUL, ca-west-1 YYC, eu-central-1 FRA, eu-central-2 ZRH, eu-north-1 ARN,
eu-south-1 MXP, eu-south-2 MAD, eu-west-1 DUB, eu-west-2 LHR, eu-west-3 CDG, il-central-1 TLV,
me-central-1 DXB, me-south-1 BAH, mx-central-1 QRO, sa-east-1 GRU, us-east-1 IAD, us-east-2 CMH,
us-west-1 SFO, us-west-2 PDX`;

const AWS_REGIONS: ReadonlyMap<string, string> = new Map(rowsOf(NEAREST).map(([region, code]) => [region!, code!]));

function rowsOf(table: string): string[][] {
  return table
    .trim()
    .split(/,\s+/)
    .map((row) => row.split(" "));
}

const EARTH_RADIUS_KM = 6_371;

/** Returns the data center at a placement such as `aws:eu-central-1`; undefined for other clouds and for hosts. */
export function coloNear(placement: string): string | undefined {
  const [, region] = /^aws:(.+)$/.exec(placement) ?? [];
  return AWS_REGIONS.get(region ?? "");
}

/** Returns kilometres between two data centers, right to some 100 km; undefined where one is not in the table. */
export function distanceKm(a: string, b: string): number | undefined {
  const [from, to] = [COLOS.get(a), COLOS.get(b)];
  if (!from || !to) return undefined;
  const [[latitudeA, longitudeA], [latitudeB, longitudeB]] = [from, to].map(
    (degrees) => degrees.map((degree) => (degree * Math.PI) / 180) as [number, number],
  ) as [[number, number], [number, number]];
  const haversine =
    Math.sin((latitudeB - latitudeA) / 2) ** 2 +
    Math.cos(latitudeA) * Math.cos(latitudeB) * Math.sin((longitudeB - longitudeA) / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(haversine));
}

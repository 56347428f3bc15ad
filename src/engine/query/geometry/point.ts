import { type Doc, isDocument } from '../../codec/document.js';
import { type Path, visitPath } from '../values/path.js';
import { numberOf } from '../values/value.js';

/** A place on the sphere, in degrees. */
export interface Spot {
  readonly lng: number;
  readonly lat: number;
}

/** The radius by which MongoDB turns angles into meters. */
export const EARTH_RADIUS_METERS = 6_378_100;

const RADIANS = Math.PI / 180;

/**
 * A place as documents store it: a GeoJSON `Point`, `[lng, lat]`, or an object whose first two fields are longitude and
 * latitude. A text says why the value is none.
 */
export function readPoint(value: unknown): Spot | string {
  if (Array.isArray(value)) return spotOf(value[0], value[1]);
  if (!isDocument(value)) return 'a place must be an array or an object';
  const { type, coordinates } = value;
  if (typeof type === 'string') {
    if (type !== 'Point') return `geometry of type ${type.slice(0, 40)} is not supported by this engine, only Point`;
    if (!Array.isArray(coordinates)) return 'Point coordinates must be an array';
    return spotOf(coordinates[0], coordinates[1]);
  }
  const [first, second] = Object.values(value);
  return spotOf(first, second);
}

function spotOf(first: unknown, second: unknown): Spot | string {
  const lng = numberOf(first);
  const lat = numberOf(second);
  if (lng === null || lat === null) return 'Point must only contain numeric elements';
  if (Math.abs(lng) <= 180 && Math.abs(lat) <= 90) return { lng, lat };
  return `longitude/latitude is out of bounds, lng: ${String(lng)} lat: ${String(lat)}`;
}

/** Two numbers on a plane, as legacy shapes give their corners: `[x, y]` or an object of two numbers. */
export function readPair(value: unknown): [number, number] | null {
  const [first, second] = (Array.isArray(value) ? value : isDocument(value) ? Object.values(value) : []) as unknown[];
  const x = numberOf(first);
  const y = numberOf(second);
  return x === null || y === null || !Number.isFinite(x) || !Number.isFinite(y) ? null : [x, y];
}

/** Nothing, `null` and what is empty are no place, and no mistake either. */
function isPlaceless(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'object' && (Array.isArray(value) || isDocument(value)) && Object.keys(value).length === 0;
}

/** Calls `visit` with every value that a document has at a path of places. */
export function visitPlaces(doc: Doc, path: Path, visit: (value: unknown) => void): void {
  visitPath(doc, path, false, (value) => {
    if (!isPlaceless(value)) visit(value);
    return false;
  });
}

/** The angle between two places in radians, exact for neighbours and antipodes alike. */
export function angleBetween(a: Spot, b: Spot): number {
  return angleOf(a.lat * RADIANS, b.lat * RADIANS, (b.lng - a.lng) * RADIANS);
}

/** The angle between two places by their latitudes and the difference of their longitudes, all in radians. */
export function angleOf(from: number, to: number, difference: number): number {
  const sinFrom = Math.sin(from);
  const cosFrom = Math.cos(from);
  const sinTo = Math.sin(to);
  const cosTo = Math.cos(to);
  const cos = Math.cos(difference);
  return Math.atan2(
    Math.hypot(cosTo * Math.sin(difference), cosFrom * sinTo - sinFrom * cosTo * cos),
    sinFrom * sinTo + cosFrom * cosTo * cos,
  );
}

import { type Doc, isDocument, setField } from '../../codec/document.js';
import { badValue, CODES, EngineError, refusal, typeMismatch } from '../../errors.js';
import { type Path, splitPath } from '../values/path.js';
import { copyDoc, fieldOf, isTruthy, numberOf, typeOf } from '../values/value.js';
import { angleBetween, EARTH_RADIUS_METERS, readPoint, type Spot, visitPlaces } from './point.js';

/** A `$geoNear`: from where, how far, and what else the documents have to satisfy. */
export interface GeoNear {
  readonly from: Spot;
  /** Nearer places than this are left out; in radians. */
  readonly least: number;
  /** Farther places than this are left out; in radians. */
  readonly most: number;
  readonly query: Doc;
  /** The indexed field, null to take the only one. */
  readonly key: string | null;
  /** The document with its distance, and its place where that is wanted; it may be changed for that. */
  present(doc: Doc, found: NearPlace): Doc;
}

/** The place of a document that is the nearest of all it has. */
export interface NearPlace {
  readonly angle: number;
  /** As it is stored. */
  readonly place: unknown;
}

const OPTIONS: ReadonlySet<string> = new Set([
  'near',
  'distanceField',
  'spherical',
  'key',
  'minDistance',
  'maxDistance',
  'query',
  'includeLocs',
  'distanceMultiplier',
]);

/** Compiles the options of a `$geoNear`. Distances are meters from a GeoJSON point, and radians from a pair. */
export function readGeoNear(spec: unknown): GeoNear {
  if (!isDocument(spec)) throw refusal(10065, '$geoNear needs an object');
  for (const name of Object.keys(spec)) {
    if (!OPTIONS.has(name)) {
      throw new EngineError(CODES.IDLUnknownField, `BSON field '$geoNear.${name}' is an unknown field.`);
    }
  }
  const { near, query = {}, key } = spec;
  if (near === undefined) throw refusal(5860400, "$geoNear requires a 'near' option");
  const from = readPoint(near);
  if (typeof from === 'string') throw badValue(`$geoNear: near: ${from}`);
  const isPair = !isDocument(near) || typeof near['type'] !== 'string';
  if (isPair && !isTruthy(spec['spherical'])) {
    throw badValue('$geoNear: near as a pair needs spherical: true; write a GeoJSON Point for meters');
  }
  if (!isDocument(query)) throw typeMismatch(`$geoNear: query must be an object, found ${typeOf(query)}`);
  if (key !== undefined && (typeof key !== 'string' || key === '')) {
    throw typeMismatch("$geoNear parameter 'key' must be a non-empty string");
  }
  const unit = isPair ? 1 : EARTH_RADIUS_METERS;
  const multiplier = readDistance(spec, 'distanceMultiplier', 1);
  const distanceField = readOutput(spec, 'distanceField');
  if (distanceField === null) throw refusal(16606, "$geoNear requires a 'distanceField' option as a String");
  const includeLocs = readOutput(spec, 'includeLocs');
  return {
    from,
    least: readDistance(spec, 'minDistance', 0) / unit,
    most: readDistance(spec, 'maxDistance', Infinity) / unit,
    query,
    key: key ?? null,
    present(doc, { angle, place }) {
      setAt(doc, distanceField, angle * unit * multiplier);
      if (includeLocs !== null) setAt(doc, includeLocs, place);
      return doc;
    },
  };
}

function readDistance(spec: Doc, name: string, absent: number): number {
  const value = spec[name];
  if (value === undefined) return absent;
  const number = numberOf(value);
  if (number === null || !(number >= 0)) throw badValue(`$geoNear: ${name} must be a non-negative number`);
  return number;
}

function readOutput(spec: Doc, name: string): Path | null {
  const path = spec[name];
  if (path === undefined) return null;
  if (typeof path !== 'string' || path.split('.').some((part) => part === '' || part.startsWith('$'))) {
    throw refusal(16606, `$geoNear: ${name} must be a field path`);
  }
  return splitPath(path);
}

/** Sets a value at a path; anything but an object on the way is replaced by one. */
function setAt(doc: Doc, path: Path, value: unknown): void {
  let at = doc;
  for (const part of path.slice(0, -1)) {
    const inner = fieldOf(at, part);
    const next = isDocument(inner) ? copyDoc(inner) : {};
    setField(at, part, next);
    at = next;
  }
  setField(at, path.at(-1)!, value);
}

/** The place at a path of the document that is nearest; null when it has none within the bounds. */
export function nearestPlace(doc: Doc, path: Path, { from, least, most }: GeoNear): NearPlace | null {
  let nearest: NearPlace | null = null;
  visitPlaces(doc, path, (place) => {
    const spot = readPoint(place);
    if (typeof spot === 'string') return;
    const angle = angleBetween(from, spot);
    if (nearest === null || angle < nearest.angle) nearest = { angle, place };
  });
  const found = nearest as NearPlace | null;
  return found !== null && found.angle >= least && found.angle <= most ? found : null;
}

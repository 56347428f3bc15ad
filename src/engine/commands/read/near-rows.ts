import { type Doc, isDocument, type Row } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import type { ExpressionContext } from '../../query/expression.js';
import { type GeoNear, readGeoNear } from '../../query/geometry/geo-near.js';
import { readPoint } from '../../query/geometry/point.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import { pacedBudget } from './aggregate.js';
import type { RowSource } from './cursors.js';
import type { RowsOptions } from './find-rows.js';
import type { Pace } from '../pace.js';
import { joined, joinedIn } from './negation.js';
import { readNearest } from './read-nearest.js';

const NEAR: ReadonlySet<string> = new Set(['$near', '$nearSphere']);

/** A `$near` or `$nearSphere` of a filter: what is nearest, and the same as a condition without an order. */
export interface Near {
  readonly nearest: GeoNear;
  /** As the options of a `$geoNear`. */
  readonly spec: Doc;
  readonly condition: Doc;
}

/**
 * The `$near` or `$nearSphere` in a filter's top-level conjunction, null when there is none; 2 for a malformed one, or
 * for a second one.
 */
export function readNear(filter: Doc): Near | null {
  if (!asksNear(filter)) return null;
  const others: Doc[] = [];
  let found: { path: string; spec: Doc; name: string } | null = null;
  for (const part of joinedIn(filter)) {
    const [path] = Object.keys(part) as [string];
    const spec = part[path];
    const name = isDocument(spec) ? Object.keys(spec).find((key) => NEAR.has(key)) : undefined;
    if (name === undefined) {
      others.push(part);
      continue;
    }
    if (found !== null) throw badValue('Too many geoNear expressions');
    found = { path, spec: spec as Doc, name };
  }
  if (found === null) return null;
  const { path, spec, name } = found;
  const { [name]: near, $minDistance: least, $maxDistance: most, ...rest } = spec;
  if (Object.keys(rest).length > 0) others.push({ [path]: rest });
  const inner = isDocument(near) && Object.hasOwn(near, '$geometry') ? near : null;
  if (inner === null && name === '$near') {
    throw badValue('$near of this engine needs a GeoJSON point as $geometry; a pair of numbers goes with $nearSphere');
  }
  const [minDistance, maxDistance] =
    inner === null ? [least, most] : [inner['$minDistance'] ?? least, inner['$maxDistance'] ?? most];
  const query = joined(others);
  const geoNear: Doc = {
    ...{ spherical: true, key: path, distanceField: 'distance', query },
    near: inner === null ? near : inner['$geometry'],
    ...(minDistance === undefined ? {} : { minDistance }),
    ...(maxDistance === undefined ? {} : { maxDistance }),
  };
  const nearest = readGeoNear(geoNear);
  const at = readPoint(inner === null ? near : inner['$geometry']) as { lng: number; lat: number };
  return {
    nearest: { ...nearest, present: (doc) => doc },
    spec: geoNear,
    condition: conditionOf(path, nearest, at, query),
  };
}

/** Makes nothing: of nearly every find the answer is no. */
function asksNear(filter: Doc): boolean {
  for (const name of Object.keys(filter)) {
    const value = filter[name];
    if (Array.isArray(value)) {
      if (name === '$and' && value.some((part) => isDocument(part) && asksNear(part))) return true;
    } else if (isDocument(value) && (Object.hasOwn(value, '$near') || Object.hasOwn(value, '$nearSphere'))) {
      return true;
    }
  }
  return false;
}

function conditionOf(path: string, { least, most }: GeoNear, at: { lng: number; lat: number }, query: Doc): Doc {
  const circle = (radius: number): Doc => ({
    [path]: { $geoWithin: { $centerSphere: [[at.lng, at.lat], Math.min(radius, Math.PI)] } },
  });
  return { $and: [query, circle(most), ...(least > 0 ? [{ $nor: [circle(least)] }] : [])] };
}

/** The rows of a find that asks for what is nearest. */
export class NearRows implements RowSource {
  finished = false;
  private readonly documents: AsyncIterator<Doc[]>;
  private readonly view: View;
  private waiting: Doc[] = [];
  private left: number;

  constructor(
    storage: Storage,
    collection: CollectionEntry,
    nearest: GeoNear,
    private readonly options: RowsOptions,
    private readonly pace: Pace,
    environment: ExpressionContext | undefined,
  ) {
    this.view = new View(storage, 'find');
    this.view.begin();
    this.left = options.limit === 0 ? Infinity : options.limit;
    const budget = pacedBudget(pace, this.view);
    const source = readNearest(storage, collection, nearest, null, budget, this.view, environment);
    this.documents = source[Symbol.asyncIterator]();
  }

  async next(most: number, signal?: AbortSignal): Promise<Row[]> {
    this.pace.resume(signal);
    const rows: Row[] = [];
    const wanted = Math.min(most, this.left);
    while (rows.length < wanted) {
      if (this.waiting.length === 0) {
        const batch = await this.documents.next();
        if (batch.done === true) {
          this.close();
          break;
        }
        this.waiting = batch.value;
      }
      const doc = this.waiting.shift()!;
      if (this.options.skip > 0) this.options.skip--;
      else rows.push(this.options.projection?.apply(doc, null) ?? doc);
    }
    this.left -= rows.length;
    if (this.left <= 0) this.close();
    if (!this.finished) this.view.hold();
    this.pace.suspend();
    return rows;
  }

  close(): void {
    this.finished = true;
    this.waiting = [];
    this.view.release();
    void this.documents.return?.().catch(() => undefined);
  }
}

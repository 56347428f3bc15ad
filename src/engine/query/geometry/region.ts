import { type Doc, isDocument } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import { numberOf } from '../values/value.js';
import { type Cell, codesWithin, halvesOf, leastAngle, mostAngle, type Region, WORLD } from './cell.js';
import { angleBetween, readPair, readPoint, type Spot } from './point.js';
import { FEW_CORNERS, readGeometry } from './sphere-polygon.js';

const SHAPES: Readonly<Record<string, (spec: unknown) => Region>> = {
  $centerSphere(spec) {
    const [at, size] = Array.isArray(spec) ? (spec as unknown[]) : [];
    const center = readPair(at);
    const radius = numberOf(size);
    if (center === null || !Array.isArray(spec) || spec.length !== 2) {
      throw badValue('$centerSphere needs [[longitude, latitude], radius in radians]');
    }
    if (radius === null || !(radius >= 0) || radius === Infinity) {
      throw badValue('radius must be a non-negative number');
    }
    const [lng, lat] = center;
    if (Math.abs(lng) > 180 || Math.abs(lat) > 90) throw badValue('Spherical circle center is out of bounds');
    return cap({ lng, lat }, radius);
  },
  $box(spec) {
    const corners = Array.isArray(spec) && spec.length === 2 ? spec.map(readPair) : [];
    const [first, second] = corners;
    if (first == null || second == null) throw badValue('$box needs two corners of two numbers each');
    return box(first, second);
  },
  $center(spec) {
    const [at, size] = Array.isArray(spec) ? (spec as unknown[]) : [];
    const center = readPair(at);
    const radius = numberOf(size);
    if (center === null || !Array.isArray(spec) || spec.length !== 2) throw badValue('$center needs [[x, y], radius]');
    if (radius === null || !(radius >= 0) || radius === Infinity) {
      throw badValue('radius must be a non-negative number');
    }
    return circle(center, radius);
  },
  $geometry: (spec) => readGeometry(spec, ['Polygon', 'MultiPolygon'], '$geoWithin'),
  $polygon(spec) {
    const given: unknown[] = Array.isArray(spec) ? spec : isDocument(spec) ? Object.values(spec) : [];
    if (given.length < 3) throw badValue('Polygon must have at least 3 points');
    const corners = given.map(readPair);
    if (corners.includes(null)) throw badValue('$polygon needs corners of two numbers each');
    return polygon(corners as Pair[]);
  },
};

type Pair = readonly [number, number];

/** The area that the operand of `$geoWithin` describes; 2 for anything else than one shape of places. */
export function readRegion(operand: unknown): Region {
  if (!isDocument(operand)) throw badValue('$geoWithin needs an object such as {$centerSphere: [[lng, lat], radians]}');
  const [name, ...more] = Object.keys(operand);
  if (name === undefined || more.length > 0) throw badValue('$geoWithin needs exactly one shape');
  if (!Object.hasOwn(SHAPES, name)) {
    throw badValue(
      name.startsWith('$') ? `${name} of $geoWithin is not supported by this engine` : `unknown geo specifier: ${name}`,
    );
  }
  return SHAPES[name]!(operand[name]);
}

/** What a `$geoIntersects` meets; documents hold points, so it is what is in the geometry or on its edges. */
export function readIntersection(operand: unknown): Region {
  const [name, ...more] = isDocument(operand) ? Object.keys(operand) : [];
  if (name !== '$geometry' || more.length > 0) throw badValue('$geoIntersects needs one $geometry');
  return readGeometry((operand as Doc)[name], ['Point', 'Polygon', 'MultiPolygon'], '$geoIntersects');
}

/** True if a stored value is a place in the region. */
export function isWithin(value: unknown, region: Region): boolean {
  const spot = readPoint(value);
  return typeof spot !== 'string' && region.contains(spot);
}

function cap(center: Spot, radius: number): Region {
  return {
    isSlow: false,
    contains: (spot) => angleBetween(center, spot) <= radius,
    relationOf(cell) {
      if (leastAngle(center, cell) > radius) return 'apart';
      return mostAngle(center, cell) <= radius ? 'within' : 'across';
    },
  };
}

/** On the plane of degrees, edges included, as MongoDB has it. */
function box(a: Pair, b: Pair): Region {
  const [west, east] = a[0] < b[0] ? [a[0], b[0]] : [b[0], a[0]];
  const [south, north] = a[1] < b[1] ? [a[1], b[1]] : [b[1], a[1]];
  return {
    isSlow: false,
    contains: ({ lng, lat }) => lng >= west && lng <= east && lat >= south && lat <= north,
    relationOf(cell) {
      if (cell.west > east || cell.east < west || cell.south > north || cell.north < south) return 'apart';
      const inside = cell.west >= west && cell.east <= east && cell.south >= south && cell.north <= north;
      return inside ? 'within' : 'across';
    },
  };
}

/** On the plane of degrees. */
function circle([x, y]: Pair, radius: number): Region {
  const isIn = (lng: number, lat: number): boolean => Math.hypot(lng - x, lat - y) <= radius;
  return {
    isSlow: false,
    contains: ({ lng, lat }) => isIn(lng, lat),
    relationOf({ west, south, east, north }) {
      if (!isIn(Math.min(Math.max(x, west), east), Math.min(Math.max(y, south), north))) return 'apart';
      const corners = [isIn(west, south), isIn(west, north), isIn(east, south), isIn(east, north)];
      return corners.every(Boolean) ? 'within' : 'across';
    },
  };
}

function polygon(corners: readonly Pair[]): Region {
  const lngs = corners.map(([lng]) => lng);
  const lats = corners.map(([, lat]) => lat);
  const around = box([least(lngs), least(lats)], [most(lngs), most(lats)]);
  const contains = ({ lng, lat }: Spot): boolean => {
    let inside = false;
    let [x1, y1] = corners.at(-1)!;
    for (const [x2, y2] of corners) {
      if (lat > y1 !== lat > y2 && lng < ((lat - y1) * (x2 - x1)) / (y2 - y1) + x1) inside = !inside;
      [x1, y1] = [x2, y2];
    }
    return inside;
  };
  const isSlow = corners.length > FEW_CORNERS;
  return {
    isSlow,
    contains,
    relationOf(cell) {
      const outer = around.relationOf(cell);
      if (outer === 'apart' || isSlow) return outer === 'apart' ? 'apart' : 'across';
      if (corners.some((corner, n) => intersects(corner, corners[(n + 1) % corners.length]!, cell))) return 'across';
      // No edge passes the cell: it is inside or outside as a whole.
      return contains({ lng: cell.west, lat: cell.south }) ? 'within' : 'apart';
    },
  };
}

const least = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.min(a, b));
const most = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b));

/** In degrees; so that a touch does not pass for a miss. */
const ROUNDING = 1e-9;

/** True if an edge may have a point in common with a cell: it is cut at the cell's sides one after the other. */
function intersects([x1, y1]: Pair, [x2, y2]: Pair, { west, south, east, north }: Cell): boolean {
  let from = 0;
  let to = 1;
  const dx = x2 - x1;
  const dy = y2 - y1;
  for (const [step, room] of [
    [-dx, x1 - west + ROUNDING],
    [dx, east - x1 + ROUNDING],
    [-dy, y1 - south + ROUNDING],
    [dy, north - y1 + ROUNDING],
  ] as const) {
    if (step === 0) {
      if (room < 0) return false;
    } else if (step < 0) {
      from = Math.max(from, room / step);
    } else {
      to = Math.min(to, room / step);
    }
  }
  return from <= to;
}

/** Most cells that cover a region. */
const MAX_CELLS = 64;

/** The codes that a place in the region may have, as ascending ranges: a few more than are in it, never less. */
export function coverRegion(region: Region): [number, number][] {
  const within: Cell[] = [];
  let across: Cell[] = [WORLD];
  // Level by level, as long as the next one cannot bring too many.
  while (across.length > 0 && within.length + across.length * 2 <= MAX_CELLS) {
    const next: Cell[] = [];
    for (const cell of across) {
      for (const half of halvesOf(cell)) {
        const relation = region.relationOf(half);
        if (relation === 'within' || (relation === 'across' && half.depth >= DEEP)) within.push(half);
        else if (relation === 'across') next.push(half);
      }
    }
    across = next;
  }
  const ranges = [...within, ...across].map(codesWithin).sort((a, b) => a[0] - b[0]);
  const joined: [number, number][] = [];
  for (const [first, last] of ranges) {
    const before = joined.at(-1);
    if (before?.[1] === first - 1) before[1] = last;
    else joined.push([first, last]);
  }
  return joined;
}

/** Cells of some ten meters: smaller ones would leave out nothing worth the walk. */
const DEEP = 42;

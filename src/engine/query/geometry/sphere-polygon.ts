import { isDocument } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import { type Cell, mostAngle, type Region, type Relation } from './cell.js';
import { readPoint, type Spot } from './point.js';

type Vector = readonly [number, number, number];

/** A closed line of great-circle arcs, its smaller side on the left of each. */
interface Ring {
  readonly corners: readonly Vector[];
}

/** Polygons of more corners are slow, and looked up by what is around them. */
export const FEW_CORNERS = 100;

const RADIANS = Math.PI / 180;
/** In radians, less than a tenth of a millimeter: so near to an edge a place is on it. */
const ON_EDGE = 1e-12;
/** More than the error of any computed angle. */
const ANGLE_ERROR = 1e-12;

/**
 * The area of a GeoJSON geometry on the sphere, edges included; 2 for anything but a well-formed Point, Polygon or
 * MultiPolygon. Edges are arcs of great circles; of the two sides of a ring the smaller one counts.
 */
export function readGeometry(geometry: unknown, shapes: readonly string[], operator: string): Region {
  if (!isDocument(geometry)) throw badValue(`${operator} needs a GeoJSON object as $geometry`);
  const { type, coordinates } = geometry;
  if (typeof type !== 'string' || !shapes.includes(type)) {
    const given = typeof type === 'string' ? type.slice(0, 40) : 'without a type';
    throw badValue(`${operator} of this engine takes a $geometry of ${shapes.join(', ')}, not ${given}`);
  }
  if (type === 'Point') return pointRegion(geometry);
  if (type === 'Polygon') return polygonRegion(coordinates);
  if (!Array.isArray(coordinates) || coordinates.length === 0) throw badValue('MultiPolygon needs a list of polygons');
  return unionOf(coordinates.map(polygonRegion));
}

function pointRegion(geometry: unknown): Region {
  const spot = readPoint(geometry);
  if (typeof spot === 'string') throw badValue(spot);
  const at = vectorOf(spot);
  return {
    isSlow: false,
    contains: (other) => angle(at, vectorOf(other)) <= ON_EDGE,
    relationOf: ({ west, south, east, north }) => {
      const isIn = spot.lng >= west && spot.lng <= east && spot.lat >= south && spot.lat <= north;
      // The poles, and the meridian where both ends meet, are in several cells.
      return isIn || Math.abs(spot.lat) === 90 || Math.abs(spot.lng) === 180 ? 'across' : 'apart';
    },
  };
}

function polygonRegion(coordinates: unknown): Region {
  if (!Array.isArray(coordinates) || coordinates.length === 0) throw badValue('Polygon needs a list of rings');
  const [outer, ...holes] = (coordinates as unknown[]).map(readRing) as [Ring, ...Ring[]];
  const rings = [outer, ...holes];
  const center = centerOf(outer);
  const reach = outer.corners.reduce((most, corner) => Math.max(most, angle(center, corner)), 0) + ANGLE_ERROR;
  const isSlow = rings.reduce((sum, { corners }) => sum + corners.length, 0) > FEW_CORNERS;
  const contains = (spot: Spot): boolean => {
    const at = vectorOf(spot);
    if (rings.some((ring) => isOnEdge(ring, at))) return true;
    return encloses(outer, at) && !holes.some((hole) => encloses(hole, at));
  };
  return {
    isSlow,
    contains,
    relationOf(cell): Relation {
      const middle = { lng: (cell.west + cell.east) / 2, lat: (cell.south + cell.north) / 2 };
      const at = vectorOf(middle);
      const radius = mostAngle(middle, cell) + ANGLE_ERROR;
      // What is within a quarter of the sphere has its arcs there as well.
      if (reach < Math.PI / 2 && angle(center, at) > reach + radius) return 'apart';
      if (isSlow || rings.some((ring) => comesWithin(ring, at, radius))) return 'across';
      // No edge is near: the cell is inside or outside as a whole.
      return contains(middle) ? 'within' : 'apart';
    },
  };
}

function unionOf(regions: readonly Region[]): Region {
  return {
    isSlow: regions.length > 1 && regions.some(({ isSlow }) => isSlow),
    contains: (spot) => regions.some((region) => region.contains(spot)),
    relationOf(cell: Cell): Relation {
      const relations = regions.map((region) => region.relationOf(cell));
      if (relations.includes('within')) return 'within';
      return relations.includes('across') ? 'across' : 'apart';
    },
  };
}

function readRing(ring: unknown): Ring {
  if (!Array.isArray(ring) || ring.length < 4) throw badValue('a ring of a Polygon needs at least 4 positions');
  const spots = ring.map((position) => {
    const spot = Array.isArray(position) ? readPoint(position) : 'a position is an array of longitude and latitude';
    if (typeof spot === 'string') throw badValue(spot);
    return spot;
  });
  const [first, last] = [spots[0]!, spots.at(-1)!];
  if (first.lng !== last.lng || first.lat !== last.lat) {
    throw badValue('a ring of a Polygon is not closed: its last position must be its first');
  }
  const corners: Vector[] = [];
  for (const vector of spots.slice(0, -1).map(vectorOf)) {
    if (corners.length === 0 || angle(corners.at(-1)!, vector) > ON_EDGE) corners.push(vector);
  }
  if (corners.length > 1 && angle(corners[0]!, corners.at(-1)!) <= ON_EDGE) corners.pop();
  if (corners.length < 3) throw badValue('a ring of a Polygon needs at least 3 different corners');
  return { corners: isSmallerOnLeft(corners) ? corners : [...corners].reverse() };
}

/** By the areas of the triangles that the first corner makes with each edge. */
function isSmallerOnLeft(corners: readonly Vector[]): boolean {
  const a = corners[0]!;
  let area = 0;
  for (let n = 1; n + 1 < corners.length; n++) {
    const [b, c] = [corners[n]!, corners[n + 1]!];
    area += 2 * Math.atan2(dot(a, cross(b, c)), 1 + dot(a, b) + dot(b, c) + dot(c, a));
  }
  const whole = 4 * Math.PI;
  return ((area % whole) + whole) % whole <= whole / 2;
}

/** True when the ring goes once around a place on its left: seen from there, its corners turn by a whole circle. */
function encloses({ corners }: Ring, at: Vector): boolean {
  let turned = 0;
  let from = corners.at(-1)!;
  for (const to of corners) {
    turned += Math.atan2(dot(at, cross(from, to)), dot(from, to) - dot(from, at) * dot(to, at));
    from = to;
  }
  return turned > Math.PI;
}

function isOnEdge(ring: Ring, at: Vector): boolean {
  return comesWithin(ring, at, ON_EDGE);
}

/** True when an edge of the ring is not farther than `radius` from a place. */
function comesWithin({ corners }: Ring, at: Vector, radius: number): boolean {
  let from = corners.at(-1)!;
  for (const to of corners) {
    if (angleToArc(at, from, to) <= radius) return true;
    from = to;
  }
  return false;
}

function angleToArc(at: Vector, from: Vector, to: Vector): number {
  const normal = cross(from, to);
  const length = Math.hypot(...normal);
  if (length > 0) {
    // Between the two planes through the ends that are upright to the arc its own circle is the nearest.
    const isBeside = dot(cross(normal, from), at) >= 0 && dot(cross(to, normal), at) >= 0;
    if (isBeside) return Math.abs(Math.asin(Math.max(-1, Math.min(1, dot(normal, at) / length))));
  }
  return Math.min(angle(at, from), angle(at, to));
}

function centerOf({ corners }: Ring): Vector {
  const sum = corners.reduce<Vector>(([x, y, z], corner) => [x + corner[0], y + corner[1], z + corner[2]], [0, 0, 0]);
  const length = Math.hypot(...sum);
  return length < 1e-9 ? corners[0]! : [sum[0] / length, sum[1] / length, sum[2] / length];
}

function vectorOf({ lng, lat }: Spot): Vector {
  const [l, f] = [lng * RADIANS, lat * RADIANS];
  return [Math.cos(f) * Math.cos(l), Math.cos(f) * Math.sin(l), Math.sin(f)];
}

function dot(a: Vector, b: Vector): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

function cross(a: Vector, b: Vector): Vector {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

function angle(a: Vector, b: Vector): number {
  return Math.atan2(Math.hypot(...cross(a, b)), dot(a, b));
}

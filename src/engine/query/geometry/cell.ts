import { angleOf, type Spot } from './point.js';

/**
 * A part of the sphere between two meridians and two parallels, edges included. The whole is halved again and again,
 * each time across the longer side, so that cells stay compact up to the poles; `code` has one bit for each half taken.
 */
export interface Cell {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
  readonly code: number;
  readonly depth: number;
}

/** How a cell lies to a region. `apart` and `within` are certain, `across` need not be. */
export type Relation = 'apart' | 'across' | 'within';

/** The area of a `$geoWithin`. */
export interface Region {
  contains(spot: Spot): boolean;
  relationOf(cell: Cell): Relation;
  /** True when the test of a single place takes long. */
  readonly isSlow: boolean;
}

/** The smallest cells, of some 30 centimeters; their codes are exact as numbers. */
export const MAX_DEPTH = 52;

export const WORLD: Cell = { west: -180, south: -90, east: 180, north: 90, code: 0, depth: 0 };

const RADIANS = Math.PI / 180;
/** More than the error of any computed angle, so that a bound is never above what it bounds. */
const ANGLE_ERROR = 1e-13;

/**
 * Whether a cell is halved between west and east. Its sides are as powers of two to each other and the cosine is never
 * so near to one that its last digits would decide.
 */
function isWide(west: number, south: number, east: number, north: number): boolean {
  const widest = south >= 0 ? Math.cos(south * RADIANS) : north <= 0 ? Math.cos(north * RADIANS) : 1;
  return (east - west) * widest > north - south;
}

/** The two halves of a cell along its longer side, the western or southern one first. */
export function halvesOf({ west, south, east, north, code, depth }: Cell): [Cell, Cell] {
  const next = { west, south, east, north, code: code * 2, depth: depth + 1 };
  if (isWide(west, south, east, north)) {
    const middle = (west + east) / 2;
    return [
      { ...next, east: middle },
      { ...next, west: middle, code: next.code + 1 },
    ];
  }
  const middle = (south + north) / 2;
  return [
    { ...next, north: middle },
    { ...next, south: middle, code: next.code + 1 },
  ];
}

/** The code of the smallest cell that holds a place. */
export function codeOf({ lng, lat }: Spot): number {
  let { west, south, east, north, code } = WORLD;
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    code *= 2;
    if (isWide(west, south, east, north)) {
      const middle = (west + east) / 2;
      if (lng < middle) {
        east = middle;
      } else {
        west = middle;
        code++;
      }
    } else {
      const middle = (south + north) / 2;
      if (lat < middle) {
        north = middle;
      } else {
        south = middle;
        code++;
      }
    }
  }
  return code;
}

/** The codes of the smallest cells within a cell, the first and the last of them. */
export function codesWithin({ code, depth }: Cell): [number, number] {
  const size = 2 ** (MAX_DEPTH - depth);
  return [code * size, code * size + size - 1];
}

/** Lower bound of the angle between a place and everything in the cell, in radians. */
export function leastAngle({ lng, lat }: Spot, { west, south, east, north }: Cell): number {
  const from = lat * RADIANS;
  const [low, high] = [south * RADIANS, north * RADIANS];
  const eastwards = (((lng - west) % 360) + 360) % 360;
  const width = east - west;
  // On its own meridian the way leads straight to the nearer parallel, otherwise to the nearer meridian.
  if (eastwards <= width) return Math.max(0, low - from, from - high) - ANGLE_ERROR;
  const gap = Math.min(eastwards - width, 360 - eastwards) * RADIANS;
  const foot = Math.atan2(Math.sin(from), Math.cos(from) * Math.cos(gap));
  if (foot > low && foot < high) return angleOf(from, foot, gap) - ANGLE_ERROR;
  return Math.min(angleOf(from, low, gap), angleOf(from, high, gap)) - ANGLE_ERROR;
}

/** Upper bound of the angle between a place and everything in the cell: the rest of the way to its antipode. */
export function mostAngle({ lng, lat }: Spot, cell: Cell): number {
  return Math.PI - leastAngle({ lng: lng > 0 ? lng - 180 : lng + 180, lat: -lat }, cell);
}

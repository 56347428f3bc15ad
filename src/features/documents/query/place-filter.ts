import type { Document } from 'bson';
import { badQuery } from '../reply/query-text.js';

/** By which meters become radians, in the database as well. */
const EARTH_RADIUS_METERS = 6_378_100;
/** Half of the way around. */
const MOST_METERS = EARTH_RADIUS_METERS * Math.PI;
const MIN_CORNERS = 3;
const MAX_CORNERS = 100;

/** `lng,lat,meters` as the condition that a place lies in that circle, its edge included. */
export function nearCondition(path: string, text: string, parameter: string): Document {
  const numbers = readNumbers(text);
  if (numbers?.length !== 3) throw badQuery(`${parameter} must be longitude,latitude,meters`);
  const [lng, lat, meters] = numbers as [number, number, number];
  requirePlace(lng, lat, parameter);
  if (meters < 0 || meters > MOST_METERS) throw badQuery(`${parameter}: the meters must be from 0 to 20037000`);
  return { [path]: { $geoWithin: { $centerSphere: [[lng, lat], meters / EARTH_RADIUS_METERS] } } };
}

/** `lng,lat,lng,lat,…`, the corners in their order, as the condition that a place lies in that polygon. */
export function withinCondition(path: string, text: string, parameter: string): Document {
  const numbers = readNumbers(text);
  if (numbers === null || numbers.length % 2 !== 0) {
    throw badQuery(`${parameter} must be the corners of a polygon: longitude,latitude,longitude,latitude,…`);
  }
  const corners: [number, number][] = [];
  for (let n = 0; n < numbers.length; n += 2) {
    const [lng, lat] = [numbers[n]!, numbers[n + 1]!];
    requirePlace(lng, lat, parameter);
    corners.push([lng, lat]);
  }
  const [first, last] = [corners[0]!, corners.at(-1)!];
  if (corners.length > 1 && first[0] === last[0] && first[1] === last[1]) corners.pop();
  const different = new Set(corners.map((corner) => corner.join()));
  if (different.size < MIN_CORNERS || corners.length > MAX_CORNERS) {
    throw badQuery(`${parameter} takes a polygon of ${MIN_CORNERS} to ${MAX_CORNERS} different corners`);
  }
  return { [path]: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [[...corners, corners[0]!]] } } } };
}

const NUMBER = /^-?\d{1,12}(\.\d{1,20})?$/;

function readNumbers(text: string): number[] | null {
  const parts = text.split(',', MAX_CORNERS * 2 + 3).map((part) => part.trim());
  return parts.every((part) => NUMBER.test(part)) ? parts.map(Number) : null;
}

function requirePlace(lng: number, lat: number, parameter: string): void {
  if (Math.abs(lng) > 180 || Math.abs(lat) > 90) {
    throw badQuery(`${parameter}: ${lng},${lat} is no place: longitude -180 to 180, latitude -90 to 90`);
  }
}

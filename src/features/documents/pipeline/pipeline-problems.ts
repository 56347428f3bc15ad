import { invalid, type AppError } from '../../../errors.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { BLOCKED } from './expression-operators.js';

/** 400 INVALID_PIPELINE. */
export function badPipeline(message: string): AppError {
  return invalid('INVALID_PIPELINE', message);
}

/** Conditions of MongoDB that people look for, and what there is instead. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['$near', 'begin the pipeline with $geoNear'],
  ['$nearSphere', 'begin the pipeline with $geoNear'],
  ['$within', 'write $geoWithin'],
  ['$text', 'there is no text search; $regex finds what begins with or contains a word'],
]);

/**
 * The refusal of a stage or operator that is not on a list: BLOCKED_STAGE where it is known to be dangerous, else
 * INVALID_PIPELINE.
 */
export function refusedName(name: string, what: string): AppError {
  const instead = INSTEAD.get(name);
  if (instead !== undefined) return badPipeline(`${name} is not available here: ${instead}`);
  return BLOCKED.has(name) || name.startsWith('$_internal')
    ? invalid('BLOCKED_STAGE', `${name.slice(0, 60)} is not allowed in a pipeline`)
    : badPipeline(`Unknown ${what} ${JSON.stringify(name.slice(0, 60))}`);
}

/** An object with at least one key; 400 otherwise. `what` begins the message. */
export function requireObject(value: unknown, what: string): Record<string, unknown> {
  if (!isJsonObject(value) || Object.keys(value).length === 0) throw badPipeline(`${what} needs an object`);
  return value;
}

export function requireText(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '') throw badPipeline(`${what} must be a text`);
  return value;
}

/** A path as it stands in a specification: without `$`, without empty parts. */
export function requirePath(value: unknown, what: string): string {
  const path = requireText(value, what);
  // The driver's library would take a document with a field `_bsontype` for one of its own types.
  if (path.split('.').some((part) => part === '' || part.startsWith('$') || part === '_bsontype')) {
    throw badPipeline(`${what}: ${JSON.stringify(path.slice(0, 60))} is not a field path`);
  }
  return path;
}

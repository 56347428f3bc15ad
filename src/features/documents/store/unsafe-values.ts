import { invalid } from '../../../errors.js';
import { UNSAFE_NAMES } from '../../collections/fields/field.js';
import { isWellFormed } from '../../collections/fields/field-type.js';

/** Levels of objects and arrays in a stored document, itself included. */
const MAX_DEPTH = 32;

/**
 * Refuses with 400 what no document may contain at any depth: keys that a database, a path or a prototype would read as
 * something else, too many levels, numbers and texts that could not be stored as they are. `level` is the level at
 * which `value` will stand in its document; a number is named with its path, which begins with `parts`.
 */
export function rejectUnsafeValue(value: unknown, level = 1, parts: readonly string[] = []): void {
  try {
    checkValue(value, level);
  } catch (error) {
    if (error !== INEXACT) throw error;
    const path = [...parts, ...(pathOfInexact(value) ?? [])].join('.');
    throw refusal(
      `${path === '' ? 'A number' : path}: a whole number beyond ${Number.MAX_SAFE_INTEGER} loses digits; send it as text`,
    );
  }
}

/** Thrown for a number that was not sent as it was read; the path is looked for only then. */
const INEXACT = new Error('a number has lost digits');
/** From here on JSON is written with an exponent, which is no claim to all digits. */
const WRITTEN_WITH_EXPONENT = 1e21;

function checkValue(value: unknown, level: number): void {
  if (typeof value === 'string') return rejectBrokenText(value, 'A text');
  if (typeof value === 'number') return checkNumber(value);
  if (typeof value !== 'object' || value === null) return;
  if (level > MAX_DEPTH) throw refusal(`The document is nested more than ${MAX_DEPTH} levels deep`);
  if (Array.isArray(value)) {
    for (const item of value) checkValue(item, level + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    rejectUnsafeKey(key);
    checkValue((value as Record<string, unknown>)[key], level + 1);
  }
}

function checkNumber(value: number): void {
  if (!Number.isFinite(value)) throw refusal('A number is too large to be stored');
  if (isInexact(value)) throw INEXACT;
}

/** True if a number is written in digits but stands for its neighbours too. */
function isInexact(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < WRITTEN_WITH_EXPONENT;
}

function pathOfInexact(value: unknown): string[] | null {
  if (typeof value === 'number') return isInexact(value) ? [] : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, item] of Object.entries(value)) {
    const path = pathOfInexact(item);
    if (path !== null) return [key, ...path];
  }
  return null;
}

/** rejectUnsafeValue for the body of an update, whose top-level keys may be dotted paths. */
export function rejectUnsafeUpdate(body: Record<string, unknown>): void {
  for (const key of Object.keys(body)) {
    if (key === '') throw refusal('An update cannot name a field without a name');
    if (!key.includes('.')) {
      rejectUnsafeKey(key);
      rejectUnsafeValue(body[key], 2, [key]);
      continue;
    }
    const parts = key.split('.');
    if (parts.length > MAX_DEPTH) throw refusal(`The document is nested more than ${MAX_DEPTH} levels deep`);
    for (const part of parts) {
      if (part === '') throw refusal(`${quoted(key)} is not a path: a part of it is empty`);
      rejectUnsafeKey(part);
    }
    rejectUnsafeValue(body[key], parts.length + 1, parts);
  }
}

function rejectUnsafeKey(key: string): void {
  if (key.startsWith('$')) throw refusal(`A field name must not begin with $: ${quoted(key)}`);
  if (key.includes('.')) throw refusal(`A field name must not contain a dot: ${quoted(key)}`);
  if (key.includes('\0')) throw refusal(`A field name must not contain a NUL character: ${quoted(key)}`);
  if (UNSAFE_NAMES.has(key)) throw refusal(`A field must not be named ${quoted(key)}`);
  rejectBrokenText(key, 'A field name');
}

function rejectBrokenText(text: string, what: string): void {
  if (!isWellFormed(text)) throw refusal(`${what} contains half a surrogate pair, which is not a character`);
}

function quoted(key: string): string {
  return JSON.stringify(key.length > 80 ? `${key.slice(0, 80)}…` : key);
}

function refusal(message: string): Error {
  return invalid('INVALID_BODY', message);
}

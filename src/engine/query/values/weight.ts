import type { Binary } from 'bson';
import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';
import { typeOf } from './value.js';

/** Limit of one value: as much as MongoDB lets a document grow between two stages. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Items of an array that one operator makes: more than that takes so long that others wait. */
export const MAX_ITEMS = 500_000;
const MAX_DEPTH = 200;
/** Lighter containers are weighed again each time, which is cheaper than remembering them. */
const WORTH_REMEMBERING = 4096;

interface Weight {
  readonly bytes: number;
  /** Levels of containers, itself included. */
  readonly height: number;
}

/**
 * The weights of heavy containers, whose content never changes once they are weighed. Values share their parts, so a
 * few levels can stand for more than could ever be visited: each part is visited once only.
 */
const weights = new WeakMap<object, Weight>();

/**
 * Roughly the bytes that a value would occupy if its parts were not shared. Refuses what is heavier than 64 MB (146) or
 * nested deeper than 200 levels (15): comparing, copying or encoding a weighed value comes to an end.
 */
export function weigh(value: unknown): number {
  if (typeof value === 'string') return 16 + value.length;
  return typeof value === 'object' && value !== null ? weighObject(value, 1).bytes : 8;
}

/** Adds what an item of a growing list weighs; refuses a sum of more than 64 MB (146). */
export function addWeight(sum: number, item: unknown): number {
  const bytes = sum + 8 + weigh(item);
  if (bytes > MAX_BYTES) throw tooHeavy();
  return bytes;
}

const SCALAR: Weight = { bytes: 32, height: 0 };

function weighObject(value: object, level: number): Weight {
  const isArray = Array.isArray(value);
  if (!isArray && !isDocument(value)) {
    return typeOf(value) === 'binData' ? { bytes: 32 + (value as Binary).position, height: 0 } : SCALAR;
  }
  const known = weights.get(value);
  if (known !== undefined) return known;
  if (level > MAX_DEPTH) throw tooDeep();
  const weight = isArray ? weighItems(value, level) : weighFields(value, level);
  if (weight.bytes > MAX_BYTES) throw tooHeavy();
  if (weight.height > MAX_DEPTH) throw tooDeep();
  if (weight.bytes > WORTH_REMEMBERING) weights.set(value, weight);
  return weight;
}

function weighItems(items: readonly unknown[], level: number): Weight {
  let bytes = 16 + items.length * 8;
  let height = 0;
  for (const item of items) {
    if (typeof item === 'object' && item !== null) {
      const weight = weighObject(item, level + 1);
      bytes += weight.bytes;
      if (weight.height > height) height = weight.height;
    } else {
      bytes += typeof item === 'string' ? 16 + item.length : 8;
    }
  }
  return { bytes, height: height + 1 };
}

function weighFields(doc: Doc, level: number): Weight {
  let bytes = 16;
  let height = 0;
  for (const name in doc) {
    const item = doc[name];
    bytes += 8 + name.length;
    if (typeof item === 'object' && item !== null) {
      const weight = weighObject(item, level + 1);
      bytes += weight.bytes;
      if (weight.height > height) height = weight.height;
    } else {
      bytes += typeof item === 'string' ? 16 + item.length : 8;
    }
  }
  return { bytes, height: height + 1 };
}

function tooHeavy(): EngineError {
  return new EngineError(
    CODES.ExceededMemoryLimit,
    `a value of more than ${String(MAX_BYTES)} bytes would use too much memory`,
  );
}

function tooDeep(): EngineError {
  return new EngineError(CODES.Overflow, `a value would be nested deeper than ${String(MAX_DEPTH)} levels`);
}

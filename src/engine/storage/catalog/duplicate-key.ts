import { toApp } from '../../codec/app-values.js';
import { bsonType, type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError } from '../../errors.js';

/** MongoDB's error 11000 with its text, `keyPattern` and `keyValue`. */
export function duplicateKey(ns: string, indexName: string, keyPattern: Doc, values: readonly unknown[]): EngineError {
  const keyValue: Doc = {};
  const shown = Object.keys(keyPattern).map((path, n) => {
    const value = values[n] === undefined || typeof values[n] === 'symbol' ? null : values[n];
    keyValue[path] = value;
    return `${path}: ${showValue(value)}`;
  });
  const message = `E11000 duplicate key error collection: ${ns} index: ${indexName} dup key: { ${shown.join(', ')} }`;
  return new EngineError(CODES.DuplicateKey, message, { keyPattern, keyValue });
}

/** A value as MongoDB writes it into messages. */
export function showValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  if (Array.isArray(value)) return `[ ${value.map(showValue).join(', ')} ]`;
  if (isDocument(value)) {
    const fields = Object.entries(value).map(([name, field]) => `${name}: ${showValue(field)}`);
    return `{ ${fields.join(', ')} }`;
  }
  return bsonType(value) === 'ObjectId' ? `ObjectId('${String(value)}')` : String(toApp(value));
}

/** The value that a message shows of a path: of a list its first. */
export function firstValue(doc: Doc, parts: readonly string[]): unknown {
  let value: unknown = doc;
  for (const part of parts) {
    if (Array.isArray(value)) value = value.find(isDocument);
    if (!isDocument(value)) return undefined;
    value = value[part];
  }
  return Array.isArray(value) ? value[0] : value;
}

import type { Document } from 'bson';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { namedPath } from '../../collections/fields/nocase.js';

/**
 * The first unreadable field that a filter reads, or null for none. ANY_FIELD for a filter that could read a field
 * without naming it, as `$$ROOT` does. This alone decides whether a client's filter may run on stored documents: as a
 * stage, as an argument of a stage, or as the conditions of a list or a subscription.
 */
export function findRead(filter: Document, unreadable: ReadonlySet<string>): string | null {
  const read = new Set<string>();
  addRead(filter, read);
  if (read.has(ANY_FIELD)) return ANY_FIELD;
  for (const field of read) if (unreadable.has(field)) return field;
  return null;
}

/** Stands for every field; no field can have this name. */
export const ANY_FIELD = '$$ROOT';

function addRead(filter: Document, read: Set<string>): void {
  for (const [key, value] of Object.entries(filter) as [string, unknown][]) {
    if (!key.startsWith('$')) {
      read.add(rootOf(key));
      addNested(value, read);
    } else if (key === '$and' || key === '$or' || key === '$nor') {
      for (const part of value as Document[]) addRead(part, read);
    } else if (key === '$expr') {
      addExpression(value, read);
    } else if (key !== '$comment') {
      read.add(ANY_FIELD);
    }
  }
}

/** Conditions on one field compare it with values; only an expression among them could read another one. */
function addNested(conditions: unknown, read: Set<string>): void {
  if (Array.isArray(conditions)) for (const item of conditions) addNested(item, read);
  if (!isJsonObject(conditions)) return;
  for (const [key, value] of Object.entries(conditions)) {
    if (key === '$expr') addExpression(value, read);
    else addNested(value, read);
  }
}

function addExpression(value: unknown, read: Set<string>): void {
  if (typeof value === 'string') {
    addReference(value, read);
  } else if (Array.isArray(value)) {
    for (const item of value) addExpression(item, read);
  } else if (isJsonObject(value) && !('$literal' in value)) {
    if ('$getField' in value) addGetField(value.$getField, read);
    else for (const inner of Object.values(value)) addExpression(inner, read);
  }
}

/** Other variables than the document itself hold what the expression that sets them reads. */
function addReference(text: string, read: Set<string>): void {
  const document = /^\$\$(?:ROOT|CURRENT)(?:\.|$)/.exec(text);
  if (document) read.add(document[0].length < text.length ? rootOf(text.slice(document[0].length)) : ANY_FIELD);
  else if (text.startsWith('$') && !text.startsWith('$$')) read.add(rootOf(text.slice(1)));
}

function addGetField(argument: unknown, read: Set<string>): void {
  const isNamed = isJsonObject(argument) && 'field' in argument;
  const field = isNamed ? argument.field : argument;
  const input = isNamed ? (argument.input ?? '$$CURRENT') : '$$CURRENT';
  if (input !== '$$CURRENT' && input !== '$$ROOT') {
    addExpression(input, read);
    addExpression(field, read);
    return;
  }
  const name = isJsonObject(field) && '$literal' in field ? field.$literal : field;
  const isConstant = typeof name === 'string' && (name !== field || !name.startsWith('$'));
  read.add(isConstant ? name : ANY_FIELD);
}

function rootOf(path: string): string {
  return namedPath(path).split('.', 1)[0]!;
}

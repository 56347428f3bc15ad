import { type Doc, isDocument, setField } from '../../codec/document.js';
import { badValue, CODES, conflictingUpdate, pathNotViable, refusal } from '../../errors.js';
import { indexOfPart, splitPath } from '../values/path.js';
import { copyDoc, fieldOf } from '../values/value.js';

/** One part of an update path: a field name or array index, or a positional operator. */
export type UpdatePart =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'matched' }
  | { readonly kind: 'all' }
  | { readonly kind: 'filtered'; readonly identifier: string };

/** Stands for "remove the field"; in an array, where positions must stay, it becomes null. */
export const ABSENT = Symbol('absent');

/** Computes a field's new value; returning the very same value means no change, `undefined` for a missing one too. */
export type Change = (current: unknown) => unknown;

export interface PathContext {
  /** Containers made by this update: they may be modified in place. */
  readonly owned: Set<object>;
  /** The array position that the filter matched, for `$`. */
  readonly arrayIndex?: number | undefined;
  readonly filters: ReadonlyMap<string, (element: unknown) => boolean>;
}

/** How far beyond its end an array may be extended with nulls by one update. */
const MAX_PADDING = 1_500_000;

/** Splits and checks an update path; empty parts (56) and names that start with `$` (52) are refused. */
export function parseUpdatePath(path: string): UpdatePart[] {
  if (path === '') throw refusal(CODES.EmptyFieldName, 'An empty update path is not valid.');
  return splitPath(path).map((part, i): UpdatePart => {
    if (part === '') {
      throw refusal(
        CODES.EmptyFieldName,
        `The update path '${path}' contains an empty field name, which is not allowed.`,
      );
    }
    if (!part.startsWith('$')) return { kind: 'name', name: part };
    if (i === 0 && (part === '$' || part.startsWith('$['))) {
      throw badValue(`Cannot have positional (i.e. '$') element in the first position in path '${path}'`);
    }
    if (part === '$') return { kind: 'matched' };
    if (part === '$[]') return { kind: 'all' };
    const identifier = /^\$\[([a-z][A-Za-z0-9]*)\]$/.exec(part);
    if (identifier !== null) return { kind: 'filtered', identifier: identifier[1]! };
    throw refusal(
      CODES.DollarPrefixedFieldName,
      `The dollar ($) prefixed field '${part}' in '${path}' is not valid for storage.`,
    );
  });
}

/** The text of a part, for comparing paths and for messages. */
export function partText(part: UpdatePart): string {
  switch (part.kind) {
    case 'name':
      return part.name;
    case 'matched':
      return '$';
    case 'all':
      return '$[]';
    case 'filtered':
      return `$[${part.identifier}]`;
  }
}

/** The first `end` parts of a path, as messages write it. */
export function pathText(path: readonly UpdatePart[], end = path.length): string {
  return path.slice(0, end).map(partText).join('.');
}

/** Field by field; numbers by value, so that `a.2` comes before `a.10`. */
export function comparePaths(a: readonly UpdatePart[], b: readonly UpdatePart[]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = partText(a[i]!);
    const right = partText(b[i]!);
    if (left === right) continue;
    const numbers = [indexOfPart(left), indexOfPart(right)] as const;
    if (numbers[0] >= 0 && numbers[1] >= 0) return numbers[0] - numbers[1];
    return left < right ? -1 : 1;
  }
  return a.length - b.length;
}

/**
 * Refuses (40) two paths of which one is the other or lies below it, or that go on from one place to items of an array
 * (`$[]`, `$[identifier]`) and to something by its name or position. The paths must be sorted.
 */
export function refuseConflicts(sorted: readonly (readonly UpdatePart[])[]): void {
  if (sorted.some((path) => path.some(isItem))) refuseMixed(sorted);
  const seen = new Set<string>();
  for (const path of sorted) {
    const texts = path.map(partText);
    for (let length = 1; length <= texts.length; length++) {
      const prefix = texts.slice(0, length).join('.');
      if (seen.has(prefix)) {
        throw conflictingUpdate(`Updating the path '${texts.join('.')}' would create a conflict at '${prefix}'`);
      }
    }
    seen.add(texts.join('.'));
  }
}

function isItem({ kind }: UpdatePart): boolean {
  return kind === 'all' || kind === 'filtered';
}

function refuseMixed(paths: readonly (readonly UpdatePart[])[]): void {
  const toItems = new Map<string, boolean>();
  for (const path of paths) {
    const texts = path.map(partText);
    for (const [at, part] of path.entries()) {
      const place = texts.slice(0, at).join('.');
      if ((toItems.get(place) ?? isItem(part)) !== isItem(part)) {
        throw conflictingUpdate(`Updating the path '${texts.join('.')}' would create a conflict at '${place}'`);
      }
      toItems.set(place, isItem(part));
    }
  }
}

/**
 * Applies a change at a path and returns the new container, or the same one when nothing changed; what this update did
 * not make itself is never modified. With `create` missing parents are made, and a parent that is no container is
 * refused (28).
 */
export function changeAt(
  container: unknown,
  path: readonly UpdatePart[],
  at: number,
  change: Change,
  create: boolean,
  context: PathContext,
): unknown {
  const part = path[at]!;
  if (Array.isArray(container)) return changeElement(container, path, at, change, create, context);
  if (part.kind !== 'name') {
    if (!create && part.kind === 'matched') return container;
    throw badValue(`Cannot apply array updates to non-array element at '${pathText(path, at)}'`);
  }
  if (!isDocument(container)) {
    if (!create) return container;
    throw pathNotViable(`Cannot create field '${part.name}' in element at '${pathText(path, at)}'`);
  }
  const child = fieldOf(container, part.name);
  const changed = changeChild(child, path, at, change, create, context);
  if (changed === child) return container;
  const copy = context.owned.has(container) ? container : copyDoc(container);
  context.owned.add(copy);
  if (changed === ABSENT) delete copy[part.name];
  else setField(copy, part.name, changed);
  return copy;
}

/** The new value of the field or element that `path[at]` names. */
function changeChild(
  child: unknown,
  path: readonly UpdatePart[],
  at: number,
  change: Change,
  create: boolean,
  context: PathContext,
): unknown {
  if (at === path.length - 1) return change(child);
  if (child !== undefined) return changeAt(child, path, at + 1, change, create, context);
  const next = path[at + 1]!;
  if (next.kind !== 'name') {
    if (!create) return child;
    throw badValue(`The path '${pathText(path, at + 1)}' must exist in the document in order to apply array updates.`);
  }
  if (!create) return child;
  const made = {};
  context.owned.add(made);
  const inner = changeAt(made, path, at + 1, change, create, context) as Doc;
  return Object.keys(inner).length === 0 ? undefined : inner;
}

function changeElement(
  array: readonly unknown[],
  path: readonly UpdatePart[],
  at: number,
  change: Change,
  create: boolean,
  context: PathContext,
): unknown {
  const part = path[at]!;
  if (part.kind === 'name' || part.kind === 'matched') {
    const index = part.kind === 'name' ? indexOfPart(part.name) : matchedIndex(context);
    if (index < 0) {
      if (!create) return array;
      throw pathNotViable(`Cannot create field '${partText(part)}' in element at '${pathText(path, at)}'`);
    }
    const child = array[index];
    const changed = changeChild(child, path, at, change, create, context);
    if (changed === child) return array;
    const copy = [...array];
    if (index - array.length > MAX_PADDING) throw badValue(`cannot extend an array to position ${String(index)}`);
    while (copy.length < index) copy.push(null);
    copy[index] = changed === ABSENT ? null : changed;
    return copy;
  }
  const selects = part.kind === 'all' ? () => true : context.filters.get(part.identifier)!;
  let copy: unknown[] | undefined;
  array.forEach((element, i) => {
    if (!selects(element)) return;
    const changed = changeChild(element, path, at, change, create, context);
    if (changed === element) return;
    copy ??= [...array];
    copy[i] = changed === ABSENT ? null : changed;
  });
  return copy ?? array;
}

function matchedIndex(context: PathContext): number {
  if (context.arrayIndex === undefined) {
    throw badValue('The positional operator did not find the match needed from the query.');
  }
  return context.arrayIndex;
}

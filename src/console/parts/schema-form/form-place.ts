import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Collection, CollectionField, FieldShape } from '../../collection.js';

/** What every field of a form knows. */
export interface FormPlace {
  /** Of the project: Ref fields find what they point to. */
  collections: readonly Collection[];
  isFixed: boolean;
  /** Broken rules by the path of their field. */
  errors: ReadonlyMap<string, string>;
  /** Notes what is typed into a field and cannot be a value at all; null when it can. */
  report: (path: string, problem: string | null) => void;
}

export const FormContext = createContext<FormPlace | null>(null);

export function useFormPlace(): FormPlace {
  const place = useContext(FormContext);
  if (!place) throw new Error('a field stands outside a form');
  return place;
}

/** What an input of one type is given. */
export interface InputProps {
  id: string;
  path: string;
  shape: FieldShape;
  value: unknown;
  isRequired: boolean;
  describedBy: string | undefined;
  onChange: (next: unknown) => void;
}

const LIMITS: readonly [keyof FieldShape, (limit: string) => string][] = [
  ['minLength', (limit) => `at least ${limit} characters`],
  ['maxLength', (limit) => `at most ${limit} characters`],
  ['min', (limit) => `from ${limit}`],
  ['max', (limit) => `up to ${limit}`],
  ['minItems', (limit) => `at least ${limit} items`],
  ['maxItems', (limit) => `at most ${limit} items`],
  ['pattern', (limit) => `matches ${limit}`],
  ['format', (limit) => limit],
];

/** The rules of a field in a few words. */
export function describeRules(field: FieldShape & Partial<CollectionField>): string {
  const limits = LIMITS.flatMap(([name, say]) => {
    const limit = field[name];
    return typeof limit === 'string' || typeof limit === 'number' ? [say(String(limit))] : [];
  });
  return [
    ...limits,
    ...(field.integer ? ['whole number'] : []),
    ...(field.unique ? ['unique'] : []),
    ...(field.nocase ? ['regardless of case'] : []),
    ...(field.fixed ? ['cannot be changed by users'] : []),
    ...(field.hook ? ['own code may set it'] : []),
    ...(field.stamp === undefined ? [] : ['set to the user who stores it']),
    ...(field.default === undefined ? [] : [`${JSON.stringify(field.default)} when left out`]),
  ].join(' · ');
}

/** `Array of String`, `Ref to posts`. */
export function describeType({ type, items, ref }: FieldShape): string {
  if (ref !== undefined) return `Ref to ${ref}`;
  return items ? `${type} of ${describeType(items)}` : type;
}

const TITLES = ['title', 'name', 'label', 'displayName', 'subject', 'email', 'slug', 'code', 'sku'];

/** The field by which people know a document; null where it has no text. */
export function titleField(collection: Collection | undefined): string | null {
  const texts = collection?.fields.filter(({ type }) => type === 'String').map(({ name }) => name) ?? [];
  return TITLES.find((name) => texts.includes(name)) ?? texts[0] ?? null;
}

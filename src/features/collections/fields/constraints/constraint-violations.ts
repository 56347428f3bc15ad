import type { Document } from 'bson';
import type { App } from '../../../../app.js';
import { conflict } from '../../../../errors.js';
import { takeTurns } from '../../../../scheduler.js';
import { documentsName, type Collection } from '../../collection.js';
import type { Field, FieldShape } from '../field.js';
import { compileConstraints, listTightened } from './check-value.js';

const MAX_LISTED = 10;

type Constrained = Pick<Collection, 'mode' | 'fields'>;

/**
 * 409 CONSTRAINT_VIOLATIONS with the number and ten ids when stored documents, trashed ones too, break a constraint
 * that `to` adds or narrows. Reads all documents, in turns; changes nothing. What others store during it is not seen.
 */
export async function requireNoConstraintViolations(
  app: Pick<App, 'db'>,
  from: Collection,
  to: Collection,
): Promise<void> {
  const fields = tightenedFields(from, to);
  if (fields.length === 0) return;
  const checks = fields.map((field) => ({ name: field.name, find: compileCheck(field) }));
  const projection = Object.fromEntries(fields.map(({ name }) => [name, 1 as const]));
  const stored = app.db.collection<Document>(documentsName(to)).find({}, { projection });
  const found = new Violations();
  const turn = takeTurns();
  for await (const document of stored) {
    await turn();
    const message = checks.map(({ name, find }) => find(document[name], name)).find((text) => text !== null);
    if (message !== undefined) found.add(String(document._id), message);
  }
  found.throwIfAny(to.name);
}

/** Stored documents that do not fit: how many, and the first of them. */
export class Violations {
  #count = 0;
  readonly #listed: { id: string; message: string }[] = [];

  add(id: string, message: string): void {
    this.#count++;
    if (this.#listed.length < MAX_LISTED) this.#listed.push({ id, message });
  }

  /** 409 CONSTRAINT_VIOLATIONS: they keep a constraint from being added. */
  throwIfAny(name: string): void {
    const [count, listed] = [this.#count, this.#listed];
    if (count === 0) return;
    const documents = count === 1 ? '1 stored document does' : `${count} stored documents do`;
    const message = `${documents} not fit the constraints of "${name}", such as ${listed.map(({ id }) => id).join(', ')}: change them first, or ask for new writes only`;
    throw conflict('CONSTRAINT_VIOLATIONS', message, {
      details: listed.map(({ id, message: text }) => ({ field: id, rule: 'constraint', message: text })),
    });
  }
}

function tightenedFields(from: Constrained, to: Constrained): Field[] {
  if (to.mode !== 'enforced') return [];
  const known = from.mode === 'enforced' ? from.fields : [];
  return to.fields.filter(
    (field) => listTightened(known.find(({ name }) => name === field.name) ?? null, field, field.name).length > 0,
  );
}

type FindViolation = (value: unknown, path: string) => string | null;

/** What a stored value breaks first at any depth. Absent and null always fit, other types are reported elsewhere. */
function compileCheck(shape: FieldShape): FindViolation {
  const check = compileConstraints(shape);
  const items = shape.items && compileCheck(shape.items);
  const inner = (shape.fields ?? []).map((field) => ({ name: field.name, find: compileCheck(field) }));
  return (value, path) => {
    if (value === undefined || value === null || !isOfType(shape, value)) return null;
    let broken: string | null = null;
    check?.find(value, { now: null, afford: () => true }, (_, text) => (broken ??= `${path} ${text}`));
    if (broken !== null) return broken;
    if (items) return firstOf((value as unknown[]).map((item, at) => items(item, `${path}.${at}`)));
    return firstOf(inner.map(({ name, find }) => find((value as Document)[name], `${path}.${name}`)));
  };
}

const firstOf = (texts: (string | null)[]): string | null => texts.find((text) => text !== null) ?? null;

function isOfType({ type }: FieldShape, value: unknown): boolean {
  if (type === 'Array') return Array.isArray(value);
  if (type === 'Date') return value instanceof Date;
  if (type === 'Object') return typeof value === 'object' && !Array.isArray(value);
  return typeof value === (type === 'Number' ? 'number' : type === 'Boolean' ? 'boolean' : 'string');
}

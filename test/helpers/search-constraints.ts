import request from 'supertest';
import { expect } from 'vitest';
import type { Field, FieldShape } from '../../src/features/collections/fields/field.js';
import { importDocuments } from '../../src/features/documents/bulk/import-documents.js';
import { buildCollection, storedDocuments, type TestProject } from './build-project.js';
import type { TestApp } from './open-test-app.js';
import { openRandom, type Random } from './random.js';

const TEXTS = ['', 'a', 'ab', 'abc', 'Ab', ' ab ', 'a-b', 'x@y.example', 'http://a.example/', '👍👍', 'zzzzzzzz'];
const NUMBERS = [-2, -1, 0, 0.5, 1, 2, 3, 10];
const DATES = ['1999-12-31', '2000-01-01', '2020-06-01T12:00:00Z', '2999-01-01'];
const PATTERNS = { '^[a-z-]+$': /^[a-z-]+$/, b: /b/, '^.{2,3}$': /^.{2,3}$/u };

type Value = string | number | Value[] | { [name: string]: Value };

/** Random schemas, documents by every way in: what is stored is what an independent reading of the schema admits. */
export async function searchConstraints(test: TestApp, owner: TestProject, seed: number): Promise<void> {
  const random = openRandom(seed);
  const reached = { stored: 0, refused: 0 };
  for (let round = 0; round < 10; round++) await searchSchema(test, owner, random, reached);
  expect(reached.stored).toBeGreaterThan(10);
  expect(reached.refused).toBeGreaterThan(10);
}

async function searchSchema(
  test: TestApp,
  owner: TestProject,
  random: Random,
  reached: { stored: number; refused: number },
): Promise<void> {
  const fields = Array.from({ length: 1 + random.below(3) }, (_, at) => drawField(random, `f${at}`));
  const collection = await buildCollection(test.app, owner.project, { fields });
  const send = (method: 'post' | 'patch', path: string, body: object) =>
    request(test.server)[method](`/api/data/${collection.name}${path}`).set('x-api-key', owner.secret).send(body);
  const ids: string[] = [];
  const fits = (document: Record<string, Value>): boolean =>
    fields.every((field) => document[field.name] === undefined || admits(field, document[field.name]!));
  const settle = (isStored: boolean, isFit: boolean, what: unknown): void => {
    expect(isStored, `${JSON.stringify(fields)} for ${JSON.stringify(what)}`).toBe(isFit);
    reached[isStored ? 'stored' : 'refused']++;
  };
  for (let n = 0; n < 12; n++) {
    const document = drawDocument(random, fields);
    const way = random.below(5);
    if (way === 0 || ids.length === 0) {
      const reply = await send('post', '', document);
      settle(reply.status === 201, fits(document), document);
      if (reply.status === 201) ids.push((reply.body as { _id: string })._id);
    } else if (way === 1) {
      const documents = [document, drawDocument(random, fields)];
      settle((await send('post', '/bulk', documents)).status === 201, documents.every(fits), documents);
    } else if (way === 2) {
      const { rejected } = await importDocuments(test.app, collection, [document]);
      settle(rejected.length === 0, fits(document), document);
    } else if (way === 3 && Object.keys(document).length > 0) {
      const id = ids[random.below(ids.length)]!;
      settle((await send('patch', `/${id}`, document)).status === 200, fits(document), document);
    } else {
      // A position, or a field inside an object, of whatever is stored there: only what stands afterwards counts.
      const name = `f${random.below(fields.length)}.${random.below(2) === 0 ? random.below(3) : 'in'}`;
      await send('patch', `/${ids[random.below(ids.length)]!}`, { [name]: drawValue(random) });
    }
    for (const stored of await storedDocuments(test.app, collection).find().toArray()) {
      expect(fits(stored as never), `${JSON.stringify(fields)} holds ${JSON.stringify(stored)}`).toBe(true);
    }
  }
}

function drawField(random: Random, name: string): Field {
  return { name, ...drawShape(random, 2) };
}

function drawShape(random: Random, level: number): FieldShape {
  const some = <T>(value: T): T | undefined => (random.below(3) === 0 ? value : undefined);
  const shape = ((): FieldShape => {
    switch (random.below(level === 0 ? 3 : 5)) {
      case 0:
        return {
          type: 'String',
          minLength: some(random.below(3)),
          maxLength: some(3 + random.below(3)),
          pattern: some(random.pick(Object.keys(PATTERNS))),
          format: some(random.pick(['email', 'url', 'uuid'] as const)),
          trim: some(true as const),
          lowercase: some(true as const),
        };
      case 1:
        return { type: 'Number', min: some(-1), max: some(2), integer: some(true as const), enum: some([0, 1, 2]) };
      case 2:
        return { type: 'Date', min: some('2000-01-01'), max: some(random.pick(['2020-06-01', 'now'])) };
      case 3:
        return {
          type: 'Array',
          items: drawShape(random, level - 1),
          minItems: some(1),
          maxItems: some(1 + random.below(3)),
          uniqueItems: some(true as const),
        };
      default:
        return { type: 'Object', fields: [{ name: 'in', ...drawShape(random, level - 1) }] };
    }
  })();
  return JSON.parse(JSON.stringify(shape)) as FieldShape;
}

function drawDocument(random: Random, fields: readonly Field[]): Record<string, Value> {
  return Object.fromEntries(
    fields.filter(() => random.below(4) > 0).map((field) => [field.name, drawFor(random, field)]),
  );
}

/** A value that is of the type more often than not. */
function drawFor(random: Random, shape: FieldShape): Value {
  if (random.below(12) === 0) return drawValue(random);
  switch (shape.type) {
    case 'String':
      return random.pick(TEXTS);
    case 'Number':
      return random.pick(NUMBERS);
    case 'Date':
      return random.pick(DATES);
    case 'Array':
      return Array.from({ length: random.below(4) }, () => drawFor(random, shape.items!));
    default:
      return { in: drawFor(random, shape.fields![0]!) };
  }
}

const drawValue = (random: Random): Value => random.pick<Value>([...TEXTS, ...NUMBERS, ...DATES, [], { in: 1 }]);

/** The reading of a declaration that the service is compared with; also of stored values, whose dates are dates. */
function admits(shape: FieldShape, value: Value | Date): boolean {
  switch (shape.type) {
    case 'String':
      return typeof value === 'string' && admitsText(shape, value);
    case 'Number':
      return (
        typeof value === 'number' &&
        value >= ((shape.min as number | undefined) ?? -Infinity) &&
        value <= ((shape.max as number | undefined) ?? Infinity) &&
        (!shape.integer || value === Math.trunc(value)) &&
        (!shape.enum || shape.enum.includes(value))
      );
    case 'Date': {
      const isDate = value instanceof Date || DATES.includes(value as string);
      const moment = new Date(value as string).getTime();
      const until = shape.max === 'now' ? Date.now() : new Date(shape.max ?? '9999-01-01').getTime();
      return isDate && moment >= new Date(shape.min ?? '0001-01-01').getTime() && moment <= until;
    }
    case 'Array':
      return (
        Array.isArray(value) &&
        value.length >= (shape.minItems ?? 0) &&
        value.length <= (shape.maxItems ?? Infinity) &&
        value.every((item) => admits(shape.items!, item)) &&
        (!shape.uniqueItems || new Set(value.map((item) => keyOf(shape.items!, item))).size === value.length)
      );
    default:
      return (
        typeof value === 'object' &&
        !Array.isArray(value) &&
        !(value instanceof Date) &&
        Object.keys(value).every((name) => name === 'in') &&
        (value.in === undefined || admits(shape.fields![0]!, value.in))
      );
  }
}

function admitsText(shape: FieldShape, value: string): boolean {
  const text = settled(shape, value);
  const { length } = Array.from(text);
  if (length < (shape.minLength ?? 0) || length > (shape.maxLength ?? Infinity)) return false;
  if (shape.pattern !== undefined && !PATTERNS[shape.pattern as keyof typeof PATTERNS].test(text)) return false;
  if (shape.format === 'email') return text === 'x@y.example';
  if (shape.format === 'url') return text === 'http://a.example/';
  return shape.format !== 'uuid';
}

function settled({ trim, lowercase }: FieldShape, value: string): string {
  const text = trim ? value.trim() : value;
  return lowercase ? text.toLowerCase() : text;
}

/** What makes two items the same once they are stored. */
function keyOf(shape: FieldShape, value: Value | Date): string {
  if (shape.type === 'String') return settled(shape, value as string);
  if (shape.type === 'Array') return (value as Value[]).map((item) => keyOf(shape.items!, item)).join('\n');
  if (shape.type !== 'Object') return String(value instanceof Date ? value.getTime() : value);
  const inner = (value as Record<string, Value>).in;
  return inner === undefined ? '' : `in ${keyOf(shape.fields![0]!, inner)}`;
}

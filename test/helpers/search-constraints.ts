import request from 'supertest';
import { expect } from 'vitest';
import type { Field, FieldShape } from '../../src/features/collections/fields/field.js';
import { importDocuments } from '../../src/features/documents/bulk/import-documents.js';
import { buildCollection, storedDocuments, type TestProject } from './build-project.js';
import type { TestApp } from './open-test-app.js';
import { buildOperator, type OperatorClient } from './operator-client.js';
import { openRandom, type Random } from './random.js';

const TEXTS = ['', 'a', 'ab', 'abc', 'Ab', ' ab ', 'a-b', 'x@y.example', 'http://a.example/', '👍👍', 'zzzzzzzz'];
const NUMBERS = [-2, -1, 0, 0.5, 1, 2, 3, 10];
const DATES = ['1999-12-31', '2000-01-01', '2020-06-01T12:00:00Z', '2999-01-01'];
const PATTERNS = { '^[a-z-]+$': /^[a-z-]+$/, b: /b/, '^.{2,3}$': /^.{2,3}$/u };

type Value = string | number | Value[] | { [name: string]: Value };

interface Reached {
  stored: number;
  refused: number;
  /** Changes by what is stored, which only the outcome says anything of. */
  operated: number;
}

/** Random schemas, documents by every way in: what is stored is what an independent reading of the schema admits. */
export async function searchConstraints(test: TestApp, owner: TestProject, seed: number): Promise<void> {
  const random = openRandom(seed);
  const reached: Reached = { stored: 0, refused: 0, operated: 0 };
  const { call } = await buildOperator(test);
  const search = { test, owner, call, random, reached };
  const isReached = (): boolean => Math.min(...Object.values(reached)) > 3;
  // Of some seeds the first schemas admit next to nothing.
  for (let round = 0; round < 8 || (round < 80 && !isReached()); round++) await searchSchema(search, round);
  expect(isReached(), JSON.stringify(reached)).toBe(true);
}

interface Search {
  test: TestApp;
  owner: TestProject;
  /** As the console calls. */
  call: OperatorClient;
  random: Random;
  reached: Reached;
}

type Fields = Record<string, Value>;
/** Brings documents in: whether they came to be stored; an id where a new one is known. */
type Way = (documents: Fields[], id: string) => Promise<{ isStored: boolean; id?: string | undefined }>;

async function searchSchema({ test, owner, call, random, reached }: Search, round: number): Promise<void> {
  const fields = Array.from({ length: 1 + random.below(3) }, (_, at) => drawField(random, `f${at}`));
  const collection = await buildCollection(test.app, owner.project, { fields });
  const { name } = collection;
  const send = (method: 'post' | 'patch', path: string, body: object) =>
    request(test.server)[method](`/api/${path}`).set('x-api-key', owner.secret).send(body);
  const inConsole = `/api/projects/${owner.project._id.toHexString()}/collections/${name}/documents`;
  const insert: Way = async ([body]) => {
    const reply = await send('post', `data/${name}`, body!);
    return { isStored: reply.status === 201, id: (reply.body as { _id?: string })._id };
  };
  const ways: Record<string, Way> = {
    insert,
    bulk: async (documents) => ({ isStored: (await send('post', `data/${name}/bulk`, documents)).status === 201 }),
    async import(documents) {
      const { rejected } = await importDocuments(test.app, collection, documents.slice(0, 1));
      return { isStored: rejected.length === 0 };
    },
    update: async ([body], id) => ({ isStored: (await send('patch', `data/${name}/${id}`, body!)).status === 200 }),
    'insert in the console': async ([body]) => ({ isStored: (await call('post', inConsole, body)).status === 201 }),
    'update in the console': async ([body], id) => ({
      isStored: (await call('patch', `${inConsole}/${id}`, body)).status === 200,
    }),
    async matching([body], id) {
      const path = `data/${name}?createdAt_gte=2000-01-01&confirm=`;
      const count = await storedDocuments(test.app, collection).countDocuments({ isDeleted: false });
      return { isStored: id !== '' && (await send('patch', path + count, body!)).status === 200 };
    },
    async batch([first, second], id) {
      const operations = [
        { op: 'insert', collection: name, body: first },
        { op: 'update', collection: name, id, body: second },
      ];
      return { isStored: (await send('post', 'batch', { operations })).status === 200 };
    },
  };
  const takesTwo = new Set(['bulk', 'batch']);
  const fits = (document: Fields): boolean =>
    fields.every((field) => document[field.name] === undefined || admits(field, document[field.name]!));
  const ids: string[] = [];
  for (let n = 0; n < 14; n++) {
    const drawn = Array.from({ length: 2 }, () => drawDocument(random, fields));
    const way =
      ids.length === 0 ? 'insert' : random.pick([...Object.keys(ways), 'operator', 'operator', 'operator', 'position']);
    const id = ids.length === 0 ? '' : random.pick(ids);
    if (way === 'position' || way === 'operator') {
      // What they make of whatever is stored there is told by what stands afterwards.
      const body = way === 'position' ? drawPosition(random, fields) : drawOperator(random, fields);
      const reply = await send('patch', `data/${name}/${id}`, body);
      if (way === 'operator' && reply.status === 200) reached.operated++;
    } else {
      const documents = takesTwo.has(way) ? drawn : drawn.slice(0, 1);
      if (documents.some((document) => Object.keys(document).length === 0)) continue;
      const { isStored, id: newId } = await ways[way]!(documents, id);
      const what = `${way}: ${JSON.stringify(fields)} for ${JSON.stringify(documents)}`;
      expect(isStored, what).toBe(documents.every(fits));
      reached[isStored ? 'stored' : 'refused']++;
      if (newId !== undefined) ids.push(newId);
    }
    for (const stored of await storedDocuments(test.app, collection).find().toArray()) {
      const what = `round ${round}, ${way}: ${JSON.stringify(fields)} holds ${JSON.stringify(stored)}`;
      expect(fits(stored as never), what).toBe(true);
    }
  }
}

/** A position, or a field inside an object. */
function drawPosition(random: Random, fields: readonly Field[]): object {
  const { name } = random.pick(fields);
  return { [`${name}.${random.below(2) === 0 ? random.below(3) : 'in'}`]: drawValue(random) };
}

/** An operator for a field, or for what is inside of it, that fits more often than not. */
function drawOperator(random: Random, fields: readonly Field[]): object {
  const field = random.pick(fields);
  const inner = field.type === 'Object' ? field.fields![0]! : null;
  const shape = inner ?? field;
  const path = inner ? `${field.name}.in` : field.name;
  if (random.chance(0.1)) return { $unset: [path] };
  if (shape.type === 'Array') {
    const name = random.pick(['$push', '$addToSet', '$pull']);
    const value = drawFor(random, shape.items!);
    const isMany = name !== '$pull' && random.chance(0.4);
    return { [name]: { [path]: isMany ? { $each: [value, drawFor(random, shape.items!)] } : value } };
  }
  const name = random.pick(shape.type === 'Number' ? ['$inc', '$mul', '$min', '$max'] : ['$min', '$max']);
  return { [name]: { [path]: drawFor(random, shape) } };
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

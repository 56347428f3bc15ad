import request from 'supertest';
import { expect } from 'vitest';
import type { Field } from '../../src/features/collections/fields/field.js';
import { buildCollection, storedDocuments, type TestProject } from './build-project.js';
import type { TestApp } from './open-test-app.js';
import { openRandom, type Random } from './random.js';

type Value = number | string | Value[];
type Fields = Partial<Record<'n' | 'm' | 't' | 'tags' | 'free', Value>> & { o?: { c?: Value; l?: Value } };

const NUMBERS = [-3, -1, 0, 0.1, 0.2, 0.3, 1, 2, 3, 7, 1e15, Number.MAX_SAFE_INTEGER];
const WORDS = ['', 'a', 'b', 'ab', 'Z', 'é', '👍', 'zz'];

interface Limits {
  n: { min?: number; max?: number; integer?: boolean; enum?: number[] };
  tags: { minItems?: number; maxItems?: number; uniqueItems?: boolean };
}

/**
 * Random operators on random documents, by the secret key and under rules: what is stored is what a model makes of the
 * document, or nothing changes.
 */
export async function searchOperators(test: TestApp, owner: TestProject, seed: number): Promise<void> {
  const random = openRandom(seed);
  const reached = { changed: 0, refused: 0, unruled: 0 };
  for (let round = 0; round < 8; round++) await searchOne(test, owner, random, reached);
  for (const count of Object.values(reached)) expect(count, JSON.stringify(reached)).toBeGreaterThan(0);
}

async function searchOne(
  test: TestApp,
  owner: TestProject,
  random: Random,
  reached: { changed: number; refused: number; unruled: number },
): Promise<void> {
  const limits = drawLimits(random);
  const fields = JSON.parse(
    JSON.stringify([
      { name: 'n', type: 'Number', ...limits.n },
      { name: 'm', type: 'Number' },
      { name: 't', type: 'String', maxLength: 2 },
      { name: 'tags', type: 'Array', items: { type: 'String', maxLength: 2 }, ...limits.tags },
      { name: 'free', type: 'Array' },
      {
        name: 'o',
        type: 'Object',
        fields: [
          { name: 'c', type: 'Number', max: 5 },
          { name: 'l', type: 'Array', items: { type: 'Number' }, maxItems: 3 },
        ],
      },
    ]),
  ) as Field[];
  const isRuled = random.chance(0.5);
  const update = '"a" in doc.tags or doc.m in [0, 1, 2] or doc.t = "b"';
  const rules = { read: 'anyone', create: 'anyone', update, delete: 'nobody' };
  const collection = await buildCollection(test.app, owner.project, {
    fields,
    ...(isRuled && { rules }),
  });
  const key = isRuled ? owner.publishable : owner.secret;
  const send = (method: 'post' | 'patch', path: string, body: object) =>
    request(test.server)[method](`/api/data/${collection.name}${path}`).set('x-api-key', key).send(body);
  const stored = storedDocuments(test.app, collection);
  let id: string | null = null;
  for (let n = 0; n < 14; n++) {
    if (id === null || n % 5 === 0) {
      const reply = await send('post', '', drawDocument(random));
      if (reply.status === 201) id = (reply.body as { _id: string })._id;
      if (id === null) continue;
    }
    const [before] = await stored.find({}).sort({ createdAt: -1, _id: -1 }).limit(1).toArray();
    const was = ownFields(before!);
    const body = drawBody(random);
    const becomes = applyModel(limits, structuredClone(was), body);
    const isFit = becomes !== null && fits(limits, becomes);
    const isAdmitted = !isRuled || (admits(was) && becomes !== null && admits(becomes));
    const reply = await send('patch', `/${before!._id.toHexString()}`, body);
    const [after] = await stored.find({ _id: before!._id }).toArray();
    const what = `${JSON.stringify(limits)} ${JSON.stringify(was)} ${JSON.stringify(body)} -> ${JSON.stringify(becomes)}: ${reply.text}`;
    expect(reply.status === 200, what).toBe(isFit && isAdmitted);
    expect(ownFields(after!), what).toEqual(isFit && isAdmitted ? becomes : was);
    if (isFit && !isAdmitted) {
      expect((reply.body as { code: string }).code, what).toBe('RULE_REFUSED');
      reached.unruled++;
    } else reached[isFit ? 'changed' : 'refused']++;
  }
}

function ownFields({ n, m, t, tags, free, o }: Record<string, unknown>): Fields {
  return JSON.parse(JSON.stringify({ n, m, t, tags, free, o })) as Fields;
}

function drawLimits(random: Random): Limits {
  const some = <T>(value: T): T | undefined => (random.chance(0.4) ? value : undefined);
  return {
    n: random.chance(0.2)
      ? { enum: [0, 1, 3, 7] }
      : { min: some(-1), max: some(random.pick([0.3, 2, 7])), integer: some(true) },
    tags: { minItems: some(1), maxItems: some(1 + random.below(3)), uniqueItems: some(true) },
  };
}

function drawDocument(random: Random): Fields {
  const some = <T>(value: T): T | undefined => (random.chance(0.6) ? value : undefined);
  return JSON.parse(
    JSON.stringify({
      n: some(random.pick([0, 0.1, 1, 3])),
      m: some(random.pick(NUMBERS)),
      t: some(random.pick(WORDS)),
      tags: some(['a', 'b', 'zz'].slice(0, 1 + random.below(2))),
      free: some([1, 'x', ['y']].slice(0, random.below(4))),
      o: some({ c: some(1), l: some([1, 2]) }),
    }),
  ) as Fields;
}

type Body = Record<string, unknown>;
const PATHS = ['n', 'm', 't', 'tags', 'free', 'o.c', 'o.l'];

function drawBody(random: Random): Body {
  const body: Record<string, Record<string, unknown> | unknown[]> = {};
  const paths = PATHS.filter(() => random.chance(0.3));
  for (const path of paths.length > 0 ? paths : ['n']) {
    const name = random.chance(0.1) ? drawName(random) : drawFittingName(random, path);
    if (name === '$unset') body[name] = [...((body[name] as unknown[] | undefined) ?? []), path];
    else body[name] = { ...body[name], [path]: drawOperand(random, name, path) };
  }
  return body;
}

const NAMES = ['$inc', '$mul', '$min', '$max', '$push', '$addToSet', '$pull', '$unset'];
const drawName = (random: Random): string => random.pick(NAMES);
const isList = (path: string): boolean => ['tags', 'free', 'o.l'].includes(path);

function drawFittingName(random: Random, path: string): string {
  if (isList(path)) return random.pick(['$push', '$addToSet', '$pull', '$pull', '$unset']);
  return random.pick(path === 't' ? ['$min', '$max', '$unset'] : ['$inc', '$mul', '$min', '$max', '$unset']);
}

function drawOperand(random: Random, name: string, path: string): unknown {
  const item = (): Value => (path === 'tags' || path === 't' ? random.pick(WORDS) : random.pick(NUMBERS));
  if (random.chance(0.05)) return random.pick<unknown>(['long text', 1, null, ['x']]);
  const many = Array.from({ length: random.below(4) }, item);
  if (name === '$push' && random.chance(0.6)) {
    return JSON.parse(
      JSON.stringify({
        $each: many,
        $slice: random.chance(0.4) && path !== 'tags' ? random.pick([-2, 0, 1, 3]) : undefined,
        $position: random.chance(0.3) ? random.pick([0, 1, -1]) : undefined,
      }),
    );
  }
  if (name === '$addToSet' && random.chance(0.6)) return { $each: many };
  if (name === '$pull' && random.chance(0.5)) return { $in: many };
  return item();
}

/** What the operators make of a document; null where they have no meaning. */
function applyModel(limits: Limits, document: Fields, body: Body): Fields | null {
  for (const [name, paths] of Object.entries(body)) {
    if (name === '$unset') {
      for (const path of paths as string[]) put(document, path, undefined);
      continue;
    }
    for (const [path, operand] of Object.entries(paths as Record<string, unknown>)) {
      const isWhole = path === 'n' && limits.n.integer === true;
      const result = applyOne({ name, path, isWhole }, read(document, path), operand);
      if (result === null) return null;
      if (result !== undefined) put(document, path, result);
    }
  }
  // As JSON shows it: zero has no sign.
  return JSON.parse(JSON.stringify(document)) as Fields;
}

function applyOne(
  { name, path, isWhole }: { name: string; path: string; isWhole: boolean },
  stored: Value | undefined,
  operand: unknown,
): Value | undefined | null {
  const isText = path === 't' || path === 'tags';
  const isValue = (value: unknown): value is Value =>
    path === 'free' ? true : typeof value === (isText ? 'string' : 'number');
  if (name === '$inc' || name === '$mul') {
    if (isText || isList(path) || typeof operand !== 'number') return null;
    if (isWhole && !Number.isInteger(operand)) return null;
    const number = (stored as number | undefined) ?? 0;
    return name === '$inc' ? number + operand : number * operand;
  }
  if (name === '$min' || name === '$max') {
    if (isList(path) || !isValue(operand)) return null;
    if (stored === undefined) return operand;
    const order = isText
      ? Buffer.compare(Buffer.from(operand as string), Buffer.from(stored as string))
      : Number(operand) - Number(stored);
    return (name === '$min' ? order < 0 : order > 0) ? operand : stored;
  }
  if (!isList(path)) return null;
  const list = (stored ?? []) as Value[];
  const { $each, $in, $slice, $position } = (typeof operand === 'object' && operand !== null ? operand : {}) as Record<
    string,
    unknown
  >;
  const values = ($each ?? $in ?? [operand]) as Value[];
  if (!values.every(isValue)) return null;
  if (name === '$pull')
    return stored === undefined ? undefined : list.filter((item) => !values.some((value) => same(item, value)));
  if (path === 'tags' && values.some((value) => checkWord(value) === null)) return null;
  if (name === '$addToSet') {
    const added = [...list];
    for (const value of values) if (!added.some((item) => same(item, value))) added.push(value);
    return added;
  }
  const pushed = [...list];
  const at = ($position as number | undefined) ?? pushed.length;
  pushed.splice(at < 0 ? Math.max(0, pushed.length + at) : at, 0, ...values);
  if ($slice === undefined) return pushed;
  return ($slice as number) < 0 ? pushed.slice($slice as number) : pushed.slice(0, $slice as number);
}

const checkWord = (value: Value): Value | null =>
  typeof value === 'string' && Array.from(value).length > 2 ? null : value;

const same = (a: Value, b: Value): boolean => JSON.stringify(a) === JSON.stringify(b);

function read(document: Fields, path: string): Value | undefined {
  if (!path.startsWith('o.')) return document[path as 'n'];
  return document.o?.[path.slice(2) as 'c'];
}

function put(document: Fields, path: string, value: Value | undefined): void {
  const isInner = path.startsWith('o.');
  if (value === undefined && isInner && !document.o) return;
  const target = (isInner ? (document.o ??= {}) : document) as Record<string, Value>;
  const name = isInner ? path.slice(2) : path;
  if (value === undefined) delete target[name];
  else target[name] = value;
}

function fits({ n, tags }: Limits, document: Fields): boolean {
  const isExact = (value: unknown): boolean =>
    value === undefined || Math.abs(value as number) <= Number.MAX_SAFE_INTEGER;
  const number = document.n as number | undefined;
  const list = document.tags as string[] | undefined;
  return (
    [document.n, document.m, document.o?.c].every(isExact) &&
    (number === undefined ||
      (number >= (n.min ?? -Infinity) &&
        number <= (n.max ?? Infinity) &&
        (!n.integer || Number.isInteger(number)) &&
        (!n.enum || n.enum.includes(number)))) &&
    (list === undefined ||
      (list.length >= (tags.minItems ?? 0) &&
        list.length <= (tags.maxItems ?? Infinity) &&
        (!tags.uniqueItems || new Set(list).size === list.length))) &&
    checkWord(document.t ?? '') !== null &&
    ((document.o?.c as number | undefined) ?? 0) <= 5 &&
    ((document.o?.l as Value[] | undefined) ?? []).length <= 3
  );
}

const admits = ({ m, t, tags }: Fields): boolean =>
  ((tags as string[] | undefined) ?? []).includes('a') || [0, 1, 2].includes(m as number) || t === 'b';

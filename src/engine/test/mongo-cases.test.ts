import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toApp } from '../codec/app-values.js';
import { decodeDocument } from '../codec/decode.js';
import type { Doc } from '../codec/document.js';
import { type DataDb } from '../index.js';
import { compareValues, identicalValues } from '../query/values/compare.js';
import { type Case, cases, collections, deviationOf, textOf } from './cases/mongo-cases.js';
import { TRANSPORTS, type OpenTransport } from './transports.js';

/** The cases once more, from the driver's methods down to the stored bytes: with indexes, commands and both codecs. */
describe.each(TRANSPORTS.filter(({ foreign }) => !foreign))('$name', ({ open }) => {
  let transport: OpenTransport;
  let db: DataDb;
  let scratch = 0;

  beforeAll(async () => {
    transport = await open();
    db = transport.db(`cases_${randomUUID().slice(0, 8)}`);
    for (const [name, docs] of Object.entries(collections)) {
      for (const key of indexableFields(docs)) await db.collection(name).createIndex({ [key]: 1 });
      await db.collection(name).insertMany(docs.map((doc) => ({ ...doc })) as never[]);
    }
  });

  afterAll(async () => {
    await transport.close();
  });

  /** Every top-level field gets an index, so that the planner takes part in the answers. */
  function indexableFields(docs: readonly Doc[]): string[] {
    return [...new Set(docs.flatMap((doc) => Object.keys(doc)))].filter(
      (name) => name !== '_id' && !name.startsWith('$'),
    );
  }

  function decoded(rows: readonly unknown[]): Doc[] {
    return rows.map((row) => decodeDocument(row as Buffer));
  }

  async function read(test: Case): Promise<unknown> {
    const { sort = { _id: 1 }, projection, skip, limit, collation } = (test.options ?? {}) as Record<string, never>;
    const collection = db.collection(test.collection!);
    const filter = (test.filter ?? {}) as never;
    switch (test.op) {
      case 'count': {
        const limits = { ...(skip === undefined ? {} : { skip }), ...(limit === undefined ? {} : { limit }) };
        return collection.countDocuments(filter, limits);
      }
      case 'distinct':
        return (
          (await db.command({ distinct: test.collection, key: test.key, query: filter })) as { values: unknown[] }
        ).values;
      case 'aggregate':
        return decoded(await collection.aggregate(test.pipeline as never[], { raw: true } as never).toArray());
      default: {
        const options = { sort, projection, skip, limit, collation, raw: true };
        const given = Object.fromEntries(Object.entries(options).filter(([, option]) => option !== undefined));
        return decoded(await collection.find(filter, given).toArray());
      }
    }
  }

  async function write(test: Case): Promise<unknown> {
    const collection = db.collection(`scratch${++scratch}`);
    if (test.docs!.length > 0) await collection.insertMany(test.docs!.map((doc) => ({ ...doc })) as never[]);
    const { returnDocument, projection, ...given } = (test.options ?? {}) as Record<string, unknown>;
    const known = ['multi', 'upsert', 'arrayFilters', 'sort', 'collation'];
    const options = Object.fromEntries(Object.entries(given).filter(([name]) => known.includes(name)));
    let result: unknown;
    if (test.op === 'findOneAndUpdate') {
      const reply = await db.command({
        findAndModify: collection.collectionName,
        query: test.filter,
        update: test.update,
        ...options,
        ...(projection === undefined ? {} : { fields: projection }),
        new: returnDocument === 'after',
      });
      result = reply['value'];
    } else {
      const statement = { q: test.filter, u: test.update, ...options };
      const reply = await db.command({ update: collection.collectionName, updates: [statement] });
      const errors = reply['writeErrors'] as { code: number; errmsg: string }[] | undefined;
      if (errors !== undefined) throw Object.assign(new Error(errors[0]!.errmsg), { code: errors[0]!.code });
      const upserted = ((reply['upserted'] as unknown[] | undefined) ?? []).length;
      result = [(reply['n'] as number) - upserted, reply['nModified'], upserted];
    }
    return { result, docs: decoded(await collection.find({}, { raw: true }).toArray()) };
  }

  /**
   * Results of commands come promoted as the driver promotes them, and an upserted document without an `_id` gets one.
   */
  function comparable(test: Case, answer: unknown): unknown {
    if (test.op === 'distinct') return { values: [...(answer as unknown[])].sort(compareValues) };
    if (test.docs === undefined) return answer;
    const { result, docs } = answer as { result: unknown; docs: Doc[] };
    const given = new Set(test.docs.map((doc) => textOf(doc['_id'])));
    const expected = (test.expect as { docs?: Doc[] } | undefined)?.docs ?? [];
    const wanted = new Set(expected.map((doc) => textOf(doc['_id'])));
    const known = docs.map((doc): Doc => {
      const id = textOf(doc['_id']);
      if (given.has(id) || wanted.has(id)) return doc;
      const { _id, ...rest } = doc;
      return rest;
    });
    return { result: toApp(result), docs: known };
  }

  function expectedOf(test: Case): unknown {
    if (test.op === 'distinct') return { values: (toApp(test.expect) as unknown[]).sort(compareValues) };
    if (test.docs === undefined) return test.expect;
    const { result, docs } = test.expect as { result: unknown; docs: Doc[] };
    return { result: toApp(result), docs };
  }

  cases.forEach((test, index) => {
    it(
      `#${index} ${test.op} ${textOf(test.filter ?? test.pipeline)} ${textOf(test.update)}`.slice(0, 140),
      async () => {
        let answer: unknown;
        let refused: unknown;
        try {
          answer = await (test.docs === undefined ? read(test) : write(test));
        } catch (error) {
          if ((error as { code?: unknown }).code === undefined) throw error;
          refused = error;
        }
        if (deviationOf(test) !== undefined) return;
        if (test.error !== undefined) {
          expect(refused, textOf(answer)).toBeDefined();
          return;
        }
        if (refused !== undefined) throw refused;
        const actual = comparable(test, answer);
        const expected = expectedOf(test);
        if (!identicalValues(actual, expected)) expect(textOf(actual)).toBe(textOf(expected));
        expect(identicalValues(actual, expected)).toBe(true);
      },
    );
  });
});

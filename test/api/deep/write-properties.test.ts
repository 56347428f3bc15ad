import { ObjectId } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../../world/collections.js';
import type { StoredDocument } from '../../world/documents.js';
import { signAccessToken } from '../../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../../helpers/build-project.js';
import { openSeed } from '../../helpers/seed.js';
import { runs } from '../../helpers/runs.js';
import { useTestApp } from '../../helpers/use.js';

const USER = new ObjectId().toHexString();
const ANOTHER = new ObjectId().toHexString();
const SEED = openSeed('writes');

const collections: Collection[] = [];

const test = await useTestApp();
const owner = await buildProject(test.app);
const token = signAccessToken(test.app, owner.project, USER, 900_000);
const rls = { mode: 'private', ownerField: 'userId' } as const;
collections.push(
  await buildCollection(test.app, owner.project, { name: 'flexible', rls }),
  await buildCollection(test.app, owner.project, {
    name: 'enforced',
    rls,
    fields: [
      { name: 'title', type: 'String' },
      { name: 'tags', type: 'Array' },
      { name: 'meta', type: 'Object', fields: [{ name: 'a', type: 'Number', required: true }] },
      { name: 'free', type: 'Object' },
    ],
  }),
);

const key = fc.constantFrom(
  ...['title', 'tags', 'tags.0', 'tags.5', 'meta', 'meta.a', 'meta.b', 'free', 'free.x', 'free.x.y', 'free.0', 'new'],
  ...['userId', 'userId.x', 'userId.0', '_id', 'isDeleted', 'isDeleted.x', 'deletedAt', 'createdAt', 'updatedAt'],
  ...['$set', '$unset', 'free.$', '__proto__', 'free.__proto__.polluted', 'constructor', '_bsvc', '_bsvc.x', '', 'a.'],
);
const leaf = fc.constantFrom<unknown>(null, true, false, 0, 5, 'x', '2020-01-01', USER, ANOTHER, [], {}, [null]);
const value = fc.oneof(
  { weight: 3, arbitrary: leaf },
  fc.dictionary(fc.constantFrom('a', 'userId', '__proto__', 'constructor', '$ne', 'polluted', 'x.y'), leaf),
  fc.array(leaf, { maxLength: 3 }),
);
const body = fc.array(fc.tuple(key, value), { maxLength: 4 }).map((entries) => Object.fromEntries(entries));

const step = fc.record({
  what: fc.constantFrom('insert', 'bulk', 'change', 'change', 'change', 'trash', 'recover', 'delete'),
  which: fc.nat({ max: 3 }),
  body,
  secret: fc.boolean(),
});

describe('any sequence of writes', () => {
  it('changes no owner, no id and no time of creation, and keeps trash and deletedAt together', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(0, 1), fc.array(step, { minLength: 1, maxLength: 12 }), async (at, steps) => {
        const collection = collections[at]!;
        const store = storedDocuments(test.app, collection);
        await store.deleteMany({});
        const placed = await Promise.all([USER, USER, ANOTHER, ANOTHER].map((userId) => place(collection, userId)));
        const known = new Map(placed.map((document) => [document._id.toHexString(), document]));
        for (const one of steps) {
          const status = await perform(collection, placed[one.which]!._id.toHexString(), one);
          expect(status).toBeLessThan(500);
          await checkAll(collection, known);
        }
        const theirs = await store.find({ userId: ANOTHER }).toArray();
        if (steps.every(({ secret }) => !secret)) expect(theirs).toEqual(placed.slice(2));
        expect(({} as Record<string, unknown>).polluted).toBeUndefined();
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
      { numRuns: runs(80), seed: SEED },
    );
  });
});

async function place(collection: Collection, userId: string): Promise<StoredDocument> {
  const moment = new Date('2026-01-01T00:00:00Z');
  const document: StoredDocument = {
    _id: new ObjectId(),
    title: 'a',
    tags: ['x'],
    userId,
    isDeleted: false,
    deletedAt: null,
    createdAt: moment,
    updatedAt: moment,
  };
  await storedDocuments(test.app, collection).insertOne(document);
  return document;
}

interface Step {
  what: string;
  body: object;
  secret: boolean;
}

async function perform(collection: Collection, id: string, { what, body: sent, secret }: Step): Promise<number> {
  const base = `${test.url}/api/data/${collection.name}`;
  const [method, url, content] = {
    insert: ['POST', base, sent],
    bulk: ['POST', `${base}/bulk`, [sent, {}]],
    change: ['PATCH', `${base}/${id}`, sent],
    trash: ['DELETE', `${base}/${id}`, undefined],
    delete: ['DELETE', `${base}/${id}?permanent=true`, undefined],
    recover: ['PATCH', `${base}/${id}/recover`, undefined],
  }[what] as [string, string, unknown];
  const reply = await fetch(url, {
    method,
    headers: {
      'x-api-key': secret ? owner.secret : owner.publishable,
      authorization: `Bearer ${token}`,
      ...(content !== undefined && { 'content-type': 'application/json' }),
    },
    ...(content !== undefined && { body: JSON.stringify(content) }),
  });
  const answer = (await reply.json()) as { success?: boolean; code?: string; requestId?: string };
  if (reply.status >= 400) expect(answer).toMatchObject({ success: false, code: expect.any(String) });
  return reply.status;
}

/** Every stored document against what was known of it before; new ones become known. */
async function checkAll(collection: Collection, known: Map<string, StoredDocument>): Promise<void> {
  for (const document of (await storedDocuments(test.app, collection).find({}).toArray()) as StoredDocument[]) {
    expect(document.isDeleted).toBe(document.deletedAt !== null);
    expect(document.createdAt).toBeInstanceOf(Date);
    expect(document.updatedAt.getTime()).toBeGreaterThanOrEqual(document.createdAt.getTime());
    // On MongoDB a document of a bulk insert names its batch there; nothing of a client ever does.
    const notes = Object.keys((document as { _bsvc?: object })._bsvc ?? {});
    expect(notes.filter((name) => name !== 'batch')).toEqual([]);
    const id = document._id.toHexString();
    const before = known.get(id);
    if (before?.userId !== undefined) expect(document.userId).toBe(before.userId);
    if (before) expect(document.createdAt).toEqual(before.createdAt);
    if (document.meta !== undefined && collection.mode === 'enforced') expect(document.meta).toHaveProperty('a');
    known.set(id, document);
  }
}

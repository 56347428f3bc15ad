import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { type App, AppError } from '../../world/app.js';
import { addCollection, documentsName } from '../../world/collections.js';
import {
  deleteDocument,
  insertDocument,
  listDocuments,
  userCaller,
  requireWriteTarget,
  updateDocument,
} from '../../world/documents.js';
import { insertDocumentRecord, removeDocumentRecord } from '../../world/stored.js';
import { buildProject, storedDocuments } from '../../helpers/build-project.js';
import { newRecord } from '../../helpers/member-world.js';
import { openRandom } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { useTestApp } from '../../helpers/use.js';

const SEED = openSeed('sets at one moment');
const REQUESTS = 60;
const BOARDS = ['b0', 'b1', 'b2'];
const READS = ['findOne', 'find', 'findOneAndUpdate', 'findOneAndDelete', 'insertOne'] as const;

const user = new ObjectId().toHexString();

const test = await useTestApp();
const owner = await buildProject(test.app);
const text = (name: string) => ({ name, type: 'String' as const });
const given = { name: 'members', fields: ['board', 'user'].map(text), rules: 'server-only' as const };
const members = (await addCollection(test.app, owner.project, given)).collection;
const mine = 'doc.board in members[user = user.id].board';
const rules = { read: mine, create: mine, update: mine, delete: mine };
const cards = (await addCollection(test.app, owner.project, { name: 'cards', fields: [text('board')], rules }))
  .collection;

/** The app, where somebody else acts before each read and each write of cards and memberships. */
function appWithOther(act: () => Promise<void>): App {
  const watched = new Map(
    [members, cards].map((collection) => {
      const name = documentsName(collection);
      const store = test.app.db.collection(name);
      const methods = READS.map((method) => {
        const real = store[method] as (...given: never[]) => unknown;
        if (method !== 'find') {
          return [method, async (...given: never[]) => act().then(() => real.apply(store, given))] as const;
        }
        const find = (...given: never[]): unknown => {
          const cursor = real.apply(store, given) as { toArray: () => Promise<unknown> };
          const toArray = cursor.toArray.bind(cursor);
          return Object.assign(cursor, { toArray: async () => act().then(toArray) });
        };
        return [method, find] as const;
      });
      return [name, Object.assign(Object.create(store) as object, Object.fromEntries(methods))];
    }),
  );
  const collection = (name: string): unknown => watched.get(name) ?? test.app.db.collection(name);
  const { db } = test.app;
  const transform: typeof db.transform = async (...given) => act().then(() => db.transform(...given));
  const transformTogether: typeof db.transformTogether = async (turns) => act().then(() => db.transformTogether(turns));
  return { ...test.app, db: { ...db, collection, transform, transformTogether } } as unknown as App;
}

const reached = { done: 0, refused: 0, overtaken: 0 };

/** rules.md 6: the sets by which a write is judged are those of one moment after the request began. */
describe('a write while memberships change between any two of its steps', () => {
  it('is carried out or refused by what the caller was a member of at one moment', async () => {
    const random = openRandom(SEED);
    const held = new Map<string, ObjectId>();
    let moments: string[][] = [];
    const toggle = async (): Promise<void> => {
      const board = random.pick(BOARDS);
      const known = held.get(board);
      if (known) {
        await removeDocumentRecord(test.app, members, known);
        held.delete(board);
      } else {
        const member = newRecord({ board, user });
        await insertDocumentRecord(test.app, members, member);
        held.set(board, member._id);
      }
      moments.push([...held.keys()]);
    };
    let share = 0;
    const app = appWithOther(() => (random.chance(share) ? toggle() : Promise.resolve()));
    const caller = userCaller(owner.project, user);
    for (let n = 0; n < REQUESTS; n++) {
      // What is kept of the sets from now on is what another request has read.
      await listDocuments(app, caller, 'cards', '');
      await toggle();
      const [from, to] = [random.pick(BOARDS), random.pick(BOARDS)];
      const card = newRecord({ board: from });
      await insertDocumentRecord(test.app, cards, card);
      const operation = random.pick(['create', 'update', 'remove'] as const);
      moments = [[...held.keys()]];
      share = random.pick([0, 0.3, 0.8]);
      const id = card._id.toHexString();
      let isDone = true;
      try {
        const place = await requireWriteTarget(app, caller, 'cards');
        if (operation === 'create') await insertDocument(app, place, { board: to });
        else if (operation === 'update') await updateDocument(app, place, id, { board: to });
        else await deleteDocument(app, place, id);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        expect(['RULE_REFUSED', 'DOCUMENT_NOT_FOUND']).toContain(error.code);
        isDone = false;
      }
      share = 0;
      const asked = operation === 'create' ? [to] : operation === 'update' ? [from, to] : [from];
      const holds = moments.map((boards) => asked.every((board) => boards.includes(board)));
      const what = JSON.stringify({ operation, asked, moments, isDone });
      expect(holds.includes(isDone), what).toBe(true);
      reached[isDone ? 'done' : 'refused']++;
      if (new Set(holds).size > 1) reached.overtaken++;
      const stored = await storedDocuments(test.app, cards).findOne({ _id: card._id });
      const left = operation === 'remove' && isDone ? null : operation === 'update' && isDone ? to : from;
      expect((stored as { board?: string } | null)?.board ?? null, what).toBe(left);
    }
    for (const [what, count] of Object.entries(reached)) expect(count, what).toBeGreaterThan(1);
  });
});

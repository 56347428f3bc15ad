import { ObjectId } from 'bson';
import { beforeAll, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { findKept, readUserSet, setAge, type UserSet } from '../../../src/features/access/rules/access-sets.js';
import { documentsName, type Collection } from '../../../src/features/collections/collection.js';
import { buildCollection, buildProject, storedDocuments } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

const members = (): Promise<Collection> => buildCollection(test.app, owner.project);
const setOf = (collection: Collection, userId: string, filterText = 'all'): UserSet => ({
  collection,
  set: { userPath: 'user' } as UserSet['set'],
  userId,
  filterText,
});

/** The values that a read is given, or null where it had to read them itself; then they are `loaded`. */
async function ask(app: App, asked: UserSet, loaded: readonly string[], fresh = false): Promise<unknown> {
  let isRead = false;
  const load = (): Promise<readonly string[]> => {
    isRead = true;
    return Promise.resolve(loaded);
  };
  const values = await readUserSet(app, asked, { fresh, load });
  if (isRead) expect(values).toEqual(loaded);
  return isRead ? null : values;
}

/** A membership of its own for each of the users. */
async function join(collection: Collection, users: readonly string[], more: object = {}): Promise<void> {
  const documents = users.map((user) => ({ _id: new ObjectId(), user, isDeleted: false, ...more }));
  await storedDocuments(test.app, collection).insertMany(documents as never);
}

describe('sets on the embedded engine', () => {
  /** Asked for until they are kept: the first time the log begins, the second time it is followed. */
  async function settle(asked: UserSet, values: readonly string[] = ['kept']): Promise<void> {
    for (let n = 0; n < 3; n++) await ask(test.app, asked, values);
    expect(await findKept(test.app, asked, false)).toEqual(values);
  }

  it('are read once, each of its user, filter and collection', async () => {
    const [one, other] = [await members(), await members()];
    const asked = [setOf(one, 'ada'), setOf(one, 'ada', 'owner'), setOf(one, 'bob'), setOf(other, 'ada')];
    for (const [n, each] of asked.entries()) await settle(each, [`values ${n}`]);
    for (const [n, each] of asked.entries()) expect(await ask(test.app, each, [])).toEqual([`values ${n}`]);
    // As of this moment, so asked for freshly there is nothing to read either.
    expect(await ask(test.app, asked[0]!, [], true)).toEqual(['values 0']);
    expect(setAge(test.app, asked[0]!)).toBe(0);
  });

  it('are read again after a change of their user’s memberships, by whom it ever was; others’ are kept', async () => {
    const collection = await members();
    const [ada, bob, eve] = ['ada', 'bob', 'eve'].map((user) => setOf(collection, user)) as [UserSet, UserSet, UserSet];
    await join(collection, ['ada']);
    for (const each of [ada, bob, eve]) await settle(each);
    await storedDocuments(test.app, collection).updateOne({ user: 'ada' } as never, { $set: { user: 'bob' } } as never);
    expect(await findKept(test.app, ada, false)).toBeNull();
    expect(await findKept(test.app, bob, false)).toBeNull();
    expect(await findKept(test.app, eve, false)).toEqual(['kept']);
    for (const each of [ada, bob]) await settle(each);
    await storedDocuments(test.app, collection).deleteOne({ user: 'bob' } as never);
    expect(await findKept(test.app, ada, false)).toEqual(['kept']);
    expect(await findKept(test.app, bob, false)).toBeNull();
  });

  it('are found by each field that sets ask for, also where it is a list', async () => {
    const collection = await members();
    const byUser = setOf(collection, 'ada');
    const byList = { ...setOf(collection, 'bob'), set: { userPath: 'team.people' } as UserSet['set'] };
    for (const each of [byUser, byList]) await settle(each);
    await join(collection, ['nobody'], { team: [{ people: ['eve', 'bob'] }] });
    expect(await findKept(test.app, byList, false)).toBeNull();
    expect(await findKept(test.app, byUser, false)).toEqual(['kept']);
  });

  it('are kept up to 1,000 values', async () => {
    const collection = await members();
    const values = Array.from({ length: 1_001 }, (_, n) => `value ${n}`);
    const large = setOf(collection, 'ada');
    for (let n = 0; n < 4; n++) expect(await ask(test.app, large, values)).toBeNull();
    await settle(setOf(collection, 'bob'), values.slice(1));
    expect(await findKept(test.app, large, false)).toBeNull();
  });

  it('are kept past 2,000 changes of others at once, which are read in parts, and none past more', async () => {
    const collection = await members();
    const [ada, bob] = [setOf(collection, 'ada'), setOf(collection, 'bob')];
    for (const each of [ada, bob]) await settle(each);
    const others = Array.from({ length: 2_000 }, (_, n) => (n === 1_900 ? 'bob' : `other ${n}`));
    await join(collection, others);
    expect(await findKept(test.app, bob, false)).toBeNull();
    expect(await findKept(test.app, ada, false)).toEqual(['kept']);
    await join(collection, [...others, 'one more']);
    expect(await findKept(test.app, ada, false)).toBeNull();
    await settle(ada);
  });

  it('are not kept of a read during which a membership changed, whoever’s', async () => {
    const collection = await members();
    const ada = setOf(collection, 'ada');
    await settle(ada);
    await join(collection, ['ada']);
    const load = async (): Promise<readonly string[]> => {
      await join(collection, ['bob']);
      return ['of before'];
    };
    expect(await readUserSet(test.app, ada, { fresh: false, load })).toEqual(['of before']);
    expect(await findKept(test.app, ada, false)).toBeNull();
    await settle(ada);
  });

  it('are none where the log says only part of what a document was', async () => {
    const collection = await members();
    const ada = setOf(collection, 'ada');
    const wide = { ...ada, set: { userPath: 'zone.user' } as UserSet['set'], filterText: 'wide' };
    await join(collection, ['nobody'], { zone: { user: 'eve', text: 'x'.repeat(200_000) } });
    await settle(ada);
    await settle(wide);
    await storedDocuments(test.app, collection).deleteOne({ user: 'nobody' } as never);
    expect(await findKept(test.app, ada, false)).toBeNull();
    await settle(ada);
  });

  it('are none of a log that has ended since', async () => {
    const collection = await members();
    const ada = setOf(collection, 'ada');
    for (let n = 0; n < 3; n++) {
      await settle(ada);
      await test.app.db.changeLogs!.end(documentsName(collection));
      await join(collection, ['ada']);
      expect(await findKept(test.app, ada, false)).toBeNull();
      expect(await findKept(test.app, ada, false)).toBeNull();
    }
  });

  it('are none of a log that has begun again since', async () => {
    const collection = await members();
    const name = documentsName(collection);
    const ada = setOf(collection, 'ada');
    await settle(ada);
    await join(collection, ['eve', 'bob', 'joe']);
    await settle(ada);
    await test.app.db.changeLogs!.end(name);
    await join(collection, ['ada']);
    await test.app.db.changeLogs!.begin(name, { first: ['isDeleted'], omit: [] });
    expect(await findKept(test.app, ada, false)).toBeNull();
    await settle(ada);
  });

  it('are followed by one reader at a time, and all who ask then have what it found', async () => {
    const collection = await members();
    const [ada, bob] = [setOf(collection, 'ada'), setOf(collection, 'bob')];
    for (const each of [ada, bob]) await settle(each);
    await join(collection, ['ada']);
    const found = await Promise.all([ada, bob, ada, bob].map((each) => findKept(test.app, each, false)));
    expect(found).toEqual([null, ['kept'], null, ['kept']]);
  });
});

describe('sets on a MongoDB', () => {
  let nowMs = 1_000_000;
  let app: App;

  beforeAll(() => {
    // As its driver's database: without the engine's log.
    const db = { ...test.app.db, changeLogs: null };
    app = { ...test.app, db, clock: { now: () => nowMs } } as App;
  });

  it('are kept for a second, unless they are wanted fresh', async () => {
    const ada = setOf(await members(), 'ada');
    expect(setAge(app, ada)).toBe(0);
    expect(await ask(app, ada, ['a'])).toBeNull();
    expect(setAge(app, ada)).toBe(0);
    nowMs += 999;
    expect(await ask(app, ada, ['b'])).toEqual(['a']);
    expect(setAge(app, ada)).toBe(999);
    expect(await findKept(app, ada, true)).toBeNull();
    nowMs += 1;
    expect(setAge(app, ada)).toBe(0);
    expect(await ask(app, ada, ['b'])).toBeNull();
    expect(await ask(app, ada, ['c'])).toEqual(['b']);
    expect(await ask(app, ada, ['c'], true)).toBeNull();
    expect(await ask(app, ada, ['d'])).toEqual(['c']);
  });

  it('are as old as the beginning of their read, and none of a clock that was set back', async () => {
    const ada = setOf(await members(), 'ada');
    const load = (): Promise<readonly string[]> => {
      nowMs += 600;
      return Promise.resolve(['a']);
    };
    await readUserSet(app, ada, { fresh: false, load });
    expect(setAge(app, ada)).toBe(600);
    nowMs -= 601;
    expect(setAge(app, ada)).toBe(0);
    expect(await findKept(app, ada, false)).toBeNull();
    nowMs += 1;
    expect(await findKept(app, ada, false)).toEqual(['a']);
  });

  it('are kept of each user and filter, up to 1,000 values', async () => {
    const collection = await members();
    const values = Array.from({ length: 1_001 }, (_, n) => `value ${n}`);
    const asked = [setOf(collection, 'ada'), setOf(collection, 'ada', 'owner'), setOf(collection, 'bob')];
    for (const [n, each] of asked.entries()) await ask(app, each, [`values ${n}`]);
    for (const [n, each] of asked.entries()) expect(await ask(app, each, [])).toEqual([`values ${n}`]);
    expect(await ask(app, setOf(collection, 'eve'), values)).toBeNull();
    expect(await ask(app, setOf(collection, 'eve'), values.slice(1))).toBeNull();
    expect(await ask(app, setOf(collection, 'eve'), [])).toEqual(values.slice(1));
  });

  it('are dropped, the ones not asked for the longest first, beyond 200,000 values', async () => {
    const collection = await members();
    const values = Array.from({ length: 999 }, (_, n) => `value ${n}`);
    const user = (n: number): UserSet => setOf(collection, `user ${n}`);
    // A set counts for its values, itself, and its user.
    for (let n = 0; n < 200; n++) await ask(app, user(n), n === 0 ? values.slice(0, 798) : values);
    expect(await findKept(app, user(0), false)).not.toBeNull();
    await ask(app, user(200), []);
    expect(await findKept(app, user(1), false)).toBeNull();
    expect(await findKept(app, user(0), false)).not.toBeNull();
  });
});

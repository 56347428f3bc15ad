import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS, type Migration, SYSTEM_INDEXES, findMigrationStatus, migrate } from '../world/app.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;
beforeEach(async () => {
  test = await openTestApp();
});
afterEach(() => test.close());

it('the baseline makes each index of the service, and changes nothing when it is run again', async () => {
  const { db } = test.app;
  await MIGRATIONS[0]!.up(db);
  for (const [name, wanted] of Object.entries(SYSTEM_INDEXES)) {
    const stored = (await db.collection(name).indexes()).filter((index) => index.name !== '_id_');
    expect([name, stored]).toMatchObject([name, wanted]);
    expect(stored.length).toBe(wanted.length);
  }
});

describe('a migration', () => {
  const notes = () => test.app.db.collection<{ _id: number; text?: string; title?: string }>('notes');
  const applied = async () => (await findMigrationStatus(test.app.db, migrations)).applied;
  let runs = 0;

  /** How one is written: the index of a new kind of lookup, and a field that has another name from now on. */
  const example: Migration = {
    id: '002-title-notes',
    async up(db) {
      runs++;
      await db.createIndexes('notes', [{ key: { title: 1 }, name: 'title' }]);
      await db
        .collection('notes')
        .updateMany({ text: { $exists: true } }, [{ $set: { title: '$text' } }, { $unset: 'text' }]);
    },
  };
  const migrations = [...MIGRATIONS, example];

  beforeEach(async () => {
    runs = 0;
    await notes().insertMany([{ _id: 1, text: 'first' }, { _id: 2 }]);
  });

  it('changes what is stored, once', async () => {
    expect(await migrate(test.app.db, migrations)).toEqual([example.id]);
    expect(await notes().find().toArray()).toEqual([{ _id: 1, title: 'first' }, { _id: 2 }]);
    expect((await notes().indexes()).map(({ name }) => name)).toContain('title');
    expect(await migrate(test.app.db, migrations)).toEqual([]);
    expect(runs).toBe(1);
  });

  it('is run again when the process was killed in its middle', async () => {
    const dying = {
      ...test.app.db,
      createIndexes: async (...given: Parameters<typeof test.app.db.createIndexes>) => {
        await test.app.db.createIndexes(...given);
        throw new Error('killed');
      },
    };
    await expect(migrate(dying, migrations)).rejects.toThrow('killed');
    expect(await applied()).toEqual(MIGRATIONS.map(({ id }) => id));
    expect(await migrate(test.app.db, migrations)).toEqual([example.id]);
    expect(await notes().findOne({ _id: 1 })).toEqual({ _id: 1, title: 'first' });
  });

  it('of a newer version keeps this one out of the store', async () => {
    await migrate(test.app.db, migrations);
    expect((await findMigrationStatus(test.app.db)).unknown).toEqual([example.id]);
    await expect(migrate(test.app.db)).rejects.toMatchObject({ code: 'STORE_NEWER' });
  });
});

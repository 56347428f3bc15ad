import { readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { uploadFile } from '../../../../src/features/files/uploads/receive-upload.js';
import { backUp } from '../../../../src/features/store-copies/back-up.js';
import { restoreBackup } from '../../../../src/features/store-copies/restore-backup.js';
import { createProject } from '../../../../src/features/projects/create-project.js';
import { listProjects } from '../../../../src/features/projects/project-store.js';
import { beginRestore, isHalfRestored } from '../../../../src/platform/database/restore-mark.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';

let test: TestApp;
let first: string;
let second: string;
const options = { stop: new AbortController().signal, onProgress: () => undefined };

beforeEach(async () => {
  test = await openTestApp();
  first = join(test.dataDir, 'first.backup');
  second = join(test.dataDir, 'second.backup');
  await createProject(test.app, { name: 'early' });
  await backUp(test.app, first, options);
  await createProject(test.app, { name: 'late' });
  await backUp(test.app, second, options);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await test.close();
});

/** Does something in the middle of the restore under way, once. */
function amidRestore(work: () => Promise<unknown>): void {
  const { db } = test.app;
  const open = db.collection.bind(db);
  let looks = 0;
  vi.spyOn(db, 'collection').mockImplementation((name, given) => {
    const store = open(name, given);
    if (name !== 'restores') return store;
    const findOne = store.findOne.bind(store) as (...asked: unknown[]) => Promise<unknown>;
    const watched = async (...asked: unknown[]): Promise<unknown> => {
      if (++looks === 5) await work();
      return findOne(...asked);
    };
    return Object.assign(Object.create(store) as typeof store, { findOne: watched });
  });
}

const namesOf = async (): Promise<string[]> => (await listProjects(test.app)).map(({ name }) => name).sort();

describe('two restores of one store at once', () => {
  it('make it what the one that began last brings; the other one stops', async () => {
    amidRestore(() => restoreBackup(test.app, first, options));
    await expect(restoreBackup(test.app, second, options)).rejects.toMatchObject({ code: 'RESTORE_OVERTAKEN' });
    expect(await namesOf()).toEqual(['early']);
    expect(await isHalfRestored(test.app.db)).toBe(false);
  });

  it('leave a store that is not served when the one that began last has died', async () => {
    amidRestore(() => beginRestore(test.app.db));
    await expect(restoreBackup(test.app, second, options)).rejects.toMatchObject({ code: 'RESTORE_OVERTAKEN' });
    expect(await isHalfRestored(test.app.db)).toBe(true);
    await restoreBackup(test.app, second, options);
    expect(await namesOf()).toEqual(['early', 'late']);
    expect(await isHalfRestored(test.app.db)).toBe(false);
  });
});

describe('files kept locally', () => {
  it('go when neither the backup nor a restored record names them', async () => {
    const { project } = await createProject(test.app, { name: 'files' });
    const files = join(test.dataDir, 'files');
    const upload = (filename: string): Promise<unknown> =>
      uploadFile(
        test.app,
        project,
        { filename, contentType: 'text/plain', body: Readable.from([Buffer.from('x')]) },
        null,
      );
    await upload('kept');
    // As on a machine that reaches the same MongoDB but not these files: their records are in the backup alone.
    await rename(files, `${files}.away`);
    await backUp(test.app, second, options);
    await rename(`${files}.away`, files);
    await upload('late');
    const dir = join(files, project._id.toHexString());
    await writeFile(join(dir, '.restore-1.part'), 'half');
    expect(await readdir(dir)).toHaveLength(3);
    await restoreBackup(test.app, second, options);
    expect(await readdir(dir)).toEqual([expect.stringMatching(/_kept$/) as string]);
  });
});

describe('a backup of a store that was restored', () => {
  it('knows nothing of it', async () => {
    await restoreBackup(test.app, second, options);
    await backUp(test.app, first, options);
    await restoreBackup(test.app, first, options);
    expect(await namesOf()).toEqual(['early', 'late']);
    expect(await isHalfRestored(test.app.db)).toBe(false);
  });
});

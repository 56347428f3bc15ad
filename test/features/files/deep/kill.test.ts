import { Readable } from 'node:stream';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../../src/app.js';
import { confirmFile, confirmUpload } from '../../../../src/features/files/uploads/confirm-upload.js';
import { deleteAllFiles, deleteFile } from '../../../../src/features/files/delete-file.js';
import { objectOf, type FileRecord, fileStore, filesOf } from '../../../../src/features/files/file.js';
import { measureStorage } from '../../../../src/features/files/list-files.js';
import {
  receiveSignedUpload,
  type SignedUpload,
} from '../../../../src/features/files/uploads/receive-signed-upload.js';
import { requestUpload } from '../../../../src/features/files/uploads/request-upload.js';
import { sweepUploads } from '../../../../src/features/files/uploads/sweep-uploads.job.js';
import { discardUpload, uploadFile } from '../../../../src/features/files/uploads/receive-upload.js';
import { recountStorage, usageStore } from '../../../../src/features/files/usage-store.js';
import type { Project } from '../../../../src/features/projects/project.js';
import { updateProject } from '../../../../src/features/projects/update-project.js';
import { buildProject } from '../../../helpers/build-project.js';
import { createFakeClock } from '../../../helpers/fake-clock.js';
import { expectWholeFiles } from '../../../helpers/stored-files.js';
import { crashAfter, killAtEachChange } from '../crashing-app.js';
import { useTestApp } from '../../../helpers/use.js';

const TWO_HOURS = 2 * 60 * 60 * 1000;
const TWO_DAYS = 48 * 60 * 60 * 1000;

let project: Project;

const clock = createFakeClock();
const test = await useTestApp({ clock });
const app = test.app;
beforeEach(async () => {
  ({ project } = await buildProject(app));
});

/** A file whose bytes are stored and which nobody has confirmed. */
async function buildStored(size: number): Promise<string> {
  const input = { filename: 'a.png', contentType: 'image/png', size };
  const { filePath, signedUrl } = await requestUpload(app, project, input, {
    serviceUrl: 'http://x',
    uploadedBy: null,
  });
  await receiveSignedUpload(app, signedUpload(signedUrl, size));
  return filePath;
}

/** A PUT of so many bytes to a signed address. */
function signedUpload(signedUrl: string, size: number): SignedUpload {
  const url = new URL(signedUrl);
  const body = Readable.from([Buffer.alloc(size)]);
  const path = url.pathname.slice('/files/'.length);
  return { path, query: url.searchParams, contentType: 'image/png', contentLength: size, body };
}

const upload = (mortal: App, size: number): Promise<FileRecord> =>
  uploadFile(
    mortal,
    project,
    { filename: 'a.png', contentType: 'image/png', body: Readable.from([Buffer.alloc(size)]) },
    null,
  );

async function findFiles(): Promise<FileRecord[]> {
  return (await fileStore(app).find(filesOf(project._id)).toArray()) as FileRecord[];
}

async function expectConsistent(): Promise<FileRecord[]> {
  clock.advance(TWO_HOURS);
  await sweepUploads(app);
  return expectWholeFiles(app, test.dataDir, project);
}

/** Of a project of its own each time. */
function killEverywhere<T>(
  prepare: () => Promise<T>,
  act: (mortal: App, prepared: T) => Promise<unknown>,
  check: (prepared: T, died: boolean) => Promise<void>,
): Promise<number> {
  const begin = async (): Promise<T> => {
    ({ project } = await buildProject(app));
    return prepare();
  };
  return killAtEachChange((changes) => crashAfter(app, changes).app, begin, act, check);
}

describe('a process killed between any two changes', () => {
  it('of an upload leaves a right quota and no lost bytes', async () => {
    const deaths = await killEverywhere(
      () => Promise.resolve(),
      (mortal) => upload(mortal, 500),
      async (_none, died) => {
        const confirmed = await expectConsistent();
        if (!died) expect(confirmed).toHaveLength(1);
      },
    );
    expect(deaths).toBeGreaterThanOrEqual(4);
  });

  it('of a repeated PUT: what counts is whole, and no bytes are lost', async () => {
    const deaths = await killEverywhere(
      async () => {
        const input = { filename: 'a.png', contentType: 'image/png', size: 500 };
        const grant = await requestUpload(app, project, input, { serviceUrl: 'http://x', uploadedBy: null });
        await receiveSignedUpload(app, signedUpload(grant.signedUrl, 500));
        return grant;
      },
      (mortal, { signedUrl }) => receiveSignedUpload(mortal, signedUpload(signedUrl, 500)),
      async ({ filePath }) => {
        await confirmUpload(app, project, { filePath, size: 500 });
        const [file] = await expectConsistent();
        const opened = await app.files.local.openFile(objectOf(file!));
        await opened?.file.close();
        expect(opened?.size).toBe(500);
      },
    );
    // What a death after that leaves behind is the sweep's, and no error of the request.
    expect(deaths).toBe(3);
  });

  it('of a confirmation: the next one succeeds and charges once', async () => {
    const deaths = await killEverywhere(
      () => buildStored(500),
      (mortal, filePath) => confirmUpload(mortal, project, { filePath, size: 500 }),
      async (filePath) => {
        await confirmUpload(app, project, { filePath, size: 500 });
        expect((await measureStorage(app, project)).bytes).toBe(500);
        expect(await expectConsistent()).toHaveLength(1);
      },
    );
    expect(deaths).toBe(1);
  });

  it('of a confirmation that nobody repeats: swept after an hour, nothing stays charged unless it is confirmed', async () => {
    await killEverywhere(
      () => buildStored(500),
      (mortal, filePath) => confirmUpload(mortal, project, { filePath, size: 500 }),
      async () => void (await expectConsistent()),
    );
  });

  it('of a deletion: the bytes go and the charge is given back once', async () => {
    const deaths = await killEverywhere(
      async () => (await upload(app, 500)).path,
      (mortal, path) => deleteFile(mortal, project, path),
      async () => expect(await expectConsistent()).toEqual([]),
    );
    expect(deaths).toBe(3);
  });

  it('of deleting everything', async () => {
    await killEverywhere(
      () => Promise.all([1, 2, 3].map((size) => upload(app, size * 100))),
      (mortal) => deleteAllFiles(mortal, project),
      async () => expect(await expectConsistent()).toEqual([]),
    );
  });

  it('of a sweep', async () => {
    const deaths = await killEverywhere(
      async () => {
        await upload(app, 100);
        await buildStored(200);
        await fileStore(app).updateOne(
          { path: (await upload(app, 300)).path },
          { $set: { state: 'deleted', settled: false, dueAt: new Date(clock.now()) } },
        );
        clock.advance(TWO_HOURS);
      },
      (mortal) => sweepUploads(mortal),
      async () => expect(await expectConsistent()).toHaveLength(1),
    );
    expect(deaths).toBeGreaterThanOrEqual(4);
  });

  it('of a recount', async () => {
    await killEverywhere(
      async () => {
        await upload(app, 100);
        await usageStore(app).updateOne({ _id: project._id }, { $inc: { bytes: 7 } });
      },
      (mortal) => recountStorage(mortal, project),
      async () => {
        await recountStorage(app, project);
        await expectConsistent();
      },
    );
  });
});

describe('a recount', () => {
  it('sets a wrong counter right', async () => {
    await upload(app, 100);
    const filePath = await buildStored(30);
    await usageStore(app).updateOne({ _id: project._id }, { $set: { bytes: 12345 } });
    expect(await recountStorage(app, project)).toEqual({ before: 12345, after: 100 });
    await confirmUpload(app, project, { filePath, size: 30 });
    expect((await measureStorage(app, project)).bytes).toBe(130);
  });

  it('changes nothing while charges go on, however they fall', async () => {
    const uploads = Array.from({ length: 20 }, () => upload(app, 10));
    const recounts = Array.from({ length: 10 }, () => recountStorage(app, project));
    await Promise.all([...uploads, ...recounts]);
    expect((await measureStorage(app, project)).bytes).toBe(200);
  });
});

describe('the sweep', () => {
  it('leaves an unconfirmed upload alone for an hour', async () => {
    const filePath = await buildStored(10);
    clock.advance(59 * 60 * 1000);
    await sweepUploads(app);
    await confirmUpload(app, project, { filePath, size: 10 });
    clock.advance(TWO_DAYS);
    await sweepUploads(app);
    expect(await expectConsistent()).toHaveLength(1);
  });

  it('makes a confirmation that comes too late 404, charging nothing', async () => {
    const filePath = await buildStored(10);
    clock.advance(TWO_HOURS);
    await sweepUploads(app);
    await expect(confirmUpload(app, project, { filePath, size: 10 })).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(await expectConsistent()).toEqual([]);
  });

  it('forgets records of deleted files after a day', async () => {
    await deleteFile(app, project, (await upload(app, 10)).path);
    expect(await findFiles()).toHaveLength(1);
    clock.advance(TWO_DAYS);
    await sweepUploads(app);
    expect(await findFiles()).toEqual([]);
  });
});

describe('any interleaving of uploads, confirmations, deletions, sweeps, recounts and deaths', () => {
  const actions = [
    'confirm',
    'confirm',
    'confirm',
    'delete',
    'delete',
    'abandon',
    'abandon',
    'sweep',
    'recount',
    'upload',
  ] as const;
  const step = fc.record({
    action: fc.constantFrom(...actions),
    file: fc.nat(5),
    dies: fc.option(fc.integer({ min: 1, max: 6 }), { nil: null }),
  });

  it('ends with the counter equal to the confirmed files, and never beyond the limit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 60 }),
        fc.array(fc.nat(12), { minLength: 64, maxLength: 64 }),
        async (steps, pauses) => {
          let turn = 0;
          const pause = async (): Promise<void> => {
            for (let left = pauses[turn++ % pauses.length]!; left > 0; left--) await new Promise(setImmediate);
          };
          const limits = { storage: 450 };
          ({ project } = await buildProject(app));
          await updateProject(app, project.name, { limits });
          project = { ...project, limits };
          const paths = await Promise.all(Array.from({ length: 6 }, () => buildStored(100)));
          const run = async ({ action, file, dies }: (typeof steps)[number]): Promise<void> => {
            const actor = crashAfter(app, dies ?? Infinity, pause).app;
            const filePath = paths[file]!;
            if (action === 'confirm') await confirmUpload(actor, project, { filePath, size: 100 });
            if (action === 'delete') await deleteFile(actor, project, filePath);
            if (action === 'sweep') await sweepUploads(actor);
            if (action === 'recount') await recountStorage(actor, project);
            if (action === 'abandon')
              await discardUpload(actor, (await fileStore(app).findOne({ path: filePath })) as FileRecord);
            if (action === 'upload') await upload(actor, 100);
          };
          await Promise.all(steps.map((each) => run(each).catch(() => undefined)));
          expect((await measureStorage(app, project)).bytes).toBeLessThanOrEqual(450);
          const confirmed = await expectConsistent();
          expect(confirmed.length).toBeLessThanOrEqual(4);
          for (const file of confirmed) await confirmFile(app, project, file);
          await expectConsistent();
        },
      ),
      { seed: 20261121, numRuns: 60 },
    );
  });
});

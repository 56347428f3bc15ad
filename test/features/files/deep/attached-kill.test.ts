import { Readable } from 'node:stream';
import { ObjectId } from 'bson';
import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../../src/app.js';
import type { Collection } from '../../../../src/features/collections/collection.js';
import { deleteDocument, trashDocument } from '../../../../src/features/documents/write/change-state.js';
import { insertDocument } from '../../../../src/features/documents/write/insert-document.js';
import { purgeTrash } from '../../../../src/features/documents/bulk/remove-old-documents.job.js';
import { removeAttached, sweepAttached } from '../../../../src/features/files/attached/attached.job.js';
import { type FileRecord, fileStore, filesOf } from '../../../../src/features/files/file.js';
import { sweepUploads } from '../../../../src/features/files/uploads/sweep-uploads.job.js';
import { uploadFile } from '../../../../src/features/files/uploads/receive-upload.js';
import type { Project } from '../../../../src/features/projects/project.js';
import { openJobQueue } from '../../../../src/platform/jobs/job-queue.js';
import { DAY_MS } from '../../../../src/platform/time/clock.js';
import { drainJobs } from '../../../../src/worker.js';
import { buildCollection, buildProject, storedDocuments } from '../../../helpers/build-project.js';
import { createFakeClock } from '../../../helpers/fake-clock.js';
import { expectWholeFiles } from '../../../helpers/stored-files.js';
import { useTestApp } from '../../../helpers/use.js';
import { crashAfter, killAtEachChange, sleepBefore } from '../crashing-app.js';

const TWO_HOURS = 2 * 60 * 60 * 1000;

let project: Project;
let cards: Collection;

const clock = createFakeClock();
const test = await useTestApp({ clock });
const app = test.app;
beforeEach(() => begin());

async function begin(): Promise<void> {
  ({ project } = await buildProject(app));
  cards = await buildCollection(app, project);
}

const place = () => ({ collection: cards, writer: null });
const addCard = async (): Promise<ObjectId> =>
  new ObjectId((await insertDocument(app, place(), { n: 1 }))._id as string);

async function attach(to: App, id: ObjectId): Promise<FileRecord> {
  const file = { filename: 'a.png', contentType: 'image/png', body: Readable.from([Buffer.alloc(500)]) };
  const { createdAt: since } = (await storedDocuments(app, cards).findOne({ _id: id }))!;
  return uploadFile(to, project, file, null, { attachedTo: { collectionId: cards._id, id, since } });
}

const attachedTo = (id: ObjectId) => ({
  projectId: project._id.toHexString(),
  collectionId: cards._id.toHexString(),
  id: id.toHexString(),
});

/** The same app as a process that dies after so many changes, its jobs among them. */
function dying(after: number): App {
  const { app: mortal } = crashAfter(app, after);
  return { ...mortal, jobs: openJobQueue(mortal.db, app.clock, null) };
}

/** What holds once jobs and sweeps have come by: the files that are there are those of these cards. */
async function expectFilesOf(counts: readonly [ObjectId, number][]): Promise<void> {
  clock.advance(TWO_HOURS);
  while ((await drainJobs(app)) > 0);
  await sweepAttached(app);
  await sweepUploads(app);
  const confirmed = await expectWholeFiles(app, test.dataDir, project);
  for (const [id, count] of counts) {
    expect(confirmed.filter((file) => file.attachedTo!.id.equals(id))).toHaveLength(count);
  }
  expect(confirmed).toHaveLength(counts.reduce((sum, [, count]) => sum + count, 0));
}

const isThere = async (id: ObjectId): Promise<boolean> =>
  (await storedDocuments(app, cards).findOne({ _id: id })) !== null;

function killEverywhere<T>(
  prepare: () => Promise<T>,
  act: (mortal: App, prepared: T) => Promise<unknown>,
  check: (prepared: T, died: boolean) => Promise<void>,
): Promise<number> {
  return killAtEachChange(dying, () => begin().then(prepare), act, check);
}

describe('a process killed between any two changes', () => {
  it('of an upload to a document: the file is whole or nothing is kept of it', async () => {
    const deaths = await killEverywhere(addCard, attach, async (id, died) => {
      const state = { ...filesOf(project._id), state: 'confirmed' as const };
      const confirmed = await fileStore(app).countDocuments(state);
      if (!died) expect(confirmed).toBe(1);
      await expectFilesOf([[id, confirmed]]);
    });
    expect(deaths).toBeGreaterThanOrEqual(4);
  });

  it('of a removal for good: the files are there exactly as long as the document is', async () => {
    const deaths = await killEverywhere(
      async () => {
        const [id, other] = [await addCard(), await addCard()];
        for (const each of [id, id, other]) await attach(app, each);
        return { id, other };
      },
      (mortal, { id }) => deleteDocument(mortal, place(), id.toHexString()),
      async ({ id, other }, died) => {
        const isKept = await isThere(id);
        if (!died) expect(isKept).toBe(false);
        await expectFilesOf([
          [id, isKept ? 2 : 0],
          [other, 1],
        ]);
      },
    );
    expect(deaths).toBeGreaterThanOrEqual(1);
  });

  it('of the job and of the sweep that remove the files of what is gone', async () => {
    for (const run of [
      (mortal: App, id: ObjectId) => removeAttached(mortal, attachedTo(id)),
      (mortal: App) => sweepAttached(mortal),
    ]) {
      const deaths = await killEverywhere(
        async () => {
          const [id, other] = [await addCard(), await addCard()];
          for (const each of [id, id, other]) await attach(app, each);
          await storedDocuments(app, cards).deleteOne({ _id: id });
          return { id, other };
        },
        (mortal, { id }) => run(mortal, id),
        ({ id, other }) =>
          expectFilesOf([
            [id, 0],
            [other, 1],
          ]),
      );
      expect(deaths).toBeGreaterThanOrEqual(3);
    }
  });

  it('of emptying the trash', async () => {
    await killEverywhere(
      async () => {
        const [id, other] = [await addCard(), await addCard()];
        for (const each of [id, other]) await attach(app, each);
        await trashDocument(app, place(), id.toHexString());
        clock.advance(400 * DAY_MS);
        return { id, other };
      },
      (mortal) => purgeTrash(mortal),
      async ({ id, other }) =>
        expectFilesOf([
          [id, (await isThere(id)) ? 1 : 0],
          [other, 1],
        ]),
    );
  });
});

it('keeps nothing of an upload whose document is removed while it goes on', async () => {
  let slept = 0;
  for (let step = 1; ; step++) {
    await begin();
    const id = await addCard();
    const { app: sleeper, reached, wake } = sleepBefore(app, step);
    const uploading = attach(sleeper, id).then(() => 'ended' as const);
    const first = await Promise.race([reached.then(() => 'sleeps' as const), uploading]);
    await deleteDocument(app, place(), id.toHexString());
    while ((await drainJobs(app)) > 0);
    await sweepAttached(app);
    wake();
    await uploading;
    await expectFilesOf([[id, 0]]);
    if (first === 'ended') break;
    slept++;
  }
  expect(slept).toBeGreaterThanOrEqual(5);
});

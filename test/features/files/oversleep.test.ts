import { PassThrough, Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { confirmFile } from '../../../src/features/files/uploads/confirm-upload.js';
import { deleteFile, dropProjectFiles } from '../../../src/features/files/delete-file.js';
import { type FileRecord, fileStore } from '../../../src/features/files/file.js';
import { measureStorage } from '../../../src/features/files/list-files.js';
import { reapFiles } from '../../../src/features/files/uploads/reap-files.js';
import { discardUpload, uploadFile } from '../../../src/features/files/uploads/receive-upload.js';
import type { Project } from '../../../src/features/projects/project.js';
import { buildProject } from '../../helpers/build-project.js';
import { eventually } from '../../helpers/eventually.js';
import { listStoredFiles } from '../../helpers/storage-client.js';
import { useTestApp } from '../../helpers/use.js';
import { sleepBefore } from './crashing-app.js';

// Confirming is one step; settling a file has two: its bytes are removed, then they are given back.
const CHARGE = 1;
const GIVE_BACK = 2;

let project: Project;
let file: FileRecord;

const test = await useTestApp();
const app = test.app;
beforeEach(async () => {
  ({ project } = await buildProject(app));
  // A second file, so that the counter does not stand at zero.
  await upload(1000);
  file = await upload(100);
});

const upload = (size: number): Promise<FileRecord> =>
  uploadFile(
    app,
    project,
    { filename: 'a.png', contentType: 'image/png', body: Readable.from([Buffer.alloc(size)]) },
    null,
  );
const usedBytes = async (): Promise<number> => (await measureStorage(app, project)).bytes;
const isDeleted = { $set: { state: 'deleted' as const, settled: false, deletedAt: new Date(0), dueAt: new Date(0) } };

/** Takes the file back to where its bytes are stored and nothing is charged. */
async function unconfirm(): Promise<void> {
  await fileStore(app).updateOne({ _id: file._id }, { $set: { state: 'stored' }, $unset: { confirmedAt: '' } });
  await app.db.collection('storage_usage').updateOne({ _id: project._id }, { $inc: { bytes: -100 } });
  expect(await usedBytes()).toBe(1000);
}

describe('a confirmation that falls asleep right before its charge', () => {
  beforeEach(unconfirm);

  it('does not charge what another has confirmed meanwhile', async () => {
    const sleeper = sleepBefore(app, CHARGE);
    const late = confirmFile(sleeper.app, project, file);
    await sleeper.reached;
    await confirmFile(app, project, file);
    sleeper.wake();
    expect(await late).toMatchObject({ state: 'confirmed' });
    expect(await usedBytes()).toBe(1100);
  });

  it('does not charge what was given up meanwhile', async () => {
    const sleeper = sleepBefore(app, CHARGE);
    const late = confirmFile(sleeper.app, project, file);
    await sleeper.reached;
    await discardUpload(app, file);
    sleeper.wake();
    await expect(late).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(await usedBytes()).toBe(1000);
  });

  it('does not charge what is given up by another who is asleep too', async () => {
    const confirming = sleepBefore(app, CHARGE);
    const late = confirmFile(confirming.app, project, file);
    await confirming.reached;
    await fileStore(app).updateOne({ _id: file._id }, isDeleted);
    const settling = sleepBefore(app, GIVE_BACK);
    const settled = reapFiles(settling.app, project._id, [file]);
    await settling.reached;
    confirming.wake();
    await expect(late).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(await usedBytes()).toBe(1000);
    settling.wake();
    await settled;
    expect(await usedBytes()).toBe(1000);
  });
});

describe('an upload that ends after it was given up', () => {
  it.each([
    ['with its project', () => dropProjectFiles(app, project)],
    ['by the sweep', () => fileStore(app).updateMany({ projectId: project._id, state: 'requested' }, isDeleted)],
  ])('%s leaves no bytes behind', async (_what, giveUp) => {
    const body = new PassThrough();
    const before = await listStoredFiles(test.dataDir);
    const late = uploadFile(app, project, { filename: 'a.png', contentType: 'image/png', body }, null);
    body.write(Buffer.alloc(100));
    await eventually('its record', () => fileStore(app).findOne({ projectId: project._id, state: 'requested' }));
    await giveUp();
    body.end();
    await expect(late).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect((await listStoredFiles(test.dataDir)).filter((path) => !before.includes(path))).toEqual([]);
  });
});

describe('a refund that falls asleep right before giving back', () => {
  it('does not give back what another has given back meanwhile', async () => {
    await fileStore(app).updateOne({ _id: file._id }, isDeleted);
    const sleeper = sleepBefore(app, GIVE_BACK);
    const late = reapFiles(sleeper.app, project._id, [file]);
    await sleeper.reached;
    await reapFiles(app, project._id, [file]);
    expect(await usedBytes()).toBe(1000);
    sleeper.wake();
    await late;
    expect(await usedBytes()).toBe(1000);
  });

  it('is made by one deletion only', async () => {
    const replies = await Promise.allSettled(Array.from({ length: 10 }, () => deleteFile(app, project, file.path)));
    expect(replies.filter((reply) => reply.status === 'fulfilled')).toHaveLength(1);
    expect(await usedBytes()).toBe(1000);
  });
});

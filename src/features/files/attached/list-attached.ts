import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { forbidden } from '../../../errors.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { attachedPrefix } from '../../documents/store/attached-files.js';
import { documentStore } from '../../documents/store/document-store.js';
import { documentNotFound, requireDocumentId } from '../../documents/write/write-target.js';
import type { Project } from '../../projects/project.js';
import { isSince, TRASH_TOO, fileStore, type FileRecord } from '../file.js';
import { presentListedFile } from '../list-files.js';
import { readSince, signLink } from './link-files.js';

export const MAX_ATTACHED = 100;

/**
 * The files of a document, in the trash too, for operators: the first hundred by their paths, each with a link of ten
 * minutes, null where its storage is not there any more. 404 where there is no such document.
 */
export async function listAttached(
  app: App,
  project: Project,
  collection: Collection,
  idText: string,
  serviceUrl: string,
): Promise<(Awaited<ReturnType<typeof presentListedFile>> & { link: string | null })[]> {
  const _id = requireDocumentId(idText);
  const document = await documentStore(app, collection).findOne({ _id }, { projection: { createdAt: 1 } });
  if (!document) throw documentNotFound();
  const own = await findAttached(app, project, collection, _id, document.createdAt);
  return Promise.all(
    own.map(async (file) => ({
      ...(await presentListedFile(app, project, file, serviceUrl)),
      link: await signLink(app, project, file, serviceUrl, TRASH_TOO),
    })),
  );
}

/** An attached file and its link. */
export interface ReadableFile {
  path: string;
  name: string;
  contentType: string;
  size: number | null;
  createdAt: string;
  /** Valid for ten minutes; null if its storage no longer exists. */
  url: string | null;
}

/**
 * The files of a document that the caller may read: the first hundred by their paths. Refused as a GET of the document
 * is; 403 USERS_BLOCKED.
 */
export async function listReadable(
  app: App,
  caller: Caller,
  { name, id }: { name: string; id: string },
  serviceUrl: string,
): Promise<ReadableFile[]> {
  if (name === USERS) throw forbidden('USERS_BLOCKED', 'Users have no attached files');
  const { project } = caller;
  const _id = requireDocumentId(id);
  const collection = await requireCollection(app, project._id, name);
  const since = await readSince(app, caller, name, id);
  const files = await findAttached(app, project, collection, _id, since);
  return Promise.all(
    files.map(async (file) => ({
      path: file.path,
      name: file.name,
      contentType: file.contentType,
      size: file.size,
      createdAt: file.createdAt.toISOString(),
      url: await signLink(app, project, file, serviceUrl),
    })),
  );
}

async function findAttached(
  app: App,
  project: Project,
  collection: Collection,
  id: ObjectId,
  createdAt: Date | null | undefined,
): Promise<FileRecord[]> {
  const prefix = attachedPrefix({
    projectId: project._id.toHexString(),
    collectionId: collection._id.toHexString(),
    id: id.toHexString(),
  });
  const files = await fileStore(app)
    .find({ path: { $gte: prefix, $lt: `${prefix.slice(0, -1)}.` }, state: 'confirmed' })
    .sort({ path: 1 })
    .limit(MAX_ATTACHED)
    .toArray();
  return files.filter(({ attachedTo }) => attachedTo && isSince(attachedTo, createdAt));
}

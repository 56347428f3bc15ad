import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import { attachedPrefix } from '../../documents/store/attached-files.js';
import { documentStore } from '../../documents/store/document-store.js';
import { documentNotFound, requireDocumentId } from '../../documents/write/write-target.js';
import type { Project } from '../../projects/project.js';
import { isSince, TRASH_TOO, fileStore } from '../file.js';
import { presentListedFile } from '../list-files.js';
import { signLink } from './link-files.js';

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
  const prefix = attachedPrefix({
    projectId: project._id.toHexString(),
    collectionId: collection._id.toHexString(),
    id: _id.toHexString(),
  });
  const files = await fileStore(app)
    .find({ path: { $gte: prefix, $lt: `${prefix.slice(0, -1)}.` }, state: 'confirmed' })
    .sort({ path: 1 })
    .limit(MAX_ATTACHED)
    .toArray();
  const own = files.filter(({ attachedTo }) => attachedTo && isSince(attachedTo, document.createdAt));
  return Promise.all(
    own.map(async (file) => ({
      ...(await presentListedFile(app, project, file, serviceUrl)),
      link: await signLink(app, project, file, serviceUrl, TRASH_TOO),
    })),
  );
}

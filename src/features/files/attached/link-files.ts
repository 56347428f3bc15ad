import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { takeTurns } from '../../../scheduler.js';
import type { Caller } from '../../access/caller.js';
import type { Project } from '../../projects/project.js';
import { getDocument } from '../../documents/read/get-document.js';
import { readEncoded } from '../../documents/reply/encoded-reply.js';
import { isSince, objectOf, visibilityOf, type FileRecord, openPlace, fileMissing, findFile } from '../file.js';
import { findName } from './attach-file.js';

/** The time for which a link is good: as long as that it outlives a right that was taken away. */
const LINK_MS = 10 * 60 * 1000;

/** An address that reads a file for ten minutes. */
export interface FileLink {
  url: string;
  expiresIn: '10m';
}

/**
 * A link to a file that the caller may read (writes.md 5): an attached one those who may read its document, any the
 * secret key. 404 FILE_NOT_FOUND for every other path, whether there is a file or not.
 */
export async function linkFile(app: App, caller: Caller, path: string, serviceUrl: string): Promise<FileLink> {
  const { project } = caller;
  const file = await findFile(app, project._id, path);
  if (file?.state !== 'confirmed' || !(await mayRead(app, caller, file))) throw fileMissing();
  const url = await signLink(app, project, file, serviceUrl);
  if (url === null) throw fileMissing();
  return { url, expiresIn: '10m' };
}

/** The address of a link; null where the storage of the file is not there any more. */
export async function signLink(
  app: App,
  project: Project,
  file: FileRecord,
  serviceUrl: string,
  mark?: string,
): Promise<string | null> {
  const store = await openPlace(app, project, file);
  if (!store) return null;
  const object = store.kind === 's3' ? objectOf(file) : file.path;
  return store.signGetUrl(object, LINK_MS, serviceUrl, mark);
}

/** Links to several files, in their order; null for those that linkFile refuses. */
export async function linkFiles(
  app: App,
  caller: Caller,
  paths: readonly string[],
  serviceUrl: string,
): Promise<({ path: string } & (FileLink | { url: null }))[]> {
  const turn = takeTurns();
  const links = [];
  for (const path of paths) {
    await turn();
    const link = await linkFile(app, caller, path, serviceUrl).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return { url: null };
      throw error;
    });
    links.push({ path, ...link });
  }
  return links;
}

/** The ways in which a document is not readable. A token that is no longer good is refused, so that it is renewed. */
function isRefused({ kind }: AppError, { bearer }: Caller): boolean {
  return kind === 'forbidden' || kind === 'missing' || (kind === 'unauthenticated' && bearer.state !== 'invalid');
}

/** When a document was stored that the caller may read; refused as a GET of it is. */
export async function readSince(app: App, caller: Caller, name: string, id: string): Promise<Date | null> {
  const reply = await getDocument(app, caller, name, id, 'fields=createdAt');
  const { createdAt } = readEncoded(reply) as { createdAt?: string };
  return createdAt === undefined ? null : new Date(createdAt);
}

async function mayRead(app: App, caller: Caller, file: FileRecord): Promise<boolean> {
  if (visibilityOf(file) === 'public') return true;
  if (!file.attachedTo) return caller.key.type === 'secret';
  const { collectionId, id } = file.attachedTo;
  const name = await findName(app, caller.project, collectionId);
  if (name === null) return false;
  try {
    return isSince(file.attachedTo, await readSince(app, caller, name, id.toHexString()));
  } catch (error) {
    if (error instanceof AppError && isRefused(error, caller)) return false;
    throw error;
  }
}

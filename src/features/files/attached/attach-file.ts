import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict, forbidden, invalid } from '../../../errors.js';
import { compileCheck } from '../../../platform/schema/check-schema.js';
import { object, text, TEXT } from '../../../platform/schema/schema.js';
import { requireUserId } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import { collectionStore } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { requireUpdatable } from '../../documents/write/change-state.js';
import type { Project } from '../../projects/project.js';
import { isPublicBucket } from '../bucket/check-bucket.js';
import { isSince, type FileDocument, type FileRecord, choosePlace, openPlace, fileMissing } from '../file.js';
import type { SeenBy } from '../uploads/request-upload.js';

/** The document that an upload is to belong to. */
export const ATTACH = object({ collection: text({ minLength: 1, maxLength: 64 }), id: TEXT }, 'AttachedTo');

const checkAttach = compileCheck(ATTACH);

/** What an upload says about who is to read it, as it came. */
export interface SaidVisibility {
  attach?: { collection: string; id: string } | undefined;
  visibility?: string | undefined;
}

/** The fields of a form; 400 where `attach` is not JSON of a document. */
export function readSaid(texts: ReadonlyMap<string, string>): SaidVisibility {
  const attach = texts.get('attach');
  return {
    ...(attach !== undefined && { attach: checkAttach(readJson(attach)) }),
    visibility: texts.get('visibility'),
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('INVALID_BODY', 'The field attach must be JSON such as {"collection":"cards","id":"…"}');
  }
}

/**
 * Decides whether the caller may upload what is to be seen so, and by whom it is then read (writes.md 5): to a document
 * those who may update it, privately the secret key, publicly also a publishable key where the project lets those.
 */
export async function requireUploader(app: App, caller: Caller, said: SaidVisibility): Promise<SeenBy> {
  const { attach, visibility } = said;
  const { project, key } = caller;
  if (attach) {
    if (visibility !== undefined && visibility !== 'attached') throw wrongVisibility();
    if (attach.collection === USERS) throw forbidden('USERS_BLOCKED', 'Users have no attached files');
    const { collection, createdAt: since } = await requireUpdatable(app, caller, attach.collection, attach.id);
    await requirePrivatePlace(app, project);
    return { attachedTo: { collectionId: collection._id, id: new ObjectId(attach.id), since } };
  }
  if (visibility === 'private') {
    if (key.type !== 'secret') throw forbidden('SECRET_KEY_REQUIRED', 'Private files are uploaded with the secret key');
    await requirePrivatePlace(app, project);
    return { isPrivate: true };
  }
  if (visibility !== undefined && visibility !== 'public') throw wrongVisibility();
  requirePublicUploads(caller);
  return {};
}

/** 403 if only servers of the project may upload public files (decisions.md 6). */
export function requirePublicUploads({ project, key }: Caller): void {
  if (key.type === 'secret' || project.storage?.publishableUploads) return;
  throw forbidden(
    'SECRET_KEY_REQUIRED',
    `This needs the secret key (sk_live_…); never use it in a browser or an app, unless "bsvc project update ${project.name} --publishable-uploads on" lets publishable keys upload`,
  );
}

/** Whether the caller may confirm a file: attached, those who may update its document; 404 where that is gone. */
export async function requireConfirmer(app: App, caller: Caller, { attachedTo, isPrivate }: FileRecord): Promise<void> {
  if (attachedTo) return requireFileWriter(app, caller, attachedTo);
  if (isPrivate && caller.key.type !== 'secret') throw fileMissing();
  requirePublicUploads(caller);
}

/** Whether the caller may delete a file: as requireConfirmer; of public ones a user deletes the own. */
export async function requireRemover(app: App, caller: Caller, file: FileRecord): Promise<void> {
  await requireConfirmer(app, caller, file);
  if (file.attachedTo || caller.key.type === 'secret') return;
  // Paths stand in public addresses, so knowing one is no right to it.
  if (file.uploadedBy === requireUserId(caller)) return;
  throw forbidden('OWNER_MISMATCH', 'With a publishable key, users can delete only their own uploads');
}

async function requireFileWriter(app: App, caller: Caller, attachedTo: FileDocument): Promise<void> {
  const name = await findName(app, caller.project, attachedTo.collectionId);
  if (name === null) throw fileMissing();
  try {
    const { createdAt } = await requireUpdatable(app, caller, name, attachedTo.id.toHexString());
    if (!isSince(attachedTo, createdAt)) throw fileMissing();
  } catch (error) {
    throw error instanceof AppError && error.kind === 'missing' ? fileMissing() : error;
  }
}

/** The name of a collection that is there. */
export async function findName(app: App, project: Pick<Project, '_id'>, _id: ObjectId): Promise<string | null> {
  const found = await collectionStore(app).findOne({ _id, projectId: project._id, state: 'active' });
  return found?.name ?? null;
}

async function requirePrivatePlace(app: App, project: Project): Promise<void> {
  const place = choosePlace(app, project);
  const bucketId = project.storage?.bucket?.id;
  const store = await openPlace(app, project, { place, ...(bucketId !== undefined && { bucketId }) });
  if (store?.kind !== 's3' || !(await isPublicBucket(store))) return;
  throw conflict(
    'BUCKET_IS_PUBLIC',
    'This bucket is publicly readable, so it accepts public files only. Make it private and run "bsvc byok bucket show --check"',
  );
}

function wrongVisibility(): AppError {
  return invalid('INVALID_BODY', 'visibility is "public", "private", or "attached" with attach');
}

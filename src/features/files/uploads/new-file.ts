import { randomUUID } from 'node:crypto';
import { ObjectId } from 'bson';
import { attachedPrefix } from '../../documents/store/attached-files.js';
import type { Project } from '../../projects/project.js';
import type { FileDocument, FilePlace, FileRecord } from '../file.js';
import { UNCONFIRMED_MS } from '../file.js';

const MAX_NAME_CHARACTERS = 100;
/** The path of an attached file has the ids of its document too. */
const MAX_ATTACHED_NAME_CHARACTERS = 80;

export interface NewFile {
  name: string;
  contentType: string;
  declaredSize: number | null;
  place: FilePlace;
  /** The end user who uploads it; null when nobody is signed in. */
  uploadedBy: string | null;
  seenBy: SeenBy;
}

/** Who reads a file, and its document where it has one. */
export interface SeenBy {
  attachedTo?: FileDocument;
  isPrivate?: true;
}

/** The record of an upload that begins now, at a path that was never used. */
export function newFile(
  project: Project,
  { name, contentType, declaredSize, place, uploadedBy, seenBy }: NewFile,
  nowMs: number,
): FileRecord {
  const { attachedTo } = seenBy;
  const safeName = sanitiseName(name, attachedTo ? MAX_ATTACHED_NAME_CHARACTERS : MAX_NAME_CHARACTERS);
  const projectId = project._id.toHexString();
  const path = attachedTo
    ? attachedPrefix({
        projectId,
        collectionId: attachedTo.collectionId.toHexString(),
        id: attachedTo.id.toHexString(),
      }) + randomUUID().replaceAll('-', '')
    : `${projectId}/${randomUUID()}`;
  return {
    _id: new ObjectId(),
    projectId: project._id,
    path: `${path}_${safeName}`,
    name: safeName,
    contentType,
    declaredSize,
    size: null,
    state: 'requested',
    place,
    ...(uploadedBy !== null && { uploadedBy }),
    ...(place === 'external' && { bucketId: project.storage!.bucket!.id }),
    ...seenBy,
    createdAt: new Date(nowMs),
    dueAt: new Date(nowMs + UNCONFIRMED_MS),
  };
}

/**
 * The last part of a name in letters, digits, `.`, `_` and `-`, short, its extension kept; `file` when nothing is left.
 */
function sanitiseName(name: string, most: number): string {
  const base = name.normalize('NFKD').split(/[/\\]/).at(-1)!;
  const safe = base
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.-]+|[.-]+$/g, '');
  if (safe.length <= most) return safe || 'file';
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(safe)?.[0] ?? '';
  return safe.slice(0, most - extension.length).replace(/[.-]+$/, '') + extension;
}

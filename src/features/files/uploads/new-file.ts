import { randomUUID } from 'node:crypto';
import { ObjectId } from 'bson';
import type { Project } from '../../projects/project.js';
import type { FilePlace, FileRecord } from '../file.js';
import { UNCONFIRMED_MS } from '../file.js';

const MAX_NAME_CHARACTERS = 100;

export interface NewFile {
  name: string;
  contentType: string;
  declaredSize: number | null;
  place: FilePlace;
  /** The end user who uploads it; null when nobody is signed in. */
  uploadedBy: string | null;
}

/** The record of an upload that begins now, at a path that was never used. */
export function newFile(
  project: Project,
  { name, contentType, declaredSize, place, uploadedBy }: NewFile,
  nowMs: number,
): FileRecord {
  const safeName = sanitiseName(name);
  return {
    _id: new ObjectId(),
    projectId: project._id,
    path: `${project._id.toHexString()}/${randomUUID()}_${safeName}`,
    name: safeName,
    contentType,
    declaredSize,
    size: null,
    state: 'requested',
    place,
    ...(uploadedBy !== null && { uploadedBy }),
    ...(place === 'external' && { bucketId: project.storage!.bucket!.id }),
    createdAt: new Date(nowMs),
    dueAt: new Date(nowMs + UNCONFIRMED_MS),
  };
}

/**
 * The last part of a name in letters, digits, `.`, `_` and `-`, short, its extension kept; `file` when nothing is left.
 */
function sanitiseName(name: string): string {
  const base = name.normalize('NFKD').split(/[/\\]/).at(-1)!;
  const safe = base
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.-]+|[.-]+$/g, '');
  if (safe.length <= MAX_NAME_CHARACTERS) return safe || 'file';
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(safe)?.[0] ?? '';
  return safe.slice(0, MAX_NAME_CHARACTERS - extension.length).replace(/[.-]+$/, '') + extension;
}

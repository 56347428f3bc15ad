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
  /** The end user who uploads it; null for anonymous callers. */
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
  const most = attachedTo ? MAX_ATTACHED_NAME_CHARACTERS : MAX_NAME_CHARACTERS;
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
    path: `${path}_${nameInPath(name, most)}`,
    name: shownName(name, most),
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

/** The name of a file as people gave it, in any script: its last part, without control characters, cut to `most`. */
function shownName(given: string, most: number): string {
  const name = given
    .normalize('NFC')
    .split(/[/\\]/)
    .at(-1)!
    // Characters that control text, or turn its direction so that one extension looks like another.
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\ufeff]/gu, '')
    .trim();
  return shorten(name, most) || 'file';
}

/**
 * The same in letters, digits, `.`, `_` and `-` for the path, its extension kept: `file` where nothing else is left of
 * it, `file.pdf` of a name in another script.
 */
function nameInPath(given: string, most: number): string {
  const safe = shownName(given, Infinity)
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^-+(?=\.\w)/, 'file')
    .replace(/^[.-]+|[.-]+$/g, '');
  return shorten(safe, most) || 'file';
}

/** At most so many characters, the extension kept. */
function shorten(name: string, most: number): string {
  const characters = [...name];
  if (characters.length <= most) return name;
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? '';
  return (
    characters
      .slice(0, most - extension.length)
      .join('')
      .replace(/[.-]+$/, '') + extension
  );
}
